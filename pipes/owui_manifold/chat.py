"""Builds the request for a chat or a task.

For a chat: the model, if its name leaves the choice to the pipe; the history as input,
with the prefix as it was sent before; the tools; the settings; default parameters. For
titles, tags and the like: a small request without tools or stored items.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.items import Item
from openai_responses.loop.attempts import Limits
from openai_responses.loop.tools import Toolset
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import ResolvedModel
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
from owui_chat.input.tasks import task_request
from owui_chat.messages import (
    ChatPart,
    UserMessage,
    attach_stored_messages,
    parse_messages,
    stored_messages,
)
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.records import Record
from owui_chat.storage.signature import Sign
from owui_manifold.config import (
    build_toolset,
    default_parameters,
    is_background_model,
    request_settings,
    run_limits,
    usable,
)
from owui_manifold.context import PipeCall
from owui_manifold.files import add_documents, load_stored_images
from owui_manifold.host import require_floor, user_model
from owui_manifold.host_tools import HostTools, build_approver, withheld_tools
from owui_manifold.hosted_tools import OfferedTools, hosted_tools, offer_tools
from owui_manifold.rounds import DelegatedRound, continue_input, load_round
from owui_manifold.store import ChatStore, chat_keys, open_store


class PreparedRequest(NamedTuple):
    """One request, and where its answer is stored."""

    call: PipeCall
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    """None if nothing is stored."""
    round: DelegatedRound | None = None
    """The round of the host's tools that this call continues."""
    toolset: Toolset | None = None
    """Without it no calls are answered here."""
    notices: tuple[str, ...] = ()
    """Sentences for the person who asked."""
    sign: Sign | None = None
    """Signs what the chat itself carries."""

    @property
    def runs_tools(self) -> bool:
        """Whether calls are answered here; otherwise the host runs them."""
        return self.toolset is not None and self.toolset.runs_calls


class _Chat(NamedTuple):
    """A chat between two passes."""

    call: PipeCall
    model: ResolvedModel
    store: ChatStore | None
    round: DelegatedRound | None
    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    verbosity: str = ""

    @property
    def replaced_id(self) -> str:
        """The message that this answer replaces, or nothing."""
        return str(self.call.host.metadata.get("regeneration_message_id") or "")


async def build_chat_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    endpoint = usable(call.config.endpoint)
    keys = chat_keys(call.valves, call.caller.user_id)
    messages, records = restore_from_details(call.messages, keys.sign)
    instructions, parts = parse_messages(messages, call.valves.IMAGE_DETAIL)
    store = await open_store(call.caller, call.valves, keys)
    model, reason = _choose_model(call, parts, store)
    before = load_round(call.state, call.caller.message_id)
    chat = _Chat(call, model, store, before, instructions, parts, records)
    for change in _PASSES:
        chat = change(chat)
    origin = origin_at(model.family, endpoint)
    items = continue_input(before, chat.parts) if before else None
    if items is None:
        items = await _history(chat, origin)
    tools = _offered_tools(call, model)
    settings = _settings(call, endpoint, tools, model)
    request = build_request(
        model, chat.instructions, items, _body(chat, tools), settings
    )
    return PreparedRequest(
        call,
        request,
        endpoint,
        origin,
        run_limits(call.valves, tools_ran=before is not None),
        store,
        before,
        _toolset(call, tools),
        notices=() if before or not reason else (reason,),
        sign=keys.sign,
    )


