"""Functions and calls of programs that use the older form."""

from typing import Any

import pytest

from owui_chat.older_calls import in_older_form, with_todays_tools

Json = dict[str, Any]
WEATHER = {"name": "weather", "parameters": {"type": "object"}}
NAMED = {"type": "function", "function": {"name": "weather"}}
CALLS = [{"index": 0, "id": "call_1", "type": "function", "function": WEATHER}]


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({}, {}),
        ({"function_call": "none"}, {"tool_choice": "none"}),
        ({"function_call": "auto"}, {"tool_choice": "auto"}),
        ({"function_call": {"name": "weather"}}, {"tool_choice": NAMED}),
        (
            {"function_call": "none", "tool_choice": "required"},
            {"tool_choice": "required"},
        ),
    ],
)
def test_functions_are_tools_of_which_one_is_called(given: Json, choice: Json) -> None:
    body = {"model": "m", "functions": [WEATHER], **given}

    assert with_todays_tools(body) == {
        "model": "m",
        "tools": [{"type": "function", "function": WEATHER}],
        "parallel_tool_calls": False,
        **choice,
    }
    assert body["functions"] == [WEATHER]


@pytest.mark.parametrize("key", ["delta", "message"])
def test_call_is_told_in_the_older_form(key: str) -> None:
    part = {"role": "assistant", "content": None, "tool_calls": CALLS}
    ended = {"index": 0, key: {}, "finish_reason": "tool_calls"}
    answer = {"id": "a", "choices": [{"index": 0, key: part}, ended]}

    told = {"role": "assistant", "content": None, "function_call": WEATHER}
    ending = {**ended, "finish_reason": "function_call"}
    older = {"id": "a", "choices": [{"index": 0, key: told}, ending]}
    assert in_older_form(answer) == older
    assert part["tool_calls"] == CALLS


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [], "usage": {"total_tokens": 3}},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]},
        {"error": {"message": "No."}},
    ],
)
def test_what_holds_no_call_stays_as_it_is(answer: Json) -> None:
    assert in_older_form(answer) == answer
