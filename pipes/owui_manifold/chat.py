"""Builds the request for a chat or a task.

For a chat: the model, if its name leaves the choice to the pipe; the history as input,
with the prefix as it was sent before; the tools; the settings; default parameters. For
titles, tags and the like: a small request without tools or stored items.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from openai_responses.clock import run_work
from openai_responses.endpoint import Endpoint
from openai_responses.items import (
    ADDED_TOOLS,
    CONFIGURATION,
    Item,
    item_type,
    text_message,
    tool_kind,
)
from openai_responses.json_input import as_mapping, count_entries
from openai_responses.loop.attempts import Limits
from openai_responses.loop.events import RunDone
from openai_responses.loop.tools import CallLimits, Toolset
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import REASONING_EFFORTS, ResolvedModel
from openai_responses.requests.build import (
    ResponsesRequest,
    Settings,
    build_request,
)
from openai_responses.requests.parameters import hash_ids
from openai_responses.requests.repairs import APPENDED
from openai_responses.requests.replay import Origin, origin_at
from openai_responses.requests.tools import is_hosted_tool, next_tool_choice
from openai_responses.requests.turns import append_turns, record_turn
from owui_chat.input.attachments import (
    add_tool_images,
    attach_files,
    drawing_notice,
    fit_input,
    image_length,
    resolve_images,
)
from owui_chat.input.directives import take_directive
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    apply_sent_context,
    capture_sent_context,
    first_instructions,
    model_turns,
)
from owui_chat.input.tasks import task_request
from owui_chat.messages import (
    ChatPart,
    UserMessage,
    attach_stored_messages,
    drop_stored_instructions,
    parse_messages,
    stored_messages,
    user_messages,
)
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.records import Record
from owui_chat.storage.signature import Sign
from owui_manifold.config import comma_list, read_config, run_limits
from owui_manifold.context import PipeCall
from owui_manifold.files import add_documents, load_stored_images
from owui_manifold.host import require_floor, scale_image, user_model
from owui_manifold.host_tools import (
    HostTools,
    build_approver,
    has_ruled_tools,
    slow_tools,
)
from owui_manifold.hosted_tools import (
    OfferedTools,
    called_tools,
    hosted_tools,
    offer_tools,
    tool_search,
)
from owui_manifold.models import OPENAI_HOST
from owui_manifold.rounds import DelegatedRound, continue_round, load_round
from owui_manifold.store import ChatStore, chat_keys, open_store
from owui_manifold.valves import Valves

_LEAST_THRESHOLD = 1000
"""A smaller threshold would compact every answer."""

_BATCH_SHARE = 5
"""Calls made at once run in parallel, but not all of them."""


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
    reason: str = ""
    """Why this model was chosen: the answer begins with it."""
    notices: tuple[str, ...] = ()
    """What the person who asked has to know or to do, if anything: the answer ends
    with it.
    """
    sign: Sign | None = None
    """Signs what the chat itself carries."""
    cites: bool = False
    """Whether its tools give sources."""

    @property
    def delegates(self) -> bool:
        """Whether the host runs the tools and calls the pipe again."""
        runs_here = self.toolset is not None and self.toolset.runs_calls
        return bool(not runs_here and self.call.caller.host_reads and self.call.state)


class _Chat(NamedTuple):
    """A chat between two passes."""

    call: PipeCall
    model: ResolvedModel
    store: ChatStore | None
    round: DelegatedRound | None
    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    tools: OfferedTools
    verbosity: str = ""
    request: ResponsesRequest = ResponsesRequest(model="", input=[])
    """As it would be if the chat began with it, and later as it is sent."""

    @property
    def replaced_id(self) -> str:
        """The message that this answer replaces, or nothing."""
        return str(self.call.host.metadata.get("regeneration_message_id") or "")


async def build_chat_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    endpoint = call.endpoint
    keys = chat_keys(call.valves, call.caller.user_id)
    store = await open_store(call.caller, call.valves, keys)
    size = count_entries(call.messages, 2) + (store.size if store else 0)
    before = load_round(call.state, call.caller.message_id)
    chat, reason = await run_work(
        size, lambda: _read_messages(call, keys.sign, store, before)
    )
    origin, tools = origin_at(chat.model.family, endpoint), chat.tools
    request = continue_round(before, chat.parts) if before else None
    if request is None:
        items = await _history(chat, origin, size)
        changed = {"input": items, "instructions": chat.instructions or None}
        request = chat.request.model_copy(update=changed)
    return PreparedRequest(
        call,
        request,
        endpoint,
        origin,
        run_limits(call.valves, chat.model),
        store,
        before,
        _toolset(call, tools),
        reason="" if before else reason,
        notices=(tools.notice, drawing_notice(chat.parts)),
        sign=keys.sign,
        cites=any(tool_kind(tool).is_cited for tool in tools.items),
    )


def _read_messages(
    call: PipeCall,
    sign: Sign | None,
    store: ChatStore | None,
    before: DelegatedRound | None,
) -> tuple[_Chat, str]:
    """Return the chat as it is to be sent, and why its model was chosen, if known."""
    instructions, parts = parse_messages(call.messages, call.valves.IMAGE_DETAIL)
    parts, records = restore_from_details(parts, sign)
    model, reason = _choose_model(call, parts, store)
    if call.account:
        lacks = (*model.facts.lacks, *call.account.limits.closed_tools())
        model = model._replace(facts=model.facts._replace(lacks=lacks))
    tools = _offered_tools(call, model)
    chat = _Chat(call, model, store, before, instructions, parts, records, tools)
    for change in _PASSES:
        chat = change(chat)
    return chat, reason


def _choose_model(
    call: PipeCall, parts: Sequence[ChatPart], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the sentence that says why it was chosen, if any."""
    question = next(iter(user_messages(parts).values()), None)
    choice = choose_auto_model(
        call.caller.model,
        question.item if question else None,
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={r.origin.family for r in store.records.values()} if store else set(),
    )
    if choice is None:
        return call.model, ""
    model = call.resolve(choice[0])
    return model, f"{model.name} answers: {choice[1]}."


