"""What a caller may set, and what stays the administrator's."""

import json
import re
from typing import Any

import pytest

from calls.callers import HOSTED, OURS
from calls.desk import Desk
from calls.outcomes import statuses
from calls.sample import IDS, USER, chat
from calls.valves import expert
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.parameters import ACCOUNT_KEYS, ANSWER_KEYS
from owui_manifold.call.valves import UserValves

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
WORKSPACE = "my-workspace-model"
OWN: Json = {"type": "function", "function": {"name": "look", "parameters": {}}}
SMUGGLED = {"type": "custom", "custom": {"type": "web_search", "name": "look_up"}}
ADMIN = {**USER, "id": "admin", "role": "admin"}


async def sent(desk: Desk, user: Json = USER, **body: Any) -> Json:
    """What the API gets of a caller's plain request."""
    metadata = {"model_id": WORKSPACE}
    await desk.result(
        {**chat("Hi"), "stream": False, **body}, __user__=user, __metadata__=metadata
    )
    return desk.sent


def types(body: Json) -> list[str]:
    return [tool["type"] for tool in body.get("tools", ())]


NEVER_OPENED = {"previous_response_id", "background", "background_options"}


async def test_every_parameter_belongs_to_caller_or_administrator() -> None:
    """A new one is an administrator's until somebody decides otherwise."""
    shell = {"model", "input", "instructions", "stream", "store", "background"}
    shell |= {"background_options"}
    parts = {"include", "reasoning", "text", "tools"}

    assert OURS.keys() == ACCOUNT_KEYS.keys()
    assert not {*ANSWER_KEYS} & OURS.keys()
    known = {*ANSWER_KEYS, *OURS, *shell, *parts}
    assert known == ResponsesRequest.model_fields.keys() - {"repairs"}


@pytest.mark.parametrize("kind", [["web_search"], 7])
async def test_what_no_client_should_send_opens_nothing(desk: Desk, kind: Any) -> None:
    """A type that is no text is no tool that anybody may offer; NaN is not equal to
    itself."""
    tools = [{**OWN, "type": kind}, OWN]
    given: Json = {"seed": float("nan"), "service_tier": "priority"}
    body = await sent(desk, tools=tools, **given)

    assert types(body) == ["function"]
    assert "service_tier" not in body


@pytest.mark.parametrize("user", [USER, ADMIN])
async def test_costly_settings_of_a_caller_are_left_out(desk: Desk, user: Json) -> None:
    """Of administrators, too: a chat that they open can hold anything."""
    plain = await sent(desk, user)
    asked = await sent(
        desk,
        user,
        **OURS,
        reasoning={"effort": "low", "mode": "pro"},
        text={"verbosity": "low"},
        tools=[*HOSTED, OWN, SMUGGLED],
        extra_tools=HOSTED,
    )

    assert {k: asked.get(k) for k in OURS} == {k: plain.get(k) for k in OURS}
    assert asked["reasoning"] == {**plain["reasoning"], "effort": "low"}
    assert asked["text"] == {"verbosity": "low"}
    assert types(asked) == ["function", "custom"]
    assert WORKSPACE in desk.host.models.reads


async def test_caller_sets_what_shapes_their_own_answer(desk: Desk) -> None:
    """Nothing is looked up for it."""
    own: Json = {"max_tokens": 500, "parallel_tool_calls": False, "verbosity": "low"}
    body = await sent(desk, tools=[OWN], reasoning_effort="low", **own)

    assert body["max_output_tokens"] == 500
    assert body["parallel_tool_calls"] is False
    assert body["text"]["verbosity"] == "low"
    assert body["reasoning"]["effort"] == "low"
    assert types(body) == ["function"]
    assert desk.host.models.reads == []


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("max_completion_tokens", 5000),
        ("max_output_tokens", 5000),
        ("max_tokens", "5000"),
        ("max_tokens", "5e3"),
    ],
)
async def test_the_longest_answer_is_the_administrators(
    desk: Desk, name: str, asked: Any
) -> None:
    """However it is written; a shorter one is the caller's."""
    desk.set_valves(MAX_OUTPUT_TOKENS=900)

    long: Json = {name: asked}
    short: Json = {name: 100}
    least: Json = {name: True}

    assert (await sent(desk, **long))["max_output_tokens"] == 900
    assert (await sent(desk, **short))["max_output_tokens"] == 100
    assert (await sent(desk, **least))["max_output_tokens"] == 16
    assert (await sent(desk))["max_output_tokens"] == 900

    desk.host.models.add(WORKSPACE, "admin", **long)
    assert (await sent(desk, max_output_tokens=6000))["max_output_tokens"] == 900
    if isinstance(asked, int):
        assert (await sent(desk, **long))["max_output_tokens"] == asked


