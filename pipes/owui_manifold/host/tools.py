"""Runs Open WebUI's tools in the same way as the host does.

Functions, OpenAPI and MCP servers and builtin tools are callables; tools of the browser
run through the event call (docs/reference/open-webui.md, "Tools of the host"). Results
pass through the host's own functions, so that files, embeds, sources and terminals look
the same. Approvals are asked for through the event call as well.
"""

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from openai_responses.json_input import (
    JsonObject,
    JsonTooLarge,
    json_size,
    parse_json_object,
    value_at,
)
from openai_responses.loop.tools import ApprovalRules, Approver, Ask, ToolResult
from openai_responses.requests.json_schema import LARGEST_SCHEMA
from openai_responses.requests.tools import ToolNames
from openai_responses.ulid import new_ulid
from owui_chat.host_tools import CALL_TOOL, HOST_ERROR_PREFIXES, read_call_tool
from owui_manifold.host.context import EventCall, HostContext
from owui_manifold.host.files import split_result_files
from owui_manifold.host.open_webui import (
    citation_sources,
    process_tool_result,
    stored_image,
    update_tool,
    user_model,
)
from owui_manifold.host.threads import ToolThreads, UserThreads
from shells.administration import CallAccount


def build_approver(
    host: HostContext, rules: ApprovalRules, log: Callable[[str], object]
) -> Approver:
    """Return who decides about the calls of a request.

    The rules of the valve come first; for other tools the host's own mode counts. The
    host's `ask_user` only asks a question.
    """
    mode = value_at(host.metadata, "params", "tool_approval_mode")
    if _is_builtin(host, "ask_user"):
        rules = [*rules, ("ask_user", "auto")]
    return Approver(
        rules=rules,
        default_rule="ask" if mode == "ask" else "auto",
        ask=_ask_in_page(host.event_call) if host.event_call else None,
        log=log,
        other_names=partial(_other_names, host),
    )


def _is_builtin(host: HostContext, name: str) -> bool:
    """Say whether a tool is one of the host's own."""
    return bool(value_at(host.tools, name, "type") == "builtin")


_LONG_RUNNING = ("delegate_task", "generate_image", "edit_image")
_HOUR = 3600.0


def long_running_tools(host: HostContext) -> list[tuple[str, float]]:
    """Return the seconds of the host's own tools that may take minutes by design."""
    return [(name, _HOUR) for name in _LONG_RUNNING if _is_builtin(host, name)]


_OWN_NAME = "function_name"
"""The host's variable in the function of a server's tool: its name on the server."""


def _other_names(host: HostContext, name: str) -> list[str]:
    """Return the name that a tool has in its toolkit or on its server.

    The host puts an id in front of a name that another tool has, and of all names of an
    MCP server (docs/reference/open-webui.md, "Tools of the host").
    """
    wrapped = host.tools.get(name, {}).get("callable")
    function = getattr(wrapped, "__function__", wrapped)
    names = [str(getattr(function, "__name__", ""))]
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if _OWN_NAME in variables:
        cells: Any = getattr(function, "__closure__", None)
        names.append(str(cells[variables.index(_OWN_NAME)].cell_contents))
    return names


_SHOWN_HALF = 2000
"""Characters that a question shows of the beginning and of the end of arguments."""


def _question(name: str, arguments: JsonObject) -> str:
    """Return the question about a call as Markdown.

    Arguments cannot end the block of code: in JSON no line begins with their text.
    """
    shown = json.dumps(arguments, ensure_ascii=False, indent=1)
    hidden = len(shown) - 2 * _SHOWN_HALF
    if hidden > 0:
        note = f" [... {hidden} characters are not shown ...] "
        shown = shown[:_SHOWN_HALF] + note + shown[-_SHOWN_HALF:]
    return f"The model wants to use {name} with:\n\n```json\n{shown}\n```"


_MAX_WAITING_MS = 240_000
"""The longest time that Open WebUI waits for an answer to its approval card.

From 0.12 on it stops after 120 s unless the event asks for more, and shortens what is
above 240 s (`socket/main.py`, `get_event_call`). 0.11.4 has no such limit and does not
read the field.
"""


