"""Whatever a person types, it is an object, or it is none; nothing is raised."""

import pytest

from openai_responses.json_input import parse_json_object, parse_string_map

DEEP = pytest.param("[" * 100_000, id="brackets")
NO_OBJECTS = ["", "  ", "{", "[]", "null", "1", '"text"', "{'a': 1}", DEEP]


@pytest.mark.parametrize("text", NO_OBJECTS)
def test_text_that_is_not_an_object_parses_to_none(text: str) -> None:
    """Given a text that is no JSON object, one gets None, also for endless brackets."""
    assert parse_json_object(text) is None


@pytest.mark.parametrize("given", [None, 1, {"a": 1}, ["{}"]], ids=repr)
def test_value_that_is_not_text_parses_to_none(given: object) -> None:
    """Given a value that is no text, one gets None."""
    assert parse_json_object(given) is None


def test_an_object_is_read() -> None:
    """Given the text of an object, one gets it, whatever its values are."""
    assert parse_json_object(' {"a": [1, null]} ') == {"a": [1, None]}


def test_texts_are_an_object_of_nothing_else() -> None:
    """Given an object of texts, one gets it; nothing typed is an empty one."""
    assert parse_string_map('{"X-Team": "blue"}') == {"X-Team": "blue"}
    assert parse_string_map("  ") == {}


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": null}', "[]", "blue", DEEP])
def test_other_values_make_it_none(text: str) -> None:
    """Given a value that is no text, or no object, one gets None."""
    assert parse_string_map(text) is None
