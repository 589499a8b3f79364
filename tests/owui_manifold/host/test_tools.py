"""Tools of the host run as the host runs them."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from pydantic import BaseModel, Field, SecretStr

from calls.sample import IDS, call_of, chat, host_context
from chats.pictures import PIXEL, PNG
from openai_responses.loop.tools import (
    Approver,
    CallLimits,
    ToolResult,
    Toolset,
    run_calls,
)
from openai_responses.requests.tools import ToolNames
from owui_manifold.call.context import Caller, PipeMemory
from owui_manifold.call.valves import Valves
from owui_manifold.host.callables import tool_secrets
from owui_manifold.host.threads import UserThreads
from owui_manifold.host.tools import HostTools, long_running_tools
from owui_manifold.prepare.toolset import tool_user
from runs.tools import CITY, PanicException, answers_of, calling
from stand_in.host import StandInHost, host_callable
from upstream.server import until

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


def look(city: str) -> str:
    """Answer at once, as most tools do."""
    return f"Rain in {city}, seen by {WHO.get()} on {threading.current_thread().name}."


async def look_up(city: str, __messages__: list[Any], __files__: list[Any]) -> str:
    return f"{city}: {len(__messages__)} messages, {len(__files__)} files"


def tool(function: Callable[..., Any], **more: Any) -> Json:
    """A tool as the host keeps it."""
    spec = {"name": "look", "parameters": CITY}
    kept = host_callable(function, __messages__=[], __files__=[])
    return {"tool_id": "toolkit", "callable": kept, "spec": spec, **more}


def result(value: Any, **more: Any) -> Json:
    """A tool without a function behind it, which waits for a server and returns this."""

    async def given(**_: Any) -> Any:
        await asyncio.sleep(0)
        return value

    spec = {"name": "look", "parameters": CITY}
    return {"tool_id": "server:1", "callable": given, "spec": spec, **more}


def host_tools(tools: Json, body: Json | None = None, **more: Any) -> HostTools:
    """Tools of one request, by the names that the model gets."""
    context = host_context(tools, **more)
    call = call_of(body or {}, Valves(API_KEY="sk-1"), host=context)
    return HostTools(call.host, tool_user(call), ToolNames(tuple(tools)))


async def answer(tools: HostTools, name: str = "look", **given: Any) -> ToolResult:
    return await tools.call(name, given or {"city": "Bern"})


class Clock:
    """The clock of a run; `asked` has what was asked, and whether it stood still."""

    def __init__(self) -> None:
        self.stops = 0
        self.asked: list[tuple[str, bool]] = []

    @contextmanager
    def pause(self) -> Iterator[None]:
        self.stops += 1
        yield
        self.stops -= 1

    async def event_call(self, event: Json) -> Any:
        """Answer as the page, which is asked in the name of a person."""
        self.asked.append((event["type"], self.stops > 0))
        return "Ada"

    async def run(self, tools: HostTools, *names: str) -> list[str]:
        """What the model reads of calls at once."""
        calls = [calling(name, number) for number, name in enumerate(names)]
        toolset = Toolset(tools)
        answers = [pair[1] async for pair in run_calls(calls, toolset, self.pause)]
        assert self.stops == 0
        return [str(answer.output) for answer in answers]


@pytest.mark.parametrize(
    ("kind", "stands_still"),
    [("confirmation", True), ("input", True), ("execute", False)],
)
async def test_time_of_a_tool_stands_still_while_it_asks_a_person(
    kind: str, stands_still: bool
) -> None:
    """The host's own dialogs have no limit of time; a script of the page is work."""
    clock = Clock()

    async def ask(city: str, __event_call__: Any) -> str:
        name = await __event_call__({"type": kind, "data": {"title": city}})
        return f"{name} lives in {city}."

    tools = host_tools({"look": tool(ask)}, event_call=clock.event_call)

    assert await clock.run(tools, "look") == ["Ada lives in Bern."]
    assert clock.asked == [(kind, stands_still)]


