"""Builds the request for a chat or a task.

For a chat: the model, if its name leaves the choice to the pipe; the history as input,
with the prefix as it was sent before; the tools; the settings; default parameters. For
titles, tags and the like: a small request without tools or stored items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    attachments_by_place,
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
from owui_chat.messages import ChatPart, UserMessage, pair_messages, parse_messages
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
    asked: PipeCall, stretches: Sequence[ChatPart], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the sentence that says why it was chosen, if any."""
    records = store.records.values() if store else ()
    choice = choose_auto_model(
        asked.caller.model,
        _first_question(stretches),
        tools=bool(asked.host.metadata.get("tool_ids")),
        earlier={record.origin.family for record in records},
    )
    if choice is None:
        return model_of(asked), ""
    model = resolve_with_overrides(choice.model, overrides_of(asked.valves))
    return model, f"{model.name} answers: {choice.why}."


def _first_question(stretches: Sequence[ChatPart]) -> Item | None:
    for stretch in stretches:
        if isinstance(stretch, UserMessage) and stretch.item.get("role") == "user":
            return stretch.item
    return None


def restore_prefix(
    asked: PipeCall,
    instructions: str,
    stretches: list[ChatPart],
    store: ChatStore | None,
    model: ResolvedModel,
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the chat, unchanged where they were sent before.

    What is sent for the first time is given to `store`.
    """
    if store is None:
        return instructions, stretches
    pairs = pair_messages(stretches, store.messages, asked.host.metadata)
    if not pairs:
        return instructions, stretches
    is_stable = _is_stable(asked.valves, model)
    if _is_new(asked, store):
        given = instructions if is_stable else None
        store.set_sent(capture_sent_context(stretches, pairs, store.sent, given))
    first = first_instructions(pairs, store.sent) if is_stable else None
    told = apply_sent_context(stretches, pairs, store.sent)
    return instructions if first is None else first, told


def _is_stable(valves: Valves, model: ResolvedModel) -> bool:
    wanted = valves.STABLE_INSTRUCTIONS
    return model.facts.prefix_bound if wanted == "auto" else wanted == "on"


def _is_new(asked: PipeCall, store: ChatStore) -> bool:
    """Say whether this is the first request for the current message."""
    message_id = asked.caller.message_id
    continues = asked.host.metadata.get("assistant_message_id")
    is_begun = message_id in store.sent or load_round(asked.state, message_id)
    return not (continues or is_begun)


async def build_chat_request(asked: PipeCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    endpoint = user_endpoint(asked)
    detail = asked.valves.IMAGE_DETAIL
    messages, carried = restore_from_details(messages_of(asked.body))
    instructions, stretches = parse_messages(messages, detail)
    store = await open_store(asked.caller, asked.valves)
    model, why = choose_chat_model(asked, stretches, store)
    verbosity = ""
    if model.facts.verbosity:
        guided = bool(asked.host.metadata.get("regeneration_message_id"))
        stretches, verbosity = take_directive(stretches, is_guided=guided)
    origin = origin_at(model.family, endpoint)
    before = load_round(asked.state, asked.caller.message_id)
    stretches = add_tool_images(stretches, store.messages if store else {})
    if store:
        rewritten = str(asked.host.metadata.get("regeneration_message_id") or "")
        stretches = restore_from_outputs(stretches, store.stored_outputs(rewritten))
        carried |= store.records
    items = continue_input(before, stretches) if before else None
    if before:
        instructions = before.instructions
    instructions, stretches = restore_prefix(
        asked, instructions, stretches, store, model
    )
    if items is None:
        stretches = await _with_attachments(asked, stretches, store, model)
        items = await _history(asked, stretches, carried, origin)
    tools = _tools(asked, model)
    choice = next_tool_choice(tools.choice) if before else tools.choice
    body = _body(asked, choice, verbosity)
    settings = _settings(asked, endpoint, tools, model)
    request = build_request(model, instructions, items, body, settings)
    return PreparedRequest(
        asked,
        request,
        endpoint,
        origin,
        run_limits(asked.valves, tools_ran=before is not None),
        store,
        before,
        _toolset(asked, tools),
        notices=() if before or not why else (why,),
    )


def _body(asked: PipeCall, choice: object, verbosity: str) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    body = {**asked.body, "tool_choice": choice}
    if verbosity:
        text = body.get("text")
        own = dict(text) if isinstance(text, Mapping) else {}
        body["text"] = {**own, "verbosity": verbosity}
    return body


def _tools(asked: PipeCall, model: ResolvedModel) -> OfferedTools:
    features = asked.host.metadata.get("features")
    hosted = hosted_tools(asked.valves, asked.user_valves, features, model)
    offered = offer_tools(asked.body, model, asked.valves, hosted)
    if _runs_calls(asked, offered):
        return offered
    withheld = withheld_tools(asked.valves, asked.host.tools)
    return offer_tools(asked.body, model, asked.valves, hosted, withheld)


def _runs_calls(asked: PipeCall, offered: OfferedTools) -> bool:
    """Say whether calls are run here, because none must be left to others."""
    known = offered.names.known
    ours = asked.valves.TOOL_EXECUTION == "pipe" and bool(known)
    return ours and all(name in asked.host.tools for name in known)


def _settings(
    asked: PipeCall, endpoint: Endpoint, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    defaults = default_parameters(asked.caller, asked.valves, asked.user_valves)
    if endpoint.is_azure:  # it does not support compaction
        defaults.pop("context_management", None)
    if any(
        map(is_hosted_tool, tools.items)
    ):  # the API counts only calls of hosted tools
        defaults["max_tool_calls"] = asked.valves.MAX_TOOL_CALLS
    names = (model.id, model.family, asked.caller.model)
    background = is_background_model(asked.valves, names)
    # Without a stream a background answer has no encrypted reasoning.
    settings = request_settings(
        asked.valves,
        asked.user_valves,
        streams=asked.caller.streams or background,
        tools=tools.items,
        refused=asked.capabilities.of(endpoint),
        defaults=defaults,
    )
    return replace(settings, background=background)


async def _with_attachments(
    asked: PipeCall,
    stretches: list[ChatPart],
    store: ChatStore | None,
    model: ResolvedModel,
) -> list[ChatPart]:
    """Return the chat with its attachments, in forms that the API can read."""
    messages, metadata = store.messages if store else {}, asked.host.metadata
    attached = attachments_by_place(stretches, messages, metadata)
    stretches = resolve_images(stretches, attached)
    wanted = asked.valves.FILE_INPUT
    if wanted == "off" or not model.facts.vision or not any(attached.values()):
        return stretches
    user = await user_model(asked.caller.user_id)
    return await add_documents(stretches, attached, user, wanted)


async def _history(
    asked: PipeCall,
    stretches: list[ChatPart],
    records: Mapping[str, Record],
    origin: Origin,
) -> list[Item]:
    """Return the input of a chat's history."""
    reader = origin if asked.valves.remembers_reasoning() else None
    user_id = asked.caller.user_id
    records = await load_stored_images(records, stretches, user_id)
    items = build_input(
        stretches, records, reader, with_tools=asked.valves.PERSIST_TOOL_RESULTS
    )
    check_input_size(items)
    return items


def _toolset(asked: PipeCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless others must run one of them."""
    around, valves = asked.host, asked.valves
    log = partial(asked.log.line, "DEBUG")
    approver = build_approver(valves, around.metadata, around.event_call, log)
    tools = HostTools(around, offered.names, asked.threads)
    return build_toolset(
        valves,
        tools,
        approver,
        log,
        runs_calls=_runs_calls(asked, offered),
    )


_NOT_FOR_TASKS = frozenset(
    {
        *("reasoning", "reasoning_effort", "reasoning_summary"),
        *("text", "verbosity", "response_format", "json_schema"),
        *("tools", "tool_choice", "parallel_tool_calls"),
    }
)
"""Parameters that a person or workspace model sets for answers, not for tasks."""


def build_task_request(asked: PipeCall) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    endpoint = user_endpoint(asked)
    model = _task_model(asked, endpoint)
    messages = task_messages(messages_of(asked.body))
    instructions, stretches = parse_messages(messages)
    body = {k: v for k, v in asked.body.items() if k not in _NOT_FOR_TASKS}
    form = task_format(asked.caller.task, messages)
    if form and model.facts.known_family:
        body["text"] = {"format": form}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(stretches, {}, None)
    request = build_request(model, instructions, items, body, settings)
    origin = origin_at(model.family, endpoint)
    limits = run_limits(asked.valves, tools_ran=False)
    return PreparedRequest(asked, request, endpoint, origin, limits)


def _task_model(asked: PipeCall, endpoint: Endpoint) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    A server other than OpenAI's may not have the default model.
    """
    wanted, valves = asked.valves.TASK_MODEL.strip(), asked.valves
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or endpoint.host == Endpoint(DEFAULT_BASE_URL, "").host):
        return resolve_with_overrides(wanted, overrides_of(valves))
    return model_of(asked)
