"""What only the pipe uses of Open WebUI.

Each function raises HostTooOld if the host lacks a name that it needs.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    value_at,
)
from owui_chat.input.summary import CLOCKS
from owui_host.database import run_sql
from owui_host.lookup import HostTooOld, host_name
from owui_host.models import model_entry
from owui_host.task_models import TASK_MODEL_SETTINGS
from owui_host.users import HostUser, user_model
from shells.administration import (
    ADMINISTRATION_CONTRACT,
    ADMINISTRATION_ID,
    Administration,
)

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends an event to the page of the caller, and returns its answer."""

EventEmitter = Callable[[JsonObject], Coroutine[Any, Any, None]]
"""Sends an event to the page of the caller; the host stores some of them."""


class HostContext(NamedTuple):
    """What the host passes in addition to the chat."""

    tools: Mapping[str, JsonObject]
    request: Any
    user: JsonObject
    metadata: JsonObject
    event_call: EventCall | None
    event_emitter: EventEmitter | None

    @property
    def model(self) -> JsonObject:
        """The host's entry of the model that answers."""
        return model_entry(self.metadata, self.request)

    @property
    def continues(self) -> bool:
        """Whether the answer has begun and is continued."""
        return bool(self.metadata.get("assistant_message_id"))

    def is_builtin(self, name: str) -> bool:
        """Say whether a tool is one of the host's own."""
        return bool(value_at(self.tools, name, "type") == "builtin")


HostFunction = Callable[..., Coroutine[Any, Any, Any]]
"""A tool's function as the host wraps it: async, even if the tool never waits."""

_FLOOR = (0, 11, 4)
"""From this version on `Chats.update_chat_by_id` patches the top-level keys of a chat;
before, it replaced the whole chat (docs/reference/open-webui.md, "The chat's row")."""


def require_floor() -> None:
    """Raise InvalidRequest if Open WebUI is too old."""
    version = host_name("env", "VERSION")
    numbers = [int(number) for number in re.findall(r"\d+", str(version))]
    if tuple(numbers) < _FLOOR:
        floor = ".".join(str(number) for number in _FLOOR)
        raise InvalidRequest(
            f"This pipe needs Open WebUI {floor} or newer; this server runs "
            f"{version}. An administrator has to update Open WebUI.",
            remedy="setup",
        )


async def read_chat(chat_id: str, user_id: str) -> JsonObject | None:
    """Return the JSON of a user's own chat; None if there is no such row."""
    read = host_name("models.chats", "Chats").get_chat_by_id_and_user_id
    row = await _read_row(read, chat_id, user_id)
    if row is None or not isinstance(row.chat, Mapping):
        return None
    return row.chat


async def _read_row(read: HostFunction, chat_id: str, *owner: str) -> Any:
    """Return the row of a chat, by a function of the host; None if there is none.

    The host says the same of a database that reports an error (models/chats.py:1926 of
    0.12.4), and an answer without its row keeps nothing for later turns. So it is asked
    again.
    """
    row = await read(chat_id, *owner)
    if row is None:
        await wait_for_database(chat_id)
        row = await read(chat_id, *owner)
    return row


_OTHER_ROLES = (
    "SELECT id FROM {schema}chat_message "
    "WHERE chat_id = :chat_id AND role NOT IN ('user', 'assistant') LIMIT 1"
)


async def listed_messages(chat_id: str, *, is_own: bool) -> JsonObject:
    """Return the messages of a chat, by id, as the host's table has them.

    The host sends what this table holds, whoever asks: also what the row of the chat has
    no longer. A message that is written again without a parent keeps the one that it had
    in the table (models/chat_messages.py:253 of 0.12.4). The messages of the caller's own
    chat are read only if one has a role that no page writes: a chat may be large.

    A database that is away is asked again. Then its exception is raised: without the
    table, a message that the page does not show would instruct the model.
    """
    try:
        return await _table_messages(chat_id, is_own=is_own)
    except (HostTooOld, ImportError):  # a host without such a table
        return {}
    except Exception:
        await wait_for_database(chat_id)
        return await _table_messages(chat_id, is_own=is_own)