async def test_question_of_an_mcp_server_stops_the_time_of_its_calls() -> None:
    """It comes beside the calls, in the connection's own task, and names none."""
    clock = Clock()
    client = SimpleNamespace(event_caller=clock.event_call)
    questions: asyncio.Queue[asyncio.Future[str]] = asyncio.Queue()

    async def connection() -> None:
        while True:
            answered = await questions.get()
            event = {"type": "request:elicitation", "data": {}}
            answered.set_result(await client.event_caller(event))

    async def given(**_: Any) -> str:
        answered: asyncio.Future[str] = asyncio.Future()
        await questions.put(answered)
        return await answered

    served = asyncio.create_task(connection())
    kept = {**result(""), "callable": given, "type": "mcp", "client": client}
    tools = host_tools({"look": kept})

    assert await clock.run(tools, "look", "look") == ["Ada", "Ada"]
    assert await client.event_caller({"type": "request:elicitation"}) == "Ada"
    served.cancel()

    during, after = clock.asked[:2], clock.asked[2:]
    assert during == [("request:elicitation", True)] * 2
    assert after == [("request:elicitation", False)]


async def test_mcp_server_of_an_older_host_asks_nothing() -> None:
    """Its client has no way to."""
    clock = Clock()
    tools = host_tools({"look": result("Rain.", type="mcp", client=object())})

    assert await clock.run(tools, "look") == ["Rain."]