def _choose_model(
    call: PipeCall, parts: Sequence[ChatPart], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the sentence that says why it was chosen, if any."""
    users = (p for p in parts if isinstance(p, UserMessage) and p.is_from_user)
    question = next(users, None)
    choice = choose_auto_model(
        call.caller.model,
        question.item if question else None,
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={r.origin.family for r in store.records.values()} if store else set(),
    )
    if choice is None:
        return call.model, ""
    model = call.resolve(choice.model)
    return model, f"{model.name} answers: {choice.why}."


def _attach_stored(chat: _Chat) -> _Chat:
    """Give the parts what the host stores of them."""
    rows = chat.store.messages if chat.store else {}
    parts = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(parts, rows, chat.call.host.metadata)
    return chat._replace(parts=parts)


def _take_directive(chat: _Chat) -> _Chat:
    """Take a wish for the length of this answer out of the question."""
    if not chat.model.facts.verbosity:
        return chat
    is_guided = bool(chat.replaced_id)
    parts, verbosity = take_directive(chat.parts, is_guided=is_guided)
    return chat._replace(parts=parts, verbosity=verbosity)


def _restore_outputs(chat: _Chat) -> _Chat:
    """Put the stored outputs of earlier answers in the place of their text."""
    if not chat.store:
        return chat
    parts = chat.store.restore(chat.parts, chat.replaced_id)
    return chat._replace(parts=parts, records={**chat.records, **chat.store.records})


def _restore_prefix(chat: _Chat) -> _Chat:
    """Keep the instructions and the chat as they were sent before.

    What is sent for the first time is given to the store.
    """
    call, store, parts = chat.call, chat.store, chat.parts
    instructions = chat.round.instructions if chat.round else chat.instructions
    if store is None or not stored_messages(parts):
        return chat._replace(instructions=instructions)
    mode = call.valves.STABLE_INSTRUCTIONS
    is_stable = chat.model.facts.prefix_bound if mode == "auto" else mode == "on"
    continues = call.host.metadata.get("assistant_message_id") or chat.round
    if not continues and call.caller.message_id not in store.sent:
        given = instructions if is_stable else None
        store.set_sent(capture_sent_context(parts, store.sent, given))
    first = first_instructions(parts, store.sent) if is_stable else None
    parts = apply_sent_context(parts, store.sent)
    return chat._replace(
        parts=parts, instructions=instructions if first is None else first
    )


_PASSES = (_attach_stored, _take_directive, _restore_outputs, _restore_prefix)
"""What is done to a parsed chat, in this order; directives are no part of a prefix."""


async def _history(chat: _Chat, origin: Origin) -> list[Item]:
    """Return the input of a chat's history, with its files."""
    call, valves, user_id = chat.call, chat.call.valves, chat.call.caller.user_id
    rows = chat.store.messages if chat.store else {}
    parts = resolve_images(attach_files(chat.parts, rows, call.host.metadata))
    attachments = (p.attachments for p in parts if isinstance(p, UserMessage))
    if valves.FILE_INPUT != "off" and chat.model.facts.vision and any(attachments):
        parts = await add_documents(parts, await user_model(user_id), valves.FILE_INPUT)
    records = await load_stored_images(chat.records, parts, user_id)
    reader = origin if valves.remembers_reasoning() else None
    items = build_input(parts, records, reader, with_tools=valves.PERSIST_TOOL_RESULTS)
    check_input_size(items)
    return items


def _body(chat: _Chat, tools: OfferedTools) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    choice = next_tool_choice(tools.choice) if chat.round else tools.choice
    body = {**chat.call.body, "tool_choice": choice}
    if chat.verbosity:
        text = body.get("text")
        own = dict(text) if isinstance(text, Mapping) else {}
        body["text"] = {**own, "verbosity": chat.verbosity}
    return body


def _offered_tools(call: PipeCall, model: ResolvedModel) -> OfferedTools:
    hosted = hosted_tools(call.config, model)
    offered = offer_tools(call.body, model, call.valves, hosted)
    if _runs_calls(call, offered):
        return offered
    withheld = withheld_tools(call.config, call.host.tools)
    return offer_tools(call.body, model, call.valves, hosted, withheld)


def _runs_calls(call: PipeCall, offered: OfferedTools) -> bool:
    """Say whether calls are run here, because none must be left to others."""
    known = offered.names.known
    ours = call.valves.TOOL_EXECUTION == "pipe" and bool(known)
    return ours and all(name in call.host.tools for name in known)


def _settings(
    call: PipeCall, endpoint: Endpoint, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    config, caller = call.config, call.caller
    defaults = default_parameters(config, caller.user_id, caller.chat_id)
    if endpoint.is_azure:  # it does not support compaction
        defaults.pop("context_management", None)
    if any(map(is_hosted_tool, tools.items)):  # the API counts only their calls
        defaults["max_tool_calls"] = config.valves.MAX_TOOL_CALLS
    names = (model.id, model.family, caller.model)
    background = is_background_model(config.valves, names)
    # Without a stream a background answer has no encrypted reasoning.
    settings = request_settings(
        config,
        streams=caller.streams or background,
        tools=tools.items,
        refused=call.capabilities.of(endpoint),
        defaults=defaults,
    )
    return settings._replace(background=background)


def _toolset(call: PipeCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless others must run one of them."""
    log = partial(call.log.line, "DEBUG")
    return build_toolset(
        call.valves,
        HostTools(call.host, offered.names, call.threads),
        build_approver(call.config, call.host, log),
        log,
        runs_calls=_runs_calls(call, offered),
    )


_NOT_FOR_TASKS = ("reasoning_summary", "json_schema")
"""What a task of the pipe leaves out beside what all tasks do."""


def build_task_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    endpoint = usable(call.config.endpoint)
    model = _task_model(call, endpoint)
    body = {k: v for k, v in call.body.items() if k not in _NOT_FOR_TASKS}
    request = task_request(model, call.messages, body, call.caller.task)
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
        return call.resolve(wanted)
    return call.model
