"""What a turn changes is stored and appended, up to what a chat's row and the API take."""

import json
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from openai_responses.digest import hex_digest
from openai_responses.json_input import JsonBudget, JsonTooLarge
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.turns import Turn, append_turns, read_turn, record_turn

Item = dict[str, Any]
KINDS = {"additional_tools", "configuration_update"}


def tools(*numbers: int, **more: Any) -> list[Item]:
    return [{"type": "function", "name": f"f{n}", **more} for n in numbers]


def request(offered: list[Item] | None = None, **more: Any) -> ResponsesRequest:
    return ResponsesRequest(model="m", input=[], tools=offered, **more)


def recorded(
    asked: ResponsesRequest, earlier: Sequence[Turn] = (), effort: str | None = None
) -> Turn:
    """Return what is stored of a question, of which something is."""
    turn = record_turn(asked, earlier, effort)
    assert turn
    return turn


@pytest.mark.parametrize("words", ["é\n", "a lone surrogate: \ud800"])
def test_stored_form_gives_the_turn_back(words: str) -> None:
    turn = recorded(request(tools(0, description=words)), (), "medium")
    assert read_turn(turn.packed(), JsonBudget(10_000)) == turn._replace(items=[])


def test_turn_whose_tools_lie_in_namespaces_is_not_read() -> None:
    """Earlier versions declared many tools so: the chat begins anew."""
    space = {"type": "namespace", "name": "f_1", "description": "", "tools": tools(1)}
    turn = recorded(request([*tools(0), {"type": "tool_search"}, space]))

    assert read_turn(turn.packed(), JsonBudget(10_000)) is None


@pytest.mark.parametrize(("held", "more", "begins"), [(127, 1, False), (127, 2, True)])
def test_more_tools_than_a_chat_may_declare(held: int, more: int, begins: bool) -> None:
    """Those that went count as well, because they stay declared."""
    first = recorded(request(tools(*range(held))))
    asked = request(tools(*range(held, held + more)))
    turn = recorded(asked, [first], None)
    assert bool(turn.base) == begins
    _, items = append_turns(asked, {"a": turn} if begins else {"a": first}, KINDS)
    assert items == {"a": []}


def test_turn_is_limited_by_what_it_unpacks_to() -> None:
    """40 MB of one letter pack into 80 kB; each later question would send them."""
    huge = tools(0, description="x" * 1_000_000)
    assert record_turn(request(huge), (), None) is None

    packed = zlib.compress(json.dumps(Turn("m", base={"tools": huge})).encode())
    with pytest.raises(JsonTooLarge):
        read_turn(packed, JsonBudget(10_000_000))

    # Many of them, each small in the row, would send as much together.
    turn = recorded(request(tools(0, description="x" * 1000)))
    budget = JsonBudget(1500)
    assert read_turn(turn.packed(), budget)
    with pytest.raises(JsonTooLarge):
        read_turn(turn.packed(), budget)


def test_turn_that_is_too_long_is_not_stored() -> None:
    """A chat's row is read and written whole; what compresses well fits."""
    noise = "".join(hex_digest(str(number)) for number in range(6_000))
    first = recorded(request(tools(0, description="x" * 300_000)))
    assert record_turn(request(tools(0, description=noise)), (), None) is None
    assert record_turn(request(tools(1, description=noise)), [first], None) is None


SCHEMA = {"type": "json_schema", "name": "a", "schema": {}}
UPDATE = {"type": "configuration_update"}
TEXT = {"type": "text"}
MCP = {"type": "mcp", "server_label": "clocks", "server_url": "https://c.example"}


