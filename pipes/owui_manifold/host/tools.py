"""Runs Open WebUI's tools as the host does.

Functions, OpenAPI and MCP servers and builtin tools are callables; tools of the browser
run through the event call (docs/reference/open-webui.md, "Tools of the host"). Results
pass through the host's own functions, so that files, embeds, sources and terminals look
the same.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from openai_responses.callbacks import ignore_report
from openai_responses.json_input import (
    JsonObject,
    JsonTooLarge,
    as_list,
    as_text,
    json_size,
    parse_json_object,
    value_at,
)
from openai_responses.loop.tools import CallKind, ToolResult, pause_of_call
from openai_responses.requests.json_schema import LARGEST_SCHEMA
from openai_responses.requests.tools import ToolNames
from openai_responses.ulid import new_ulid
from owui_chat.host_tools import CALL_TOOL, read_call_tool
from owui_chat.wording import as_plain_markdown
from owui_host.users import HostUser, user_model
from owui_manifold.host.callables import (
    call_server,
    is_blocking,
    pausing_for_server,
    run_at_once,
    stopping_clocks,
    tool_secrets,
)
from owui_manifold.host.open_webui import (
    HostContext,
    citation_sources,
    process_tool_result,
    store_tool_image,
    update_tool,
)
from owui_manifold.host.result_files import split_result_files, without_large_files
from owui_manifold.host.threads import ToolThreads, UserThreads
from shells.administration import CallAccount

_LONG_RUNNING = ("delegate_task", "generate_image", "edit_image")
_HOUR = 3600.0


def long_running_tools(host: HostContext) -> list[tuple[str, float]]:
    """Return the time limits of the host's tools that may take minutes by design."""
    return [(name, _HOUR) for name in _LONG_RUNNING if host.is_builtin(name)]


_OF_TASK_LIST = ("create_tasks", "update_task")
"""Builtin tools that read the list of a chat's tasks and write it again.

Open WebUI runs the calls of a response one by one, all but `delegate_task`. Here they
run at once, and one would undo what another has marked (tools/builtin.py, `update_task`
of 0.12.4).
"""
_CITED = (
    "fetch_url",
    "query_chat_files",
    "query_knowledge_files",
    "view_file",
    "view_knowledge_file",
)
"""Builtin tools whose results name sources, as in the host."""


def _undrawn(source: dict[str, Any]) -> dict[str, Any]:
    """Return a source whose texts show what is in them, and draw nothing.

    The page shows a source that is opened as Markdown: an image in a page of the web
    would be loaded from there.
    """
    texts = as_list(source.get("document"))
    shown = [as_plain_markdown(as_text(text), kept="\n\t") for text in texts]
    return {**source, "document": shown}


_ERROR_PREFIXES = ("error:", "exception:", "traceback", "http error!")
"""The beginnings of results that the host marks as failed, in lower case."""


def _is_error_text(text: str) -> bool:
    """Say whether a result reports an error.

    The sandbox's tool writes a line for each file after the JSON object.
    """
    result = parse_json_object(text) or parse_json_object(text.partition("\n")[0])
    if result is None:
        return text.strip().lower().startswith(_ERROR_PREFIXES)
    if str(result.get("status")).strip().lower() in ("error", "failed"):
        return True
    error = result.get("error")
    is_refused = result.get("success") is False or result.get("ok") is False
    if is_refused and not error:
        error = result.get("message")
    return isinstance(error, str | Mapping | list) and bool(error)


_DISPATCHERS = (CALL_TOOL, "search_tools")
"""Builtin tools that call others; they cannot call each other."""


class ResultNotRead(Exception):
    """A tool has run, and the host cannot process what it returned."""


