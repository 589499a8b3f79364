"""What earlier rounds of an answer left in the messages.

Where the host runs the tools, or asks a person, the agent is called anew for each
round and keeps nothing itself: all it needs to know stands in the messages since the
user's last one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpt5_agent.confirmations import (
    read_answers,
    tool_calls_of,
    without_questions,
)
from gpt5_agent.guard import FAILED
from gpt5_agent.ledger import read_noted_usage
from gpt5_agent.memory import Message, begins_turn
from openai_responses.items import Item, is_call
from openai_responses.json_input import parse_json_object
from openai_responses.models.usage import Usage, add_usage
from openai_responses.requests.replay import Origin
from owui_chat.storage.details_carrier import DetailTurn, read_details

Style = Literal["full", "lean"]

_HOSTS_FAILURES = ("error:", "exception:", "traceback", "http error!")
"""How texts begin that the host takes for failures (utils/middleware.py:169)."""

_NO_FAILURES = (
    "error: tool call rejected by user.",
    "error: tool call was not approved.",
    "error: the administrator does not allow",
    "error: the user did not approve",
)
"""What was refused to a call has not failed."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The rounds before this one.

    `failed` are the calls that failed, `answers` a person's by their confirmations;
    `open_turn` is an answer of the model whose calls waited for these: its round
    counts, its calls do not yet. `open_origin` is who made it.
    """

    rounds: int = 0
    calls: int = 0
    usage: Usage | None = None
    seconds: float = 0.0
    failed: tuple[Item, ...] = ()
    answers: Mapping[str, bool] = field(default_factory=dict)
    open_turn: tuple[Item, ...] = ()
    open_origin: Origin | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the answer was begun before."""
        return self.rounds > 0


def read_earlier(messages: Sequence[Message]) -> Earlier:
    """Return what the messages since the user's last one tell."""
    run = _since_last_turn(messages)
    turns = [turn for message in run for turn in read_details(message)]
    answers = read_answers(run)
    left = without_questions(run)
    outputs = _outputs(left)
    groups = [calls for message in left if (calls := tool_calls_of(message))]
    open_turn = _open_turn(turns, outputs, answers)
    return Earlier(
        rounds=len(groups) + bool(open_turn),
        calls=sum(map(len, groups)),
        usage=_usage_of(turns),
        seconds=sum(map(_seconds_of, turns)),
        failed=(*_failed_in(groups, outputs), *_noted_failures(turns)),
        answers=answers,
        open_turn=open_turn,
        open_origin=turns[-1].origin if open_turn else None,
    )


def settled_in_chat(messages: Sequence[Message]) -> Style | None:
    """Return the style of policies that this chat began with, where it is known."""
    turns = (turn for message in messages for turn in read_details(message))
    styles: tuple[Style, ...] = ("full", "lean")
    noted = (turn.notes.get("style") for turn in turns)
    return next((style for said in noted for style in styles if style == said), None)


def _since_last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    places = range(len(messages) - 1, -1, -1)
    last = next((place for place in places if begins_turn(messages, place)), -1)
    return messages[last + 1 :]


def _outputs(messages: Sequence[Message]) -> dict[str, str]:
    """Return what the tools returned, by call; a list of parts counts as empty."""
    returned = (one for one in messages if one.get("role") == "tool")
    return {
        str(one.get("tool_call_id")): str(one.get("content") or "") for one in returned
    }


def _open_turn(
    turns: Sequence[DetailTurn],
    outputs: Mapping[str, str],
    answers: Mapping[str, bool],
) -> tuple[Item, ...]:
    """Return the items of the last turn if it waited for a person's answers."""
    items = tuple(one.item for one in turns[-1].items) if turns else ()
    calls = [item for item in items if is_call(item)]
    answered = any(call.get("call_id") in outputs for call in calls)
    return items if answers and calls and not answered else ()


def _usage_of(turns: Sequence[DetailTurn]) -> Usage | None:
    usage: Usage | None = None
    for turn in turns:
        usage = add_usage(usage, read_noted_usage(turn.notes.get("usage")))
    return usage


def _seconds_of(turn: DetailTurn) -> float:
    seconds = turn.notes.get("seconds")
    return seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0


def _failed_in(
    groups: Sequence[Sequence[Mapping[str, Any]]], outputs: Mapping[str, str]
) -> Iterator[Item]:
    """Yield the calls whose output says that they failed."""
    for call in (call for calls in groups for call in calls):
        function = call.get("function")
        if isinstance(function, Mapping) and _is_failure(
            outputs.get(str(call.get("id")), "")
        ):
            yield {"name": function.get("name"), "arguments": function.get("arguments")}


def _noted_failures(turns: Sequence[DetailTurn]) -> Iterator[Item]:
    for turn in turns:
        noted = turn.notes.get("failed")
        for call in noted if isinstance(noted, list) else ():
            if isinstance(call, dict):
                yield call


def _is_failure(text: str) -> bool:
    if text == FAILED:
        return True
    lowered = text.strip().lower()
    if lowered.startswith(_HOSTS_FAILURES):
        return not lowered.startswith(_NO_FAILURES)
    return list(parse_json_object(text) or ()) == ["error"]