async def shown_messages(chat_id: str) -> JsonObject:
    """Return the messages of a chat of somebody else, by id, as its page shows them."""
    read = host_name("models.chats", "Chats").get_chat_by_id
    row = await _read_row(read, chat_id)
    return as_mapping(value_at(row.chat if row else {}, "history", "messages"))


async def _table_messages(chat_id: str, *, is_own: bool) -> JsonObject:
    if is_own and not await run_sql((_OTHER_ROLES, {"chat_id": chat_id})):
        return {}
    chats = host_name("models.chats", "Chats")
    return as_mapping(await chats.get_messages_map_by_chat_id(chat_id))


async def write_chat_keys(chat_id: str, values: JsonObject) -> bool:
    """Replace top-level keys of a chat's JSON; say whether the host stored them.

    Without `touch` the chat keeps its time, and with it its place in the list.
    """
    chats = host_name("models.chats", "Chats")
    row = await chats.update_chat_by_id(chat_id, dict(values), touch=False)
    return row is not None


class StoredOutput:
    """The items that a message has so far, stored for a server that is killed.

    Open WebUI stores them at the end of an answer only (utils/middleware.py of 0.12.4).
    Each write reads and writes the whole chat, so what changes within a second is
    written once, and nothing of an answer that ends within it.
    """

    def __init__(self, chat_id: str, message_id: str) -> None:
        self._chat_id = chat_id
        self._message_id = message_id
        self._has_stored = False
        """Whether the items of the message are ours."""
        self._unsaved: list[Item] | None = None
        self._saving: asyncio.Task[None] | None = None
        self.lock = asyncio.Lock()
        """Held while this, or the host, writes into the message: before 0.12, one of
        two writes at once is lost."""

    def save_soon(self, items: Sequence[Item]) -> None:
        """Store the items of a message in a second, unless `close` comes first."""
        self._unsaved = list(items)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_unsaved())

    async def _save_unsaved(self) -> None:
        while self._unsaved is not None:
            await asyncio.sleep(_SAVING_SECONDS)
            async with self.lock:
                items = self._unsaved
                if items is not None:
                    await self._save(items)
                # More may have come meanwhile.
                if self._unsaved is items:
                    self._unsaved = None

    async def close(self) -> None:
        """Wait for a write that has begun: the host's own comes next."""
        async with self.lock:
            self.cancel()

    def cancel(self) -> None:
        """Write no more, without waiting."""
        self._unsaved = None
        if self._saving:
            self._saving.cancel()

    async def _save(self, items: Sequence[Item]) -> None:
        """Store the items of a message; a database that is away stops no answer.

        A message that holds other items is left alone: an answer that is continued has
        those of its first part there.
        """
        chats = host_name("models.chats", "Chats")
        messages = host_name("models.chat_messages", "ChatMessages")
        place = self._chat_id, self._message_id
        with suppress(Exception):
            if not self._has_stored:
                row = await messages.get_message_by_id("-".join(place))
                message = {"output": row.output} if row else None
                if row is None:  # the page wrote it into the chat; this reads all of it
                    message = await chats.get_message_by_id_and_message_id(*place)
                stored = as_list(as_mapping(message).get("output"))
                if message is None or stored != list(items[: len(stored)]):
                    return
            written = await chats.upsert_message_to_chat_by_id_and_message_id(
                *place, {"output": list(items)}, touch=False
            )
            self._has_stored = written is not None


_SAVING_SECONDS = 1.0
_DATABASE_SECONDS = 30.0
"""How long an answer waits for a database that is away."""