def _ask_in_page(event_call: EventCall) -> Ask:
    """Return the way to show the host's approval card.

    An older host shows the message alone, so it holds the arguments. Without an answer
    the host returns an object, so only True is an approval
    (docs/reference/open-webui.md, "Dialogs").
    """

    async def ask(call_id: str, name: str, arguments: JsonObject) -> bool:
        data = {
            "title": "Allow this tool?",
            "message": _question(ToolNames().sent_name(name), arguments),
            "tool_call": {"id": call_id, "name": name, "arguments": dict(arguments)},
            "timeout_ms": _MAX_WAITING_MS,
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask


_CITED = (
    "fetch_url",
    "query_chat_files",
    "query_knowledge_files",
    "view_file",
    "view_knowledge_file",
)
"""Builtin tools whose results name sources, as in the host."""


def _cites(name: str, metadata: JsonObject) -> bool:
    """Say whether a tool's result names sources, as far as the model may have any."""
    may = value_at(metadata, "model", "info", "meta", "capabilities", "citations")
    return name in _CITED and may is not False


def _is_error_text(text: str) -> bool:
    """Say whether a result tells of an error."""
    result = parse_json_object(text)
    if result is None:
        return text.strip().lower().startswith(HOST_ERROR_PREFIXES)
    if str(result.get("status")).strip().lower() in ("error", "failed"):
        return True
    error = result.get("error")
    is_refused = result.get("success") is False or result.get("ok") is False
    if is_refused and not error:
        error = result.get("message")
    return isinstance(error, str | Mapping | list) and bool(error)


_DISPATCHERS = (CALL_TOOL, "search_tools")
"""Builtin tools that call others; they cannot call each other."""


class ToolUser(NamedTuple):
    """For whom tools run, and in which chat."""

    user_id: str
    messages: list[dict[str, Any]]
    """Those of the chat, in the host's form."""
    has_row: bool
    """Whether the chat has a row in the database."""
    threads: ToolThreads
    account: CallAccount | None
    """What measures the tools, if the administration's filter is active."""


class HostTools:
    """The tools of one request, by the names that the model was given."""

    def __init__(self, host: HostContext, user: ToolUser, names: ToolNames) -> None:
        """Run the tools that the host passed with a call."""
        self._host = host
        self._user = user
        self._names = names

    def _own_name(self, name: str) -> str:
        """Return the host's name of a tool, by the name that the model was given."""
        return self._names.own_name(name, self._host.tools)

    def parameters(self, name: str) -> JsonObject | None:
        """Return the schema of a tool's arguments, or None for no such tool.

        One that is too large to be offered cannot be called by its name, either.
        """
        tool = self._host.tools.get(self._own_name(name))
        if tool is None:
            return None
        spec = tool.get("spec") or {}
        try:
            json_size(spec, LARGEST_SCHEMA)
        except JsonTooLarge:
            return None
        return spec.get("parameters") or {"type": "object", "properties": {}}

    def is_interactive(self, name: str) -> bool:
        """Say whether a tool's time is a person's."""
        own = self._own_name(name)
        return own == "ask_user" and _is_builtin(self._host, own)

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the tool that a call will run, resolved as in the host.

        It is resolved before anybody is asked, so the approved tool is what runs.
        """
        own = self._own_name(name)
        tools = self._host.tools
        if value_at(tools, own, "tool_id") != "builtin:call_tool":
            return own, arguments
        inner, params = read_call_tool(arguments) or (None, {})
        if inner not in tools or inner in _DISPATCHERS:
            return None
        return str(inner), params

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool and return its result for the model and for the page.

        MCP servers check their own arguments.
        """
        own = self._own_name(name)
        account = self._user.account
        result = self._call_tool(own, arguments)
        if account:
            result = account.observe_tool(own, result, attrgetter("failed"))
        return await result

    async def _call_tool(self, own: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool with the arguments that its schema names."""
        tool = self._host.tools[own]
        params = arguments
        if tool.get("type") != "mcp":
            known = (self.parameters(own) or {}).get("properties") or {}
            params = {key: params[key] for key in params if key in known}
        result = await self._result(own, tool, params)
        return await self._answer(own, tool, params, result)

    async def _result(self, name: str, tool: JsonObject, params: dict[str, Any]) -> Any:
        """Run a tool where it has to run.

        The host wraps sync tools in coroutine functions that never wait; on the event
        loop they would block every chat. A thread that exceeds its limit cannot be
        stopped; it keeps its place until it ends.
        """
        if tool.get("direct"):
            return await self._in_the_browser(name, tool, params)
        files = self._host.metadata.get("files") or []
        function = await update_tool(tool["callable"], self._user.messages, files)
        if tool.get("type") == "mcp":
            return await _server_result(function, params)
        bare = getattr(function, "__function__", None)
        if bare is None or inspect.iscoroutinefunction(bare):
            return await function(**params)
        work = partial(copy_context().run, _run_at_once, function, params)
        user_id = self._user.user_id
        threads = self._user.threads.setdefault(user_id, UserThreads())
        return await threads.run(work)

    async def _in_the_browser(
        self, name: str, tool: JsonObject, params: dict[str, Any]
    ) -> Any:
        """Return what the browser says of its own tool."""
        if self._host.event_call is None:
            return {"error": "The browser that has this tool is not connected."}
        data = {
            "id": new_ulid(),
            "name": name,
            "params": params,
            "server": tool.get("server") or {},
            "session_id": self._host.metadata.get("session_id"),
        }
        return await self._host.event_call({"type": "execute:tool", "data": data})

    async def _answer(
        self, name: str, tool: JsonObject, params: dict[str, Any], result: Any
    ) -> ToolResult:
        """Return a result as the host would store and show it."""
        host = self._host
        user = await user_model(self._user.user_id)
        text, files, embeds = await process_tool_result(
            host, user, name, tool, params, result
        )
        cited = _cites(name, host.metadata) and text
        tool_id = str(tool.get("tool_id") or "")
        sources = citation_sources(name, params, text, tool_id) if cited else []
        store = partial(stored_image, host, user)
        output, card = await split_result_files(
            files, text, store, user, has_row=self._user.has_row
        )
        card |= {"embeds": embeds, "sources": sources}
        filled = {key: value for key, value in card.items() if value}
        return ToolResult(output, _is_error_text(text), filled)


async def _server_result(
    function: Callable[..., Coroutine[Any, Any, Any]], params: JsonObject
) -> Any:
    """Return what an MCP server says, also of a call that failed.

    That is meant for the model; the host raises it as a bare Exception
    (utils/mcp/client.py), and what else may be raised is nothing that a server said.
    """
    try:
        return await function(**params)
    except Exception as error:
        if type(error) is Exception:
            return {"error": str(error)}
        raise


def _run_at_once(
    function: Callable[..., Coroutine[Any, Any, Any]], params: JsonObject
) -> Any:
    """Return the result of a coroutine function that never waits.

    The coroutine is made here, on the thread, so that none is left over when the call
    is given up before its turn.
    """
    coroutine = function(**params)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("a tool that claims to be synchronous waited")
