"""What a turn changes is stored and appended, up to what a chat's row and the API take."""

import json
import zlib
from base64 import b64encode
from typing import Any

import pytest

from openai_responses.digest import hex_digest
from openai_responses.json_input import JsonBudget, JsonTooLarge
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.turns import (
    Turn,
    append_turns,
    read_turn,
    record_turn,
)

Item = dict[str, Any]
KINDS = {"additional_tools", "configuration_update"}


def tools(*numbers: int, **more: Any) -> list[Item]:
    """Functions with the names f0, f1 ..."""
    return [{"type": "function", "name": f"f{n}", **more} for n in numbers]


def request(offered: list[Item] | None = None) -> ResponsesRequest:
    """A question with these tools."""
    return ResponsesRequest(model="m", input=[], tools=offered)


def test_stored_form_gives_the_turn_back() -> None:
    """Text, tools and lists, as JSON has them."""
    turn = record_turn(request(tools(0, description="é\n")), (), "medium")
    assert turn
    assert read_turn(turn.wire(), JsonBudget(10_000)) == turn._replace(items=[])


def test_turn_whose_tools_lie_in_namespaces_is_not_read() -> None:
    """Earlier versions declared many tools so: the chat begins anew."""
    space = {"type": "namespace", "name": "f_1", "description": "", "tools": tools(1)}
    turn = record_turn(request([*tools(0), {"type": "tool_search"}, space]), (), None)
    assert turn

    assert read_turn(turn.wire(), JsonBudget(10_000)) is None


@pytest.mark.parametrize(("held", "more", "begins"), [(127, 1, False), (127, 2, True)])
def test_more_tools_than_a_chat_may_declare(held: int, more: int, begins: bool) -> None:
    """Those that went count as well, because they stay declared."""
    first = record_turn(request(tools(*range(held))), (), None)
    assert first
    asked = request(tools(*range(held, held + more)))
    turn = record_turn(asked, [first], None)
    assert turn
    assert bool(turn.base) == begins
    _, items = append_turns(asked, {"a": turn} if begins else {"a": first}, KINDS)
    assert items == {"a": []}


def test_turn_is_limited_by_what_it_unpacks_to() -> None:
    """40 MB of one letter pack into 80 kB; each later question would send them."""
    huge = tools(0, description="x" * 1_000_000)
    assert record_turn(request(huge), (), None) is None

    packed = zlib.compress(json.dumps(Turn("m", base={"tools": huge})).encode())
    with pytest.raises(JsonTooLarge):
        read_turn(b64encode(packed).decode(), JsonBudget(10_000_000))


def test_turns_of_a_chat_have_one_budget() -> None:
    """Many of them, each small in the row, would send as much together."""
    turn = record_turn(request(tools(0, description="x" * 1000)), (), None)
    assert turn
    budget = JsonBudget(1500)
    assert read_turn(turn.wire(), budget)
    with pytest.raises(JsonTooLarge):
        read_turn(turn.wire(), budget)


def test_turn_that_is_too_long_is_not_stored() -> None:
    """A chat's row is read and written whole; what compresses well fits."""
    noise = "".join(hex_digest(str(number)) for number in range(6_000))
    first = record_turn(request(tools(0, description="x" * 300_000)), (), None)
    assert first
    assert record_turn(request(tools(0, description=noise)), (), None) is None
    assert record_turn(request(tools(1, description=noise)), [first], None) is None
