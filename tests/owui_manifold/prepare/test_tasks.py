"""The request of a title, tags or the like: its model, its format, what it leaves out."""

from typing import Any

import pytest

from calls.sample import MODEL, call_of, chat
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.tasks import build_task_request
from owui_manifold.present.report import report_request
from stand_in.host import StandInHost

TITLE = Caller(MODEL, "user-1", "chat-1", "m-1", task="title_generation")
PROMPT = '### Task: a title. JSON format: { "title": "..." }'


def sent(given: dict[str, Any], caller: Caller = TITLE, **more: Any) -> dict[str, Any]:
    """Return what is sent for a title."""
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})
    return build_task_request(
        call_of(chat(PROMPT, **more), valves, caller)
    ).request.payload()


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({}, "gpt-6-luna"),
        ({"TASK_MODEL": "gpt-6.1-terra"}, "gpt-6.1-terra"),
        ({"TASK_MODEL": " "}, "gpt-5.6-sol"),
        ({"BASE_URL": "https://other.example/v1"}, "gpt-5.6-sol"),
        ({"BASE_URL": "https://other.example/v1", "TASK_MODEL": "tiny"}, "tiny"),
    ],
)
def test_tasks_go_to_the_small_model_of_openai(
    given: dict[str, Any], model: str, host: StandInHost
) -> None:
    """A small one at OpenAI; elsewhere the chat's own, unless one is named."""
    assert sent(given)["model"] == model


def test_task_asks_for_the_object_that_the_host_reads(host: StandInHost) -> None:
    """Nothing can stand around it."""
    form = sent({})["text"]["format"]
    assert (form["type"], form["name"]) == ("json_schema", "title_generation")


def test_unknown_model_is_asked_without_structured_output(host: StandInHost) -> None:
    """It may have no structured output."""
    assert "text" not in sent({"TASK_MODEL": "tiny"})


def test_titles_ignore_the_settings_of_answers(host: StandInHost) -> None:
    """A workspace model can ask for JSON, long answers or deep thought."""
    asked: dict[str, Any] = {
        "response_format": {"type": "json_object"},
        "verbosity": "high",
        "reasoning_effort": "max",
        "tool_choice": "required",
    }
    assert sent({}, **asked) == sent({})


def test_titles_ignore_invalid_settings(host: StandInHost) -> None:
    """Its log does not look at it either."""
    body = chat(PROMPT, response_format="nonsense")
    prepared = build_task_request(call_of(body, Valves(API_KEY="sk-1"), TITLE))

    report_request(prepared)

    assert len(prepared.call.log.text().splitlines()) == 1


def test_described_model_gets_its_lowest_effort(host: StandInHost) -> None:
    """The lowest effort is the one that it has."""
    overrides = '{"mine": {"like": "gpt-5", "efforts": ["medium", "high"]}}'
    given = {"TASK_MODEL": "mine", "MODEL_OVERRIDES_JSON": overrides}
    assert sent(given)["reasoning"] == {"effort": "medium"}


def test_a_title_is_not_made_in_the_mode_pro(host: StandInHost) -> None:
    """Several passes for five words would be a waste."""
    caller = TITLE._replace(host_model="my_pipe.gpt-5.6-sol-pro")
    made = sent({"TASK_MODEL": " "}, caller)
    assert (made["model"], made["reasoning"]) == ("gpt-5.6-sol", {"effort": "none"})
