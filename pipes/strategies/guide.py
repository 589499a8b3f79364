"""Guides: who the agent is, and what it remembers before a chat begins."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Guide(BaseModel):
    """Who the agent is, and what it remembers before a chat begins.

    `memory_policy` says how much of a chat it remembers: all, or a `sliding-window` of
    turns. In a file the keys are in camel case or snake case.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel
    )

    system_prompt: str
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory_policy: str = ""
    initial_memories: tuple[str, ...] = ()


NO_GUIDE = Guide(system_prompt="")

BUILT_IN_GUIDES: Mapping[str, Guide] = {
    "researcher": Guide(
        system_prompt="You find things out. Prefer primary and recent sources, compare "
        "at least two of them for every claim that matters, and name the source beside "
        "the claim. Separate what is established from what is disputed."
    ),
    "engineer": Guide(
        system_prompt="You are an experienced software engineer. Read before you "
        "write, change as little as solves the problem, keep to the style of what is "
        "there, and say how you checked that it works. Show code in fenced blocks.",
        temperature=0.2,
    ),
    "companion": Guide(
        system_prompt="You help with everyday questions in plain, friendly words. "
        "Answer first, then explain, and keep it short unless more is asked for.",
        memory_policy="sliding-window",
    ),
}