async def wait_for_database(chat_id: str) -> None:
    """Wait until the host's database answers, or half a minute.

    Open WebUI stores a status when it comes, and an answer at its end alone. If its
    database is away at that moment, nothing of the answer is stored: the exception
    ends the task (socket/main.py:1515, utils/middleware.py:6307 of 0.12.4). SQLite is a
    file, which is never away.
    """
    try:
        address = str(host_name("env", "DATABASE_URL"))
        chats = host_name("models.chats", "Chats")
    except HostTooOld:
        return
    if address.startswith("sqlite"):
        return
    pause = 0.25
    with suppress(TimeoutError):
        async with asyncio.timeout(_DATABASE_SECONDS):
            while True:
                with suppress(Exception):
                    await chats.get_chat_title_by_id(chat_id)
                    return
                await asyncio.sleep(pause)
                pause = min(2 * pause, 2.0)


def stores_approvals() -> bool:
    """Say whether the host asks for approvals at its cards, and stores the questions.

    0.11.4 has such cards as well, but loses the results of the calls that were approved;
    0.12.0 and 0.12.1 lack one of the functions (docs/reference/open-webui.md, "Approvals").
    """
    try:
        host_name("utils.tool_approval", "complete_tool_call")
        host_name("utils.tool_search", "resolve_tool_call")
    except HostTooOld:
        return False
    return True


def resolve_dispatched(
    name: str, arguments: str, tools: Mapping[str, JsonObject]
) -> tuple[str, str] | None:
    """Return name and arguments of the call that the host would make for another one.

    It is that of the tool which `call_tool` names, else the call itself; None if the
    host has no such tool, or would answer with an error.
    """
    call = {"function": {"name": name, "arguments": arguments}}
    error = host_name("utils.tool_search", "resolve_tool_call")(call, tools)
    function = call["function"]
    if error or function["name"] not in tools:
        return None
    return function["name"], function["arguments"]


def is_valid_question(arguments: JsonObject) -> bool:
    """Say whether the host can put a call of `ask_user` to the user."""
    try:
        host_name("utils.ask_user", "normalize_ask_user_request")(arguments)
    except ValueError:
        return False
    return True


def server_secret() -> str:
    """Return the server's own secret; empty without one.

    Then the chat works without what needs a secret.
    """
    try:
        return str(host_name("env", "WEBUI_SECRET_KEY") or "")
    except HostTooOld:
        return ""


async def identity_headers(host: HostContext, user_id: str) -> dict[str, str]:
    """Return the headers that the host's own connections send about a user, if any."""
    headers: dict[str, str] = {}
    with suppress(HostTooOld):  # a host that has no such headers
        if user_id and host_name("env", "ENABLE_FORWARD_USER_INFO_HEADERS"):
            include = host_name("utils.headers", "include_user_info_headers")
            headers = include({}, await user_model(user_id), request=host.request)
            chat_id = host.metadata.get("chat_id")
            if chat_id:
                name = host_name("env", "FORWARD_SESSION_INFO_HEADER_CHAT_ID")
                headers[name] = quote(str(chat_id), ":", errors="replace")
    return headers


async def fill_in_headers(
    host: HostContext, user_id: str, model_id: str, headers: Mapping[str, str]
) -> dict[str, str]:
    """Return headers with the host's placeholders filled in, as its connections do.

    They are `{{USER_ID}}`, `{{CHAT_ID}}` and others (utils/headers.py:139 of 0.12.4).
    """
    with_placeholders = {
        name: value for name, value in headers.items() if "{{" in value
    }
    if not with_placeholders:
        return dict(headers)
    fill_in = host_name("utils.headers", "get_custom_headers")
    metadata = {"model_id": model_id, **host.metadata}
    user = await user_model(user_id)
    filled = await fill_in(with_placeholders, user, metadata, request=host.request)
    return {**headers, **filled}


async def user_token(host: HostContext, auth: str, user_id: str) -> str:
    """Return a token of whoever asks, as the host's connections send it, if any.

    `auth` is one of their words (utils/headers.py:209 of 0.12.4).
    """
    if auth == "session":
        state = getattr(host.request, "state", None)
        login = getattr(getattr(state, "token", None), "credentials", None)
        return str(login or "")
    read = host_name("utils.middleware", "get_system_oauth_token")
    tokens = await read(host.request, await user_model(user_id))
    return str(as_mapping(tokens).get("access_token") or "")