async def test_user_is_read_once_for_all_tools_of_an_answer(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read is a query of its own."""
    read = AsyncMock(wraps=host.users.get_user_by_id)
    monkeypatch.setattr(host.users, "get_user_by_id", read)
    tools = host_tools({"look": tool(look)})

    first, second = [await answer(tools) for _ in range(2)]

    assert first == second
    assert read.await_count == 1


async def test_sync_tool_runs_on_a_thread_with_the_context() -> None:
    """The host's own wrapper would run it on the loop."""
    token = WHO.set("Ada")

    returned = await answer(host_tools({"look": tool(look)}))

    WHO.reset(token)
    assert returned == ToolResult("Rain in Bern, seen by Ada on sync-tool_0.")


async def test_async_tool_runs_on_the_loop_with_the_chat_as_it_is() -> None:
    """It gets the chat's messages and files."""
    metadata = {"user_id": "user-1", "files": [{"id": "f"}]}
    tools = host_tools(
        {"look": tool(look_up)}, metadata=metadata, body=chat("a", "b", "c")
    )

    assert await answer(tools) == ToolResult("Bern: 3 messages, 1 files")


async def test_tool_without_a_function_is_awaited() -> None:
    """OpenAPI servers give data and headers."""
    tools = host_tools({"look": result(({"rain": 1}, {"h": "x"}), type="external")})

    assert await answer(tools) == ToolResult('{"rain": 1}')


@pytest.mark.parametrize("server", [{"server": {"url": "u"}}, {}])
async def test_tool_of_the_browser_is_run_there(server: Json) -> None:
    """One that is gone fails the call."""
    shown: list[Json] = []

    async def event_call(event: Json) -> Any:
        shown.append(event)
        return {"rain": 1}

    direct = {"look": {"spec": {"parameters": CITY}, "direct": True, **server}}

    returned = await answer(host_tools(direct, event_call=event_call))
    failed = await answer(host_tools(direct))

    assert returned == ToolResult('{"rain": 1}')
    [event] = shown
    assert event["type"] == "execute:tool"
    assert event["data"].pop("id")
    assert event["data"] == {
        "name": "look",
        "params": {"city": "Bern"},
        "server": server.get("server", {}),
        "session_id": "s-1",
    }
    assert failed.failed
    assert "not connected" in str(failed.output)


@pytest.mark.parametrize(
    ("kind", "schema", "given"),
    [
        ("", CITY, {"city": "Bern"}),
        ("", {"type": "object"}, {}),
        ("mcp", CITY, {"city": "Bern", "extra": 1}),
    ],
)
async def test_arguments_that_a_tool_does_not_know_are_left_out(
    kind: str, schema: Json, given: Json
) -> None:
    """But not those of MCP servers, which check for themselves."""
    seen: list[Json] = []

    async def record(**arguments: Any) -> Any:
        seen.append(arguments)
        return [{"type": "text", "text": "ok"}]

    recording = {"callable": record, "spec": {"parameters": schema}, "type": kind}
    tools = host_tools({"look": recording})

    await answer(tools, city="Bern", extra=1)

    assert seen == [given]


async def test_names_are_mapped_back() -> None:
    """For the schema, the limits and the call; own names are understood too."""
    own = "server:list files"
    tools = host_tools({own: {**tool(look_up), "type": "builtin"}})
    sent = ToolNames((own,)).sent_name(own)
    assert sent != own

    for name in (own, sent):
        assert tools.parameters(name) == CITY
        assert tools.resolve_call(name, {"city": "Bern"}) == (own, {"city": "Bern"})
        assert (await answer(tools, name)).output == "Bern: 0 messages, 0 files"


async def test_tool_that_the_model_spells_in_its_own_way() -> None:
    """It runs; the rules are those of the tool that runs."""
    offered = {"get_weather": tool(look_up), "delete_all": tool(look_up)}
    context = host_context({**offered, "Get_Weather": tool(look)})
    call = call_of({}, Valves(API_KEY="sk-1"), host=context)
    tools = HostTools(call.host, tool_user(call), ToolNames((*offered,)))
    toolset = Toolset(tools, Approver([("delete_all", "deny")]))
    names = ("functions.get_weather", "functions.delete_all", "Get_Weather", "weather")

    calls = [calling(name, n) for n, name in enumerate(names)]
    outputs = [str(result.output) for result in await answers_of(calls, toolset)]

    assert outputs[0] == "Bern: 0 messages, 0 files"
    assert "does not allow delete_all" in outputs[1]
    assert outputs[2].startswith("Rain in Bern")
    assert "There is no tool named weather" in outputs[3]


async def test_tool_that_is_not_there_has_no_schema() -> None:
    """One without arguments has an empty one."""
    tools = host_tools({"now": {"spec": {"name": "now"}}, "bare": {}})

    found = [tools.parameters(name) for name in ("teleport", "now", "bare")]
    assert found == [None, *[{"type": "object", "properties": {}}] * 2]


@pytest.mark.parametrize(
    ("tool_name", "kind", "kept"),
    [
        ("update_task", "builtin", 3),
        ("create_tasks", "builtin", 3),
        ("update_task", "", 1),
        ("delegate_task", "builtin", 1),
    ],
)
async def test_calls_about_the_task_list_run_one_by_one(
    tool_name: str, kind: str, kept: int
) -> None:
    """As in the host, which runs such calls in order: none undoes another's mark.

    Sub-agents run at once. Of other tools only their authors know whether they can.
    """
    done: list[str] = []

    async def update_task(id: str) -> str:
        before = [*done]
        await asyncio.sleep(0)  # as the database
        done[:] = [*before, id]
        return id

    parameters = {"type": "object", "properties": {"id": {"type": "string"}}}
    spec = {"name": tool_name, "parameters": parameters}
    tools = host_tools({tool_name: tool(update_task, type=kind, spec=spec)})

    await asyncio.gather(*(answer(tools, tool_name, id=name) for name in "abc"))

    assert done == ["a", "b", "c"][-kept:]


async def test_slow_tools_of_the_host_have_an_hour() -> None:
    """A toolkit's tool of the same name has the limit of the others."""
    slow = ("delegate_task", "generate_image", "edit_image")
    builtin = {name: tool(look, type="builtin") for name in (*slow, "look")}

    limits = long_running_tools(host_context(builtin))

    assert limits == [(name, 3600) for name in slow]
    assert long_running_tools(host_context({"edit_image": tool(look)})) == []


@pytest.mark.parametrize(
    ("name", "type", "kind"),
    [
        ("ask_user", "builtin", "question"),
        ("ask_user", "", "limited"),
        ("look", "builtin", "limited"),
    ],
)
async def test_only_the_hosts_own_question_waits_for_people(
    name: str, type: str, kind: str
) -> None:
    """A tool of the same name is an ordinary one."""
    assert host_tools({name: tool(look, type=type)}).call_kind(name) == kind
    assert host_tools({}).call_kind("ask_user") == "limited"


DISPATCHER: Json = {
    "tool_id": "builtin:call_tool",
    "type": "builtin",
    "spec": {
        "parameters": {
            "type": "object",
            "properties": {
                name: {"type": "string"} for name in ("tool_name", "params")
            },
            "required": ["tool_name", "params"],
        }
    },
}


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (
            {"tool_name": "delete_all", "params": '{"city": "Bern"}'},
            ("delete_all", {"city": "Bern"}),
        ),
        ({"tool_name": "nothing", "params": "{}"}, None),
        ({"tool_name": "call_tool", "params": "{}"}, None),
        ({"tool_name": "search_tools", "params": "{}"}, None),
        ({"tool_name": "delete_all", "params": "{"}, None),
        ({"tool_name": "delete_all", "params": "[]"}, None),
        ({"tool_name": "delete_all", "params": {"city": "Bern"}}, None),
        ({"params": "{}"}, None),
    ],
)
async def test_call_through_the_dispatcher_means_the_tool_it_names(
    arguments: Json, meant: tuple[str, Json] | None
) -> None:
    tools = host_tools(
        {"call_tool": DISPATCHER, "search_tools": tool(look), "delete_all": tool(look)}
    )

    assert tools.resolve_call("call_tool", arguments) == meant


