"""Whatever a person types, it is an object, or it is none; nothing is raised."""

from typing import Any

import pytest

from openai_responses.json_input import (
    JsonTooLarge,
    clamp_number,
    json_size,
    matches_schema,
    parse_json_object,
    parse_string_map,
)

DEEP = pytest.param("[" * 100_000, id="brackets")


@pytest.mark.parametrize(
    "given", ["", "{", "[]", "null", '"text"', "{'a': 1}", DEEP, None, {"a": 1}, ["{}"]]
)
def test_what_is_not_the_text_of_an_object_is_none(given: object) -> None:
    assert parse_json_object(given) is None
    assert parse_json_object(' {"a": [1, null]} ') == {"a": [1, None]}


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": null}', "[]", "blue", DEEP])
def test_texts_are_an_object_of_nothing_else(text: str) -> None:
    """Nothing typed is an empty one."""
    assert parse_string_map(text) is None
    assert parse_string_map('{"X-Team": "blue"}') == {"X-Team": "blue"}
    assert parse_string_map("  ") == {}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("x" * 90, 100),
        (["x" * 80], 100),
        ({"name": "x" * 76}, 100),
        ([[], {}], 30),
        (7, 10),
    ],
    ids=["text", "list", "object", "empty", "number"],
)
def test_size_of_a_value_has_a_limit(value: object, size: int) -> None:
    """Its characters, and ten for each value; keys count."""
    assert json_size(value, size) == size
    with pytest.raises(JsonTooLarge):
        json_size(value, size - 1)


@pytest.mark.parametrize(("depth", "fits"), [(64, True), (65, False)])
def test_size_of_a_deep_value_is_not_read(depth: int, fits: bool) -> None:
    value: object = "x"
    for _ in range(depth - 1):
        value = [value]

    if fits:
        assert json_size(value, 10_000) > depth
    else:
        with pytest.raises(JsonTooLarge):
            json_size(value, 10_000)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (" 5.9 ", 5),
        (0, 1),
        (1e99, 9),
        (float("inf"), 9),
        ("x", 3),
        (None, 3),
        (float("nan"), 3),
    ],
)
def test_number_is_kept_within_its_limits(value: object, number: int) -> None:
    assert clamp_number(value, 1, 9, 3) == number


@pytest.mark.parametrize(
    ("schema", "fitting", "others"),
    [
        ("[a-z]+", ["a", "ab"], ["", "a1", "A", 7, None]),
        (".*", ["a\nb"], [7]),
        (bool, [True], [1, None]),
        ((int, "x"), [1, "x"], ["y", None]),
        ([int], [[], [1, 2]], [[1, "x"], (1,), {}, 1]),
        ({"a": int, "b": str}, [{}, {"a": 1}, {"b": "x"}], [{"a": "x"}, {"c": 1}, []]),
        ({"a": [{"b": "x"}]}, [{"a": [{"b": "x"}]}], [{"a": [{"b": "y"}]}]),
        (lambda value: value == 7, [7], [8]),
    ],
)
def test_value_matches_a_schema_of_ours(
    schema: Any, fitting: list[object], others: list[object]
) -> None:
    assert [value for value in fitting if not matches_schema(value, schema)] == []
    assert [value for value in others if matches_schema(value, schema)] == []