def _attach_stored(chat: _Chat) -> _Chat:
    """Give the parts what the host stores of them."""
    rows = chat.store.messages if chat.store else {}
    call, metadata = chat.call, chat.call.host.metadata
    given = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(given, rows, metadata)
    asked = str(metadata.get("user_message_id") or "")
    told = drop_stored_instructions(chat.instructions, rows, asked)
    is_less = len(parts) < len(given) or told != chat.instructions
    line = f"chat {call.caller.chat_id}: a hidden message in its row was left out"
    if is_less and call.capabilities.first_time(line):
        call.log.line("WARNING", line)
    return chat._replace(parts=attach_files(parts, rows, metadata), instructions=told)


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


def _build_flat(chat: _Chat) -> _Chat:
    """Build the request as if the chat began now, without its input."""
    settings = _settings(chat.call, chat.tools, chat.model)
    items = [Item()] * len(chat.parts)
    body, facts, account = _body(chat), chat.model.facts, chat.call.account
    request = build_request(chat.model, "", items, body, settings)
    asked = (request.reasoning or {}).get("effort") or facts.default_effort
    usable = facts.efforts or REASONING_EFFORTS if asked or facts.reasoning else ()
    if account and (effort := account.limits.other_effort(asked, usable)):
        body["reasoning"] = {**as_mapping(body.get("reasoning")), "effort": effort}
        request = build_request(chat.model, "", items, body, settings)
    request = _repaired(request, chat.call, chat.store, chat.round)
    return chat._replace(request=request)


def _restore_prefix(chat: _Chat) -> _Chat:
    """Keep the instructions and the chat as they were sent before.

    What is sent for the first time is given to the store.
    """
    call, store, parts, facts = chat.call, chat.store, chat.parts, chat.model.facts
    instructions, name = chat.instructions, call.caller.message_id
    if store is None or not stored_messages(parts):
        return chat
    mode, kinds = call.valves.STABLE_INSTRUCTIONS, _appended(chat)
    is_stable = facts.appends_tools if mode == "auto" else mode == "on"
    continues = call.host.metadata.get("assistant_message_id") or chat.round
    request, turns = chat.request, model_turns(parts, store.sent, chat.request.model)
    if not continues and name not in store.sent:
        given = instructions if is_stable else None
        sent = capture_sent_context(parts, store.sent, given)
        if kinds:
            turn = record_turn(request, [*turns.values()], facts.default_effort)
            sent = sent._replace(turn=turn)
        store.set_sent(sent)
        turns = model_turns(parts, store.sent, request.model)
    items: Mapping[str, Sequence[Item]] = {}
    if name in turns:
        request, items = append_turns(request, turns, kinds)
    first = first_instructions(parts, store.sent) if is_stable else None
    return chat._replace(
        parts=apply_sent_context(parts, store.sent, items),
        instructions=instructions if first is None else first,
        request=request,
    )


