"""Who asks, and whose key the request is sent with."""

from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import errors
from calls.sample import MODEL, TOOL, USER, call_of, chat
from owui_manifold.call.context import Caller, read_caller
from owui_manifold.call.valves import UserValves, Valves
from simulator.accounts import CANARY_KEY
from stand_in.host import host_request

BODY = {"model": "my_pipe.gpt-5.2-high", "stream": True}
IDS = {"chat_id": "chat-1", "message_id": "m-1", "session_id": "s-1"}


def test_caller_that_brings_nothing_is_nobody() -> None:
    """A plain HTTP client has neither ids nor a chat; the host may pass nulls."""
    body = {"model": None, "stream": None}
    ids = {"chat_id": None, "message_id": None}

    assert read_caller({}, {}, {}, None) == Caller(host_model="")
    assert read_caller(body, {"id": None}, ids, None) == Caller(host_model="")


@pytest.mark.parametrize(
    ("options", "wants"),
    [({"include_usage": True}, True), ({"include_usage": False}, False), (7, False)],
)
def test_program_may_ask_for_a_chunk_of_the_usage(options: object, wants: bool) -> None:
    """As with OpenAI's Chat Completions."""
    caller = read_caller({**BODY, "stream_options": options}, {}, {}, None)
    assert caller.wants_usage_chunk is wants


def test_task_of_another_function_is_a_program() -> None:
    """A sub-agent's calls name it; it needs calls of its tools, and no page reads it."""
    caller = read_caller(BODY, {}, IDS, "sub_agent")

    assert caller.task == ""
    assert not caller.is_open_webui
    assert caller.chat_id == "chat-1"
    assert read_caller(BODY, {}, IDS, "title_generation").task == "title_generation"


OFFERED: dict[str, Any] = {"tools": [TOOL]}
HOSTED: dict[str, Any] = {"tools": [{"type": "web_search"}]}


@pytest.mark.parametrize(
    ("model", "body", "tools", "task", "is_program"),
    [
        ("planner", OFFERED, (), None, True),
        ("planner", {"tools": [{"type": "function", "name": "own"}]}, (), None, True),
        # What the chat has, the pipe calls, and asks about.
        ("planner", OFFERED, ("get_weather",), None, False),
        ("planner", HOSTED, (), None, False),
        ("planner", OFFERED, (), "title_generation", False),
        # A filter may offer the chat what nothing runs.
        (BODY["model"], OFFERED, (), None, False),
    ],
)
def test_other_function_with_tools_of_its_own_is_a_program(
    model: str,
    body: dict[str, Any],
    tools: tuple[str, ...],
    task: str | None,
    is_program: bool,
) -> None:
    """It passes the chat's metadata on, which name the model that the chat asks."""
    metadata = {**IDS, "model": {"id": model}}
    caller = read_caller({**BODY, **body}, {}, metadata, task, tools)

    assert caller.is_open_webui is not is_program


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answering", "is_program"),
    [
        ({"id": MODEL}, False),
        ({"id": "helper", "info": {"base_model_id": MODEL}}, False),
        ({"id": "planner"}, True),
    ],
)
async def test_model_that_the_host_asks_is_no_program(
    answering: dict[str, Any], is_program: bool, desk: Desk
) -> None:
    """Clients choose models and tools; the host would run a program's calls unasked."""
    request = host_request()
    request.app.state.MODELS[answering["id"]] = answering
    first = {"id": "an arena, or the first of several models"}
    metadata = {**IDS, "model": first, "model_id": answering["id"]}
    body = chat("sim:tool", tools=[TOOL])

    await desk.chunks(body, __metadata__=metadata, __request__=request)

    assert len(desk.bodies) == (1 if is_program else 2)


@pytest.mark.parametrize(
    ("user", "is_admin"),
    [
        ({"id": "user-1", "role": "admin"}, True),
        ({"id": "user-1", "role": "ADMIN"}, False),
        ({}, False),
    ],
)
def test_administrator_is_told_by_the_role(
    user: dict[str, str], is_admin: bool
) -> None:
    """No other role is one."""
    assert read_caller(BODY, user, IDS, None).is_admin is is_admin