async def test_settings_stored_by_an_administrator_override_the_caller(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the caller says in its place; the host passes JSON texts as objects.

    Who asks for what is stored has lost nothing.
    """
    tool = {"type": "web_search", "search_context_size": "low"}
    image = json.dumps(OURS["image"])
    custom = {"extra_tools": [tool], "metadata": '{"team": "red"}', "image": image}
    stored = {"service_tier": "flex", "reasoning": {"summary": "auto", "mode": "pro"}}
    desk.host.models.add(WORKSPACE, "admin", **stored, custom_params=custom)
    asked = {**OURS, "service_tier": None, "extra_tools": [*HOSTED, tool]}

    body = await sent(desk, **asked, reasoning=stored["reasoning"])

    assert body["service_tier"] == "flex"
    assert body["metadata"] == {"team": "red"}
    assert body["reasoning"]["mode"] == "pro"
    assert body["tools"] == [tool]
    assert "prompt_cache_retention" not in body
    assert "metadata (" in caplog.text
    assert " image (" not in caplog.text


@pytest.mark.parametrize("owner", ["user-1", "gone@example.com"])
async def test_settings_stored_by_a_user_count_as_the_callers(
    owner: str, desk: Desk
) -> None:
    """What is set for all models is the administrator's."""
    desk.host.settings.values["models.default_params"] = {"safety_identifier": "ours"}
    desk.host.models.add(WORKSPACE, owner, service_tier="priority", extra_tools=HOSTED)

    body = await sent(desk, **OURS, extra_tools=HOSTED)

    assert "service_tier" not in body
    assert "tools" not in body
    assert body["safety_identifier"] == "ours"


async def test_an_administrator_opens_keys(desk: Desk) -> None:
    """For all, or for administrators alone."""
    opened = "service_tier, Web_Search, reasoning.mode, admin:metadata, store"
    desk.set_valves(EXPERT_JSON=expert(caller_may_set=opened))
    asked: Json = {**OURS, "tools": HOSTED, "reasoning": {"mode": "pro"}}
    asked |= {"store": True, "previous_response_id": "resp_1", "background": True}
    asked |= {"background_options": {"completion_window": "8h"}}

    theirs, admins = [await sent(desk, user, **asked) for user in (USER, ADMIN)]

    for body in (theirs, admins):
        assert body["service_tier"] == "priority"
        assert body["reasoning"]["mode"] == "pro"
        assert types(body) == ["web_search"]
        assert body["store"] is False
        assert not NEVER_OPENED & body.keys()
        assert "prompt_cache_retention" not in body
    assert "metadata" not in theirs
    assert admins["metadata"] == OURS["metadata"]


CALLERS_TOOLS: list[Json] = [
    {"type": "web_search", "search_context_size": "high"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "code_interpreter", "container": "cntr_of_somebody"},
    {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}},
    {"type": "file_search", "vector_store_ids": ["vs_of_somebody"]},
    {"type": "mcp", "server_label": "a", "server_url": "https://a.example"},
    {
        "type": "mcp",
        "server_label": "b",
        "server_url": "https://b.example",
        "headers": {"X-Key": "k"},
    },
    {"type": "mcp", "server_label": "c", "connector_id": "connector_gmail"},
    {"type": "image_generation", "input_image_mask": {"file_id": "file-1"}},
]
TYPES = "web_search, code_interpreter, file_search, mcp, image_generation"