@pytest.mark.parametrize(
    ("first", "then", "items"),
    [
        ({}, {}, []),
        ({}, {"reasoning": {"effort": "medium"}}, []),  # the model's own
        ({}, {"text": {"format": TEXT}}, []),
        (
            {"reasoning": {"effort": "low"}},
            {"reasoning": {"effort": "high", "summary": "auto"}},
            [{**UPDATE, "reasoning": {"effort": "high"}}],
        ),
        (
            {"reasoning": {"effort": "low"}, "text": {"format": SCHEMA}},
            {},
            [{**UPDATE, "reasoning": {"effort": "medium"}, "text": {"format": TEXT}}],
        ),
        ({}, {"text": {"format": {"type": "json_object"}}}, None),
        ({"offered": tools(0)}, {"offered": tools(0, description="Other words.")}, []),
        ({"offered": tools(0)}, {"offered": tools(0, parameters={"x": 1})}, None),
        ({"offered": tools(0)}, {"offered": [*tools(0), MCP]}, []),
        (
            {"offered": tools(0)},
            {"offered": tools(1)},
            [{"type": "additional_tools", "role": "developer", "tools": tools(1)}],
        ),
    ],
)
def test_what_a_later_turn_appends(
    first: dict[str, Any], then: dict[str, Any], items: list[Item] | None
) -> None:
    """None: the chat begins anew, because no item can state it."""
    begun = recorded(request(**first), (), "medium")

    turn = record_turn(request(**then), [begun], "medium")

    assert turn
    assert [*turn.items] == (items or [])
    assert (turn.base is None) is (items is not None)


def test_what_no_item_can_state() -> None:
    """No item says that there is no effort, and the API refuses an empty list of tools."""
    begun = recorded(request(reasoning={"effort": "low"}))
    turn = recorded(request(), [begun], None)
    assert turn.base

    plain = recorded(request())
    changed, _ = append_turns(request(), {"a": plain}, KINDS)
    assert changed.payload() == request().payload()


def only_f1(mode: str) -> Item:
    return {"type": "allowed_tools", "mode": mode, "tools": tools(1)}


@pytest.mark.parametrize(
    ("offered", "choice", "sent"),
    [
        (tools(0, 1), "auto", "auto"),
        (tools(0, 1), tools(1)[0], tools(1)[0]),
        (tools(1), "none", "none"),
        (tools(1), tools(1)[0], only_f1("required")),
        (tools(1), only_f1("required"), only_f1("required")),
        (None, "required", "none"),
        (tools(1, description="x"), None, only_f1("auto")),
        (tools(1, description="x"), "required", only_f1("required")),
    ],
)
def test_tool_that_went_is_declared_and_not_offered(
    offered: list[Item] | None, choice: Any, sent: Any
) -> None:
    """Without its declaration the beginning would change."""
    begun = recorded(request(tools(0, 1)))
    asked = request(offered, tool_choice=choice)

    changed, _ = append_turns(asked, {"a": begun}, KINDS)

    assert changed.tools == tools(0, 1)
    assert changed.tool_choice == sent


def test_fields_are_those_of_the_first_turn() -> None:
    """Servers keep their secrets: they come from the question that is asked now."""
    first = {"reasoning": {"effort": "low"}, "text": {"format": SCHEMA}}
    begun = recorded(request(tools(0), **first))
    more = {"reasoning": {"effort": "high", "summary": "auto"}, "temperature": 1.0}
    asked = request([*tools(0), MCP], text={"verbosity": "low"}, **more)

    changed, _ = append_turns(asked, {"a": begun}, KINDS)

    assert changed.tools == [MCP, *tools(0)]
    assert changed.reasoning == {"effort": "low", "summary": "auto"}
    assert asked.reasoning == {"effort": "high", "summary": "auto"}
    assert changed.text == {"format": SCHEMA, "verbosity": "low"}
    assert changed.temperature is None
    same = request(tools(0), reasoning={"effort": "low"}, temperature=1.0)
    kept, _ = append_turns(same, {"a": begun}, KINDS)
    assert kept.temperature == 1.0


def test_in_pro_mode_the_configuration_stays_in_the_request() -> None:
    """The API refuses the item there; tools are appended all the same."""
    begun = recorded(request(tools(0), reasoning={"effort": "low"}))
    changed_effort = {"reasoning": {"effort": "high", "mode": "pro"}}
    asked = request(tools(0, 1), **changed_effort)
    later = recorded(asked, [begun], None)

    changed, items = append_turns(asked, {"a": begun, "b": later}, KINDS)

    assert changed.reasoning == changed_effort["reasoning"]
    assert [item["type"] for item in items["b"]] == ["additional_tools"]