@pytest.mark.parametrize("name", ["huge", "call_tool"])
async def test_tool_that_is_too_large_to_be_offered_cannot_be_called(name: str) -> None:
    wide = {"type": "object", "properties": {"city": {"enum": [*range(100_000)]}}}
    huge = {**tool(look), "spec": {"name": "huge", "parameters": wide}}
    tools = host_tools({"call_tool": DISPATCHER, "huge": huge})
    given = {
        "huge": '{"city": 1}',
        "call_tool": '{"tool_name": "huge", "params": "{}"}',
    }

    [refused] = await answers_of([calling(name, 1, given[name])], Toolset(tools))

    assert "There is no tool named huge" in str(refused.output)


async def test_rules_hold_for_tools_behind_the_dispatcher() -> None:
    """Whoever may not be called may not be called through another."""
    tools = host_tools({"call_tool": DISPATCHER, "delete_all": tool(look)})
    toolset = Toolset(tools, Approver([("delete_*", "deny")]))
    inner = '{"tool_name": "delete_all", "params": "{\\"city\\": \\"Bern\\"}"}'

    [refused] = await answers_of([calling("call_tool", 1, inner)], toolset)
    [allowed] = await answers_of([calling("call_tool", 1, inner)], Toolset(tools))

    assert "does not allow delete_all" in str(refused.output)
    assert str(allowed.output).startswith("Rain in Bern")


async def test_pictures_go_to_the_model_and_into_files(host: StandInHost) -> None:
    """The chat holds their address, the request their bytes."""
    parts = [{"type": "text", "text": "A map"}, {"type": "image", "data": PIXEL}]

    returned = await answer(host_tools({"look": result(parts, type="mcp")}))

    image = {"type": "input_image", "detail": "auto", "image_url": PIXEL}
    assert returned.output == [{"type": "input_text", "text": "A map"}, image]
    address = "/api/v1/files/file-1/content"
    assert returned.card == {"stored": [{"type": "input_image", "image_url": address}]}
    assert host.results.stored == [PIXEL]


