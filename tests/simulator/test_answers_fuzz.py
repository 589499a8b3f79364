"""No body, however strange, breaks the stand-in."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chats.pictures import PIXEL
from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import RequestOrigin, Responder
from simulator.refusals import Refusal

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 99)
    | st.floats(0, 3)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(["type", "id", "text", "role", "x"]), inner),
    max_leaves=4,
)
VALID: dict[str, Any] = {
    "model": "gpt-5.6-sol",
    "store": False,
    "stream": True,
    "instructions": "Be kind.",
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "text"}},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "tool_choice": {"type": "function", "name": "f"},
    "tools": [
        {
            "type": "function",
            "name": "f",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "additionalProperties": False,
            },
        },
        {"type": "custom", "name": "g"},
    ],
    "input": [
        {"role": "developer", "content": "x"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "x"},
                {
                    "type": "input_image",
                    "image_url": PIXEL,
                    "detail": "auto",
                },
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x"},
        },
        {"role": "user", "content": "x"},
    ],
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths to every value inside a body."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    else:
        inner = []
    paths = [path] if path else []
    for name, below in inner:
        paths += places(below, (*path, name))
    return paths


def replaced(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return the valid body with one value exchanged."""
    body = copy.deepcopy(VALID)
    target: Any = body
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    return body


def accepts(body: dict[str, Any]) -> bool:
    """Tell whether a body is accepted; anything but a Refusal is a failure."""
    asker = RequestOrigin(ACCOUNTS[KEY], PROFILES["strictest"], "short", "chat")
    try:
        Responder().answer(body, asker)
    except Refusal:
        return False
    return True


def test_the_valid_body_is_accepted() -> None:
    """The starting point of this file is valid."""
    assert accepts(VALID)


@settings(max_examples=150)
@given(st.sampled_from(places(VALID)), JUNK)
def test_any_value_at_any_path_is_accepted_or_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    """A value of any type in any place is accepted or refused, never a crash."""
    accepts(replaced(path, value))


@pytest.mark.parametrize("value", [[{}], {"type": ["x"]}])
def test_an_unhashable_value(value: Any) -> None:
    """Lists and objects where names belong do not crash."""
    for path in places(VALID):
        if len(path) < 4:
            accepts(replaced(path, value))
