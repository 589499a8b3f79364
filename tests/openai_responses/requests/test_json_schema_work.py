"""A schema is data of strangers: reading it costs in proportion to its length."""

import contextlib
import json
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measures.work_count import Word, count_work
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import json_size
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from simulator.checks.schemas import check_schemas
from strictness.forms import (
    argument_error,
    drop_optional_nulls,
    open_schema,
    strict_schema,
)
from strictness.strategies import Schema, garbage

LOOP: Schema = {
    "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"} for _ in range(3)]}},
    "$ref": "#/$defs/A",
}
"""119 bytes."""


def names(count: int) -> list[str]:
    """Return names that nothing else is called."""
    return [Word(f"name{number}") for number in range(count)]


def references(count: int) -> Schema:
    parts = {name: {"$ref": f"#/$defs/{name}"} for name in names(count)}
    defined = {name: {"type": "string"} for name in names(count)}
    return {"type": "object", "properties": parts, "$defs": defined}


def options(count: int, key: str = "anyOf") -> Schema:
    """Return many options at the root, each with a property of its own."""
    parts = [{"properties": {name: {"type": "string"}}} for name in names(count)]
    return {"type": "object", key: parts}


def required(count: int) -> Schema:
    parts = {name: {"type": "string"} for name in names(count)}
    return {"type": "object", "properties": parts, "required": names(count)}


def joined(count: int) -> Schema:
    return {"type": "object", "properties": {"x": options(count, "allOf")}}


def loops(count: int) -> Schema:
    """Return parts that all lead to all others."""
    every = [{"$ref": f"#/$defs/name{number}"} for number in range(9)]
    defined = {f"name{number}": {"allOf": every} for number in range(9)}
    padding = {name: {"type": "string"} for name in names(count)}
    return {"$defs": defined, "anyOf": every, "properties": padding}


def inlined(count: int) -> Schema:
    again = {"allOf": [{"$ref": "#/$defs/A"}]}
    whole = {"type": "object", "properties": dict.fromkeys(names(count), again)}
    return {**whole, "$defs": {"A": whole}}


SHAPES = (references, options, required, joined, loops, inlined)


def check_arguments(schema: Schema) -> None:
    given_ = dict.fromkeys(names(200), None) | {"x": "y"}
    argument_error(given_, schema)
    drop_optional_nulls(given_, schema)


def work_of(walk: Callable[[Any], object], value: object) -> int:
    return count_work(partial(walk, value))


@pytest.mark.parametrize("walk", [open_schema, strict_schema, check_arguments])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_schema_is_twice_the_work(
    shape: Callable[[int], Schema], walk: Callable[[Schema], object]
) -> None:
    large = shape(800)
    once = work_of(walk, shape(400))
    twice = work_of(walk, large)

    assert twice <= 2.2 * once + 200
    assert twice <= 4 * json_size(large, 10**9)


def test_a_schema_that_refers_to_itself_three_times() -> None:
    """It is read once: with each reference followed it would take for ever."""
    assert len(json.dumps(LOOP)) < 120
    assert count_work(lambda: open_schema(LOOP)) < 600
    assert count_work(lambda: strict_schema(LOOP)) < 600
    assert count_work(lambda: check_arguments(LOOP)) < 10_000
    kept = {"$defs": LOOP["$defs"], "type": "object", "properties": {}}
    assert open_schema(LOOP) == kept


def deep(levels: int) -> Schema:
    schema: Schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


TOO_LARGE: dict[str, Callable[[], Schema]] = {
    "deep": lambda: deep(10_000),
    "900 levels": lambda: deep(900),
    "wide": lambda: required(100_000),
    "20,000 properties": lambda: required(20_000),
    "enum": lambda: {"type": "object", "properties": {"a": {"enum": names(100_000)}}},
    "8 MB of text": lambda: {"type": "object", "description": "x" * 8_000_000},
    "5 MB": lambda: {"type": "object", "x": [list(range(100)) for _ in range(12_000)]},
}


