"""Which model answers for a name that leaves the choice to us.

The rule, the first that fits: a chat stays with the model that began it, because its
reasoning and the prompt cache are that model's; files or pictures, tools that the user
chose, code, and a question longer than 600 characters go to the large model; anything
else goes to the small one. Only the first message of a chat counts, so that the same
chat always gets the same answer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from openai_responses.items import Item, content_parts, part_text


class Candidates(NamedTuple):
    """Two models of one family."""

    small: str
    large: str


AUTO_MODELS: Mapping[str, Candidates] = {
    "gpt-5-auto": Candidates("gpt-6.1-terra", "gpt-6.1-sol")
}
"""What stands behind each name; the first candidates of gpt-5-auto are gone."""

_LONG_QUESTION = 600
_ATTACHED = ("input_file", "input_image")


@dataclass(frozen=True, slots=True)
class Choice:
    """A model, and why it was chosen, as the end of a sentence."""

    model: str
    why: str


def choose_model(
    name: str, first: Mapping[str, Any] | None, tools: bool, earlier: Collection[str]
) -> Choice | None:
    """Return the choice for a name of ours, None for any other name.

    `first` is the first message of the user, `tools` says whether the user chose some,
    `earlier` holds the families of models that answered in this chat.
    """
    candidates = AUTO_MODELS.get(name)
    if candidates is None:
        return None
    for model in candidates:
        if model in earlier:
            return Choice(model, "it began this chat")
    if first is None:
        return Choice(candidates.large, "there is no question to judge by")
    reason = _reason_for_large(first, tools)
    if reason:
        return Choice(candidates.large, reason)
    return Choice(candidates.small, "the question is short, without files or tools")


def _reason_for_large(first: Mapping[str, Any], tools: bool) -> str:
    parts: list[Item] = content_parts(first.get("content"))
    text = "".join(map(part_text, parts))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    if "```" in text:
        return "the question holds code"
    return "the question is long" if len(text) > _LONG_QUESTION else ""