@pytest.mark.parametrize(
    ("host_model", "model"),
    [("my_pipe.gpt-5.2-high", "gpt-5.2-high"), ("gpt_4.o3", "o3"), ("plain", "plain")],
)
def test_model_stands_behind_the_first_dot(host_model: str, model: str) -> None:
    """In front of it is the id of the function, which can be anything."""
    assert Caller(host_model).model == model


@pytest.mark.parametrize(
    ("chat_id", "may"),
    [
        ("chat-1", True),
        ("temporary:s-1", False),
        ("local:s-1", False),
        ("channel:c-1", False),
    ],
)
def test_chats_that_name_no_row_have_none(chat_id: str, may: bool) -> None:
    """Temporary chats in both spellings, and channels."""
    assert Caller("f.m", chat_id=chat_id, message_id="m-1").may_have_row is may


OWN = UserValves(API_KEY=" sk-own\n")


@pytest.mark.parametrize(
    ("kind", "user", "is_admin", "key"),
    [
        ("off", OWN, False, "sk-pipe"),
        ("allowed", OWN, False, "sk-own"),
        ("allowed", UserValves(API_KEY=" "), False, "sk-pipe"),
        ("required", OWN, False, "sk-own"),
        ("required", OWN, True, "sk-own"),
        ("required", UserValves(), True, "sk-pipe"),
    ],
)
def test_users_own_key_is_used_where_it_is_allowed(
    kind: str, user: UserValves, is_admin: bool, key: str
) -> None:
    """The user's own where it may be; administrators may leave theirs out."""
    given = {"API_KEY": "sk-pipe", "ORGANIZATION": "org-1", "PROJECT": "proj-1"}
    valves = Valves.model_validate({**given, "USER_API_KEYS": kind})
    caller = Caller(MODEL, "user-1", is_admin=is_admin)

    sent = call_of(chat("Hi"), valves, caller, user).endpoint.headers()

    assert sent["Authorization"] == f"Bearer {key}"
    assert ("OpenAI-Organization" in sent) is (key == "sk-pipe")
    assert ("OpenAI-Project" in sent) is (key == "sk-pipe")


def given(key: str) -> dict[str, Any]:
    """What the host passes for a user with a key of their own."""
    user = {**USER, "valves": UserValves(API_KEY=key)}
    return {"__user__": user, "__metadata__": {}}


def for_users(desk: Desk, kind: str, **more: Any) -> None:
    """Let users have keys; the pipe's own opens nothing, so that it would be seen."""
    desk.set_valves(USER_API_KEYS=kind, API_KEY="sk-of-nobody", **more)


@pytest.mark.asyncio
@pytest.mark.usefixtures("host")
async def test_nothing_is_sent_without_a_required_key(desk: Desk) -> None:
    """A title is empty then, as after any failure."""
    for_users(desk, "required")
    [error] = errors(await desk.ask("Hi", **given("")))
    title = await desk.result(chat("Hi"), **given(""), __task__="title_generation")

    assert error.startswith("This pipe needs your own OpenAI API key.")
    assert title["choices"][0]["message"]["content"] == ""
    assert desk.sim.requests == []


@pytest.mark.asyncio
@pytest.mark.usefixtures("host")
async def test_wrong_own_key_is_reported_to_its_owner(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Not to an administrator, who cannot change it; it is in no line of the log."""
    for_users(desk, "allowed", LOG_LEVEL="DEBUG")
    [own] = errors(await desk.ask("Hi", **given("sk-mistyped-4711")))
    [pipes] = errors(await desk.ask("Hi", **given("")))
    gone = chat("sim:chat,status=404")
    [other] = errors(await desk.chunks(gone, **given(CANARY_KEY)))

    assert own.startswith(
        "127.0.0.1 does not accept the API key. It is your own key: check API_KEY in your "
        "settings of this pipe:"
    )
    assert "administrator" not in own
    assert "An administrator has to check" in pipes
    # The key is not named where it is not the cause.
    assert "An administrator has to check BASE_URL" in other
    assert "own key" not in other
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "401" in logged
    assert "sk-mistyped-4711" not in logged + own