_WAS_MADE = (
    "The call was made, and another one would do the same again; Open WebUI could not "
    "process its result. {}: {}"
)


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

    def __init__(
        self,
        host: HostContext,
        user: ToolUser,
        names: ToolNames,
        hide: Callable[[str], object] = ignore_report,
    ) -> None:
        """Run the tools that the host passed with a call.

        `hide` takes the secrets that the exception of a tool may quote.
        """
        self._host = host
        self._user = user
        self._names = names
        self._hide = hide
        self._task_list = asyncio.Lock()
        self._user_model: HostUser | None = None
        """The host's model of the user, read for the first result of an answer."""

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

    def call_kind(self, name: str) -> CallKind:
        """Return `question` for the tool of the host that asks the user."""
        own = self._own_name(name)
        is_question = own == "ask_user" and self._host.is_builtin(own)
        return "question" if is_question else "limited"

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
        called, inner_arguments = read_call_tool(arguments) or (None, {})
        if called not in tools or called in _DISPATCHERS:
            return None
        return str(called), inner_arguments

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool and return its result for the model and for the page.

        MCP servers check their own arguments.
        """
        own = self._own_name(name)
        account = self._user.account
        work = self._call_tool(own, arguments)
        if account is None:
            return await work
        return await account.observe_tool(own, work, lambda result: result.failed)

    async def _call_tool(self, own: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool with the arguments that its schema names."""
        tool = self._host.tools[own]
        params = arguments
        if tool.get("type") != "mcp":
            known = (self.parameters(own) or {}).get("properties") or {}
            params = {key: arguments[key] for key in arguments if key in known}
        # Calls about the list of tasks wait for each other.
        is_about_list = own in _OF_TASK_LIST and self._host.is_builtin(own)
        turn: AbstractAsyncContextManager[object] = nullcontext()
        async with self._task_list if is_about_list else turn:
            try:
                result = await self._run_tool(own, tool, params)
            except BaseException:
                for secret in tool_secrets(tool.get("callable")):
                    self._hide(secret)
                raise
        try:
            return await self._read_result(own, tool, params, result)
        except Exception as error:
            raise ResultNotRead(_WAS_MADE.format(type(error).__name__, error)) from None

    async def _run_tool(
        self, name: str, tool: JsonObject, params: dict[str, Any]
    ) -> Any:
        """Run a tool where it has to run; return what it returned.

        A thread that exceeds its limit cannot be stopped; it keeps its place until it
        ends.
        """
        if tool.get("direct"):  # it runs in the browser
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
        pause = pause_of_call()
        fresh = {
            "__messages__": self._user.messages,
            "__files__": self._host.metadata.get("files") or [],
        }
        if self._host.event_call:
            asks = stopping_clocks(self._host.event_call, [pause])
            fresh["__event_call__"] = asks
        function = await update_tool(tool["callable"], **fresh)
        if tool.get("type") == "mcp":
            with pausing_for_server(tool.get("client"), pause):
                return await call_server(function, params)
        if not is_blocking(function):
            return await function(**params)
        # A thread has no context of its own, and the host's tools may read theirs.
        work = partial(copy_context().run, run_at_once, function, params)
        user_id = self._user.user_id
        threads = self._user.threads.setdefault(user_id, UserThreads())
        return await threads.run(work)

    async def _read_result(
        self, name: str, tool: JsonObject, params: dict[str, Any], result: Any
    ) -> ToolResult:
        """Return a result as the host would store and show it."""
        host = self._host
        if self._user_model is None:
            self._user_model = await user_model(self._user.user_id)
        user = self._user_model
        result = without_large_files(result)
        text, files, embeds = await process_tool_result(
            host, user, name, tool, params, result
        )
        sources: list[dict[str, Any]] = []
        # A model's settings can forbid citations.
        capabilities = value_at(host.model, "info", "meta", "capabilities")
        may_cite = value_at(capabilities, "citations") is not False
        # That of a server may have such a name, and thousands of rows.
        if text and name in _CITED and host.is_builtin(name) and may_cite:
            tool_id = str(tool.get("tool_id") or "")
            sources = citation_sources(name, params, text, tool_id)
            if name == "fetch_url":
                sources = [_undrawn(source) for source in sources]
        store = partial(store_tool_image, host, user)
        output, card = await split_result_files(
            files, text, store, user, has_row=self._user.has_row
        )
        card |= {"embeds": embeds, "sources": sources}
        filled = {key: value for key, value in card.items() if value}
        return ToolResult(output, _is_error_text(text), filled)
