"""What earlier rounds of an answer left in the messages.

Where the host runs the tools or asks the user, the agent is called again for each round
and stores nothing itself: all it needs is in the messages after the user's last one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from gpt5_agent.tools.confirmations import (
    Decision,
    drop_question_calls,
    read_confirmations,
    read_tool_calls,
)
from openai_responses.items import Item, is_call
from openai_responses.json_input import as_list, as_mapping, as_text, parse_json_object
from openai_responses.loop.spending import EarlierSpending
from openai_responses.models.usage import Usage, read_dollars
from openai_responses.requests.replay import Origin
from owui_chat.messages import DETAILS_FIELD
from owui_chat.storage.details_carrier import DetailTurn, read_details
from owui_chat.storage.signature import Sign
from strategies.guard import TOOL_FAILED_TEXT
from strategies.memory import Message, find_turn_starts
from strategies.policy import ChosenStyle


class EarlierRounds(NamedTuple):
    """The rounds before this one.

    `spending` is what they took, `failed` are the calls that failed, `answers` the
    approvals by confirmation id, `signed_calls` the calls that this pipeline signed;
    only those were asked about. `answered` are the ids of the calls with an output.
    `open_turn` is an answer of the model, made by `open_origin`, whose calls waited for
    these approvals: its round counts, its calls do not yet.
    """

    spending: EarlierSpending = EarlierSpending()
    failed: tuple[Item, ...] = ()
    answers: Mapping[str, Decision] = MappingProxyType({})
    signed_calls: tuple[Item, ...] = ()
    answered: frozenset[str] = frozenset()
    open_turn: tuple[Item, ...] = ()
    open_origin: Origin | None = None

    @property
    def is_continuation(self) -> bool:
        """Whether an earlier round belongs to this answer."""
        return self.spending.rounds > 0


Turns = Sequence[Sequence[DetailTurn]]
"""The answers of the model that each message of a chat carries as details."""


def read_turns(messages: Sequence[Message], sign: Sign) -> Turns:
    """Return the answers in the details of each message; their signatures are checked."""
    return [read_details(message.get(DETAILS_FIELD), sign) for message in messages]


def read_earlier_rounds(
    messages: Sequence[Message], turns_by_message: Turns, sign: Sign
) -> EarlierRounds:
    """Return what the messages after the user's last one contain.

    `sign` tells our questions to the user from others.
    """
    starts = find_turn_starts(messages)
    first = starts[-1] + 1 if starts else 0
    run = messages[first:]
    turns = list(chain.from_iterable(turns_by_message[first:]))
    answers = read_confirmations(run, sign)

    # The host's calls by round, and their outputs; our questions are none of them.
    outputs: dict[str, str] = {}
    calls: list[Mapping[str, Any]] = []
    round_count = 0
    for message in drop_question_calls(run):
        if message.get("role") == "tool":  # a list of parts counts as empty
            call_id = str(message.get("tool_call_id"))
            outputs[call_id] = as_text(message.get("content"))
        calls_of_round = read_tool_calls(message)
        if calls_of_round:
            round_count += 1
            calls += calls_of_round
    open_turn = _find_open_turn(turns, outputs, answers)
    if open_turn:
        round_count += 1

    # What the answers of the model noted, and their calls that we signed.
    usages: list[Usage] = []
    seconds: list[float] = []
    signed_calls: list[Item] = []  # only those kept their names
    for turn in turns:
        usage = _read_usage(turn)
        if usage:
            usages.append(usage)
        noted_seconds = turn.notes.get("seconds")
        if isinstance(noted_seconds, int | float):
            seconds.append(noted_seconds)
        for item, _ in turn.items:
            if is_call(item) and item.get("name"):
                signed_calls.append(item)
    return EarlierRounds(
        spending=EarlierSpending(
            rounds=round_count,
            calls=len(calls),
            usages=tuple(usages),
            seconds=sum(seconds),
        ),
        failed=tuple(_find_failed_calls(calls, outputs)),
        answers=answers,
        signed_calls=tuple(signed_calls) if answers else (),
        answered=frozenset(outputs),
        open_turn=open_turn,
        open_origin=turns[-1].origin if open_turn else None,
    )


def read_chat_notes(
    turns_by_message: Turns,
) -> tuple[ChosenStyle | None, frozenset[str]]:
    """Return the first style of policies that a chat noted, and approvals for it."""
    style: ChosenStyle | None = None
    permissions: set[str] = set()
    for turn in chain.from_iterable(turns_by_message):
        noted_style = turn.notes.get("style")
        if style is None and noted_style in ("full", "lean"):
            style = noted_style
        permissions.update(map(str, as_list(turn.notes.get("allowed"))))
    return style, frozenset(permissions)


def drop_last_turn_details(
    messages: Sequence[Message], turns_by_message: Turns
) -> list[Message]:
    """Return the messages without the details of the last answer that has any."""
    last = max(index for index, turns in enumerate(turns_by_message) if turns)
    kept = dict(messages[last])
    del kept[DETAILS_FIELD]
    return [*messages[:last], kept, *messages[last + 1 :]]


def _find_open_turn(
    turns: Sequence[DetailTurn],
    outputs: Mapping[str, str],
    answers: Mapping[str, Decision],
) -> tuple[Item, ...]:
    """Return the items of the last answer if its calls wait for these approvals."""
    if not (turns and answers):
        return ()
    items = tuple(item for item, _ in turns[-1].items)
    calls = [item for item in items if is_call(item)]
    if not calls or any(call.get("call_id") in outputs for call in calls):
        return ()
    # A call that this pipeline did not sign has no name: nothing continues with it.
    if not all(call.get("name") for call in calls):
        return ()
    return items


def _read_usage(turn: DetailTurn) -> Usage | None:
    """Return the tokens that an answer noted; None if it noted none.

    Notes are signed: only this pipeline wrote them.
    """
    noted = as_mapping(turn.notes.get("usage"))
    counts: dict[str, Any] = {}
    for name in Usage._fields:
        count = noted.get(name)
        if isinstance(count, int):
            counts[name] = count
    if not counts:
        return None
    counts["cost"] = read_dollars(noted.get("cost"))
    counts["tier"] = as_text(noted.get("tier"))
    return Usage(**counts)


def _find_failed_calls(
    calls: Sequence[Mapping[str, Any]], outputs: Mapping[str, str]
) -> Iterator[Item]:
    """Yield the calls that raised, at ours or at the host's.

    The host makes `{"error": ...}` of an exception (utils/middleware.py:3151). A tool
    that returns the same cannot be told apart; any other error is one that it returned,
    and may ask to be tried again.
    """
    for call in calls:
        text = outputs.get(str(call.get("id")), "")
        raised = text.partition("\n")[0] == TOOL_FAILED_TEXT
        if not raised:
            output = parse_json_object(text)
            raised = output is not None and output.keys() == {"error"}
        function = as_mapping(call.get("function"))
        if function and raised:
            yield {
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            }
