"""What a person is told above an answer."""

import json
from typing import Any

import pytest

from calls.outcomes import chunks_of, errors, host_events, result_of, statuses
from calls.sample import IDS, TOOL, USER, chat
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.pipe import Pipe
from simulator import Simulator
from stand_in.host import StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

ADMIN = {**USER, "role": "admin"}


async def lines(pipe: Pipe, user: dict[str, Any] = ADMIN, **metadata: Any) -> list[str]:
    """Return the status lines of an answer."""
    given = {"__user__": user, "__metadata__": {**IDS, **metadata}}
    return statuses(await chunks_of(pipe, chat("Hi"), **given))


async def test_shutdown_of_a_model_is_announced(pipe: Pipe) -> None:
    """Everybody sees it, because everybody can choose another."""
    overrides = (
        '{"gpt-5.6-sol": {"shutdown": "2026-01-01", "successor": "gpt-6.1-sol"}}'
    )
    pipe.valves = pipe.valves.model_copy(update={"MODEL_OVERRIDES_JSON": overrides})
    expected = "GPT-5.6 Sol was switched off on 2026-01-01. Use GPT-6.1 Sol instead."
    assert await lines(pipe, USER) == [expected]


RETIRED = "GPT-5.6 Sol was switched off on 2026-01-01."
RETIRING = '{"gpt-5.6-sol": {"shutdown": "2026-01-01"}}'