_NO_SETTINGS = (
    f"The settings of the filter {ADMINISTRATION_ID} cannot be read at the moment, so "
    "nothing is sent. Try again; if the problem persists, tell an administrator."
)


async def active_administration(request: Any) -> Administration | None:
    """Return the filter that decides about calls of the pipe; None if none is active."""
    if request is None:
        return None
    context = host_name("utils.filter", "get_filter_context")(request)
    active = [name for name, _ in await context.get_active_filters()]
    if ADMINISTRATION_ID not in active:
        return None
    load = host_name("utils.filter", "get_function_module")
    filter_module = await load(request, ADMINISTRATION_ID)
    contract = getattr(filter_module, "CONTRACT", 0)
    if contract != ADMINISTRATION_CONTRACT:
        older = "that filter" if contract < ADMINISTRATION_CONTRACT else "this pipe"
        raise InvalidRequest(
            f"The filter {ADMINISTRATION_ID} does not work with this version of the pipe, "
            f"so nothing is sent. An administrator has to update {older} "
            "(docs/install.md, Update).",
            remedy="setup",
        )
    # Not from the context: it reads the valves of the filters that the chat's model has,
    # once, and gives any other its defaults. Those of this one are no limits.
    functions = host_name("models.functions", "Functions")
    stored = await functions.get_function_valves_by_ids([ADMINISTRATION_ID])
    if ADMINISTRATION_ID not in stored:  # the host logs what its database reports
        raise InvalidRequest(_NO_SETTINGS, remedy="setup")
    filter_module.valves = filter_module.Valves(**(stored[ADMINISTRATION_ID] or {}))
    administration: Administration = filter_module
    return administration


class InstalledFunction(NamedTuple):
    """A filter of Open WebUI that comes with this pipe."""

    id: str
    title: str
    version: str
    is_active: bool
    contract: int
    """The number of what goes between a filter and the pipe; 0 if it is not loaded."""


_AUTHOR = "The authors of OpenAI Responses Manifold"


async def installed_filters(request: Any) -> list[InstalledFunction]:
    """Return the filters that come with this pipe, as they are installed.

    The first switches stated their contract only in what they wrote: it was 1.
    """
    functions = host_name("models.functions", "Functions")
    load = host_name("utils.filter", "get_function_module")
    installed: list[InstalledFunction] = []
    for row in await functions.get_functions_by_type("filter"):
        manifest = as_mapping(row.meta.manifest)
        if manifest.get("author") != _AUTHOR:
            continue
        contract = 0
        if row.is_active:
            contract = getattr(await load(request, row.id), "CONTRACT", 1)
        installed.append(
            InstalledFunction(
                row.id,
                str(manifest.get("title")),
                str(manifest.get("version")),
                bool(row.is_active),
                contract,
            )
        )
    return installed


async def installed_version(function_id: str) -> str:
    """Return the version of the pipe with this id, and the digest of its text.

    Files that were built between two releases have the same version, but not the same
    digest. The host stores the text as it was imported, so `sha256sum FILE` says it too.
    Empty if the host has no such pipe.
    """
    functions = host_name("models.functions", "Functions")
    for row in await functions.get_functions_by_type("pipe"):
        if row.id == function_id:
            version = as_mapping(row.meta.manifest).get("version")
            return f"{version}, SHA-256 {sha256(row.content.encode()).hexdigest()}"
    return ""


async def missing_task_models(request: Any) -> list[str]:
    """Return the models that an administrator chose for tasks and that are gone.

    The host takes those that clients name instead.
    """
    config = host_name("models.config", "Config")
    models = request.app.state.MODELS
    chosen = [await config.get(key, "") for key in TASK_MODEL_SETTINGS]
    return [model for model in dict.fromkeys(chosen) if model and model not in models]


async def keeps_models() -> bool:
    """Say whether the host asks for its models only once (*Cache Base Model List*)."""
    try:
        config = host_name("models.config", "Config")
        return bool(await config.get("models.base_models_cache", False))
    except HostTooOld:
        return False