def _appended(chat: _Chat) -> set[str]:
    """Return the types of items that its model and server take."""
    facts, is_openai = chat.model.facts, chat.call.endpoint.is_openai
    kinds = [ADDED_TOOLS] * (is_openai and facts.appends_tools)
    kinds += [CONFIGURATION] * (is_openai and facts.appends_configuration)
    return set(kinds).difference(one.target for one in chat.request.repairs)


def _place_instructions(chat: _Chat) -> _Chat:
    """Let the input begin with the instructions, where a server takes that."""
    if not (chat.instructions and chat.call.endpoint.is_openai):
        return chat
    first = UserMessage(text_message("developer", chat.instructions))
    return chat._replace(parts=[first, *chat.parts], instructions="")


_PASSES = (
    _attach_stored,
    _take_directive,
    _restore_outputs,
    _build_flat,
    _restore_prefix,
    _place_instructions,
)
"""What is done to a parsed chat, in this order; directives are no part of a prefix."""


async def _history(chat: _Chat, origin: Origin, size: int) -> list[Item]:
    """Return the input of a chat's history, with its files."""
    parts, valves, user_id = chat.parts, chat.call.valves, chat.call.caller.user_id
    size += sum(map(image_length, parts)) >> 10
    parts = await run_work(size, partial(resolve_images, parts, scale_image))
    attachments = (p.attachments for p in parts if isinstance(p, UserMessage))
    if valves.FILE_INPUT != "off" and chat.model.facts.vision and any(attachments):
        parts = await add_documents(parts, await user_model(user_id), valves.FILE_INPUT)
    records = await load_stored_images(chat.records, parts, user_id)
    reader = origin if valves.remembers_reasoning() else None
    with_tools = valves.PERSIST_TOOL_RESULTS
    repairs = chat.store.repairs if chat.store else ()
    return await run_work(
        size,
        lambda: fit_input(
            build_input(parts, records, reader, with_tools=with_tools, repairs=repairs)
        ),
    )


def _body(chat: _Chat) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    choice = chat.tools.choice
    choice = next_tool_choice(choice) if chat.round else choice
    body = {**chat.call.body, "tool_choice": choice}
    if chat.verbosity:
        body["text"] = {**as_mapping(body.get("text")), "verbosity": chat.verbosity}
    return body


def _offered_tools(call: PipeCall, model: ResolvedModel) -> OfferedTools:
    repairs = call.capabilities.repairs(call.endpoint, model.id, call.caller.user_id)
    refused = {one.target for one in repairs}
    hosted, replaced = hosted_tools(call.config, model, refused)
    log, choice = partial(call.log.line, "WARNING"), call.body.get("tool_choice")
    called = called_tools(call.body, model, call.valves, log)
    rows = call.host.tools
    builtin = {name for name in rows if rows[name].get("type") == "builtin"}
    hosted += tool_search(call.config, model)
    return offer_tools(choice, hosted, called, replaced, builtin)


def _runs_calls(call: PipeCall, offered: OfferedTools) -> bool:
    """Say whether calls are run here.

    Open WebUI knows no rule of TOOL_APPROVAL, so it runs no chat where one could apply,
    and what it has not got, nobody runs. Other clients run their own tools.
    """
    tools, known = call.host.tools, offered.names.known
    ours = call.valves.TOOL_EXECUTION == "pipe"
    if call.caller.host_reads and tools:
        return (ours and bool(known)) or has_ruled_tools(call)
    return ours and bool(known) and all(name in tools for name in known)


def _settings(call: PipeCall, tools: OfferedTools, model: ResolvedModel) -> Settings:
    """Return the settings of a request."""
    config, valves, summary = call.config, call.valves, call.config.summary
    names = (model.id, model.family, call.caller.model)
    background = _is_background_model(valves, names)
    # Without a stream a background answer has no encrypted reasoning.
    streams = call.caller.streams or background
    return Settings(
        effort=config.effort,
        summary=None if summary == "disabled" else summary,
        verbosity=config.verbosity,
        stream=streams and valves.ENABLE_STREAM,
        background=background,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools.items,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=_default_parameters(call, tools.items),
    )


