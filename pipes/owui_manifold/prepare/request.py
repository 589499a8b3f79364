"""What a request has in addition to the chat: tools, settings, parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from manifold.costs import completion_window
from manifold.learning import has_fields_of, repair_scope
from manifold.preparation import OfferedTools, build_fields, offer_tools
from manifold.request_settings import call_limits, settings_of_valves
from openai_responses.appended import APPENDED
from openai_responses.items import Item, item_type, tool_name
from openai_responses.json_input import as_list, as_mapping, as_text, value_at
from openai_responses.loop.attempt import Limits
from openai_responses.loop.spending import Budget
from openai_responses.loop.tools import Toolset
from openai_responses.models.facts import ModelFacts
from openai_responses.models.resolve import (
    REASONING_EFFORTS,
    ResolvedModel,
    takes_hosted_tool,
)
from openai_responses.repairs.request_repairs import Repair
from openai_responses.requests.build import ResponsesRequest, Settings
from openai_responses.requests.parameters import hash_ids
from openai_responses.requests.tools import is_hosted_tool
from owui_chat.storage.recorder import RecordScope
from owui_chat.storage.records import Record
from owui_manifold.call.callers import given_tools
from owui_manifold.call.config import build_endpoint, may_change, read_config
from owui_manifold.call.context import CheckedCall, note_left_out
from owui_manifold.call.research import research_ceiling
from owui_manifold.call.valves import TOOL_SETTINGS, USER_TOKENS
from owui_manifold.host.approvals import HostQuestions, build_approver
from owui_manifold.host.open_webui import stores_approvals
from owui_manifold.host.tools import HostTools, ToolUser, long_running_tools
from owui_manifold.prepare.hosted_tools import (
    called_tools,
    hosted_tools,
    left_out_tools,
)
from owui_manifold.prepare.python_files import PythonFile
from owui_manifold.prepare.remote_rules import default_remote_rule
from owui_manifold.store.stored_chat import StoredChat
from owui_manifold.store.writers import StoredAnswer
from shells.valve_words import comma_list, fits_pattern


class PreparedRequest(NamedTuple):
    """One request, and where its answer is stored."""

    call: CheckedCall
    request: ResponsesRequest
    limits: Limits
    toolset: Toolset | None = None
    """Without it no calls are answered here."""
    row: StoredAnswer | None = None
    """What the answer is stored in; None if its chat has no row."""
    scope: RecordScope | None = None
    """What is recorded of the answer; None if nothing is."""
    records: Mapping[str, Record] = MappingProxyType({})
    """What earlier answers of the chat stored."""
    beginning: str = ""
    """The line with which the answer begins: why this model answers, how long it may
    take.
    """
    notices: tuple[str, ...] = ()
    """What the user has to know or to do, if anything: the answer ends with it."""
    python_files: Sequence[PythonFile] = ()
    """The files of the chat that its code gets."""


def offered_tools(call: CheckedCall, model: ResolvedModel) -> OfferedTools:
    """Return the tools that a model is offered, and the choice among them."""
    repairs = learned_repairs(call, model.id)
    hosted, replaced = hosted_tools(call.config, model, repairs)
    config = call.config
    called: Sequence[Item] = ()
    if not model.research:
        called = called_tools(
            call.body, model, config.expert, call.log.warn, config.approval_rules
        )
    builtin = {name for name in call.host.tools if call.host.is_builtin(name)}
    choice = call.body.get("tool_choice")
    offered = offer_tools(choice, hosted, called, replaced, builtin)
    note_left_out(call, left_out_tools(call.body, model, called, offered, builtin))
    return offered


_IMAGE_SWITCH = "openai_responses_images"
"""The id of the filter that draws the switch *Images by OpenAI* (owui_controls)."""
_IMAGE_HINT = (
    "If people ask for an image and you have no tool that draws one, tell them that they "
    "can turn on Images by OpenAI in the menu next to the chat input."
)


def image_hint(call: CheckedCall, model: ResolvedModel) -> str:
    """Return what a model says that is asked to draw; empty where it would be wrong.

    It is the same whether or not the switch is on: another beginning would cost the
    prompt cache.
    """
    kind = "image_generation"
    meta = value_at(call.host.metadata, "model", "info", "meta")
    if not call.caller.is_open_webui or call.valves.ENABLE_IMAGE_GENERATION:
        return ""
    if _IMAGE_SWITCH not in as_list(value_at(meta, "filterIds")):
        return ""
    is_permitted = call.caller.is_admin or may_change(kind, call.valves)
    return _IMAGE_HINT if is_permitted and takes_hosted_tool(model, kind) else ""


_IMAGES_NOWHERE = (
    "Open WebUI's Image has no effect here: no tool for images is available to you "
    "with this model."
)
# A phone shows about 40 characters until somebody opens the line.
_IMAGES_ELSEWHERE = (
    "For images, turn on Images by OpenAI in the menu next to the chat input, or Image "
    "Generation in your settings of this pipe (Controls > Valves). Open WebUI's Image "
    "has no effect with this model."
)


def image_notice(call: CheckedCall, model: ResolvedModel, offered: OfferedTools) -> str:
    """Return where images can be turned on, once in a chat that has the host's Image on.

    The host then offers tools of its own, but none to a model without built-in tools;
    with legacy function calling it draws before it asks the model
    (docs/reference/open-webui.md, "Parameters and switches of a call").
    """
    kind = "image_generation"
    metadata = call.host.metadata
    is_legacy = value_at(metadata, "params", "function_calling") == "legacy"
    wanted = call.caller.is_open_webui and value_at(metadata, "features", kind)
    if not wanted or is_legacy:
        return ""
    drawing = {kind, *TOOL_SETTINGS[kind].replaced}
    if any(tool_name(tool) in drawing for tool in offered.items):
        return ""
    is_permitted = call.caller.is_admin or may_change(kind, call.valves)
    # Who has turned it on and does not get it is told why by others.
    can_help = kind not in call.config.tool_kinds and takes_hosted_tool(model, kind)
    notice = _IMAGES_ELSEWHERE if is_permitted and can_help else _IMAGES_NOWHERE
    call.warn_once(notice)
    is_new = call.capabilities.first_time(f"Image: {call.caller.chat_id}")
    return notice if is_new else ""


def request_settings(
    call: CheckedCall, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    """Return the settings of a request."""
    config = call.config
    valves = call.valves
    window = config.expert.background_window
    background = False
    if valves.COMPATIBILITY != "strict":  # such servers do not store responses
        names = (model.id, model.family, call.caller.model, call.model_name)
        patterns = comma_list(valves.BACKGROUND_MODELS)
        background = any(fits_pattern(name, patterns) for name in names)
        # The window is for answers that no one waits for: research is one, too.
        background = background or bool(window and model.research)
    shared = settings_of_valves(
        valves,
        call.endpoint,
        hash_ids(valves.PROMPT_CACHE_KEY, call.caller.user_id, call.caller.chat_id),
        # Without a stream a background answer has no encrypted reasoning.
        streams=call.caller.streams or background,
        compaction_tokens=valves.COMPACTION_TOKENS,
    )
    # The caller's own parameters replace these.
    defaults = dict(shared.defaults)
    if valves.SERVICE_TIER != "auto":
        defaults["service_tier"] = valves.SERVICE_TIER
    if valves.TRUNCATION != "disabled":
        defaults["truncation"] = valves.TRUNCATION
    if valves.MAX_OUTPUT_TOKENS:
        defaults["max_output_tokens"] = valves.MAX_OUTPUT_TOKENS
    if any(is_hosted_tool(tool) for tool in tools.items):  # only their calls count
        defaults["max_tool_calls"] = valves.MAX_TOOL_CALLS
    if model.research:
        defaults |= research_ceiling(valves)
    return shared._replace(
        effort=config.effort,
        verbosity=config.verbosity,
        background=background,
        background_store=config.expert.background_store,
        completion_window=window,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools.items,
        defaults=defaults,
    )


def wait_message(request: ResponsesRequest) -> str:
    """Return how long an answer may take, if it is one that can wait."""
    window = completion_window(request)
    hours = window.removesuffix("h")
    if not hours.isdecimal():
        return ""
    return f"The answer may take up to {hours} hours and appears when it is complete."


_MAX_ID_LENGTH = 200
"""Of the id of a response."""


def with_cache_comparison(
    call: CheckedCall, request: ResponsesRequest, stored: StoredChat | None
) -> ResponsesRequest:
    """Return a request that OpenAI compares with that of the answer before it.

    The response then says why the prompt cache missed (`prompt_cache_diagnostics`).
    Other servers refuse the field.
    """
    if stored is None or not call.endpoint.is_openai:
        return request
    if not call.config.expert.prompt_cache_diagnostics:
        return request
    # The host has the answer before this one in front of this one's question, with the
    # id of its response in its usage.
    answer = as_mapping(stored.messages.get(call.caller.message_id))
    question = as_mapping(stored.messages.get(as_text(answer.get("parentId"))))
    earlier = as_mapping(stored.messages.get(as_text(question.get("parentId"))))
    response_id = as_text(value_at(earlier, "usage", "response_id"))
    if not response_id.startswith("resp") or len(response_id) > _MAX_ID_LENGTH:
        return request
    if not call.resolve(request.model).facts.diagnostics:
        return request
    options = {
        **(request.prompt_cache_options or {}),
        "comparison_response_id": response_id,
    }
    return request.model_copy(update={"prompt_cache_options": options})


def other_allowed_effort(
    call: CheckedCall, facts: ModelFacts, request: ResponsesRequest
) -> str:
    """Return the effort that the limits of a user allow instead of the request's.

    Empty if they allow what is asked for.
    """
    if call.account is None:
        return ""
    effort = (request.reasoning or {}).get("effort") or facts.default_effort
    known: Sequence[str] = ()
    if effort or facts.reasoning:
        known = facts.efforts or REASONING_EFFORTS
    allowed = call.account.limits.nearest_allowed_effort(effort, known)
    if allowed:
        reason = f"limits allow {allowed}"
        note_left_out(call, {f"the effort {effort}": reason})
    return allowed


def is_as_configured(prepared: PreparedRequest) -> bool:
    """Say whether a chat's request has only what the administrator's valves set.

    Tools of the chat, what was appended to it and a key of their own may be a user's
    choice. A server that is told who asks may refuse one user what it gives to others.
    """
    call = prepared.call
    sent = prepared.request
    if call.valves.AUTH in USER_TOKENS:
        return False
    if call.endpoint.extra_headers != build_endpoint(call.valves).extra_headers:
        return False
    if call.config.own_key:
        return False
    if any(item_type(item) in APPENDED for item in sent.input):
        return False
    # The request as it would be for anybody, with the effort in the model's name.
    body = {"reasoning_effort": call.model.effort}
    valves = call.valves.model_copy(update=call.config.replaced)
    plain = call._replace(body=body, config=read_config(valves))
    model = call.resolve(sent.model)._replace(
        pro=call.model.pro, research=call.model.research
    )
    hosted, _ = hosted_tools(plain.config, model, sent.repairs)
    settings = request_settings(plain, offer_tools(None, hosted), model)
    agent = plain.config.agent if call.agent else None
    return has_fields_of(sent, build_fields(model, body, settings, agent))


def learned_repairs(call: CheckedCall, model: str) -> tuple[Repair, ...]:
    """Return what earlier refusals showed of a model."""
    scope = repair_scope(call.endpoint, model, call.caller.user_id)
    return call.capabilities.repairs.repairs(scope)


def call_toolset(call: CheckedCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless a plain client has to."""
    valves = call.valves
    tools = HostTools(call.host, tool_user(call), offered.names, call.log.hide)
    approver = build_approver(call.host, call.config.approval_rules, call.log.warn)
    # OpenAI calls the tools of remote servers; the chat's own tools may describe one.
    given = [as_mapping(tool) for tool in given_tools(call.body)]
    servers = [*call.config.remote.tools, *given]
    approver = replace(approver, remote_default=partial(default_remote_rule, servers))
    # Calls of Open WebUI's own chats always run here; one of a tool that it does not have
    # is answered with an error. A plain client runs its own functions, and if it has one
    # that Open WebUI does not have, all calls of the chat are left to it.
    runs_calls = call.caller.is_open_webui or all(
        name in call.host.tools for name in offered.names.known
    )
    judge: HostQuestions | None = None
    if _has_questions_of_host(call):
        judge = HostQuestions(call.host, approver, tools)
    return Toolset(
        tools=tools,
        approver=approver,
        limits=call_limits(
            valves,
            call.config.timeouts,
            long_running_tools(call.host),
        ),
        log=call.log.warn,
        redacted=call.log.redacted_for_model,
        budget=Budget(
            # One round more in which the model hears of the limit.
            rounds=valves.MAX_FUNCTION_CALL_LOOPS + 1,
            calls=valves.MAX_TOOL_CALLS,
        ),
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=runs_calls,
        judge=judge,
    )


