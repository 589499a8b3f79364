"""The few names of Open WebUI that the pipe uses, in memory.

What the real host does is shown in `tests/hosts`; here it is only there to be asked.
"""

import json
import sys
from dataclasses import dataclass, field
from inspect import iscoroutinefunction, signature
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

Json = dict[str, Any]
SERVER_SECRET = "the server's own secret"


@dataclass
class Row:
    """A chat in the database."""

    user_id: str
    chat: Any


@dataclass
class Chats:
    """The table of chats; `is_full` makes it refuse every write."""

    rows: dict[str, Row] = field(default_factory=dict)
    is_full: bool = False
    writes: list[Json] = field(default_factory=list)

    async def get_chat_by_id_and_user_id(self, id: str, user_id: str) -> Row | None:
        """Return a user's own chat (models/chats.py)."""
        row = self.rows.get(id)
        return row if row and row.user_id == user_id else None

    async def update_chat_by_id(
        self, id: str, chat: Json, touch: bool = True
    ) -> Row | None:
        """Patch the top-level keys of a chat (models/chats.py:803)."""
        row = self.rows.get(id)
        if row is None or self.is_full or touch:
            return None
        stored = json.loads(json.dumps(chat))
        self.writes.append(stored)
        row.chat = {**row.chat, **stored}
        return row


class Users:
    """The table of users."""

    async def get_user_by_id(self, id: str) -> SimpleNamespace:
        """Return the model of a user (models/users.py)."""
        return SimpleNamespace(id=id)


def host_callable(function: Any, **extra: Any) -> Any:
    """Return a coroutine function that keeps what it wraps (utils/tools.py:318)."""

    async def wrapped(**given: Any) -> Any:
        known = signature(function).parameters
        result = function(**given, **{k: v for k, v in extra.items() if k in known})
        return await result if iscoroutinefunction(function) else result

    vars(wrapped).update(__function__=function, __extra_params__=extra)
    return wrapped


async def updated_tool_function(function: Any, extra_params: Json) -> Any:
    """Return a tool with the chat as it is now (utils/tools.py:331)."""
    bare = getattr(function, "__function__", None)
    if bare is None:
        return function
    return host_callable(bare, **{**function.__extra_params__, **extra_params})


@dataclass
class ToolResults:
    """What the host does with the results of tools; `told` is what the page gets."""

    told: list[Json] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)

    async def process(  # noqa: PLR0913, PLR0917 - as the host has it
        self,
        request: Any,
        name: str,
        result: Any,
        kind: str,
        direct: bool,
        metadata: Json,
        user: Any,
    ) -> tuple[Any, list[Json], list[Any]]:
        """Return text, files and embeds (utils/middleware.py:725)."""
        assert user.id == metadata["user_id"]
        if kind == "external" and isinstance(result, tuple):
            result = result[0]
        if kind == "mcp":
            texts = [part["text"] for part in result if part["type"] == "text"]
            pictures = [part for part in result if part["type"] == "image"]
            files = [{"type": "image", "url": p["data"]} for p in pictures]
            return "\n".join(texts), files, []
        if isinstance(result, dict) and "html" in result:
            return "Shown.", [], [result["html"]]
        return result if isinstance(result, str) else json.dumps(result), [], []

    def terminal_file(
        self, name: str, params: Json, result: Any, tool: Json, metadata: Json
    ) -> Json | None:
        """Return a file of a terminal (utils/middleware.py:303)."""
        return {"type": "file", **params} if name == "display_file" else None

    async def tell_terminal(
        self, name: str, params: Json, result: Any, emitter: Any
    ) -> None:
        """Tell the page of a terminal (utils/middleware.py:949)."""
        self.told.append({"name": name, "params": params, "result": result})

    def sources(
        self, tool_name: str, tool_params: Json, tool_result: str, tool_id: str = ""
    ) -> list[Json]:
        """Return the sources of a result (utils/middleware.py:453)."""
        return [{"source": {"name": tool_name, "id": tool_id}, "text": tool_result}]

    async def store(self, request: Any, url: str, metadata: Json, user: Any) -> str:
        """Return the address of a stored picture (utils/middleware.py:702)."""
        self.stored.append(url)
        return f"/api/v1/files/{len(self.stored)}/content"


class StandInHost:
    """The package, put where the pipe looks for it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.chats = Chats({"chat-1": Row("user-1", {"title": "Rain"})})
        self._patch = patch
        self.provide("env", VERSION="0.12.4", WEBUI_SECRET_KEY=SERVER_SECRET)
        self.provide("models.chats", Chats=self.chats)
        self.provide("models.users", Users=Users())
        self.provide("utils.tools", get_updated_tool_function=updated_tool_function)
        self.results = ToolResults()
        self.provide(
            "utils.middleware",
            process_tool_result=self.results.process,
            build_terminal_file_tool_result=self.results.terminal_file,
            terminal_event_handler=self.results.tell_terminal,
            get_citation_source_from_tool_result=self.results.sources,
            store_tool_result_image=self.results.store,
        )

    def provide(self, module: str, **names: Any) -> None:
        """Let a module of the host have these names and no others."""
        made = ModuleType(f"open_webui.{module}")
        vars(made).update(names)
        self._patch.setitem(sys.modules, made.__name__, made)

    @property
    def kept(self) -> Json:
        """What the pipe keeps in the chat, by its key."""
        chat = self.chats.rows["chat-1"].chat
        return {k: v for k, v in chat.items() if k.startswith("openai_responses")}
