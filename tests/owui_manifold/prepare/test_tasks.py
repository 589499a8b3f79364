"""The request of a title, a summary and the like: its model, its effort, its format."""

from typing import Any

import pytest

from calls.sample import MODEL, TITLE_TASK, call_of, chat
from owui_host.task_models import chosen_task_models
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.tasks import build_task_request
from owui_manifold.present.report import report_request
from stand_in.host import StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

SUMMARY = TITLE_TASK._replace(task="context_compaction")
MERGE = TITLE_TASK._replace(task="moa_response_generation")
PROMPT = '### Task: a title. JSON format: { "title": "..." }'


async def sent(
    given: dict[str, Any], caller: Caller = TITLE_TASK, **more: Any
) -> dict[str, Any]:
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})
    prepared = await build_task_request(call_of(chat(PROMPT, **more), valves, caller))
    return prepared.request.payload()


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
async def test_tasks_go_to_the_small_model_of_openai(
    given: dict[str, Any], model: str
) -> None:
    """A small one at OpenAI; elsewhere the chat's own, unless one is named."""
    assert (await sent(given))["model"] == model


@pytest.mark.parametrize("task", ["context_compaction", "of another function"])
async def test_other_task_is_done_by_the_model_that_was_asked(task: str) -> None:
    """At its own effort: the one in its name, or that of its settings."""
    caller = TITLE_TASK._replace(task=task)
    named = caller._replace(host_model="f.gpt-5.6-sol-high")

    plain = await sent({}, caller)
    by_name = await sent({}, named)
    by_setting = await sent({}, caller, reasoning_effort="low")

    assert {made["model"] for made in (plain, by_name, by_setting)} == {"gpt-5.6-sol"}
    assert "reasoning" not in plain
    assert by_name["reasoning"] == {"effort": "high"}
    assert by_setting["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("setting", "task", "is_chosen"),
    [
        ("task.model.external", "title_generation", True),
        ("task.model.default", "emoji_generation", True),
        ("chat.context_compaction.model", "title_generation", False),
    ],
)
async def test_model_that_an_administrator_chose_for_tasks_does_them(
    setting: str, task: str, is_chosen: bool, host: StandInHost
) -> None:
    """TASK_MODEL is the choice where there is no other."""
    host.settings.values[setting] = MODEL

    made = await sent({}, TITLE_TASK._replace(task=task), max_tokens=50)

    expected = "gpt-5.6-sol" if is_chosen else "gpt-6-luna"
    assert made["model"] == expected
    assert ("reasoning" in made) is not is_chosen
    assert made["max_output_tokens"] == 50


@pytest.mark.parametrize(
    ("task", "setting"),
    [
        ("title_generation", "task.model"),
        ("follow_up_generation", "task.model"),
        ("tags_generation", "task.model"),
        ("emoji_generation", "task.model"),
        ("query_generation", "task.model"),
        ("image_prompt_generation", "task.model"),
        ("autocomplete_generation", "task.model"),
        ("function_calling", "task.model"),
        ("context_compaction", "chat.context_compaction"),
        ("moa_response_generation", ""),
    ],
)
async def test_each_task_has_its_setting(
    task: str, setting: str, host: StandInHost
) -> None:
    """One that is not set chooses nothing."""
    values = {
        "task.model.default": "a",
        "task.model.external": "b",
        "chat.context_compaction.model": "c",
    }
    host.settings.values = values
    named = {name for key, name in values.items() if setting and setting in key}

    assert await chosen_task_models(task) == named
    host.settings.values = dict.fromkeys(values, "")
    assert await chosen_task_models(task) == set()


async def test_model_chosen_for_tasks_may_be_one_of_the_workspace(
    host: StandInHost,
) -> None:
    """The pipe is asked for the one that it is made of."""
    host.settings.values["task.model.external"] = "titles"
    host.models.add("titles", "admin")
    host.models.rows["titles"].base_model_id = MODEL

    assert (await sent({}))["model"] == "gpt-5.6-sol"


@pytest.mark.parametrize(
    ("prompt", "model"), [("Short.", "gpt-6.1-terra"), ("x" * 601, "gpt-6.1-sol")]
)
async def test_automatic_name_stands_for_a_model_here_too(
    prompt: str, model: str
) -> None:
    """No server has a model of that name."""
    caller = MERGE._replace(host_model="f.gpt-5-auto")
    body = chat("x" * 601, "Well.", prompt)
    call = call_of(body, Valves(API_KEY="sk-1"), caller)

    assert (await build_task_request(call)).request.model == model