@pytest.mark.parametrize(
    ("opened", "numbers"),
    [
        ("", []),
        (TYPES, [0, 1]),
        ("file_search.vector_store_ids", [4]),
        ("mcp, mcp.server_url", [5]),
        ("mcp.server_url, MCP.headers", [5, 6]),
        ("code_interpreter.container", [2, 3]),
    ],
)
async def test_an_opened_tool_names_nothing_of_others(
    desk: Desk, opened: str, numbers: list[int]
) -> None:
    """Containers, files, stores, servers and headers need words of their own."""
    desk.set_valves(EXPERT_JSON=expert(caller_may_set=opened))
    kept = []
    for number, tool in enumerate(CALLERS_TOOLS):
        before = len(desk.sim.requests)
        await sent(desk, tools=[tool])
        # What the server refused is asked again without it.
        if "tools" in desk.sim.requests[before].body:
            kept.append(number)

    assert kept == numbers


async def test_unknown_names_are_reported_to_administrators(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in a chat and once in the log, and to no one else."""
    known = (
        "service_tier, Admin:Metadata, mcp.server_url, reasoning.mode, web_search, "
        "reasoning.context, max_output_tokens, maximum_iterations, instruction"
    )
    lines_by_call = list[list[str]]()
    desk.host.chats.rows.clear()  # the chat is not somebody else's
    for opened in (known, f"{known}, servce_tier, admin: store"):
        desk.set_valves(EXPERT_JSON=expert(caller_may_set=opened))
        for user in (USER, ADMIN, ADMIN):
            given = {"__user__": user, "__metadata__": IDS}
            lines_by_call.append(statuses(await desk.ask("Hi", **given)))

    [line] = lines_by_call.pop(4)
    assert line.startswith(
        "EXPERT_JSON, caller_may_set, contains unknown names: servce_tier, store. No"
    )
    assert lines_by_call == [[]] * 5
    assert caplog.text.count(line) == 1


async def test_dropped_parameter_is_logged_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """For each caller and key, never a value."""
    other = {**USER, "id": "user-2"}
    for user, key in [(USER, "metadata"), (USER, "metadata"), (other, "metadata")]:
        await sent(desk, user, **{key: OURS[key]})
    await sent(desk, metadata=OURS["metadata"], tools=[*HOSTED, OWN])

    lines = [text for text in caplog.messages if "left out of requests" in text]
    matches = [
        re.search(r"left out of requests of (.*) \(caller_may_set", x) for x in lines
    ]
    first, second, third = [match[1] for match in matches if match]
    assert first == "user user-1: metadata (stored at OpenAI)"
    assert second == "user user-2: metadata (stored at OpenAI)"
    assert third.startswith("user user-1: tools web_search (a billed tool of OpenAI), ")
    assert "tools mcp.server_url (names what belongs to somebody)" in third
    assert "tools code_interpreter.container (names what belongs" in third
    assert "metadata" not in third


async def test_log_says_why_each_part_is_dropped(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a filter's tools, of reasoning, and a length that is too long."""
    desk.set_valves(MAX_OUTPUT_TOKENS=500)
    await sent(
        desk,
        extra_tools=[{"type": "web_search"}, OWN],
        reasoning={"effort": "low", "mode": "pro"},
        max_tokens=501,
        service_tier=None,
    )

    [line] = [text for text in caplog.messages if "left out of requests" in text]
    for part in (
        "extra_tools web_search (a billed tool of OpenAI)",
        "reasoning.mode (the administrator's)",
        "max_tokens (MAX_OUTPUT_TOKENS is 500)",
    ):
        assert part in line
    assert "effort" not in line
    assert "service_tier" not in line


@pytest.mark.parametrize(
    ("opened", "missing"),
    [("server_url", "authorization"), ("authorization", "server_url")],
)
async def test_log_names_the_word_that_is_missing(
    desk: Desk, caplog: pytest.LogCaptureFixture, opened: str, missing: str
) -> None:
    """An administrator who has opened one of two fields does not read of that one."""
    desk.set_valves(EXPERT_JSON=expert(caller_may_set=f"mcp.{opened}"))
    server = {"type": "mcp", "server_label": "wiki", "authorization": "token-1"}
    tool = {**server, "server_url": "https://mcp.example"}
    body = {**chat("Hi"), "stream": False, "tools": [tool]}
    await desk.result(body, __user__=USER)

    [line] = [text for text in caplog.messages if "left out of requests" in text]
    assert f"tools mcp.{missing} (names what belongs to somebody)" in line


async def test_task_sets_nothing_that_costs(desk: Desk) -> None:
    """Its parameters come from the same places."""
    await desk.result(
        {**chat("### Task: a title"), "stream": False, **OURS},
        __user__=USER,
        __metadata__={**IDS, "message_id": None},
        __task__="title_generation",
    )

    assert not OURS.keys() & desk.sent.keys()


async def test_a_caller_names_no_stored_file(desk: Desk) -> None:
    """It could be another user's; writing to the cache is billed."""
    stored = {"file_id": "file-1", "prompt_cache_breakpoint": {"mode": "explicit"}}
    parts = [
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:,", **stored},
        {
            "type": "file",
            "file": {"filename": "b.pdf", "file_data": "data:,", **stored},
        },
        {"type": "input_image", "image_url": "https://a.example/b.png", **stored},
        {"type": "text", "text": "Hi", **stored},
    ]
    await sent(desk, messages=[{"role": "user", "content": parts}])
    body = desk.bodies[0]  # it is refused: the files hold nothing

    assert "file_id" not in str(body["input"])
    assert "prompt_cache_breakpoint" not in str(body["input"])
    assert len(body["input"][0]["content"]) == len(parts)


async def test_a_setting_without_effect_is_told_once(desk: Desk) -> None:
    """Above the answer, to its user; plain callers would not see it."""
    own = UserValves(SERVICE_TIER="priority", API_KEY="sk-own", VERBOSITY="low")
    user = {**USER, "valves": own}
    lines_by_call = list[list[str]]()
    places: list[Json] = [{}, IDS, IDS]
    for native in places:
        given = {"__user__": user, "__metadata__": native}
        lines_by_call.append(statuses(await desk.ask("Hi", **given)))

    assert lines_by_call[0] == lines_by_call[2] == []
    [line] = lines_by_call[1]
    assert line.startswith("Only administrators may change this, so it has no")
    assert line.endswith(": Service Tier, Api Key")


@pytest.mark.parametrize(
    ("change", "searches"),
    [
        ({}, True),
        ({"enabled": False}, False),
        ({"user": ADMIN, "enabled": False}, True),
    ],
)
async def test_the_pages_switch_holds_where_the_host_allows_it(
    desk: Desk, caplog: pytest.LogCaptureFixture, change: Json, searches: bool
) -> None:
    """What the client says of it is not enough."""
    desk.host.settings.values["web.search.enable"] = change.get("enabled", True)
    meta = {"capabilities": change.get("capabilities")}
    metadata = {"features": {"web_search": True}, "model": {"info": {"meta": meta}}}
    user = change.get("user", USER)
    await desk.ask("Hi", __user__=user, __metadata__={**IDS, **metadata})

    assert types(desk.sent) == (["web_search"] if searches else [])
    is_logged = ": web_search (no permission for web search)" in caplog.text
    assert is_logged is not searches


async def test_a_stored_mode_of_reasoning_opens_no_other(desk: Desk) -> None:
    """The pro mode takes several passes, and is paid for each of them."""
    stored = {"reasoning": {"mode": "standard"}}
    desk.host.models.add(WORKSPACE, "admin", **stored, custom_params=stored)

    body = await sent(desk, **OURS, reasoning={"mode": "pro"})

    assert "mode" not in body["reasoning"]
