"""Small jobs of the host see no markers and answer in one piece."""

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from owui_chat.input.tasks import task_format, task_messages, task_result
from owui_chat.storage.markers import format_marker

LINE = format_marker("reasoning", "A" * 26)


def test_markers_of_the_quoted_chat_are_taken_out() -> None:
    """A model would put them into the title."""
    prompt = f"<chat_history>\nUSER: Hi\nASSISTANT: {LINE}Hello.\n</chat_history>"

    [message] = task_messages([{"role": "user", "content": prompt}])

    assert message["role"] == "user"
    assert "openai_responses" not in message["content"]
    assert message["content"].startswith("<chat_history>\nUSER: Hi\nASSISTANT:")
    assert message["content"].endswith("Hello.\n</chat_history>")


def test_texts_among_parts_are_cleaned_too() -> None:
    """Pictures stay beside them."""
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"type": "text", "text": f"A{LINE}B"}, picture, "loose"]

    [message] = task_messages([{"role": "user", "content": parts}])

    assert message["content"] == [{"type": "text", "text": "A\n\nB"}, picture, "loose"]


@pytest.mark.parametrize("content", ["Make a title.", None, [], 7])
def test_prompt_without_markers_is_left_alone(content: object) -> None:
    """Byte for byte."""
    chat: list[dict[str, Any]] = [{"role": "user", "content": content, "name": "x"}]

    assert task_messages(chat) == chat


def test_nothing_that_was_given_is_changed() -> None:
    """The host goes on with the same messages."""
    chat = [{"role": "user", "content": [{"type": "text", "text": f"A{LINE}B"}]}]

    task_messages(chat)

    assert chat[0]["content"] == [{"type": "text", "text": f"A{LINE}B"}]


def test_message_without_content_gets_none() -> None:
    """The reader of messages takes null as empty."""
    assert task_messages([{"role": "user"}]) == [{"role": "user", "content": None}]


def test_result_is_where_the_host_looks() -> None:
    """It reads `choices[0].message.content` alone."""
    found = task_result("A title", "f.gpt-5.2")

    assert found["choices"][0]["message"] == {
        "role": "assistant",
        "content": "A title",
    }
    ChatCompletion.model_validate({**found, "id": "", "created": 0}, strict=True)


@pytest.mark.parametrize(
    ("task", "key", "kind"),
    [
        ("title_generation", "title", "string"),
        ("tags_generation", "tags", "array"),
        ("follow_up_generation", "follow_ups", "array"),
        ("query_generation", "queries", "array"),
        ("image_prompt_generation", "prompt", "string"),
        ("autocomplete_generation", "text", "string"),
    ],
)
def test_the_object_that_the_host_reads(task: str, key: str, kind: str) -> None:
    """One key, so that nothing can stand around it."""
    messages = [{"role": "user", "content": f'JSON format: {{ "{key}": ... }}'}]

    form = task_format(task, messages)

    assert form is not None
    assert (form["type"], form["strict"]) == ("json_schema", True)
    assert form["schema"]["properties"][key]["type"] == kind
    assert form["schema"]["required"] == [key]


@pytest.mark.parametrize("task", ["emoji_generation", "moa_response_generation", ""])
def test_tasks_that_want_a_text(task: str) -> None:
    """An emoji is no object."""
    assert task_format(task, [{"role": "user", "content": '"title"'}]) is None


def test_a_prompt_of_the_administrators_own() -> None:
    """It may ask for a bare line."""
    messages = [{"role": "user", "content": "Write a title, nothing else."}]
    assert task_format("title_generation", messages) is None