@pytest.mark.parametrize(
    ("case", "strict"),
    [*((case, True) for case in TOO_LARGE), ("900 levels", False), ("5 MB", False)],
)
def test_a_tool_that_is_too_large_is_left_out(case: str, strict: bool) -> None:
    """The log names it, the others are offered, and next to no work is done."""
    lines: list[str] = []
    evil = {"name": "evil", "parameters": TOO_LARGE[case]()}
    specs: list[Any] = [
        {"name": "before"},
        {"type": "function", "function": evil},
        {**evil, "type": "function", "name": "flat", "strict": 1},
        {"name": "after", "parameters": {"type": "object", "properties": {}}},
    ]
    tools = []

    def offer() -> None:
        tools.extend(responses_tools(specs, strict=strict, log=lines.append))

    assert count_work(offer) < 200_000
    assert [tool["name"] for tool in tools] == ["before", "after"]
    [line] = lines
    assert "'evil', 'flat' (2 in all)" in line
    assert "\n" not in line


@pytest.mark.parametrize("case", TOO_LARGE)
def test_arguments_for_an_oversized_schema_are_not_checked(case: str) -> None:
    """They are given to the tool as they are: it was left out, but may be called."""
    schema = TOO_LARGE[case]()

    assert count_work(lambda: check_arguments(schema)) < 400_000
    assert argument_error({"a": None}, schema) is None
    assert drop_optional_nulls({"a": None}, schema) == {"a": None}


ODD: dict[str, Any] = {
    "names that are no texts": {
        "properties": {1: {}, None: {}, ("a",): {}, "a": {"default": {("b",): 1}}},
        ("type",): "object",
    },
    "NaN": {"properties": {"a": {"enum": [math.nan], "minimum": math.inf}}},
    "half a character": {"description": "\ud800", "properties": {"\udfff": {}}},
    "a definition of itself": {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#"},
    "no schema": {"properties": [{"type": "string"}], "required": {"a": 1}},
}


@pytest.mark.parametrize("case", ODD)
def test_odd_schema_becomes_valid_json(case: str) -> None:
    [tool] = responses_tools([{"name": "odd", "parameters": ODD[case]}])

    check_schemas([tool])
    json.dumps(tool, allow_nan=False)


def test_all_tools_of_a_request_have_a_limit() -> None:
    def tools(count: int) -> list[Any]:
        return [{"name": f"t{n}", "parameters": required(60)} for n in range(count)]

    def offer(count: int) -> None:
        responses_tools(tools(count), strict=True)

    lines: list[str] = []
    offered = responses_tools(tools(200), log=lines.append)

    assert 100 < len(offered) < 200
    assert [tool["name"] for tool in offered] == [f"t{n}" for n in range(len(offered))]
    assert f"({200 - len(offered)} in all)" in lines[0]
    assert len(lines[0]) < 500
    assert work_of(offer, 400) <= 2.2 * work_of(offer, 200) <= 2.2 * 2_000_000


def test_strict_mode_has_a_limit_for_all_tools() -> None:
    specs = [{"name": f"t{n}", "parameters": inlined(30)} for n in range(100)]
    tools: list[Any] = []

    work = count_work(lambda: tools.extend(responses_tools(specs, strict=True)))

    assert len(tools) == 100
    assert work < 1_000_000


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(garbage() | ANY_JSON, ANY_JSON)
def test_any_json_ends_within_the_limit(schema: Any, value: Any) -> None:
    def read() -> None:
        responses_tools([{"name": "f", "parameters": schema}], strict=True)
        with contextlib.suppress(InvalidRequest):
            responses_tools([schema])
        if isinstance(schema, dict):
            argument_error(value, schema)

    assert count_work(read) < 100_000


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ([{} for _ in range(5_000)], required(1_000)),
        (["x"] * 5_000, {"enum": names(3_000)}),
        ([[[0] * 99 + [n]] for n in range(500)], {"const": [[0] * 100]}),
        ([{"k": None} for _ in range(5_000)], options(300)),
        ([1] * 20_000, {"type": ["string"] * 3_000}),
    ],
    ids=["properties", "enum", "equal values", "options", "types"],
)
def test_many_arguments_against_a_large_schema(
    value: list[Any], schema: Schema
) -> None:
    """Values times parts is too much: the tool gets them unchecked."""
    whole = {"type": "object", "properties": {"rows": {"items": schema}}}
    arguments = {"rows": value}

    assert count_work(lambda: argument_error(arguments, whole)) < 300_000
    assert count_work(lambda: drop_optional_nulls(arguments, whole)) < 300_000
    assert argument_error({"rows": value[:1]}, {**whole, "type": "array"}) is not None