@pytest.mark.parametrize("is_stored", [True, False])
async def test_picture_with_an_address_is_seen_and_shown(
    is_stored: bool, host: StandInHost
) -> None:
    """The host stores those of MCP servers before anybody sees them."""
    url = "https://x/y"
    if is_stored:
        url = f"/api/v1/files/{host.files.add(PNG, 'a.png')}/content"
    parts = [{"type": "text", "text": "x"}, {"type": "image", "data": url}]

    returned = await answer(host_tools({"look": result(parts, type="mcp")}))

    seen = PIXEL if is_stored else url
    image = {"type": "input_image", "detail": "auto", "image_url": seen}
    assert returned.output == [{"type": "input_text", "text": "x"}, image]
    assert returned.card == {
        "files": [{"type": "image", "url": url}],
        "stored": [{"type": "input_image", "image_url": url}],
    }
    assert host.results.stored == []


async def test_embeds_are_shown() -> None:
    """The model gets the host's words for them."""
    returned = await answer(host_tools({"look": result({"html": "<b>"})}))

    assert returned == ToolResult("Shown.", card={"embeds": ["<b>"]})


@pytest.mark.parametrize(
    ("name", "kind", "capabilities", "cites"),
    [
        ("fetch_url", "builtin", None, True),
        ("query_chat_files", "builtin", None, True),
        ("query_knowledge_files", "builtin", None, True),
        ("view_file", "builtin", None, True),
        ("view_knowledge_file", "builtin", None, True),
        ("fetch_url", "builtin", {"citations": False}, False),
        ("fetch_url", "external", None, False),
        ("look", "builtin", None, False),
    ],
)
async def test_tools_that_cite_name_their_sources(
    name: str, kind: str, capabilities: Json | None, cites: bool
) -> None:
    """Those of the host, unless the model's settings forbid it."""
    model = {"info": {"meta": {"capabilities": capabilities}}}
    tools = host_tools(
        {name: result("found", type=kind)},
        metadata={"user_id": "user-1", "model": model},
    )

    returned = await answer(tools, name)

    source = {"source": {"name": name, "id": "server:1"}, "document": ["found"]}
    assert returned.card == ({"sources": [source]} if cites else {})


@pytest.mark.parametrize(
    ("name", "shown"),
    [("fetch_url", "!&#91;a&#93;(b)\n\\<i\\>"), ("view_file", "![a](b)\n<i>")],
)
async def test_page_of_the_web_draws_nothing_as_a_source(name: str, shown: str) -> None:
    """A file of the host is shown as the host does."""
    tools = host_tools({name: result("![a](b)\n<i>", type="builtin")})

    returned = await answer(tools, name)

    assert returned.output == "![a](b)\n<i>"
    assert returned.card["sources"][0]["document"] == [shown]


