"""What a person is told above an answer."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import errors, host_events, statuses
from calls.sample import IDS, MODEL, TOOL, USER, call_of, chat, host_context
from calls.valves import expert
from openai_responses.errors import InvalidRequest
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.tasks import build_task_request
from owui_manifold.present.notices import notices_of
from stand_in.host import StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
ADMIN = {**USER, "role": "admin"}


async def lines(
    desk: Desk, user: Json = ADMIN, body: Json | None = None, **metadata: Any
) -> list[str]:
    given = {"__user__": user, "__metadata__": {**IDS, **metadata}}
    return statuses(await desk.chunks(body or chat("Hi"), **given))


RETIRED = "GPT-5.6 Sol was switched off on 2026-01-01."
RETIRING = '{"gpt-5.6-sol": {"shutdown": "2026-01-01"}}'


async def test_shutdown_is_announced_once_in_each_chat(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """It hides what an answer took; the log has it once a day."""
    desk.set_valves(MODEL_OVERRIDES_JSON=RETIRING)

    shown = [
        await lines(desk, USER),
        await lines(desk, USER, message_id="m-2"),
        await lines(desk, USER, chat_id="chat-2"),
        await lines(desk, USER, chat_id="temporary:s-1"),
        await lines(desk, USER, chat_id="temporary:s-1", message_id="m-2"),
    ]

    assert shown == [[RETIRED], [], [RETIRED], [RETIRED], []]
    assert len([m for m in caplog.messages if m.endswith(RETIRED)]) == 1


@pytest.mark.parametrize(("question", "is_last"), [("Hi", True), ("sim:cut", False)])
async def test_last_line_is_the_notice_or_how_the_answer_failed(
    question: str, is_last: bool, desk: Desk
) -> None:
    """It is the only one that the page shows of a whole answer."""
    desk.set_valves(MODEL_OVERRIDES_JSON=RETIRING)

    shown = host_events(await desk.ask(question), "status")

    told = [line["description"] for line in shown]
    assert RETIRED in told
    assert (told[-1] == RETIRED) is is_last


@pytest.mark.parametrize("told", [RETIRED, "GPT-5.6 Sol answers."])
async def test_chat_that_was_told_before_a_restart_is_not_told_again(
    told: str, desk: Desk
) -> None:
    """Open WebUI stores the lines with the answer; a broken row is none."""
    desk.set_valves(MODEL_OVERRIDES_JSON=RETIRING)
    answer = {"role": "assistant", "statusHistory": [None, {"description": told}]}
    messages = {"a1": answer, "a2": None, "a3": {"statusHistory": "x"}}
    desk.host.chats.rows["chat-1"].chat = {"history": {"messages": messages}}

    assert await lines(desk, USER) == ([] if told == RETIRED else [RETIRED])


@pytest.mark.parametrize(
    ("model", "shown"), [({}, "GPT-5"), ({"name": "Ours", "like": "gpt-5"}, "Ours")]
)
async def test_of_an_agent_the_model_is_named(
    model: dict[str, Any], shown: str, desk: Desk
) -> None:
    """The agent goes on, with another model."""
    overrides = {
        "gpt5_function_calling": {"name": "Our agent"},
        "gpt-5": {**model, "shutdown": "2026-01-01"},
    }
    agent = '{"model": "gpt-5"}'
    desk.set_valves(AGENT_JSON=agent, MODEL_OVERRIDES_JSON=json.dumps(overrides))
    body = chat("Hi", model="my_pipe.gpt5_function_calling")

    expected = f"{shown} was switched off on 2026-01-01. Use GPT-6.1 Sol instead."
    assert (await lines(desk, USER, body))[-1] == expected


async def test_end_of_the_model_for_tasks_is_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Its answers are not seen; what it has logged, the chat has not yet been told."""
    desk.set_valves(TASK_MODEL="gpt-5.6-sol", MODEL_OVERRIDES_JSON=RETIRING)
    given = {"__user__": USER, "__metadata__": IDS, "__task__": "tags_generation"}

    for _ in range(2):
        await desk.result(chat("Hi"), **given)

    assert len([m for m in caplog.messages if m.endswith(RETIRED)]) == 1
    assert await lines(desk, USER) == [RETIRED]