def _has_questions_of_host(call: CheckedCall) -> bool:
    """Say whether the host can ask about calls, and somebody can answer.

    It asks about the calls that it finds in a stream, and stores them in the chat's
    row. No one looks at the chats of automations and sub-agents, and whoever started
    them takes an answer that waits for one that is over (utils/automations.py:529,
    utils/subagents.py:497).
    """
    metadata = call.host.metadata
    if metadata.get("automation_id") or metadata.get("internal"):
        return False
    # Another function in the chat may ask with the chat's metadata. It reads the text
    # alone, and would lose a call that is left open. In a chat with several models the
    # metadata name the first (main.py:1831 of 0.12.4); a dialog asks for the others.
    model = as_mapping(metadata.get("model"))
    base = value_at(model, "info", "base_model_id")
    chosen = metadata.get("selected_model_id")  # of an arena
    if model and call.caller.host_model not in (model.get("id"), base, chosen):
        return False
    return call.caller.may_have_row and call.caller.streams and stores_approvals()


def tool_user(call: CheckedCall) -> ToolUser:
    """Return for whom the tools of a call run."""
    caller = call.caller
    return ToolUser(
        user_id=caller.user_id,
        messages=call.messages,
        has_row=caller.may_have_row,
        threads=call.threads,
        account=call.account,
    )
