"""A caller that wants no stream gets one result with all of the run."""

from typing import Any

import pytest

from openai_responses.endings import CUT, ending_of_incomplete
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, RunEvent
from owui_chat.render.client_errors import client_error
from owui_chat.render.completions import chat_tool_call, completion, completion_text
from runs.sample import (
    call,
    message,
    output,
    reasoning,
    refusal,
    run_of,
    run_with_tools,
    search,
)


def ended(*items: Item) -> RunDone:
    """The end of a run of these items."""
    last = run_of(*items)[-1]
    assert isinstance(last, RunDone)
    return last


def result(run: RunDone) -> dict[str, Any]:
    """The result of a run."""
    return completion(run, "chatcmpl-1", 1_795_262_400, "f.gpt-5.2")


def answered(*items: Item) -> dict[str, Any]:
    """The message of a run's result."""
    answer: dict[str, Any] = result(ended(*items))["choices"][0]["message"]
    return answer


LOOK = message("1", "I look.", "commentary")
DRAWN: Item = {
    **{"type": "image_generation_call", "id": "ig_1", "status": "completed"},
    "result": "AAAA",
}


@pytest.mark.parametrize(
    ("items", "content", "thought"),
    [
        pytest.param(
            [
                *(reasoning("1", "Hm."), message("1", "One"), search("1")),
                *(reasoning("2", ""), reasoning("3", "Ah.")),
                message("2", "Two"),
            ],
            "One\n\nTwo",
            "Hm.\n\nAh.",
            id="several stand apart by a blank line",
        ),
        pytest.param(
            [reasoning("1", ""), message("1", "Rain.")], "Rain.", None, id="no thought"
        ),
        pytest.param(
            [
                *(reasoning("1", "Hm."), LOOK, reasoning("2", "Aha.")),
                message("2", "Rain.", "final_answer"),
            ],
            "Rain.",
            "Hm.\n\nI look.\n\nAha.",
            id="a remark in passing stands among the thoughts",
        ),
        pytest.param([LOOK], "I look.", None, id="a remark alone is the answer"),
        pytest.param(
            [LOOK, message("2", "Done.", "commentary")],
            "Done.",
            "I look.",
            id="of remarks the last is the answer",
        ),
    ],
)
def test_answer_is_text_and_thought(
    items: list[Item], content: str, thought: str | None
) -> None:
    """Without a thought there is no field: no empty block on a page."""
    more = {} if thought is None else {"reasoning_content": thought}
    assert answered(*items) == {"role": "assistant", "content": content, **more}


def test_refusal_has_a_field_of_its_own() -> None:
    """OpenAI's packages would read it as the JSON that was asked for."""
    parts = refusal("2", "Not three.")
    assert answered(message("1", "Two"), parts) == {
        "role": "assistant",
        "content": "Two\n\nNot three.",
        "refusal": "Not three.",
    }


def test_calls_are_the_callers_to_run() -> None:
    body = result(ended(call("1"), call("2")))

    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [chat_tool_call(call("1")), chat_tool_call(call("2"))],
    }


def test_head_and_usage_are_those_of_the_run() -> None:
    body = result(ended(message("1", "Rain.")))

    assert (body["id"], body["model"]) == ("chatcmpl-1", "f.gpt-5.2")
    assert body["usage"]["prompt_tokens"] == 10
    assert body["usage"]["total_tokens"] == 15


def test_failure_before_anything_is_an_error_alone() -> None:
    """The host then marks the message as failed."""
    assert result(RunDone(CUT)) == client_error(CUT.message, 502)


def test_failed_result_keeps_its_text() -> None:
    body = result(RunDone(CUT, output=(message("1", "Ra"),)))

    assert body["choices"][0]["message"]["content"] == "Ra"
    assert body["error"] == client_error(CUT.message, 502)["error"]
    assert "usage" not in body  # a zero would be a lie


def test_answer_that_ran_out_of_tokens_is_no_error() -> None:
    body = result(RunDone(ending_of_incomplete("max_output_tokens")))

    assert body["choices"][0]["finish_reason"] == "length"
    assert "error" not in body


@pytest.mark.parametrize(
    ("code", "reason", "is_error"),
    [
        ("max_output_tokens", "length", False),
        ("context_length_exceeded", "length", False),
        ("max_messages", "length", False),
        ("content_filter", "content_filter", False),
        ("a_new_word", "stop", False),
        ("cancelled", "length", True),
        ("steered", "length", True),
    ],
)
def test_answer_that_is_not_whole_has_a_reason_or_an_error(
    code: str, reason: str, is_error: bool
) -> None:
    """No reason of OpenAI says that somebody has stopped it."""
    body = result(RunDone(ending_of_incomplete(code), output=(message("1", "Ra"),)))

    assert body["choices"][0]["finish_reason"] == reason
    assert ("error" in body) is is_error


def test_text_of_nothing_is_empty() -> None:
    """A task that failed has no title."""
    assert completion_text(RunDone(CUT)) == ""
    assert completion_text(ended(reasoning("1"), call("1"))) == ""


@pytest.mark.parametrize(
    ("events", "reason", "calls"),
    [
        pytest.param(run_with_tools(), "stop", [], id="all"),
        pytest.param(
            run_with_tools(output("1")),
            "tool_calls",
            [chat_tool_call(call("2"))],
            id="but one, which is the caller's",
        ),
    ],
)
def test_calls_that_were_answered_are_nobodys_to_run(
    events: list[RunEvent], reason: str, calls: list[Item]
) -> None:
    done = events[-1]
    assert isinstance(done, RunDone)

    [choice] = result(done)["choices"]

    assert choice["finish_reason"] == reason
    assert choice["message"].get("tool_calls", []) == calls
    assert choice["message"]["content"] == "Rain."


def test_complete_answer_has_its_annotations() -> None:
    """The same as a stream has, with links that do not tell who searched."""
    first = message("1", "Rain ([a.example](https://a.example?utm_source=openai)).")
    note = {"type": "url_citation", "url": "https://b.example", "title": "B"}
    file = {"type": "file_citation", "file_id": "f", "filename": "a.pdf", "index": 1}
    second = message("2", "Snow.", annotations=[file, {**note, "start_index": 1}])

    answer = answered(first, second)

    text = "Rain ([a.example](https://a.example)).\n\nSnow."
    assert answer["content"] == text
    [cited] = answer["annotations"]
    assert cited["url_citation"] == {
        "url": "https://b.example",
        "title": "B",
        "start_index": text.index("now."),
        "end_index": len(text),
    }


def test_pictures_have_a_field_of_their_own() -> None:
    answer = answered(DRAWN, message("1", "There."))

    url = {"url": "data:image/png;base64,AAAA"}
    assert answer["images"] == [{"type": "image_url", "image_url": url}]
    assert answer["content"] == "There."
