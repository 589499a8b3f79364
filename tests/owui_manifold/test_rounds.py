"""The next round of tools sends exactly what the last one sent, and what came since."""

from types import SimpleNamespace

import pytest

from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import strip_for_replay
from owui_chat.messages import AssistantText, ChatPart, ToolCall, ToolMessage
from owui_manifold.rounds import (
    DelegatedRound,
    continue_round,
    load_round,
    save_round,
)
from run_sample import call, output, reasoning

ASKED = {"role": "user", "content": "Weather?"}
RECEIVED = tuple(strip_for_replay(i) for i in (reasoning("1"), call("1"), call("2")))
SENT = ResponsesRequest(model="gpt-6.1-sol", input=[ASKED], tool_choice="required")
ENDED = DelegatedRound(SENT, received=RECEIVED, pending=RECEIVED)


def test_round_is_found_by_its_message() -> None:
    """Two models may answer in one request."""
    state, other = SimpleNamespace(), DelegatedRound(SENT, (), ())
    save_round(state, "m-1", ENDED)
    save_round(state, "m-2", other)

    assert load_round(state, "m-1") is ENDED
    assert load_round(state, "m-2") is other
    assert load_round(state, "m-3") is None


def test_newest_round_counts() -> None:
    """There may be several in one request."""
    state, newer = SimpleNamespace(), DelegatedRound(SENT, (), ())
    save_round(state, "m-1", ENDED)
    save_round(state, "m-1", newer)

    assert load_round(state, "m-1") is newer


@pytest.mark.parametrize(
    "state", [None, SimpleNamespace(), SimpleNamespace(openai_responses_rounds={})]
)
def test_first_round_follows_none(state: object) -> None:
    """Also where there is no request at all."""
    assert load_round(state, "m-1") is None


def test_round_of_another_version_is_none() -> None:
    """A new version of the pipe may be uploaded between two rounds."""
    state = SimpleNamespace(openai_responses_rounds={"m-1": object()})

    assert load_round(state, "m-1") is None


@pytest.mark.parametrize(
    "returned",
    [
        [ToolMessage("call_1", "rain"), ToolMessage("call_2", "rain")],
        [ToolMessage("call_2", "rain"), ToolMessage("call_1", "rain")],
    ],
    ids=["in order", "in another order"],
)
def test_next_round_goes_on_where_the_last_one_ended(returned: list[ChatPart]) -> None:
    """Whatever the host made of the messages in between."""
    chat = [
        AssistantText("Rewritten by the host"),
        ToolCall("call_1", "get_weather", "{}"),
        *returned,
    ]

    items = [ASKED, *RECEIVED, output("1"), output("2")]
    again = SENT.model_copy(update={"input": items, "tool_choice": None})
    assert continue_round(ENDED, chat) == again


@pytest.mark.parametrize(
    ("ended", "chat"),
    [
        (ENDED, [ToolMessage("call_1", "rain")]),
        (ENDED, []),
        (
            DelegatedRound(SENT, (strip_for_replay(reasoning("1")),), ()),
            [ToolMessage("call_1", "x")],
        ),
    ],
    ids=["one is missing", "all are", "no calls"],
)
def test_round_that_was_not_answered_is_not_continued(
    ended: DelegatedRound, chat: list[ChatPart]
) -> None:
    """The history is read anew instead."""
    assert continue_round(ended, chat) is None
