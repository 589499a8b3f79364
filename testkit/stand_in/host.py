"""The few names of Open WebUI that the pipe uses, in memory.

Signatures and results are those of Open WebUI 0.12.4; `tests/hosts/test_contract.py`
compares them with the real host.
"""

import asyncio
import base64
import json
import sys
import threading
from dataclasses import dataclass, field
from datetime import datetime
from inspect import iscoroutinefunction, signature
from io import BytesIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse

Json = dict[str, Any]
SERVER_SECRET = "the server's own secret"


@dataclass
class Row:
    """A chat in the database."""

    user_id: str
    chat: Any


@dataclass
class Chats:
    """The table of chats; it refuses as many writes as `refusing` says.

    A write waits until `unlocked`.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    refusing: float = 0
    unlocked: asyncio.Event | None = None
    writes: list[Json] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    links: list[tuple[str, ...]] = field(default_factory=list)
    saved: list[Json] = field(default_factory=list)
    """What was stored of messages."""
    saving_seconds: float = 0
    """How long it takes to store a message; more may come meanwhile."""
    listed: dict[str, Json] = field(default_factory=dict)
    """The messages of the host's table, by chats."""
    away: int = 0
    """How often the database does not answer yet."""
    asked: int = 0
    """How often it was asked for a title."""

    async def get_chat_title_by_id(self, id: str) -> str | None:
        self.asked += 1
        if self.away:
            self.away -= 1
            raise RuntimeError("database is away")
        row = self.rows.get(id)
        return row.chat["title"] if row else None

    async def get_chat_by_id_and_user_id(self, id: str, user_id: str) -> Row | None:
        """Return a user's own chat (models/chats.py)."""
        self.reads.append(id)
        row = self.rows.get(id)
        return row if row and row.user_id == user_id else None

    async def is_chat_owner(self, id: str, user_id: str) -> bool:
        """Say whether there is such a chat of the user (models/chats.py)."""
        row = self.rows.get(id)
        return bool(row and row.user_id == user_id)

    async def get_chat_by_id(self, id: str) -> Row | None:
        """Return anybody's chat (models/chats.py)."""
        return self.rows.get(id)

    async def get_messages_map_by_chat_id(self, id: str) -> Json | None:
        """Return the messages of the table, which may differ from the chat's."""
        return self.listed.get(id)

    async def get_message_by_id_and_message_id(
        self, id: str, message_id: str
    ) -> Json | None:
        row = self.rows.get(id)
        messages: Json = row.chat.get("history", {}).get("messages", {}) if row else {}
        return messages.get(message_id)

    async def get_message_by_id(self, id: str) -> SimpleNamespace | None:
        """Return the row of a message (models/chat_messages.py)."""
        for chat_id, row in self.rows.items():
            messages = row.chat.get("history", {}).get("messages", {})
            for message_id, message in messages.items():
                if id == f"{chat_id}-{message_id}":
                    return SimpleNamespace(output=message.get("output"))
        return None

    async def upsert_message_to_chat_by_id_and_message_id(
        self, id: str, message_id: str, message: Json, *, touch: bool = True
    ) -> Row | None:
        """Change fields of a message."""
        row = self.rows.get(id)
        if row is None or touch:
            return None
        messages = row.chat["history"]["messages"]
        stored = json.loads(json.dumps(message))
        await asyncio.sleep(self.saving_seconds)
        self.saved.append(stored)
        messages[message_id] = {**messages[message_id], **stored}
        return row

    async def insert_chat_files(
        self, chat_id: str, message_id: str, file_ids: list[str], user_id: str
    ) -> None:
        self.links += [(chat_id, message_id, file, user_id) for file in file_ids]

    async def add_message_files_by_id_and_message_id(
        self, id: str, message_id: str, files: list[Json]
    ) -> list[Json] | None:
        """Put files below a message; return all that it has, or None without one."""
        message = await self.get_message_by_id_and_message_id(id, message_id)
        if message is None:
            return None
        message["files"] = [*message.get("files", []), *files]
        stored: list[Json] = message["files"]
        return stored

    async def update_chat_by_id(
        self, id: str, chat: Json, touch: bool = True
    ) -> Row | None:
        """Patch the top-level keys of a chat."""
        if self.unlocked:
            await self.unlocked.wait()
        row = self.rows.get(id)
        if row is None or touch:
            return None
        if self.refusing > 0:
            self.refusing -= 1
            return None
        stored = json.loads(json.dumps(chat))
        self.writes.append(stored)
        row.chat = {**row.chat, **stored}
        return row