async def forget_kept_models() -> bool:
    """Make the host ask for its models again, as its own `refresh` does.

    Returns whether that is done. An empty list, or an exception, would not do: with the
    models of others it is kept as well (utils/models.py:124, functions.py:89 of 0.12.4).
    """
    with suppress(HostTooOld):
        state = host_name("main", "app").state
        redis = getattr(state, "redis", None)
        if redis is not None:
            try:
                await redis.delete(host_name("utils.models", "BASE_MODELS_CACHE_KEY"))
            except Exception:  # of the host's library: Redis is away
                return False
        state.BASE_MODELS = []
    return True


async def is_legacy_model(model_id: str) -> bool:
    """Say whether the function calling of a stored model is legacy."""
    row = await host_name("models.models", "Models").get_model_by_id(model_id)
    params = row.params.model_dump() if row is not None else {}
    return bool(params.get("function_calling") == "legacy")


async def model_system_prompt(
    model_id: str, user_id: str, metadata: JsonObject
) -> str | None:
    """Return the system prompt of a stored model as the host renders it for a user.

    The host puts it in front of all other instructions (functions.py:275 of 0.12.4).
    Values of the clock have the characters of CLOCKS. Empty without a prompt, None if
    it cannot be rendered.
    """
    row = await host_name("models.models", "Models").get_model_by_id(model_id)
    prompt = row.params.model_dump().get("system") if row is not None else None
    if not prompt:
        return ""
    variables = as_mapping(metadata.get("variables"))
    for variable, character in CLOCKS.items():
        if variable not in variables:  # else the page's own clock
            prompt = prompt.replace(variable, character)
    try:
        apply = host_name("utils.payload", "apply_system_prompt_to_body")
        user = await user_model(user_id)
        body = await apply(prompt, {"messages": []}, dict(metadata), user)
        return str(body["messages"][0]["content"])
    except (HostTooOld, LookupError, TypeError):
        return None


async def administrator_params(model_id: str) -> dict[str, Any]:
    """Return the parameters that administrators stored for all models and for one.

    If no administrator owns the model, its own are left out.
    """
    config = host_name("models.config", "Config")
    params = _sent_params(await config.get("models.default_params", {}) or {})
    row = await host_name("models.models", "Models").get_model_by_id(model_id)
    if row is None:
        return params
    owner = await user_model(row.user_id)
    if owner is not None and owner.role == "admin":
        params |= _sent_params(row.params.model_dump())
    return params


def _sent_params(stored: JsonObject) -> dict[str, Any]:
    """Return stored parameters as the host sends them: custom ones next to others."""
    custom = stored.get("custom_params") or {}
    params: dict[str, Any] = {}
    for key, value in {**stored, **custom}.items():
        params[key] = value
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):  # a text that is no JSON
                params[key] = json.loads(value)
    return params


async def without_forbidden_search(host: HostContext) -> JsonObject:
    """Return the metadata of a call, without web search if the user may not use it.

    `features` comes from the client and is not checked by the host for a pipe
    (docs/reference/open-webui.md, "Parameters and switches of a call").
    """
    metadata = host.metadata
    user = host.user
    requested = as_mapping(metadata.get("features"))
    if not requested.get("web_search") or user.get("role") == "admin":
        return metadata
    # The model, the server and the user's groups have to allow it.
    config = host_name("models.config", "Config")
    has_permission = host_name("utils.access_control", "has_permission")
    meta = value_at(host.model, "info", "meta", "capabilities")
    may_search = as_mapping(meta).get("web_search", True)
    if may_search and await config.get("web.search.enable", False):
        rights = await config.get("user.permissions", {})
        if await has_permission(user.get("id"), "features.web_search", rights):
            return metadata
    return {**metadata, "features": {**requested, "web_search": False}}


