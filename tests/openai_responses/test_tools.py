"""Tools of a chat body become tools of the API."""

import pytest

from openai_responses.tools import responses_tool_choice, responses_tools

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}


def test_function() -> None:
    """It is flat, with all that the API wants said."""
    function = {"name": "look", "description": "Look.", "parameters": PARAMETERS}
    assert responses_tools([{"type": "function", "function": function}]) == [
        {
            "type": "function",
            "name": "look",
            "description": "Look.",
            "parameters": PARAMETERS,
            "strict": False,
        }
    ]


def test_bare_function() -> None:
    """No description is sent where there is none; no parameters are an empty object."""
    assert responses_tools([{"function": {"name": "look", "description": ""}}]) == [
        {
            "type": "function",
            "name": "look",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]


def test_tools_of_the_api() -> None:
    """They stay as they are, in their order, and are not shared with the caller."""
    search = {"type": "web_search", "filters": {"allowed_domains": ["a.b"]}}
    flat = {"type": "function", "name": "f", "parameters": None, "strict": True}
    tools = responses_tools([search, flat])
    assert tools == [search, flat]
    assert tools[0] is not search


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", "auto"),
        ("none", "none"),
        (None, None),
        (
            {"type": "function", "function": {"name": "f"}},
            {"type": "function", "name": "f"},
        ),
        ({"type": "function", "name": "f"}, {"type": "function", "name": "f"}),
        ({"type": "mcp", "server_label": "x"}, {"type": "mcp", "server_label": "x"}),
    ],
)
def test_choice(choice: object, expected: object) -> None:
    """Only a named function has another form."""
    assert responses_tool_choice(choice) == expected
