"""Arguments are held against the schema before a tool is called."""

from typing import Any

import pytest

from openai_responses.loop.arguments import check_arguments
from openai_responses.requests.tools import responses_tools
from strictness.forms import argument_error, drop_optional_nulls
from strictness.mutations import within
from strictness.strategies import Schema

NESTED: Schema = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["c", "f"]},
        "days": {"type": ["integer", "null"]},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
        "when": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "note": {"type": "string", "nullable": True},
        "any": {"items": {"type": "integer"}},
    },
    "required": ["city"],
    "$defs": {
        "Stop": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "must be a JSON object"),
        (None, "city is missing"),
        ({}, "city is missing"),
        ({"city": None}, "city must be string"),
        ({"city": "a", "unit": "k"}, "unit must be one of 'c' or 'f'"),
        ({"city": "a", "days": 1.5}, "days must be integer or null"),
        ({"city": "a", "stops": [{"id": 1}]}, "stops[0].name is missing"),
        ({"city": "a", "stops": "b"}, "stops must be array"),
        ({"city": "a", "when": []}, "when fits none of its forms"),
    ],
)
def test_argument_error_names_the_field(arguments: Any, message: str) -> None:
    error = argument_error(arguments, NESTED)
    assert error is not None
    assert message in error
    assert error.endswith(".")


@pytest.mark.parametrize(
    "arguments",
    [
        {"city": "a"},
        {"city": "a", "days": 2.0, "stops": [], "when": 3, "any": "no list"},
        {"city": "a", "unit": None, "stops": [{"name": "b", "id": None}]},
        {"city": "a", "unknown": object},
        {"city": "a", "note": None},
    ],
)
def test_valid_arguments_have_no_error(arguments: dict[str, Any]) -> None:
    """Nulls for what is not given are fine, and so is what no schema describes."""
    assert argument_error(arguments, NESTED) is None


def test_nulls_that_stand_for_not_given_go() -> None:
    """Others stay: of a required property, or where null is a value."""
    given_ = {
        "city": None,
        "unit": None,
        "days": None,
        "note": None,
        "stops": [{"name": None, "id": None}],
        "other": None,
    }
    before = {**given_}

    assert drop_optional_nulls(given_, NESTED) == {
        "city": None,
        "days": None,
        "note": None,
        "stops": [{"name": None}],
        "other": None,
    }
    assert given_ == before


CHOICE: Schema = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "kind": {"const": "p"}},
            "required": ["kind"],
        },
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "kind": {"const": "q"}},
            "required": ["a", "kind"],
        },
        {
            "type": "object",
            "properties": {"a": {"type": "null"}, "kind": {"const": "r"}},
            "required": ["kind"],
        },
    ]
}


@pytest.mark.parametrize(
    ("chosen", "cleaned"),
    [
        ({"kind": "p", "a": None}, {"kind": "p"}),
        ({"kind": "q", "a": None}, {"kind": "q", "a": None}),
        ({"kind": "r", "a": None}, {"kind": "r", "a": None}),
        ({"kind": "?", "a": None}, {"kind": "?", "a": None}),
    ],
)
def test_what_a_null_means_tells_the_form_that_was_chosen(
    chosen: Schema, cleaned: Schema
) -> None:
    """Not one of the others, which may want what this one leaves open."""
    items = {"type": "array", "items": CHOICE}
    schema = {"type": "object", "properties": {"one": CHOICE, "several": items}}

    given_ = {"one": chosen, "several": [chosen]}
    expected = {"one": cleaned, "several": [cleaned]}
    assert drop_optional_nulls(given_, schema) == expected


def test_a_null_has_to_fit_all_that_is_said_of_a_property() -> None:
    """The parts of an `allOf` hold together."""
    parts = [{"type": ["string", "null"]}, {"type": "string"}]
    for all_of in (parts, parts[::-1]):
        schema = {"allOf": [{"properties": {"x": part}} for part in all_of]}
        assert drop_optional_nulls({"x": None}, schema) == {}


