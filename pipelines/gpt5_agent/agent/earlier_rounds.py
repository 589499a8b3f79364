"""What earlier rounds of an answer left in the messages.

Where the host runs the tools or asks a person, the agent is called again for each round
and stores nothing itself: all it needs is in the messages after the user's last one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from gpt5_agent.agent.memory import find_turn_starts
from gpt5_agent.request import ChosenStyle, Message
from gpt5_agent.tools.confirmations import (
    Decision,
    drop_question_calls,
    read_confirmations,
    read_tool_calls,
)
from gpt5_agent.tools.guard import TOOL_FAILED_TEXT
from openai_responses.items import Item, is_call
from openai_responses.json_input import as_list, as_mapping, parse_json_object
from openai_responses.models.usage import Usage, add_usage
from openai_responses.requests.replay import Origin
from owui_chat.host_tools import HOST_ERROR_PREFIXES
from owui_chat.messages import DETAILS_FIELD
from owui_chat.storage.details_carrier import DetailTurn, read_details
from owui_chat.storage.signature import Sign

_REFUSAL_PREFIXES = (
    "error: tool call rejected by user.",
    "error: tool call was not approved.",
    "error: the administrator does not allow",
    "error: the user did not approve",
)
"""What was refused to a call has not failed."""


class EarlierRounds(NamedTuple):
    """The rounds before this one.

    `failed` are the calls that failed, `answers` the approvals by confirmation id,
    `signed_calls` the calls that this pipeline signed; only those were asked about.
    `open_turn` is an answer of the model, made by `open_origin`, whose calls waited for
    these approvals: its round counts, its calls do not yet.
    """

    rounds: int = 0
    calls: int = 0
    usage: Usage | None = None
    seconds: float = 0.0
    failed: tuple[Item, ...] = ()
    answers: Mapping[str, Decision] = MappingProxyType({})
    signed_calls: tuple[Item, ...] = ()
    open_turn: tuple[Item, ...] = ()
    open_origin: Origin | None = None

    @property
    def is_continuation(self) -> bool:
        """Whether an earlier round belongs to this answer."""
        return self.rounds > 0


def read_earlier_rounds(messages: Sequence[Message], sign: Sign) -> EarlierRounds:
    """Return what the messages after the user's last one contain."""
    starts = find_turn_starts(messages)
    run = messages[starts[-1] + 1 :] if starts else messages
    turns = [turn for one in run for turn in read_details(one.get(DETAILS_FIELD), sign)]
    answers = read_confirmations(run)
    left = drop_question_calls(run)
    outputs = _read_outputs(left)
    groups = [calls for message in left if (calls := read_tool_calls(message))]
    open_turn = _find_open_turn(turns, outputs, answers)
    return EarlierRounds(
        rounds=len(groups) + bool(open_turn),
        calls=sum(map(len, groups)),
        usage=_sum_usage(turns),
        seconds=sum(map(_read_seconds, turns)),
        failed=(*_find_failed_calls(groups, outputs), *_read_failed_calls(turns)),
        answers=answers,
        signed_calls=tuple(
            item
            for turn in (turns if answers else ())
            for item, _ in turn.items
            if is_call(item) and item.get("name")
        ),
        open_turn=open_turn,
        open_origin=turns[-1].origin if open_turn else None,
    )


def read_chat_notes(
    messages: Sequence[Message], sign: Sign
) -> tuple[ChosenStyle | None, frozenset[str]]:
    """Return the first style of policies that a chat noted, and approvals for it."""
    rows = (message.get(DETAILS_FIELD) for message in messages)
    notes = [turn.notes for row in rows for turn in read_details(row, sign)]
    styles: tuple[ChosenStyle, ...] = ("full", "lean")
    found = (one for note in notes for one in styles if one == note.get("style"))
    allowed = (one for note in notes for one in as_list(note.get("allowed")))
    return next(found, None), frozenset(map(str, allowed))


def _read_outputs(messages: Sequence[Message]) -> dict[str, str]:
    """Return the outputs by call; a list of parts counts as empty."""
    return {
        str(message.get("tool_call_id")): str(message.get("content") or "")
        for message in messages
        if message.get("role") == "tool"
    }


def _find_open_turn(
    turns: Sequence[DetailTurn],
    outputs: Mapping[str, str],
    answers: Mapping[str, Decision],
) -> tuple[Item, ...]:
    items = tuple(item for item, _ in turns[-1].items) if turns else ()
    calls = [item for item in items if is_call(item)]
    answered = any(call.get("call_id") in outputs for call in calls)
    # A call that this pipeline did not sign has no name, and is not gone on with.
    is_ours = bool(calls) and all(call.get("name") for call in calls)
    return items if answers and is_ours and not answered else ()


def _sum_usage(turns: Sequence[DetailTurn]) -> Usage | None:
    usage: Usage | None = None
    for turn in turns:
        given = as_mapping(turn.notes.get("usage"))
        fields = ((name, given.get(name)) for name in Usage._fields)
        counts: dict[str, Any] = {
            k: v for k, v in fields if isinstance(v, int) and v >= 0
        }
        usage = add_usage(usage, Usage(**counts) if counts else None)
    return usage


def _read_seconds(turn: DetailTurn) -> float:
    seconds = turn.notes.get("seconds")
    return seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0


def _find_failed_calls(
    groups: Sequence[Sequence[Mapping[str, Any]]], outputs: Mapping[str, str]
) -> Iterator[Item]:
    for call in chain.from_iterable(groups):
        function = as_mapping(call.get("function"))
        if function and _is_failed_output(outputs.get(str(call.get("id")), "")):
            yield {key: function.get(key) for key in ("name", "arguments")}


def _read_failed_calls(turns: Sequence[DetailTurn]) -> Iterator[Item]:
    rows = chain.from_iterable(as_list(turn.notes.get("failed")) for turn in turns)
    return (row for row in rows if isinstance(row, dict))


def _is_failed_output(text: str) -> bool:
    if text == TOOL_FAILED_TEXT:
        return True
    lowered = text.strip().lower()
    if lowered.startswith(HOST_ERROR_PREFIXES):
        return not lowered.startswith(_REFUSAL_PREFIXES)
    return list(parse_json_object(text) or ()) == ["error"]