@dataclass
class Users:
    """The table of users: any id is known, and one address; `names` are their own."""

    names: dict[str, str] = field(default_factory=dict)

    async def get_user_by_id(self, id: str) -> SimpleNamespace | None:
        """Return the model of a user (models/users.py)."""
        if "@" in id:
            return None
        role = "admin" if id == "admin" else "user"
        return SimpleNamespace(id=id, role=role, name=self.names.get(id, "Ada"))

    async def get_user_by_email(self, email: str) -> SimpleNamespace | None:
        is_known = email.lower() == "ann@example.com"
        return SimpleNamespace(id="u-1", role="user") if is_known else None


@dataclass
class Groups:
    """The groups of users: the members by the name of a group."""

    members: dict[str, set[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    users_asked: list[str] = field(default_factory=list)

    async def get_group_by_id(self, id: str) -> SimpleNamespace | None:
        return await self.get_group_by_name(id.removeprefix("id of "))

    async def get_group_by_name(self, name: str) -> SimpleNamespace | None:
        self.asked.append(name)
        is_known = name in self.members
        return SimpleNamespace(id=f"id of {name}", name=name) if is_known else None

    async def get_groups_by_member_id(
        self, user_id: str, db: Any = None, *, include_inherited: bool = False
    ) -> list[SimpleNamespace]:
        """Return the groups of a user (models/groups.py)."""
        assert include_inherited
        self.users_asked.append(user_id)
        return [
            SimpleNamespace(id=f"id of {name}", name=name)
            for name, members in self.members.items()
            if user_id in members
        ]


class ModelRow(SimpleNamespace):
    """A row of the table of models."""

    def model_dump(self, include: set[str]) -> Json:
        return {name: value for name, value in vars(self).items() if name in include}


@dataclass
class Models:
    """The table of models; `updates` are the forms that came, by ids."""

    rows: dict[str, SimpleNamespace] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    updates: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, id: str, owner: str, **params: Any) -> None:
        """Store what somebody chose for a model."""
        self.rows[id] = ModelRow(
            id=id,
            user_id=owner,
            base_model_id=None,
            name="One",
            meta={"tags": []},
            params=SimpleNamespace(model_dump=lambda: dict(params)),
            is_active=False,
            access_grants=["all"],
        )

    async def get_model_by_id(self, id: str) -> SimpleNamespace | None:
        """Return the row of a model (models/models.py)."""
        self.reads.append(id)
        return self.rows.get(id)

    async def update_model_by_id(self, id: str, model: Any) -> Any:
        self.updates.append((id, model))
        return model


@dataclass
class Settings:
    """What administrators set for the whole server; `permitted` names users."""

    values: Json = field(default_factory=lambda: {"web.search.enable": True})
    permitted: set[tuple[str, str]] = field(default_factory=set)

    async def get(self, key: str, default: Any = None) -> Any:
        """Return a value (models/config.py)."""
        return self.values.get(key, default)

    async def has_permission(
        self, user_id: str, permission_key: str, default_permissions: Json
    ) -> bool:
        """Say whether a user may do something (utils/access_control)."""
        return (user_id, permission_key) in self.permitted


class Refused(Exception):
    """What the host raises for a file that it does not take."""


@dataclass
class Arriving:
    """A file on its way to the host, as fastapi has it."""

    stream: BytesIO
    filename: str
    headers: Json


@dataclass
class Files:
    """The table of files and their storage; `shared` names who may read which."""

    folder: Path
    rows: dict[str, SimpleNamespace] = field(default_factory=dict)
    in_channels: list[tuple[str, str]] = field(default_factory=list)
    shared: set[tuple[str, str]] = field(default_factory=set)
    threads: list[str] = field(default_factory=list)
    most_bytes: int = 10_000

    def add(
        self,
        content: bytes,
        name: str,
        owner: str = "user-1",
        text: str = "",
        **meta: Any,
    ) -> str:
        """Store a file, and the text in it; return its id."""
        id = f"file-{len(self.rows) + 1}"
        path = self.folder / f"{id}_stored"
        path.write_bytes(content)
        meta = {"name": name, "size": len(content), **meta}
        data = {"status": "completed", **({"content": text} if text else {})}
        self.rows[id] = SimpleNamespace(
            id=id, user_id=owner, filename=name, path=str(path), meta=meta, data=data
        )
        return id

    async def get_file_by_id(self, id: str) -> SimpleNamespace | None:
        """Return the row of a file (models/files.py)."""
        return self.rows.get(id)

    def get_file(self, file_path: str) -> str:
        """Return where a file can be read (storage/provider.py)."""
        self.threads.append(threading.current_thread().name)
        return file_path

    def content(self, id: str) -> bytes:
        return Path(self.rows[id].path).read_bytes()

    def lose(self, id: str) -> None:
        """Let the storage forget a file whose row stays."""
        Path(self.rows[id].path).unlink()

    async def upload(
        self, request: Any, file: Any, metadata: Json, process: bool, user: Any
    ) -> SimpleNamespace:
        """Store a file that arrives."""
        content = file.stream.read()
        if process or len(content) > self.most_bytes:
            raise Refused("413: too large")
        kind = file.headers["content-type"]
        file_id = self.add(content, file.filename, user.id, content_type=kind)
        if "channel_id" in metadata:
            self.in_channels.append((metadata["channel_id"], file_id))
        return self.rows[file_id]

    async def has_access_to_file(self, file_id: str, kind: str, user: Any) -> bool:
        """Say whether a file is shared with a user (utils/access_control/files.py)."""
        return kind == "read" and (file_id, user.id) in self.shared


def host_callable(function: Any, **extra: Any) -> Any:
    """Return a coroutine function that keeps what it wraps."""

    async def wrapped(**given: Any) -> Any:
        known = signature(function).parameters
        result = function(**given, **{k: v for k, v in extra.items() if k in known})
        return await result if iscoroutinefunction(function) else result

    vars(wrapped).update(__function__=function, __extra_params__=extra)
    return wrapped


async def updated_tool_function(function: Any, extra_params: Json) -> Any:
    """Return a tool with the chat as it is now."""
    bare = getattr(function, "__function__", None)
    if bare is None:
        return function
    return host_callable(bare, **{**function.__extra_params__, **extra_params})


@dataclass
class ToolResults:
    """What the host does with the results of tools; `told` is what the page gets."""

    files: Files
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
        """Return text, files and embeds."""
        assert user.id == metadata["user_id"]
        if kind == "external" and isinstance(result, tuple):
            result = result[0]
        if kind == "mcp" and isinstance(result, list):
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
        return {"type": "file", **params} if name == "display_file" else None

    async def tell_terminal(
        self, name: str, params: Json, result: Any, emitter: Any
    ) -> None:
        self.told.append({"name": name, "params": params, "result": result})

    def sources(
        self, tool_name: str, tool_params: Json, tool_result: str, tool_id: str = ""
    ) -> list[Json]:
        source = {"name": tool_name, "id": tool_id}
        return [{"source": source, "document": [tool_result]}]

    async def store(self, request: Any, url: str, metadata: Json, user: Any) -> str:
        self.stored.append(url)
        content = base64.b64decode(url.partition(",")[2])
        return f"/api/v1/files/{self.files.add(content, 'image', user.id)}/content"


def get_source_context(
    sources: list[Json], source_ids: Json | None = None, include_content: bool = True
) -> str:
    """Return the sources as the host writes them (utils/middleware.py)."""
    numbers = {} if source_ids is None else source_ids
    text = ""
    for source in sources:
        for words, meta in zip(source["document"], source["metadata"], strict=True):
            number = numbers.setdefault(meta["source"], len(numbers) + 1)
            name = source["source"].get("name")
            text += f'<source id="{number}" name="{name}">{words}</source>\n'
    return text


async def rag_template(template: str, context: str, query: str) -> str:
    """Return the text around the sources (utils/task.py)."""
    return template.replace("{{CONTEXT}}", context).replace("{{QUERY}}", query)


def host_request() -> SimpleNamespace:
    """The host's request, which knows the addresses of its routes."""

    def url_path_for(name: str, **given: str) -> str:
        assert name == "get_file_content_by_id"
        return f"/api/v1/files/{given['id']}/content"

    state = SimpleNamespace(MODELS={})
    return SimpleNamespace(app=SimpleNamespace(url_path_for=url_path_for, state=state))


@dataclass
class Filters:
    """The filters that are active, by their ids (utils/filter.py)."""

    active: dict[str, Any] = field(default_factory=dict)
    valves: dict[str, Json] = field(default_factory=dict)
    is_database_away: bool = False

    def get_filter_context(self, request: Any) -> "Filters":
        return self

    async def get_active_filters(self) -> list[tuple[str, bool]]:
        return [(id, False) for id in self.active]

    async def get_function_module(self, request: Any, function_id: str) -> Any:
        return self.active[function_id]

    async def get_function_valves_by_ids(self, ids: list[str]) -> dict[str, Json]:
        """Return what is stored (models/functions.py), nothing if it cannot be read."""
        if self.is_database_away:
            return {}
        return {id: self.valves.get(id, {}) for id in ids}


@dataclass
class Functions:
    """The table of functions."""

    filters: Filters
    rows: list[SimpleNamespace] = field(default_factory=list)

    def add(
        self,
        id: str,
        kind: str,
        *,
        is_active: bool = True,
        content: str = "",
        **manifest: str,
    ) -> None:
        """Install a function whose source begins like this."""
        meta = SimpleNamespace(manifest=manifest)
        row = SimpleNamespace(
            id=id, type=kind, meta=meta, is_active=is_active, content=content
        )
        self.rows.append(row)

    async def get_functions_by_type(self, type: str) -> list[SimpleNamespace]:
        """Return those of a type (models/functions.py)."""
        return [row for row in self.rows if row.type == type]

    async def get_function_valves_by_ids(self, ids: list[str]) -> dict[str, Json]:
        return await self.filters.get_function_valves_by_ids(ids)


async def render_system_prompt(
    system: str, form_data: Json, metadata: Json | None = None, user: Any = None
) -> Json:
    """Put a prompt, with its variables, in front of the system message (utils/payload.py)."""
    for variable, value in ((metadata or {}).get("variables") or {}).items():
        system = system.replace(variable, value)
    system = system.replace("{{USER_NAME}}", user.name if user else "Unknown")
    now = datetime.now()
    system = system.replace("{{CURRENT_TIME}}", now.strftime("%I:%M:%S %p"))
    clock = now.strftime("%Y-%m-%d %I:%M:%S %p")
    system = system.replace("{{CURRENT_DATETIME}}", clock)
    messages = form_data["messages"]
    if messages and messages[0]["role"] == "system":
        messages[0]["content"] = f"{system}\n{messages[0]['content']}"
    else:
        messages.insert(0, {"role": "system", "content": system})
    return form_data


def resolve_tool_call(tool_call: Json, tools: Json) -> str | None:
    """Put the call of the named tool in the place of the host's own `call_tool`.

    Returns the error for the model (utils/tool_search.py).
    """
    function = tool_call["function"]
    dispatcher = tools.get("call_tool", {}).get("tool_id")
    if function["name"] != "call_tool" or dispatcher != "builtin:call_tool":
        return None
    arguments = json.loads(function["arguments"])
    if set(arguments) != {"tool_name", "params"} or arguments["tool_name"] not in tools:
        return "Error: call_tool requires tool_name and params."
    tool_call["function"] = {
        "name": arguments["tool_name"],
        "arguments": json.dumps(json.loads(arguments["params"])),
    }
    return None


def check_questions(arguments: Json) -> Json:
    """Return valid questions (utils/ask_user.py, shortened)."""
    if not 1 <= len(arguments.get("questions") or ()) <= 3:
        raise ValueError("ask_user requires 1-3 questions.")
    return arguments


async def close_connections(pipe: Any) -> None:
    """Close those of a pipe, which a host never does: it keeps a pipe as long as it runs."""
    await pipe._connections.close()


class StandInHost:
    """The package, put where the pipe looks for it."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.chats = Chats({"chat-1": Row("user-1", {"title": "Rain"})})
        self._patch = patch
        names = {
            "WEBUI_SECRET_KEY": SERVER_SECRET,
            "DATABASE_SCHEMA": None,
            "DATABASE_URL": "sqlite:///webui.db",
        }
        forwards = {"ENABLE_FORWARD_USER_INFO_HEADERS": False}
        self.provide("env", VERSION="0.12.4", **names, **forwards)
        responses = {"Response": Response, "StreamingResponse": StreamingResponse}
        self.provide("functions", **responses)
        self.groups = Groups()
        self.provide("models.groups", Groups=self.groups)
        self.provide("models.chats", Chats=self.chats)
        self.provide("models.chat_messages", ChatMessages=self.chats)
        self.users = Users()
        self.provide("models.users", Users=self.users)
        self.provide("utils.tools", get_updated_tool_function=updated_tool_function)
        self.filters = Filters()
        self.functions = Functions(self.filters)
        self.provide("models.functions", Functions=self.functions)
        self.models = Models()
        self.settings = Settings()
        self.settings.permitted.add(("user-1", "features.web_search"))
        self.provide("models.models", Models=self.models, ModelForm=SimpleNamespace)
        self.provide("models.config", Config=self.settings)
        has_permission = self.settings.has_permission
        self.provide("utils.access_control", has_permission=has_permission)
        self.provide(
            "utils.filter",
            get_filter_context=self.filters.get_filter_context,
            get_function_module=self.filters.get_function_module,
        )
        self.files = Files(folder)
        self.provide("models.files", Files=self.files)
        self.provide("storage.provider", Storage=self.files)
        self.provide(
            "routers.files",
            upload_file_handler=self.files.upload,
            UploadFile=Arriving,
            HTTPException=Refused,
        )
        may_read = self.files.has_access_to_file
        self.provide("utils.access_control.files", has_access_to_file=may_read)
        self.results = ToolResults(self.files)
        self.provide(
            "utils.middleware",
            process_tool_result=self.results.process,
            build_terminal_file_tool_result=self.results.terminal_file,
            terminal_event_handler=self.results.tell_terminal,
            get_citation_source_from_tool_result=self.results.sources,
            store_tool_result_image=self.results.store,
            get_source_context=get_source_context,
        )
        self.settings.values["rag.template"] = "Use:\n{{CONTEXT}}\n"
        self.provide("utils.task", rag_template=rag_template)
        self.provide("utils.payload", apply_system_prompt_to_body=render_system_prompt)

    def ask_at_cards(self) -> None:
        """Let it ask for approvals itself, as from 0.12 on."""
        self.provide("utils.tool_approval", complete_tool_call=None)
        self.provide("utils.tool_search", resolve_tool_call=resolve_tool_call)
        self.provide("utils.ask_user", normalize_ask_user_request=check_questions)

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