async def test_mode_pro_is_the_models_own_effort() -> None:
    """Several passes for the five words of a title would be a waste."""
    pro = "my_pipe.gpt-5.6-sol-pro"

    title = await sent({"TASK_MODEL": " "}, TITLE_TASK._replace(host_model=pro))
    merge = await sent({}, MERGE._replace(host_model=pro))

    assert (title["model"], title["reasoning"]) == ("gpt-5.6-sol", {"effort": "none"})
    assert (merge["model"], merge["reasoning"]) == ("gpt-5.6-sol", {"mode": "pro"})


@pytest.mark.parametrize(
    ("caller", "valves", "given", "limit"),
    [
        (SUMMARY, {}, {"max_tokens": 1000}, None),
        (MERGE, {}, {"max_tokens": 1000}, 1000),
        (TITLE_TASK, {}, {"max_tokens": 1000}, 1000),
        # The limit of answers holds for other tasks; a lower one of the caller counts.
        (MERGE, {"MAX_OUTPUT_TOKENS": 900}, {}, 900),
        (MERGE, {"MAX_OUTPUT_TOKENS": 900}, {"max_tokens": 300}, 300),
        (TITLE_TASK, {"MAX_OUTPUT_TOKENS": 900}, {}, None),
    ],
)
async def test_limit_that_open_webui_sends_of_itself_is_not_sent(
    caller: Caller, valves: dict[str, Any], given: dict[str, Any], limit: int | None
) -> None:
    """Reasoning counts for it: a summary would often be empty. A small model that
    hardly reasons can keep to it."""
    sent_limit = (await sent(valves, caller, **given)).get("max_output_tokens")
    assert sent_limit == limit


@pytest.mark.parametrize(
    ("task", "hosts_own"), [("title_generation", 1000), ("emoji_generation", 4)]
)
async def test_chosen_model_has_no_limit_of_open_webuis_own(
    task: str, hosts_own: int, host: StandInHost
) -> None:
    """For a title and an emoji it is another one."""
    host.settings.values["task.model.external"] = MODEL

    made = await sent({}, TITLE_TASK._replace(task=task), max_tokens=hosts_own)

    assert "max_output_tokens" not in made


@pytest.mark.parametrize("where", ["tasks", "model", "chosen model"])
async def test_limit_that_an_administrator_chose_is_sent(
    where: str, host: StandInHost
) -> None:
    """It may be the same number."""
    if where == "tasks":
        host.settings.values["task.model.params"] = {"max_tokens": 1000}
    elif where == "model":
        host.models.add(MODEL, "admin", max_tokens=1000)
    else:
        host.settings.values["chat.context_compaction.model"] = "summaries"
        host.models.add("summaries", "admin", max_tokens=1000)

    assert (await sent({}, SUMMARY, max_tokens=1000))["max_output_tokens"] == 1000


@pytest.mark.parametrize(
    ("caller", "wanted", "valve", "streams"),
    [
        (TITLE_TASK, True, True, True),
        (MERGE, True, True, True),
        (MERGE, True, False, False),
        (TITLE_TASK, False, True, False),
    ],
)
async def test_task_streams_where_its_caller_does(
    caller: Caller, wanted: bool, valve: bool, streams: bool
) -> None:
    """The page shows merged answers as they grow."""
    made = await sent({"ENABLE_STREAM": valve}, caller._replace(streams=wanted))

    assert made["stream"] is streams


async def test_model_is_asked_for_what_it_takes(host: StandInHost) -> None:
    """One that is unknown for no structured output; a described one as described."""
    overrides = '{"mine": {"like": "gpt-5", "efforts": ["medium", "high"]}}'
    described = {"TASK_MODEL": "mine", "MODEL_OVERRIDES_JSON": overrides}

    assert "text" not in await sent({"TASK_MODEL": "tiny"})
    form = (await sent({}))["text"]["format"]
    assert (form["type"], form["name"]) == ("json_schema", "title_generation")
    assert (await sent(described))["reasoning"] == {"effort": "medium"}


async def test_titles_ignore_invalid_settings() -> None:
    """Its log does not look at it either."""
    body = chat(PROMPT, response_format="nonsense")
    prepared = await build_task_request(
        call_of(body, Valves(API_KEY="sk-1"), TITLE_TASK)
    )

    report_request(prepared)

    assert len(prepared.call.log.text().splitlines()) == 1
