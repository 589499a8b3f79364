"""How far a stream has been read."""

import json
from typing import Any

import pytest

from openai_responses.transport.stream import Cursor, ServerSentEvent


def sent(**wire: Any) -> ServerSentEvent:
    """Return an event of these fields."""
    return ServerSentEvent("", json.dumps(wire))


def test_it_counts() -> None:
    """New events pass, those that came before do not."""
    cursor = Cursor()
    passed = [cursor.advance(sent(sequence_number=n)) for n in (0, 1, 1, 0, 2, 7, 3)]
    assert passed == [True, True, False, False, True, True, False]
    assert cursor.last == 7


@pytest.mark.parametrize("number", [{}, {"sequence_number": None}])
def test_an_event_without_a_number(number: dict[str, Any]) -> None:
    """It passes, and tells nothing of the place."""
    cursor = Cursor()
    assert cursor.advance(sent(type="odd", **number))
    assert cursor.last is None


def test_the_end_of_other_servers() -> None:
    """They say so with a word that is no JSON."""
    cursor = Cursor()
    assert cursor.advance(ServerSentEvent("", "[DONE]"))
    assert (cursor.last, cursor.response_id) == (None, "")


def test_the_response_is_named_by_its_events() -> None:
    """The first one that has the object names it; later ones may lack it."""
    cursor = Cursor()
    cursor.advance(sent(sequence_number=0, response={"id": "resp_1"}))
    cursor.advance(sent(sequence_number=1, type="response.output_text.delta"))
    assert cursor.response_id == "resp_1"


@pytest.mark.parametrize(
    "id", ["", "..", "a/b", "a?b", "a b", "a%2Fb", "é", "x" * 513, None, 7, ["a"]]
)
def test_what_cannot_stand_in_a_path_is_no_id(id: object) -> None:
    """A server must not choose which address is asked with the key."""
    cursor = Cursor()
    cursor.note({"id": id})
    assert cursor.response_id == ""


@pytest.mark.parametrize("response", [None, "resp_1", ["resp_1"], {}])
def test_what_is_no_response(response: object) -> None:
    """It names nothing."""
    cursor = Cursor()
    cursor.note(response)
    assert cursor.response_id == ""


def test_ids_of_other_servers() -> None:
    """Some put base64 into theirs."""
    cursor = Cursor()
    cursor.note({"id": "resp_bGl0ZWxsbTo9-_=="})
    assert cursor.response_id == "resp_bGl0ZWxsbTo9-_=="