def test_a_thousand_rows_are_checked() -> None:
    """That is no attack: each null goes, and each error is found."""
    row = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    schema = {"type": "object", "properties": {"rows": {"items": row}}}
    rows: list[Any] = [{"a": "x", "b": None} for _ in range(1_000)]

    assert drop_optional_nulls({"rows": rows}, schema) == {"rows": [{"a": "x"}] * 1_000}
    assert argument_error({"rows": rows}, schema) is None
    rows[-1] = {"a": 1}
    error = argument_error({"rows": rows}, schema)
    assert error == "The argument rows[999].a must be string."


def first_own_name(known: tuple[str, ...], sent: str) -> str:
    """Return what `own_name` has to return, found by looking at each tool."""
    names = ToolNames(known)
    return next((name for name in known if names.sent_name(name) == sent), sent)


def test_names_of_many_tools() -> None:
    def translate(count: int) -> None:
        known = tuple(f"tool:{number}" for number in range(count))
        names = ToolNames(known)
        tools = names.rename_tools([{"type": "function", "name": n} for n in known])
        assert [names.own_name(tool["name"]) for tool in tools] == list(known)

    assert work_of(translate, 1_000) <= 2.2 * work_of(translate, 500) < 2.2 * 10_000


@given(st.lists(st.sampled_from(["a.b", "a b", "a_b", "x", "ä" * 80]), max_size=6))
def test_names_are_those_of_a_search(known: list[str]) -> None:
    """Also with names that occur twice, or that are what another one becomes."""
    taken = ToolNames(("a.b",)).sent_name("a.b")
    for every in (tuple(known), (*known, taken), (taken, *known)):
        names = ToolNames(every)
        for sent in (*map(names.sent_name, every), taken, "unknown"):
            assert names.own_name(sent) == first_own_name(every, sent)


def test_choice_among_many_tools() -> None:
    def choose(count: int) -> None:
        tools = [{"type": "function", "name": name} for name in names(count)]
        choice = {"type": "allowed_tools", "mode": "auto", "tools": tools}
        assert responses_tool_choice(choice, merge_tools(tools), ToolNames()) == choice

    assert work_of(choose, 1_000) <= 2.2 * work_of(choose, 500) < 2.2 * 40_000


def test_names_of_tools_that_are_left_out_are_cut_in_the_log() -> None:
    """A client may send many, of any length."""
    lines: list[str] = []
    evil = {"type": "function", "name": "x" * 100_000, "parameters": deep(900)}

    assert responses_tools([evil] * 100, strict=True, log=lines.append) == []

    [line] = lines
    assert len(line) < 2_000
    assert "(100 in all)" in line


@pytest.mark.parametrize("last", ["\U0010ffff", r"\U0010ffff"])
def test_sets_of_far_characters_take_no_time(last: str) -> None:
    """Python makes a table for each: these patterns took a minute to compile."""
    sets = (500 - 4) // len(f"[a-{last}]")
    patterns = [f"{number:04}" + f"[a-{last}]" * sets for number in range(400)]
    parts = {f"p{n}": {"type": "string", "pattern": p} for n, p in enumerate(patterns)}
    begin = time.process_time()

    shown = open_schema({"type": "object", "properties": parts})

    assert time.process_time() - begin < 5
    kept = [part["pattern"] for part in shown["properties"].values()]
    assert kept == patterns