async def test_shutdown_date_of_the_server_counts(desk: Desk) -> None:
    never = '{"gpt-5": {"shutdown": "2099-01-01"}}'
    desk.set_valves(MODEL_OVERRIDES_JSON=never, MODEL_ID="auto")
    body = chat("Hi", model="my_pipe.gpt-5")
    assert await lines(desk, USER, body) == []

    await desk.pipe.pipes()

    [status] = await lines(desk, USER, body)
    assert "switched off on 2026-12-11. Use GPT-6.1 Sol instead." in status


async def test_shutdown_of_an_image_model_is_announced_to_administrators(
    desk: Desk,
) -> None:
    options = '{"model": "gpt-image-1.5-2025-12-16"}'
    desk.set_valves(IMAGE_GENERATION_OPTIONS=options)

    assert await lines(desk, USER) == []
    [line] = await lines(desk)

    assert line.startswith("IMAGE_GENERATION_OPTIONS: gpt-image-1.5-2025-12-16 ")
    successors = "Use gpt-image-2.6-sunburst or -flare instead."
    assert f"switched off on 2026-12-01. {successors}" in line
    assert await lines(desk) == []


@pytest.mark.parametrize(
    "options", ["no JSON", '{"model": 5}', '{"model": "gpt-image-2.6-flare"}']
)
async def test_other_image_models_are_not_announced(desk: Desk, options: str) -> None:
    desk.set_valves(IMAGE_GENERATION_OPTIONS=options)

    assert "switched off" not in str(await lines(desk))


async def test_mistakes_in_valves_are_reported_to_administrators(desk: Desk) -> None:
    prices = '{"one": {"input": 1, "output": 2}, "other": {"input": 1, "outpt": 2}}'
    given = f"efort, sk-proj-{'a1' * 12}"  # others may read the chat
    desk.set_valves(USER_MAY_CHANGE=given, CUSTOM_MODEL_PRICING_JSON=prices)
    wishes = {"version": 99}

    third, second, first = await lines(desk, openai_responses=wishes)

    assert first.startswith(
        "USER_MAY_CHANGE contains unknown names: efort, [redacted]. "
    )
    assert second.startswith("The switches next to the chat input have no effect: ")
    assert third.startswith("CUSTOM_MODEL_PRICING_JSON has no valid prices for other.")
    assert await lines(desk, USER, openai_responses=wishes) == []


async def test_key_in_the_place_of_a_name_is_in_no_notice(desk: Desk) -> None:
    """Others may read the chat."""
    desk.set_valves(EXPERT_JSON=expert(caller_may_set=f"sk-proj-{'a1' * 12}"))

    [line] = await lines(desk)
    assert line.startswith("EXPERT_JSON, caller_may_set, contains unknown names: [red")


async def test_unreadable_prices_are_reported(desk: Desk) -> None:
    """The table cannot be read, so the notice names the valve and the place."""
    desk.set_valves(CUSTOM_MODEL_PRICING_JSON="{")

    [line] = await lines(desk)

    told = "CUSTOM_MODEL_PRICING_JSON has no valid prices: it is not JSON (line 1, column 2)"
    assert line.startswith(f"{told}. An admin")


async def test_unused_option_of_the_search_is_mentioned_once(desk: Desk) -> None:
    options = '{"return_token_budget": "unlimited"}'
    desk.set_valves(ENABLE_WEB_SEARCH=True, WEB_SEARCH_OPTIONS=options)
    body = chat("Hi", model="my_pipe.gpt-4.1")

    first, second = [await lines(desk, ADMIN, body) for _ in range(2)]

    told = "WEB_SEARCH_OPTIONS: gpt-4.1 has no return_token_budget. It is not sent."
    assert [line.replace("GPT", "gpt") for line in first if "WEB" in line] == [told]
    assert not [line for line in second if "WEB" in line]


NAMES = [f"tool_{number}" for number in range(130)]
FUNCTION: Any = TOOL["function"]
AT_MOST = (
    "because the API takes at most 128. Switch off tools that this chat does not need."
)
TOO_MANY = [{**TOOL, "function": {**FUNCTION, "name": name}} for name in NAMES]


@pytest.mark.parametrize(
    ("user", "tools", "told"),
    [
        (ADMIN, [], "USER_MAY_CHANGE contains unknown names: efort"),
        (USER, TOO_MANY, f"Left out: 2 of this chat's 130 tools, {AT_MOST}"),
    ],
    ids=["mistake of an administrator", "what a user can change"],
)
async def test_a_notice_is_the_last_line(
    desk: Desk, user: Any, tools: list[Any], told: str
) -> None:
    """The page shows that one; the others are there after a click."""
    desk.set_valves(USER_MAY_CHANGE="efort")
    given = {"__user__": user, "__metadata__": IDS}
    chunks = await desk.chunks(chat("Hi", tools=tools), **given)

    finished, notice = [line["description"] for line in host_events(chunks, "status")]
    assert finished.startswith("Finished in")
    assert notice.startswith(told)


