"""Who asks, by what the host says."""

from typing import Any

import pytest

from shells.caller import (
    ChatCaller,
    is_program,
    uses_older_calls,
    wants_format,
    wants_usage_chunk,
)

TASKS = [
    *("title_generation", "tags_generation", "follow_up_generation"),
    *("emoji_generation", "query_generation", "image_prompt_generation"),
    *("autocomplete_generation", "function_calling", "moa_response_generation"),
    *("context_compaction", "memory_review"),
]
"""As Open WebUI 0.12.4 names them."""


def test_tasks_of_the_host_and_chats_are_no_programs() -> None:
    """A sub-agent with tools puts its own where the host names its tasks.

    Only merged answers show no error.
    """
    assert [task for task in (*TASKS, "", "sub_agent") if is_program(task)] == [
        "sub_agent"
    ]
    drop_errors = [task for task in TASKS if ChatCaller(task=task).drops_errors]
    assert drop_errors == ["moa_response_generation"]
    assert ChatCaller(chat_id="channel:c-1").drops_errors


def test_host_reads_the_answer_of_a_message_in_a_chat() -> None:
    assert ChatCaller(chat_id="c-1", message_id="m-1").is_open_webui
    assert not ChatCaller(chat_id="c-1").is_open_webui
    assert not ChatCaller(message_id="m-1").is_open_webui


@pytest.mark.parametrize(
    ("body", "older", "usage"),
    [
        ({}, False, False),
        ({"functions": [{"name": "f"}]}, True, False),
        ({"functions": [{"name": "f"}], "tools": [{"name": "f"}]}, False, False),
        ({"functions": [], "tools": None}, False, False),
        ({"stream_options": {"include_usage": True}}, False, True),
        ({"stream_options": {"include_usage": "no"}}, False, False),
    ],
)
def test_what_a_program_reads(body: dict[str, Any], older: bool, usage: bool) -> None:
    """Calls as Chat Completions first had them; the usage in a chunk of its own."""
    assert (uses_older_calls(body), wants_usage_chunk(body)) == (older, usage)


@pytest.mark.parametrize(
    ("body", "wants"),
    [
        ({}, False),
        ({"response_format": {"type": "text"}, "text": {"verbosity": "low"}}, False),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": "json_object"}, True),
        ({"text": {"format": {"type": "json_schema"}}}, True),
        ({"tool_choice": "required"}, False),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, False),
        # How LangChain and Instructor ask for JSON.
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, True),
    ],
)
def test_program_that_reads_a_form(body: dict[str, Any], wants: bool) -> None:
    assert wants_format(body) is wants