def is_as_configured(prepared: PreparedRequest) -> bool:
    """Say whether a chat's request has only what the administrator's valves set.

    What was appended to it may be a user's choice.
    """
    call, sent = prepared.call, prepared.request
    body = {"tool_choice": sent.tool_choice, "reasoning_effort": call.model.effort}
    plain = call._replace(body=body, config=read_config(call.valves))
    model = call.resolve(sent.model)._replace(pro=call.model.pro)
    tools = OfferedTools(sent.tools or ())
    settings = _settings(plain, tools, model)
    text = sent.instructions or ""
    built = build_request(model, text, sent.input, body, settings)
    is_changed = any(item_type(item) in APPENDED for item in sent.input)
    return sent.model_copy(update={"repairs": ()}) == built and not is_changed


def _repaired(
    request: ResponsesRequest,
    call: PipeCall,
    store: ChatStore | None = None,
    before: DelegatedRound | None = None,
) -> ResponsesRequest:
    """Return a request with what earlier refusals showed, a round with the last one's."""
    user_id, known = call.caller.user_id, call.capabilities.repairs
    learned = known(call.endpoint, request.model, user_id)
    repairs = (*learned, *(store.repairs if store else ()))
    if before:
        repairs = before.request.repairs
    return request.model_copy(update={"repairs": repairs}) if repairs else request


def _is_background_model(valves: Valves, names: Sequence[str]) -> bool:
    if valves.COMPATIBILITY == "strict":  # such servers do not store responses
        return False
    patterns = comma_list(valves.BACKGROUND_MODELS.lower())
    return any(fnmatchcase(n.lower(), p) for n in names for p in patterns)


def _default_parameters(call: PipeCall, tools: Sequence[Item]) -> dict[str, Any]:
    """Return parameters of the API; the caller's own replace them.

    The same chat and user always get the same values, because the prompt cache and,
    from gpt-6.2 on, encrypted reasoning depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    caller, valves, tier = call.caller, call.valves, call.config.service_tier
    threshold = max(valves.COMPACTION_TOKENS, _LEAST_THRESHOLD)
    compaction = [{"type": "compaction", "compact_threshold": threshold}]
    compacts = valves.COMPACTION_TOKENS and not call.endpoint.is_azure
    chosen = {
        **hash_ids(valves.PROMPT_CACHE_KEY, caller.user_id, caller.chat_id),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": compaction if compacts else None,
    }
    if any(map(is_hosted_tool, tools)):  # the API counts only their calls
        chosen["max_tool_calls"] = valves.MAX_TOOL_CALLS
    return {name: value for name, value in chosen.items() if value is not None}


def _toolset(call: PipeCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless others must run one of them."""
    valves, log = call.valves, partial(call.log.line, "WARNING")
    seconds = valves.TOOL_TIMEOUT_SECONDS
    return Toolset(
        HostTools(call, offered.names),
        build_approver(call, log),
        CallLimits(
            seconds=seconds,
            batch_seconds=_BATCH_SHARE * seconds,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
            own=[*call.config.tool_timeouts, *slow_tools(call.host)],
        ),
        log,
        rounds=valves.MAX_FUNCTION_CALL_LOOPS,
        most_calls=valves.MAX_TOOL_CALLS,
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=_runs_calls(call, offered),
    )


def build_task_request(call: PipeCall) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    endpoint = call.endpoint
    model = _task_model(call, endpoint)
    request = task_request(model, call.messages, call.body, call.caller.task)
    request = _repaired(request, call)
    origin = origin_at(model.family, endpoint)
    limits = run_limits(call.valves, model)
    return PreparedRequest(call, request, endpoint, origin, limits)


def _task_model(call: PipeCall, endpoint: Endpoint) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    A server other than OpenAI's may not have the default model.
    """
    wanted, valves = call.valves.TASK_MODEL.strip(), call.valves
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or endpoint.host == OPENAI_HOST):
        model = call.resolve(wanted)
        if _task_lack(endpoint, model.id) not in call.capabilities:
            return model
    return call.model


def lacks_task_model(prepared: PreparedRequest, ended: RunDone) -> bool:
    """Say whether the key may not use TASK_MODEL; later tasks get the chat's model."""
    call, model = prepared.call, prepared.request.model
    if ended.trace.status not in (403, 404) or model == call.model.id:
        return False
    if call.capabilities.first_time(_task_lack(prepared.endpoint, model)):
        told = f"TASK_MODEL: the key may not use {model}; the chat's model does tasks"
        call.log.line("WARNING", told)
    return True


def _task_lack(endpoint: Endpoint, model: str) -> str:
    return f"{endpoint.account()} {model} task"