async def test_unreadable_rule_for_approvals_is_the_last_line(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """No milder notice hides it: the page shows the last one. The log has it, too."""
    wrong = {
        "TOOL_APPROVAL": "read_*=auto, delete_*:ask",
        "USER_MAY_CHANGE": "efort",
        "REMOTE_MCP_SERVERS_JSON": "{",
        "MODEL_OVERRIDES_JSON": RETIRING,
    }
    desk.set_valves(**wrong)

    [*others, last] = await lines(desk)

    assert len(others) > 2
    assert last.startswith("TOOL_APPROVAL contains 'delete_*:ask', which is not a rule")
    assert "in the valves of this pipe" in last
    assert last in caplog.text.replace("`", "")
    assert await lines(desk, USER, chat_id="chat-2") == [RETIRED]


async def test_stored_valves_without_effect_are_told_once(desk: Desk) -> None:
    """An administrator has to set others, and no answer suffers until then."""
    stored = {"ENABLE_WEB_SEARCH_TOOL": True, "MODEL_ICON_URL": "https://a.example"}
    desk.pipe.valves = Valves.model_validate(stored).model_copy(
        update=dict(desk.pipe.valves)
    )

    [notice] = await lines(desk)

    assert notice.startswith("/check explains ")  # the page shows one line of it
    assert notice.endswith("effect: ENABLE_WEB_SEARCH_TOOL, MODEL_ICON_URL.")
    assert await lines(desk) == []


async def test_refused_setting_leaves_the_last_line(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, above what the answer took."""
    desk.set_valves(USER_MAY_CHANGE="nothing")
    user = {**USER, "valves": UserValves(VERBOSITY="low")}
    given = {"__user__": user, "__metadata__": IDS}
    chunks = await desk.ask("Hi", **given)

    refused, finished = [line["description"] for line in host_events(chunks, "status")]
    assert refused.startswith("Only administrators may change this, so it has no")
    assert "user user-1 may not change VERBOSITY" in caplog.text
    assert finished.startswith("Finished in")


async def test_invalid_values_are_not_sent_and_logged_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """They never leave; the log says it once for each user and value."""
    wrong: dict[str, Any] = {
        **{"temperature": "hot", "top_p": 7, "max_tokens": 5, "verbosity": "huge"},
        **{"parallel_tool_calls": "yes", "reasoning_effort": "ultra", "tool_choice": 7},
        "reasoning_summary": "long",
    }
    body = chat("Hi", model="f.gpt-5.2", **wrong)

    for _ in range(2):
        assert not errors(await desk.chunks(body, __user__=USER))

    logged = [line for line in caplog.messages if "cannot be sent" in line]
    assert len(logged) == len(wrong)
    assert all(f"user {USER['id']}: The setting " in line for line in logged)
    assert "hot" not in caplog.text
    assert [request.status for request in desk.sim.requests] == [200, 200]


# An administrator learns of models whose tools are called in the older way.
WORKSPACE = "my-gpt"


def asking(
    way: str | None = "legacy",
    admin: bool = True,
    task: str = "",
    code: bool = False,
    chat_id: str = "chat-1",
    **valves: Any,
) -> Call:
    """Somebody asks a model of the workspace, perhaps with Code Interpreter on."""
    caller = Caller(MODEL, "user-1", chat_id, "m-1", task, is_admin=admin)
    metadata = {
        "model_id": WORKSPACE,
        "params": {"function_calling": way},
        "features": {"code_interpreter": code},
    }
    context = host_context({}, metadata=metadata)
    return call_of(chat("Hi"), Valves(API_KEY="sk-1", **valves), caller, host=context)


async def notices_for(call: Call) -> list[str]:
    if call.caller.task:
        return await notices_of(await build_task_request(call))
    return await notices_of(await build_chat_request(call))


async def test_legacy_tools_are_reported_to_an_administrator_once(
    host: StandInHost,
) -> None:
    host.models.add(WORKSPACE, "admin", function_calling="legacy")
    call = asking()

    first = await notices_for(call)
    second = await notices_for(call)

    [notice] = first
    assert "AUTO_NATIVE_TOOLS" in notice
    assert "Native" in notice
    assert second == []
    assert call.log.text().count("legacy way") == 1
    assert host.models.updates == []


async def test_users_and_tasks_see_nothing(host: StandInHost) -> None:
    """A user can change nothing; a title has no status line."""
    host.models.add(WORKSPACE, "admin", function_calling="legacy")
    user = asking(admin=False)
    task = asking(task="title_generation")

    assert await notices_for(user) == await notices_for(task) == []
    assert ("legacy way" in user.log.text(), task.log.text()) == (True, "")


@pytest.mark.parametrize("admin", [True, False])
async def test_auto_native_tools_changes_only_function_calling(
    admin: bool, host: StandInHost
) -> None:
    """Whoever asks; all else of the record goes back as it was, grants untouched."""
    host.models.add(WORKSPACE, "admin", function_calling="legacy", temperature=0.5)

    notices = await notices_for(asking(admin=admin, AUTO_NATIVE_TOOLS=True))

    form = SimpleNamespace(
        id=WORKSPACE,
        base_model_id=None,
        name="One",
        meta={"tags": []},
        is_active=False,
        params={"function_calling": "native", "temperature": 0.5},
    )
    assert host.models.updates == [(WORKSPACE, form)]
    assert ["set it to Native" in notice for notice in notices] == [True] * admin


@pytest.mark.parametrize(
    ("way", "model_id", "params"),
    [
        pytest.param("legacy", WORKSPACE, {}, id="nothing is set"),
        pytest.param("legacy", WORKSPACE, {"function_calling": "native"}, id="another"),
        pytest.param(
            "legacy", "another", {"function_calling": "legacy"}, id="no record"
        ),
        pytest.param("native", WORKSPACE, {"function_calling": "legacy"}, id="native"),
    ],
)
async def test_a_users_own_choice_is_left_alone(
    way: str, model_id: str, params: Json, host: StandInHost
) -> None:
    """They set it in the controls of their chat; the record says otherwise.

    It is looked up for the older way alone: most requests cost no look at the database.
    """
    host.models.add(model_id, "admin", **params)

    assert await notices_for(asking(way, AUTO_NATIVE_TOOLS=True)) == []
    assert host.models.updates == []
    assert (WORKSPACE in host.models.reads) is (way == "legacy")


async def test_host_without_the_models_table_is_reported(host: StandInHost) -> None:
    host.provide("models.models")
    with pytest.raises(InvalidRequest, match=r"models\.models"):
        await notices_for(asking(AUTO_NATIVE_TOOLS=True))


async def test_code_in_tags_is_said_to_run_nothing(host: StandInHost) -> None:
    """Once in a chat, to whoever switched it on, and in the log."""
    host.models.add(WORKSPACE, "admin", function_calling="legacy")
    call = asking(admin=False, code=True)
    later = asking(admin=False, code=True, chat_id="chat-2")
    later = replace(later, memory=call.memory)

    [notice] = await notices_for(call)

    assert "Code Interpreter runs nothing" in notice
    assert "Native" in notice
    assert notice in call.log.text()
    assert await notices_for(call) == []
    assert await notices_for(later) == [notice]


@pytest.mark.parametrize(("way", "code"), [("legacy", False), ("native", True)])
async def test_other_chats_have_no_notice_about_code(
    way: str, code: bool, host: StandInHost
) -> None:
    """The switch is off, or the host offers a tool instead of tags."""
    host.models.add(WORKSPACE, "admin", function_calling="legacy")

    assert await notices_for(asking(way, admin=False, code=code)) == []


async def test_program_that_shows_no_lines_takes_none_from_the_page(desk: Desk) -> None:
    """Whoever asks by API first is told of a refused setting later, on the page."""
    desk.set_valves(USER_MAY_CHANGE="nothing")
    user = {**USER, "valves": UserValves(VERBOSITY="low")}

    await desk.ask("Hi", __user__=user, __metadata__={})

    refused, *_ = await lines(desk, user)
    assert refused.startswith("Only administrators may change this, so it has no")


async def test_each_user_is_told_of_a_refused_setting(desk: Desk) -> None:
    desk.set_valves(USER_MAY_CHANGE="nothing")
    for user_id in ("user-1", "user-2"):
        user = {**USER, "id": user_id, "valves": UserValves(VERBOSITY="low")}
        told = await lines(desk, user)
        assert [line for line in told if line.startswith("Only admin")], user_id