async def is_in_others_chat(host: HostContext) -> bool:
    """Say whether an administrator asks in a chat of somebody else.

    Its owner lets them continue it (Open WebUI 0.12), and reads the answer.
    """
    chat_id = as_text(host.metadata.get("chat_id"))
    if not chat_id or host.user.get("role") != "admin":
        return False
    chats = host_name("models.chats", "Chats")
    if await chats.is_chat_owner(chat_id, as_text(host.user.get("id"))):
        return False
    with suppress(Exception):  # a database that is away does not say whose it is
        # A temporary chat and a channel have no row at all.
        return await chats.get_chat_title_by_id(chat_id) is not None
    return True


async def make_native(model_id: str) -> bool:
    """Set the function calling of a model to native; say whether the host did it.

    Nothing else of its row changes: without grants the host keeps the existing ones.
    """
    models = host_name("models.models", "Models")
    row = await models.get_model_by_id(model_id)
    if row is None:
        return False
    kept = row.model_dump(include={"id", "base_model_id", "name", "meta", "is_active"})
    native = {**row.params.model_dump(), "function_calling": "native"}
    form = host_name("models.models", "ModelForm")(**kept, params=native)
    return await models.update_model_by_id(row.id, form) is not None


class RetrievedText(NamedTuple):
    """What the host wrote into a chat of all its sources, and what is to stay of it."""

    sources: str
    with_template: str
    kept: str
    """Empty if nothing stays."""
    kept_with_template: str


async def build_retrieved_text(
    sources: list[Any], kept: list[Any], question: str
) -> RetrievedText:
    """Return the text of `sources`, as the host wrote it, and that of the `kept` ones.

    These keep their numbers. `question` is for templates that repeat it.
    """
    build = host_name("utils.middleware", "get_source_context")
    fill = host_name("utils.task", "rag_template")
    template = await host_name("models.config", "Config").get("rag.template")
    numbers: dict[str, int] = {}
    whole_text = str(build(sources, numbers)).strip()
    kept_text = str(build(kept, numbers)).strip()
    return RetrievedText(
        sources=whole_text,
        with_template=str(await fill(template, whole_text, question)),
        kept=kept_text,
        kept_with_template=str(await fill(template, kept_text, question)),
    )


async def update_tool(function: HostFunction, **fresh: Any) -> HostFunction:
    """Return a tool's function with what it is given of the chat as it is now."""
    update = host_name("utils.tools", "get_updated_tool_function")
    updated: HostFunction = await update(function=function, extra_params=fresh)
    return updated


async def process_tool_result(
    host: HostContext,
    user: HostUser | None,
    name: str,
    tool: JsonObject,
    params: dict[str, Any],
    result: Any,
) -> tuple[str, list[dict[str, Any]], list[Any]]:
    """Return text, files and embeds of a tool's result, as the host would store them.

    The page is told about the result of a terminal tool.
    """
    build = host_name("utils.middleware", "build_terminal_file_tool_result")
    process = host_name("utils.middleware", "process_tool_result")
    shown = build(name, params, result, tool, host.metadata) or result
    kind = tool.get("type", "")
    direct = bool(tool.get("direct"))
    text, files, embeds = await process(
        host.request, name, shown, kind, direct, host.metadata, user
    )
    result_text = str(text or "")
    if host.event_emitter is not None:
        tell = host_name("utils.middleware", "terminal_event_handler")
        await tell(name, params, result_text, host.event_emitter)
    return result_text, files, embeds


def citation_sources(
    name: str, params: dict[str, Any], text: str, tool_id: str
) -> list[dict[str, Any]]:
    """Return the sources that a result of the host's own tools names."""
    read = host_name("utils.middleware", "get_citation_source_from_tool_result")
    return list(
        read(tool_name=name, tool_params=params, tool_result=text, tool_id=tool_id)
    )


async def store_tool_image(host: HostContext, user: HostUser | None, url: str) -> str:
    """Store a tool's picture; return the address of the file."""
    store = host_name("utils.middleware", "store_tool_result_image")
    return str(await store(host.request, url, host.metadata, user))