@pytest.mark.parametrize("emitter", [None, object()])
async def test_terminal_is_told_where_there_is_a_page(
    emitter: Any, host: StandInHost
) -> None:
    """A file is shown instead of what the tool said."""
    tools = host_tools({"display_file": result({"x": 1})}, event_emitter=emitter)

    returned = await answer(tools, "display_file")

    assert returned.output == '{"type": "file", "city": "Bern"}'
    assert len(host.results.told) == (0 if emitter is None else 1)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Error: no such city", True),
        ("Exception: no such city", True),
        ("Traceback (most recent call last):", True),
        (" HTTP error! 500", True),
        ('{"error": {"code": 7}}', True),
        ('{"status": " FAILED"}', True),
        ('{"status": "error"}', True),
        ('{"ok": false, "message": "no rain"}', True),
        ('{"success": false, "message": "no rain"}', True),
        ('{"success": false, "error": "no rain", "message": ""}', True),
        ('{"status": "failed", "stdout": ""}\nThe user gets a.csv.', True),
        ('{\n  "error": "no such city"\n}', True),
        ('{"success": false, "message": ""}', False),
        ('{"message": "no error"}', False),
        ('{"error": ""}', False),
        ("no error: it rains", False),
        ("[1, 2]", False),
    ],
)
async def test_result_that_tells_of_an_error_is_a_failure(
    text: str, failed: bool
) -> None:
    """By the words that the host knows; its own runner marks them so."""
    assert await answer(host_tools({"look": result(text)})) == ToolResult(text, failed)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Exception("no such city"), '{"error": "no such city"}'),
        (ConnectionError("no route"), "Error: look failed: ConnectionError: no route"),
    ],
)
async def test_what_a_server_says_of_a_failed_call_is_a_result(
    error: Exception, told: str
) -> None:
    """The host raises it bare; a call that did not reach the server raised."""

    async def refuse(**_: Any) -> Any:
        raise error

    tools = host_tools({"look": {**result(""), "callable": refuse, "type": "mcp"}})

    [outcome] = await answers_of([calling("look")], Toolset(tools))

    assert outcome == ToolResult(told, failed=True)


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit("x"), PanicException("x")]
)
async def test_keys_that_an_exception_may_quote_are_hidden(
    error: BaseException,
) -> None:
    """Those of the toolkit's valves, and of the user's; other valves stay readable."""

    class ToolValves(BaseModel):
        API_KEY: str = "key-1"
        bot_token: str = "token-1"
        city: str = "Bern"
        PAT: str = Field(
            default="pat-1", json_schema_extra={"input": {"type": "password"}}
        )
        webhook: SecretStr = SecretStr("hook-1")
        headers: Json = {"X-Api-Key": "head-1", "Accept": "text/html"}
        accounts: list[Json] = [{"name": "Ada", "auth": ["a-1", SecretStr("a-2")]}]
        tokens: Json = {"one": "t-1", "two": b"t-2"}

    class Toolkit:
        valves = ToolValves()

        async def look(self, city: str, __user__: Json) -> str:
            raise error

    users = {"valves": SimpleNamespace(password="word-1", secrets=3), "id": "user-1"}
    hidden: list[str] = []
    kept = host_callable(Toolkit().look, __user__=users)
    row = {"callable": kept, "spec": {"name": "look", "parameters": CITY}}
    call = call_of({}, Valves(API_KEY="sk-1"), host=host_context({"look": row}))
    tools = HostTools(call.host, tool_user(call), ToolNames(("look",)), hidden.append)

    with pytest.raises(type(error)):
        await answer(tools)

    of_toolkit = ["key-1", "token-1", "pat-1", "hook-1", "head-1", "a-1", "a-2"]
    assert hidden == [*of_toolkit, "t-1", "t-2", "word-1"]


async def test_secrets_of_a_user_have_a_limit() -> None:
    """Each is searched for in each line of the log: 8,000 took nine seconds."""

    class Toolkit:
        async def look(self, city: str, __user__: Json) -> str:
            raise RuntimeError(city)

    long = "".join(f"{number:04}" for number in range(1_000))
    valves = {"key": long, "tokens": [f"token-{number}" for number in range(8_000)]}
    look = host_callable(Toolkit().look, __user__={"valves": valves, "id": "user-1"})

    secrets = tool_secrets(look)

    assert secrets[:2] == [long[:2_000], long[2_000:]]
    assert len(secrets) == 100


async def test_host_without_the_function_fails_the_call(host: StandInHost) -> None:
    host.provide("utils.middleware")
    lines: list[str] = []
    toolset = Toolset(host_tools({"look": result("x")}), log=lines.append)

    [outcome] = await answers_of([calling("look")], toolset)

    assert outcome.failed
    assert "has no " in lines[0]


