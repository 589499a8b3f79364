"""The next round of tools sends exactly what the last one sent, and what came since."""

from types import SimpleNamespace

import pytest

from openai_responses.requests.replay import replayed
from owui_chat.messages import Answered, Called, Returned, Stretch
from owui_manifold.rounds import (
    Round,
    continued_input,
    last_round,
    remember_round,
    sources_so_far,
)
from run_sample import call, output, reasoning

ASKED = {"role": "user", "content": "Weather?"}
RECEIVED = tuple(replayed(i) for i in (reasoning("1"), call("1"), call("2")))
ENDED = Round(sent=(ASKED,), received=RECEIVED, pending=RECEIVED)


def test_round_is_found_by_its_message() -> None:
    """Two models may answer in one request."""
    state, other = SimpleNamespace(), Round((), (), ())
    remember_round(state, "m-1", ENDED)
    remember_round(state, "m-2", other)

    assert last_round(state, "m-1") is ENDED
    assert last_round(state, "m-2") is other
    assert last_round(state, "m-3") is None


def test_newest_round_counts() -> None:
    """There may be several in one request."""
    state, newer = SimpleNamespace(), Round((ASKED,), (), ())
    remember_round(state, "m-1", ENDED)
    remember_round(state, "m-1", newer)

    assert last_round(state, "m-1") is newer


@pytest.mark.parametrize(
    "state", [None, SimpleNamespace(), SimpleNamespace(openai_responses_rounds={})]
)
def test_first_round_follows_none(state: object) -> None:
    """Also where there is no request at all."""
    assert last_round(state, "m-1") is None


def test_sources_of_the_round_before_are_counted() -> None:
    """At first those that the host retrieved; it tells them again in every round."""
    retrieved = {"document": ["x"], "metadata": [{"source": "kept.pdf"}]}
    state, metadata = SimpleNamespace(), {"sources": [retrieved]}

    assert sources_so_far(state, "m-1", metadata) == ["kept.pdf"]
    assert sources_so_far(None, "m-1", {"sources": None}) == []

    cited = ("kept.pdf", "https://a.example")
    remember_round(state, "m-1", Round((), (), (), cited))
    assert sources_so_far(state, "m-1", metadata) == cited


def test_round_of_another_version_is_none() -> None:
    """A new version of the pipe may be uploaded between two rounds."""
    state = SimpleNamespace(openai_responses_rounds={"m-1": object()})

    assert last_round(state, "m-1") is None


@pytest.mark.parametrize(
    "returned",
    [
        [Returned("call_1", "rain"), Returned("call_2", "rain")],
        [Returned("call_2", "rain"), Returned("call_1", "rain")],
    ],
    ids=["in order", "in another order"],
)
def test_next_round_goes_on_where_the_last_one_ended(returned: list[Stretch]) -> None:
    """Whatever the host made of the messages in between."""
    chat = [
        Answered("Rewritten by the host"),
        Called("call_1", "get_weather", "{}"),
        *returned,
    ]

    assert continued_input(ENDED, chat) == [
        ASKED,
        *RECEIVED,
        output("1"),
        output("2"),
    ]


@pytest.mark.parametrize(
    ("ended", "chat"),
    [
        (ENDED, [Returned("call_1", "rain")]),
        (ENDED, []),
        (Round((ASKED,), (replayed(reasoning("1")),), ()), [Returned("call_1", "x")]),
    ],
    ids=["one is missing", "all are", "no calls"],
)
def test_round_that_was_not_answered_is_not_continued(
    ended: Round, chat: list[Stretch]
) -> None:
    """The history is read anew instead."""
    assert continued_input(ended, chat) is None