def test_choices_inside_of_choices_are_found_in_a_moment() -> None:
    """However deep the model nests what may be one of several things."""
    joined = [
        {
            "type": "object",
            "properties": {
                "op": {"const": op},
                "left": {"$ref": "#/$defs/Term"},
                "note": {"type": "string"},
            },
            "required": ["op", "left"],
        }
        for op in ("and", "or", "not")
    ]
    term = {"anyOf": [*joined, {"type": "string"}]}
    schema: Schema = {"type": "object", "properties": {"where": term}}
    schema["$defs"] = {"Term": term}
    given_: Any = "x"
    for _ in range(12):
        given_ = {"op": "not", "left": given_, "note": None}

    assert "note" not in str(drop_optional_nulls({"where": given_}, schema))
    assert argument_error({"where": given_}, schema) is None


def test_choices_of_large_values_are_not_compared_without_end() -> None:
    """Each of them is compared with the whole value; what costs too much is passed."""
    schema = {"type": "object", "properties": {"x": {"enum": [[2]] * 50}}}

    assert argument_error({"x": [1] * 2000}, schema) is None
    choice = {"anyOf": [{"const": str(number)} for number in range(100)]}
    several = {"type": "object", "properties": {"x": {"items": choice}}}
    assert argument_error({"x": ["99"] * 2000 + ["a"]}, several) is None
    assert argument_error({"x": ["99"] * 9 + ["a"]}, several) is not None
    assert argument_error({"x": [1] * 9}, schema) is not None
    row = {"type": "object", "properties": {str(number): {} for number in range(500)}}
    wide = {"type": "object", "properties": {"x": {"items": row}}}
    assert argument_error({"x": [{}] * 2000 + ["a"]}, wide) is None
    assert argument_error({"x": [{}] * 9 + ["a"]}, wide) is not None


NUMBERS = [str(number) for number in range(21)]


@pytest.mark.parametrize(
    ("choices", "shown"),
    [
        (["y" * 58], repr("y" * 58)),
        (["y" * 59], f"'{'y' * 56}..."),
        ([*range(20)], " or ".join(NUMBERS[:20])),
        ([*range(21)], f"{' or '.join(NUMBERS[:20])} ..."),
    ],
    ids=["60 characters", "61 characters", "20 choices", "21 choices"],
)
def test_long_words_and_long_lists_end_in_dots(choices: list[Any], shown: str) -> None:
    schema = {"type": "object", "properties": {"x": {"enum": choices}}}

    error = argument_error({"x": "z"}, schema)

    assert error == f"The argument x must be one of {shown}."


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("kind", ["object", "string"])
def test_a_schema_that_refers_to_itself_twice_is_no_trap(key: str, kind: str) -> None:
    """Followed each time it would take years: a server of tools can send one."""
    itself = {"$ref": "#/$defs/Loop"}
    loop = {"type": kind, "properties": {"a": itself}, key: [itself, itself]}
    schema = {"$defs": {"Loop": loop}, **itself}

    with within(10.0):
        assert drop_optional_nulls({"a": {"a": "b"}}, schema) == {"a": {"a": "b"}}
        message = argument_error({"a": {"a": "b"}}, schema)
        strict = responses_tools([{"name": "f", "parameters": schema}], strict=True)

    assert (message or "").startswith("The argument ")
    assert strict[0]["name"] == "f"


def test_numbers_in_a_strangers_list_of_names_are_not_compared() -> None:
    """Thousands of them can be chosen to have one hash, which takes quadratic time."""

    class Number(int):
        def __hash__(self) -> int:
            raise AssertionError

    names = [Number(3), {}, "city"]
    properties = {"city": {}, "day": {"type": "string"}}
    schema = {"properties": properties, "required": names}
    given = {"city": "Bern", "day": None}

    assert check_arguments(given, {"type": "object", **schema}) == (
        {"city": "Bern"},
        None,
    )


def test_choice_of_the_whole_arguments_names_them() -> None:
    forms = [{"required": ["city"]}, {"required": ["zip"]}]

    error = argument_error({}, {"type": "object", "anyOf": forms})

    assert error == "The argument object fits none of its forms."


def test_long_text_to_choose_is_not_shown_whole() -> None:
    """Each error quotes the choices, and many values may be wrong."""

    class Text(str):
        def __repr__(self) -> str:
            raise AssertionError

    schema = {"type": "object", "properties": {"x": {"enum": [Text("y" * 1000)]}}}

    assert "must be one of 'yyy" in str(argument_error({"x": "z"}, schema))


def test_true_is_no_number_to_choose() -> None:
    schema = {"type": "object", "properties": {"x": {"enum": [1]}}}

    assert argument_error({"x": 1}, schema) is None
    assert "must be one of 1" in str(argument_error({"x": True}, schema))