async def test_call_that_was_made_is_told_from_one_that_failed(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that reads of a failure alone would send the same mail again."""
    locked = AsyncMock(side_effect=RuntimeError("database is locked"))
    monkeypatch.setattr(host.users, "get_user_by_id", locked)
    toolset = Toolset(host_tools({"look": result("Sent.")}))

    [outcome] = await answers_of([calling("look")], toolset)

    assert outcome.failed
    assert "The call was made" in str(outcome.output)
    assert "database is locked" in str(outcome.output)


class Hanging:
    """A sync tool that hangs until it is told to go on."""

    def __init__(self) -> None:
        self.leave = threading.Event()
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def __call__(self, city: str) -> str:
        self.begun.release()
        assert self.leave.wait(60)
        self.ended.release()
        return "too late"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    tool = Hanging()
    yield tool
    tool.leave.set()


async def test_loop_goes_on_while_a_sync_tool_waits(hanging: Hanging) -> None:
    """Other chats do not notice."""
    waiting = asyncio.create_task(answer(host_tools({"look": tool(hanging)})))
    await asyncio.to_thread(hanging.begun.acquire)

    hanging.leave.set()

    assert await waiting == ToolResult("too late")


def asked_by(user_id: str, memory: PipeMemory, hanging: Hanging) -> HostTools:
    """The tools of a request of this user: one hangs, one does not."""
    tools = {"hang": tool(hanging), "look": tool(look)}
    call = call_of(
        {}, Valves(API_KEY="sk-1"), Caller(user_id=user_id, host_model="p.m")
    )
    context = host_context(tools, metadata={**IDS, "user_id": user_id})
    call = replace(call, memory=memory, host=context)
    return HostTools(call.host, tool_user(call), ToolNames(tuple(tools)))


async def test_hung_tools_of_one_user_take_no_thread_of_another(
    hanging: Hanging,
) -> None:
    """Sixteen were enough to stop the tools of all; now the user is told."""
    memory = PipeMemory()
    own = asked_by("user-1", memory, hanging)
    short = Toolset(own, limits=CallLimits(at_once=16, seconds=0.05))

    hung = await answers_of([calling("hang", n) for n in range(16)], short)
    refused = await answer(own)
    other = await answer(asked_by("user-2", memory, hanging))

    assert all(
        "did not finish within 0.05 s" in str(outcome.output) for outcome in hung
    )
    assert refused.failed
    assert "8 earlier calls are still running" in str(refused.output)
    assert "Tell the user" in str(refused.output)
    assert str(other.output).startswith("Rain in Bern")

    hanging.leave.set()
    await until(lambda: not memory.threads.get("user-1", UserThreads()).abandoned)
    assert str((await answer(own)).output).startswith("Rain in Bern")


async def test_calls_beyond_the_share_wait_while_the_others_may_end(
    hanging: Hanging,
) -> None:
    """Two answers of one user at once are no reason to refuse a call."""
    memory = PipeMemory()
    tools = asked_by("user-1", memory, hanging)
    calls = [asyncio.create_task(answer(tools, "hang")) for _ in range(8)]
    for _ in range(8):
        await asyncio.to_thread(hanging.begun.acquire)
    waiting = asyncio.create_task(answer(tools))
    await asyncio.sleep(0)

    hanging.leave.set()

    assert str((await waiting).output).startswith("Rain in Bern")
    assert {str(result.output) for result in await asyncio.gather(*calls)} == {
        "too late"
    }


async def test_share_of_a_user_goes_when_nothing_of_it_runs(hanging: Hanging) -> None:
    """A server with many users keeps no idle thread of each."""
    memory = PipeMemory()
    tools = asked_by("user-1", memory, hanging)
    short = Toolset(tools, limits=CallLimits(seconds=0.05))
    await answers_of([calling("hang")], short)
    gc.collect()
    assert list(memory.threads) == ["user-1"]

    hanging.leave.set()
    await until(lambda: gc.collect() >= 0 and not list(memory.threads))


async def test_tool_that_only_claims_to_be_sync_fails(host: StandInHost) -> None:
    """The coroutine that it returned is closed at once: the tool can clean up."""
    cleaned_up: list[str] = []

    async def waiting(**_: Any) -> None:
        try:
            await asyncio.sleep(0)
        finally:
            cleaned_up.append("now")

    vars(waiting).update(__function__=look, __extra_params__={})
    host.provide("utils.tools", get_updated_tool_function=unchanged)
    given = {"look": {"callable": waiting, "spec": {"parameters": CITY}}}

    with pytest.raises(RuntimeError, match="claims to be synchronous") as raised:
        await answer(host_tools(given))
    assert raised  # its traceback still holds the coroutine
    assert cleaned_up == ["now"]


async def unchanged(function: Any, extra_params: Json) -> Any:
    return function
