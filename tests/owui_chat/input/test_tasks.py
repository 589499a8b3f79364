"""Small jobs of the host see no markers and answer in one piece."""

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from chats.parts import image_part, text_part
from openai_responses.endings import COMPLETED, CUT, Ending, ending_of_incomplete
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import ResponsesRequest
from owui_chat.input.tasks import (
    SMALL_TASKS,
    is_usable_text,
    task_request,
    task_result,
    without_hosts_limit,
)
from owui_chat.storage.markers import format_marker
from owui_chat.wording import CHECK_HEADING

LINE = format_marker("reasoning", "A" * 26)
Chat = list[dict[str, Any]]
ASKED: Chat = [{"role": "user", "content": "Hi"}]


def request_of(
    chat: Chat, task: str = "title_generation", model: str = "gpt-5.2"
) -> ResponsesRequest:
    return task_request(resolve_model(model), chat, {"model": model}, task)


def sent(content: object) -> list[Item]:
    """The parts that are sent for the one message of a task."""
    [message] = request_of([{"role": "user", "content": content, "name": "x"}]).input
    assert message["role"] == "user"
    return list(message["content"])


def format_of(task: str, prompt: str, **model: str) -> dict[str, Any] | None:
    text = request_of([{"role": "user", "content": prompt}], task, **model).text or {}
    return text.get("format")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (f"Hi\nASSISTANT: {LINE}So.\n<h>", [text_part("Hi\nASSISTANT:\n\nSo.\n<h>")]),
        (
            [
                {"type": "text", "text": f"A{LINE}B"},
                {"type": "image_url", "image_url": {"url": "data:,"}},
                "loose",
            ],
            [text_part("A\n\nB"), image_part("data:,"), text_part("loose")],
        ),
        ("Make  a title.\n", [text_part("Make  a title.\n")]),
        (
            f"USER: /check\nASSISTANT: {CHECK_HEADING}\nFine.\nUSER: Hi\n",
            [text_part("USER: Hi\n")],
        ),
        (None, [text_part("")]),
        ([], []),
        (7, [text_part("7")]),
    ],
)
def test_prompt_is_sent_without_markers(content: object, parts: list[Item]) -> None:
    """A model would put those of a quoted chat into the title."""
    assert sent(content) == parts


@pytest.mark.parametrize(
    ("model", "at_own_effort", "key", "value"),
    [
        ("gpt-5-high", False, "effort", "minimal"),
        ("gpt-5-high", True, "effort", "high"),
        ("gpt-6.1-sol-pro", False, "mode", None),
        ("gpt-6.1-sol-pro", True, "mode", "pro"),
    ],
)
def test_small_task_is_done_at_the_lowest_effort(
    model: str, at_own_effort: bool, key: str, value: str | None
) -> None:
    """The mode "pro" costs a multiple."""
    request = task_request(
        resolve_model(model), ASKED, {}, "summary", at_own_effort=at_own_effort
    )

    assert (request.reasoning or {}).get(key) == value


def test_small_task_takes_nothing_that_is_chosen_for_answers() -> None:
    body = {
        "tools": [{"type": "web_search"}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_object"},
        "text": {"format": {"type": "json_object"}},
        "json_schema": {"name": "a"},
        "verbosity": "high",
        "reasoning_summary": "detailed",
        "max_tokens": 500,
    }
    efforts = {"reasoning": {"effort": "high"}, "reasoning_effort": "high"}
    model = resolve_model("gpt-5.2")

    small = task_request(model, ASKED, {**body, **efforts}, "emoji_generation")
    plain = task_request(model, ASKED, {"max_tokens": 500}, "emoji_generation")
    assert small == plain
    assert small.max_output_tokens == 500
    for key, value in efforts.items():
        own = task_request(model, ASKED, {key: value}, "summary", at_own_effort=True)
        assert (own.reasoning or {})["effort"] == "high"


def test_task_keeps_nothing_and_comes_in_one_piece_unless_it_streams() -> None:
    """No later turn has its reasoning."""
    model = resolve_model("gpt-5.2")

    assert not request_of(ASKED).stream
    assert not request_of(ASKED).include
    assert task_request(model, ASKED, {}, "summary", stream=True).stream


@pytest.mark.parametrize(
    ("task", "ending", "is_usable"),
    [
        ("title_generation", COMPLETED, True),
        ("title_generation", ending_of_incomplete("max_output_tokens"), False),
        ("function_calling", ending_of_incomplete("max_output_tokens"), False),
        ("memory_review", ending_of_incomplete("max_output_tokens"), False),
        ("context_compaction", ending_of_incomplete("max_output_tokens"), True),
        ("context_compaction", CUT, False),
        ("emoji_generation", Ending("failed"), False),
    ],
)
def test_half_of_an_object_is_of_no_use(
    task: str, ending: Ending, is_usable: bool
) -> None:
    assert is_usable_text(task, ending) is is_usable


@pytest.mark.parametrize(
    ("task", "limit", "is_left_out"),
    [
        ("title_generation", 1000, True),
        ("title_generation", 999, False),
        ("context_compaction", 1000, True),
        ("emoji_generation", 4, True),
        ("emoji_generation", 1000, False),
        ("tags_generation", 1000, False),
    ],
)
def test_limit_that_nobody_has_chosen_is_left_out(
    task: str, limit: int, is_left_out: bool
) -> None:
    """It would end the reasoning, so that no text came."""
    body = {"model": "m", "max_tokens": limit}

    rest = {"model": "m"} if is_left_out else body
    assert without_hosts_limit(body, task) == rest
    assert without_hosts_limit({"model": "m"}, task) == {"model": "m"}
    assert body["max_tokens"] == limit


def test_nothing_that_was_given_is_changed() -> None:
    """The host goes on with the same messages."""
    chat = [{"role": "user", "content": [{"type": "text", "text": f"A{LINE}B"}]}]

    request_of(chat)

    assert chat[0]["content"] == [{"type": "text", "text": f"A{LINE}B"}]


def test_result_is_where_the_host_looks() -> None:
    """The host reads only `choices[0].message.content`."""
    result = task_result("A title", "f.gpt-5.2")

    said = {"role": "assistant", "content": "A title"}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    assert result["choices"] == [choice]
    ChatCompletion.model_validate({**result, "id": "", "created": 0}, strict=True)


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
    """One key, so that nothing can be around it."""
    form = format_of(task, f'JSON format: {{ "{key}": ... }}')

    text = {"type": "string"}
    value = {"type": "array", "items": text} if kind == "array" else text
    assert form is not None
    assert (form["type"], form["strict"]) == ("json_schema", True)
    assert form["schema"] == {
        **{"type": "object", "properties": {key: value}},
        **{"required": [key], "additionalProperties": False},
    }
    assert task in SMALL_TASKS
    # Another server may refuse it.
    assert format_of(task, f'"{key}"', model="somebody-s") is None


@pytest.mark.parametrize(
    ("task", "prompt"),
    [
        ("emoji_generation", '"title"'),
        ("moa_response_generation", '"title"'),
        ("", '"title"'),
        # An administrator's own prompt may ask for a bare line.
        ("title_generation", "Write a title, nothing else."),
    ],
)
def test_tasks_that_want_a_text_get_no_form(task: str, prompt: str) -> None:
    assert format_of(task, prompt) is None
