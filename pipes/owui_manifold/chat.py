"""Builds the request for a chat or a task.

For a chat: the model, if its name leaves the choice to the pipe; the history as input,
with the prefix as it was sent before; the tools; the settings; default parameters. For
titles, tags and the like: a small request without tools or stored items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.items import Item
from openai_responses.loop.attempts import Limits
from openai_responses.loop.tools import Toolset
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import ResolvedModel, resolve_with_overrides
from openai_responses.requests.build import ResponsesRequest, Settings, build_request
from openai_responses.requests.replay import Origin, origin_at
from openai_responses.requests.tools import is_hosted_tool, next_tool_choice
from owui_chat.input.attachments import (
    add_tool_images,
    attach_files,
    check_input_size,
    resolve_images,
)
from owui_chat.input.directives import take_directive
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    apply_sent_context,
    capture_sent_context,
    first_instructions,
)
from owui_chat.input.tasks import task_format, task_messages
from owui_chat.messages import (
    ChatPart,
    UserMessage,
    attach_stored_messages,
    parse_messages,
    stored_messages,
)
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.output_carrier import restore_from_outputs
from owui_chat.storage.records import Record
from owui_manifold.config import (
    build_toolset,
    is_background_model,
    request_settings,
    run_limits,
)
from owui_manifold.context import (
    Caller,
    PipeCall,
    messages_of,
    model_of,
    overrides_of,
    user_endpoint,
)
from owui_manifold.files import add_documents, load_stored_images
from owui_manifold.host import require_floor, user_model
from owui_manifold.host_tools import HostTools, build_approver, withheld_tools
from owui_manifold.hosted_tools import OfferedTools, hosted_tools, offer_tools
from owui_manifold.rounds import DelegatedRound, continue_input, load_round
from owui_manifold.store import ChatStore, open_store
from owui_manifold.valves import UserValves, Valves


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """One request, and where its answer is stored.

    `store` is None if nothing is stored. `round` is the round of the host's tools that
    this call continues. Without a `toolset` no calls are answered here. `notices` are
    sentences for the person who asked.
    """

    call: PipeCall
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    round: DelegatedRound | None = None
    toolset: Toolset | None = None
    notices: tuple[str, ...] = ()

    @property
    def runs_tools(self) -> bool:
        """Whether calls are answered here; otherwise the host runs them."""
        return self.toolset is not None and self.toolset.runs_calls


_LEAST_THRESHOLD = 1000
"""A smaller threshold would compact every answer."""


def default_parameters(
    caller: Caller, valves: Valves, user: UserValves
) -> dict[str, Any]:
    """Return the API's parameters for which the caller's body has no value.

    The same chat and user always get the same values, because the prompt cache and,
    from gpt-6.2 on, encrypted reasoning depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    own = user.SERVICE_TIER
    tier = valves.SERVICE_TIER if own == "inherit" else own
    wanted = {
        "safety_identifier": _hashed("user", caller.user_id),
        "prompt_cache_key": _cache_key(caller, valves.PROMPT_CACHE_KEY),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": _compaction(valves.COMPACTION_TOKENS),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _compaction(threshold: int) -> list[dict[str, Any]] | None:
    if not threshold:
        return None
    most = max(threshold, _LEAST_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": most}]


def _cache_key(caller: Caller, kind: str) -> str | None:
    if kind == "off":
        return None
    chat = caller.chat_id if kind == "chat" else ""
    return _hashed("chat", chat) or _hashed("cache", caller.user_id)


def _hashed(kind: str, value: str) -> str | None:
    """Return a stable hash of `value` that does not reveal it; None for no value.

    The ids are random UUIDs, so nobody can find them by trying.
    """
    named = f"openai_responses:{kind}:{value}"
    return sha256(named.encode()).hexdigest()[:48] if value else None


def choose_chat_model(
    call: PipeCall, parts: Sequence[ChatPart], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the sentence that says why it was chosen, if any."""
    records = store.records.values() if store else ()
    choice = choose_auto_model(
        call.caller.model,
        _first_question(parts),
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={record.origin.family for record in records},
    )
    if choice is None:
        return model_of(call), ""
    model = resolve_with_overrides(choice.model, overrides_of(call.valves))
    return model, f"{model.name} answers: {choice.why}."


def _first_question(parts: Sequence[ChatPart]) -> Item | None:
    for part in parts:
        if isinstance(part, UserMessage) and part.is_from_user:
            return part.item
    return None


def restore_prefix(
    call: PipeCall,
    instructions: str,
    parts: list[ChatPart],
    store: ChatStore | None,
    model: ResolvedModel,
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the chat, unchanged where they were sent before.

    What is sent for the first time is given to `store`.
    """
    if store is None or not stored_messages(parts):
        return instructions, parts
    is_stable = _is_stable(call.valves, model)
    if _is_new(call, store):
        given = instructions if is_stable else None
        store.set_sent(capture_sent_context(parts, store.sent, given))
    first = first_instructions(parts, store.sent) if is_stable else None
    parts = apply_sent_context(parts, store.sent)
    return instructions if first is None else first, parts


def _is_stable(valves: Valves, model: ResolvedModel) -> bool:
    wanted = valves.STABLE_INSTRUCTIONS
    return model.facts.prefix_bound if wanted == "auto" else wanted == "on"


def _is_new(call: PipeCall, store: ChatStore) -> bool:
    """Say whether this is the first request for the current message."""
    message_id = call.caller.message_id
    continues = call.host.metadata.get("assistant_message_id")
    is_begun = message_id in store.sent or load_round(call.state, message_id)
    return not (continues or is_begun)


async def build_chat_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    endpoint = user_endpoint(call)
    metadata, detail = call.host.metadata, call.valves.IMAGE_DETAIL
    rewritten = str(metadata.get("regeneration_message_id") or "")
    before = load_round(call.state, call.caller.message_id)
    messages, records = restore_from_details(messages_of(call.body))
    instructions, parts = parse_messages(messages, detail)
    store = await open_store(call.caller, call.valves)
    rows = store.messages if store else {}
    model, why = choose_chat_model(call, parts, store)
    origin = origin_at(model.family, endpoint)
    parts = add_tool_images(parts, rows)
    parts = attach_stored_messages(parts, rows, metadata)
    verbosity = ""
    if model.facts.verbosity:
        parts, verbosity = take_directive(parts, is_guided=bool(rewritten))
    if store:
        parts = restore_from_outputs(parts, store.stored_outputs(rewritten))
        records |= store.records
    items = continue_input(before, parts) if before else None
    if before:
        instructions = before.instructions
    instructions, parts = restore_prefix(call, instructions, parts, store, model)
    if items is None:
        parts = attach_files(parts, rows, metadata)
        parts = resolve_images(parts)
        parts = await _with_documents(call, parts, model)
        items = await _history(call, parts, records, origin)
    tools = _tools(call, model)
    choice = next_tool_choice(tools.choice) if before else tools.choice
    body = _body(call, choice, verbosity)
    settings = _settings(call, endpoint, tools, model)
    request = build_request(model, instructions, items, body, settings)
    return PreparedRequest(
        call,
        request,
        endpoint,
        origin,
        run_limits(call.valves, tools_ran=before is not None),
        store,
        before,
        _toolset(call, tools),
        notices=() if before or not why else (why,),
    )


def _body(call: PipeCall, choice: object, verbosity: str) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    body = {**call.body, "tool_choice": choice}
    if verbosity:
        text = body.get("text")
        own = dict(text) if isinstance(text, Mapping) else {}
        body["text"] = {**own, "verbosity": verbosity}
    return body


def _tools(call: PipeCall, model: ResolvedModel) -> OfferedTools:
    features = call.host.metadata.get("features")
    hosted = hosted_tools(call.valves, call.user_valves, features, model)
    offered = offer_tools(call.body, model, call.valves, hosted)
    if _runs_calls(call, offered):
        return offered
    withheld = withheld_tools(call.valves, call.host.tools)
    return offer_tools(call.body, model, call.valves, hosted, withheld)


def _runs_calls(call: PipeCall, offered: OfferedTools) -> bool:
    """Say whether calls are run here, because none must be left to others."""
    known = offered.names.known
    ours = call.valves.TOOL_EXECUTION == "pipe" and bool(known)
    return ours and all(name in call.host.tools for name in known)


def _settings(
    call: PipeCall, endpoint: Endpoint, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    defaults = default_parameters(call.caller, call.valves, call.user_valves)
    if endpoint.is_azure:  # it does not support compaction
        defaults.pop("context_management", None)
    if any(
        map(is_hosted_tool, tools.items)
    ):  # the API counts only calls of hosted tools
        defaults["max_tool_calls"] = call.valves.MAX_TOOL_CALLS
    names = (model.id, model.family, call.caller.model)
    background = is_background_model(call.valves, names)
    # Without a stream a background answer has no encrypted reasoning.
    settings = request_settings(
        call.valves,
        call.user_valves,
        streams=call.caller.streams or background,
        tools=tools.items,
        refused=call.capabilities.of(endpoint),
        defaults=defaults,
    )
    return settings._replace(background=background)


async def _with_documents(
    call: PipeCall, parts: list[ChatPart], model: ResolvedModel
) -> list[ChatPart]:
    """Return the chat with the documents that the model is to read itself."""
    wanted = call.valves.FILE_INPUT
    has_files = any(
        isinstance(part, UserMessage) and part.attachments for part in parts
    )
    if wanted == "off" or not model.facts.vision or not has_files:
        return parts
    user = await user_model(call.caller.user_id)
    return await add_documents(parts, user, wanted)


async def _history(
    call: PipeCall,
    parts: list[ChatPart],
    records: Mapping[str, Record],
    origin: Origin,
) -> list[Item]:
    """Return the input of a chat's history."""
    reader = origin if call.valves.remembers_reasoning() else None
    user_id = call.caller.user_id
    records = await load_stored_images(records, parts, user_id)
    items = build_input(
        parts, records, reader, with_tools=call.valves.PERSIST_TOOL_RESULTS
    )
    check_input_size(items)
    return items


def _toolset(call: PipeCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless others must run one of them."""
    host, valves = call.host, call.valves
    log = partial(call.log.line, "DEBUG")
    approver = build_approver(valves, host.metadata, host.event_call, log)
    tools = HostTools(host, offered.names, call.threads)
    return build_toolset(
        valves,
        tools,
        approver,
        log,
        runs_calls=_runs_calls(call, offered),
    )


_NOT_FOR_TASKS = frozenset(
    {
        *("reasoning", "reasoning_effort", "reasoning_summary"),
        *("text", "verbosity", "response_format", "json_schema"),
        *("tools", "tool_choice", "parallel_tool_calls"),
    }
)
"""Parameters that a person or workspace model sets for answers, not for tasks."""


def build_task_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    endpoint = user_endpoint(call)
    model = _task_model(call, endpoint)
    messages = task_messages(messages_of(call.body))
    instructions, parts = parse_messages(messages)
    body = {k: v for k, v in call.body.items() if k not in _NOT_FOR_TASKS}
    form = task_format(call.caller.task, messages)
    if form and model.facts.known_family:
        body["text"] = {"format": form}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(parts, {}, None)
    request = build_request(model, instructions, items, body, settings)
    origin = origin_at(model.family, endpoint)
    limits = run_limits(call.valves, tools_ran=False)
    return PreparedRequest(call, request, endpoint, origin, limits)


def _task_model(call: PipeCall, endpoint: Endpoint) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    A server other than OpenAI's may not have the default model.
    """
    wanted, valves = call.valves.TASK_MODEL.strip(), call.valves
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or endpoint.host == Endpoint(DEFAULT_BASE_URL, "").host):
        return resolve_with_overrides(wanted, overrides_of(valves))
    return model_of(call)