async def test_shutdown_is_announced_once_in_each_chat(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """It hides what an answer took; the log has it once a day."""
    pipe.valves = pipe.valves.model_copy(update={"MODEL_OVERRIDES_JSON": RETIRING})

    shown = [
        await lines(pipe, USER),
        await lines(pipe, USER, message_id="m-2"),
        await lines(pipe, USER, chat_id="chat-2"),
        await lines(pipe, USER, chat_id="temporary:s-1"),
        await lines(pipe, USER, chat_id="temporary:s-1", message_id="m-2"),
    ]

    assert shown == [[RETIRED], [], [RETIRED], [RETIRED], []]
    assert len([m for m in caplog.messages if m.endswith(RETIRED)]) == 1


@pytest.mark.parametrize("told", [RETIRED, "GPT-5.6 Sol answers."])
async def test_chat_that_was_told_before_a_restart_is_not_told_again(
    told: str, pipe: Pipe, host: StandInHost
) -> None:
    """Open WebUI stores the lines with the answer; a broken row is none."""
    pipe.valves = pipe.valves.model_copy(update={"MODEL_OVERRIDES_JSON": RETIRING})
    answer = {"role": "assistant", "statusHistory": [None, {"description": told}]}
    messages = {"a1": answer, "a2": None, "a3": {"statusHistory": "x"}}
    host.chats.rows["chat-1"].chat = {"history": {"messages": messages}}

    assert await lines(pipe, USER) == ([] if told == RETIRED else [RETIRED])


@pytest.mark.parametrize(
    ("model", "shown"), [({}, "GPT-5"), ({"name": "Ours", "like": "gpt-5"}, "Ours")]
)
async def test_of_an_agent_the_model_is_named(
    model: dict[str, Any], shown: str, pipe: Pipe
) -> None:
    """The agent goes on, with another model."""
    overrides = {
        "gpt5_function_calling": {"name": "Our agent"},
        "gpt-5": {**model, "shutdown": "2026-01-01"},
    }
    settings = {
        "AGENT_JSON": '{"model": "gpt-5"}',
        "MODEL_OVERRIDES_JSON": json.dumps(overrides),
    }
    pipe.valves = pipe.valves.model_copy(update=settings)
    body = chat("Hi", model="my_pipe.gpt5_function_calling")

    chunks = await chunks_of(pipe, body, __user__=USER, __metadata__=IDS)

    expected = f"{shown} was switched off on 2026-01-01. Use GPT-6.1 Sol instead."
    assert statuses(chunks)[-1] == expected


async def test_end_of_the_model_for_tasks_is_in_the_log(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """Its answers are not seen; what it has logged, the chat has not yet been told."""
    settings = {"TASK_MODEL": "gpt-5.6-sol", "MODEL_OVERRIDES_JSON": RETIRING}
    pipe.valves = pipe.valves.model_copy(update=settings)
    given = {"__user__": USER, "__metadata__": IDS, "__task__": "tags_generation"}

    for _ in range(2):
        await result_of(pipe, chat("Hi"), **given)

    assert len([m for m in caplog.messages if m.endswith(RETIRED)]) == 1
    assert await lines(pipe, USER) == [RETIRED]


async def test_shutdown_date_of_the_server_counts(pipe: Pipe) -> None:
    """As soon as the list of models has told it."""
    never = '{"gpt-5": {"shutdown": "2099-01-01"}}'
    more = {"MODEL_OVERRIDES_JSON": never, "MODEL_ID": "auto"}
    pipe.valves = pipe.valves.model_copy(update=more)
    body = chat("Hi")
    given = {"__user__": USER, "__metadata__": IDS}
    body["model"] = "my_pipe.gpt-5"
    assert statuses(await chunks_of(pipe, body, **given)) == []

    await pipe.pipes()

    [status] = statuses(await chunks_of(pipe, body, **given))
    assert "switched off on 2026-12-11. Use GPT-6.1 Sol instead." in status


@pytest.mark.parametrize(
    "model",
    [
        "gpt-image-1.5",
        "gpt-image-1.5-2025-12-16",
    ],
)
async def test_shutdown_of_an_image_model_is_announced_to_administrators(
    pipe: Pipe, model: str
) -> None:
    options = {"IMAGE_GENERATION_OPTIONS": f'{{"model": "{model}"}}'}
    pipe.valves = pipe.valves.model_copy(update=options)

    assert await lines(pipe, USER) == []
    [line] = await lines(pipe)

    assert line.startswith(f"IMAGE_GENERATION_OPTIONS: {model} ")
    assert (
        "switched off on 2026-12-01. Use gpt-image-2.6-sunburst or -flare instead."
        in line
    )
    assert await lines(pipe) == []


@pytest.mark.parametrize(
    "options", ["no JSON", '{"model": 5}', '{"model": "gpt-image-2.6-flare"}']
)
async def test_other_image_models_are_not_announced(pipe: Pipe, options: str) -> None:
    """A notice is only about a model that will be shut down."""
    given = {"IMAGE_GENERATION_OPTIONS": options}
    pipe.valves = pipe.valves.model_copy(update=given)
    statuses_shown = await lines(pipe)
    assert not [line for line in statuses_shown if "switched off" in line]


async def test_mistakes_in_valves_are_reported_to_administrators(pipe: Pipe) -> None:
    prices = '{"one": {"input": 1, "output": 2}, "other": {"input": 1, "outpt": 2}}'
    wrong = {"USER_MAY_CHANGE": "efort", "CUSTOM_MODEL_PRICING_JSON": prices}
    pipe.valves = pipe.valves.model_copy(update=wrong)
    wishes = {"version": 99}

    third, second, first = await lines(pipe, openai_responses=wishes)

    assert first.startswith("USER_MAY_CHANGE contains unknown names: efort")
    assert second.startswith("The switches next to the chat input have no effect: ")
    assert third.startswith("CUSTOM_MODEL_PRICING_JSON has no valid prices for other.")
    assert await lines(pipe, USER, openai_responses=wishes) == []


async def test_unreadable_prices_are_reported(pipe: Pipe) -> None:
    """The table cannot be read, so the notice names the valve alone."""
    pipe.valves = pipe.valves.model_copy(update={"CUSTOM_MODEL_PRICING_JSON": "{"})

    [line] = await lines(pipe)

    assert line.startswith("CUSTOM_MODEL_PRICING_JSON has no valid prices. An admin")


async def test_unreadable_rule_is_reported_to_administrators(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """Administrators see which entry to correct, in the chat and in the log."""
    rules = {"TOOL_APPROVAL": "read_*=auto, delete_*:ask"}
    pipe.valves = pipe.valves.model_copy(update=rules)

    [line] = await lines(pipe)

    assert line.startswith("TOOL_APPROVAL contains 'delete_*:ask', which is not a rule")
    assert "in the valves of this pipe" in line
    assert line in caplog.text
    assert await lines(pipe, USER) == []


async def test_unused_option_of_the_search_is_mentioned_once(pipe: Pipe) -> None:
    """To an administrator; the search runs without it."""
    options = '{"return_token_budget": "unlimited"}'
    more = {"ENABLE_WEB_SEARCH": True, "WEB_SEARCH_OPTIONS": options}
    pipe.valves = pipe.valves.model_copy(update=more)
    body = chat("Hi") | {"model": "my_pipe.gpt-4.1"}
    given = {"__user__": ADMIN, "__metadata__": IDS}

    first = statuses(await chunks_of(pipe, body, **given))
    second = statuses(await chunks_of(pipe, body, **given))

    expected = (
        "WEB_SEARCH_OPTIONS: gpt-4.1 has no `return_token_budget`. It is not sent."
    )
    assert [line.replace("GPT", "gpt") for line in first if "WEB" in line] == [expected]
    assert not [line for line in second if "WEB" in line]


NAMES = [f"tool_{number}" for number in range(130)]
FUNCTION: Any = TOOL["function"]
TOO_MANY = [{**TOOL, "function": {**FUNCTION, "name": name}} for name in NAMES]


@pytest.mark.parametrize(
    ("user", "tools", "valves", "told"),
    [
        pytest.param(
            ADMIN,
            [],
            {"USER_MAY_CHANGE": "efort"},
            "USER_MAY_CHANGE contains unknown names: efort",
            id="mistake of an administrator",
        ),
        pytest.param(
            USER,
            TOO_MANY,
            {},
            "Left out: 2 of this chat's 130 tools, because the API takes at most 128. "
            "Switch off tools that this chat does not need.",
            id="what a user can change",
        ),
    ],
)
async def test_a_notice_is_the_last_line(
    pipe: Pipe, user: Any, tools: list[Any], valves: dict[str, Any], told: str
) -> None:
    """The page shows that one; the others are there after a click."""
    pipe.valves = pipe.valves.model_copy(update=valves)
    given = {"__user__": user, "__metadata__": IDS}
    shown = host_events(
        await chunks_of(pipe, chat("Hi", tools=tools), **given), "status"
    )

    finished, notice = [line["description"] for line in shown]
    assert finished.startswith("Finished in")
    assert notice.startswith(told)


async def test_unreadable_rule_for_approvals_is_the_last_line(pipe: Pipe) -> None:
    """No milder notice hides it: the page shows the last one."""
    wrong = {
        "TOOL_APPROVAL": "delete_*:ask",
        "USER_MAY_CHANGE": "efort",
        "REMOTE_MCP_SERVERS_JSON": "{",
        "MODEL_OVERRIDES_JSON": '{"gpt-5.6-sol": {"shutdown": "2026-01-01"}}',
    }
    pipe.valves = pipe.valves.model_copy(update=wrong)

    problems = await lines(pipe)

    assert len(problems) > 3
    assert problems[-1].startswith("TOOL_APPROVAL contains 'delete_*:ask'")


async def test_stored_valves_without_effect_are_told_once(pipe: Pipe) -> None:
    """An administrator has to set others, and no answer suffers until then."""
    stored = {"ENABLE_WEB_SEARCH_TOOL": True, "MODEL_ICON_URL": "https://a.example"}
    pipe.valves = Valves.model_validate(stored).model_copy(update=dict(pipe.valves))

    [notice] = await lines(pipe)

    assert notice.startswith("`/check` explains ")  # the page shows one line of it
    assert notice.endswith("effect: ENABLE_WEB_SEARCH_TOOL, MODEL_ICON_URL.")
    assert await lines(pipe) == []


async def test_refused_setting_leaves_the_last_line(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, above what the answer took."""
    pipe.valves = pipe.valves.model_copy(update={"USER_MAY_CHANGE": "nothing"})
    user = {**USER, "valves": UserValves(VERBOSITY="low")}
    given = {"__user__": user, "__metadata__": IDS}
    shown = host_events(await chunks_of(pipe, chat("Hi"), **given), "status")

    refused, finished = [line["description"] for line in shown]
    assert refused.startswith("No effect, because only administrators may change it")
    assert "user user-1 may not change VERBOSITY" in caplog.text
    assert finished.startswith("Finished in")


async def test_invalid_values_are_not_sent_and_logged_once(
    pipe: Pipe, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """They never leave; the log says it once for each user and value."""
    wrong: dict[str, Any] = {
        **{"temperature": "hot", "top_p": 7, "max_tokens": 5, "verbosity": "huge"},
        **{"parallel_tool_calls": "yes", "reasoning_effort": "ultra", "tool_choice": 7},
        "reasoning_summary": "long",
    }
    body = chat("Hi", model="f.gpt-5.2", **wrong)

    for _ in range(2):
        assert not errors(await chunks_of(pipe, body, __user__=USER))

    logged = [line for line in caplog.messages if "cannot be sent" in line]
    assert len(logged) == len(wrong)
    assert all(f"user {USER['id']}: The setting " in line for line in logged)
    assert "hot" not in caplog.text
    assert [request.status for request in sim.requests] == [200, 200]
