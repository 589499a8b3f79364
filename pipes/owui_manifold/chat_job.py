"""What a chat comes to: its history as input, its tools, its settings."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item
from openai_responses.models import ResolvedModel
from openai_responses.origin import Origin, origin_at
from openai_responses.request import Settings, build_request
from openai_responses.tools import is_hosted_tool, later_choice
from openai_responses.toolset import Toolset
from owui_chat.attachments import (
    attachments_by_place,
    refuse_too_much,
    with_readable_images,
)
from owui_chat.carried import with_records
from owui_chat.directives import without_directive
from owui_chat.history import build_input
from owui_chat.kept import with_kept
from owui_chat.messages import Stretch, read_messages
from owui_chat.stored import Record
from owui_chat.tool_images import with_tool_images
from owui_manifold.accounts import asked_endpoint
from owui_manifold.chosen_model import choice_for
from owui_manifold.consent import approver_of, not_for_the_host
from owui_manifold.defaults import default_parameters
from owui_manifold.files import with_documents
from owui_manifold.host import require_floor, user_model
from owui_manifold.host_tools import HostTools
from owui_manifold.hosted_tools import hosted_tools
from owui_manifold.job import Asked, Job, messages_of
from owui_manifold.kept_pictures import with_kept_pictures
from owui_manifold.offers import Offered, offered_tools
from owui_manifold.rounds import continued_input, last_round
from owui_manifold.settings import (
    chosen_settings,
    limits_of,
    runs_in_background,
    toolset_of,
)
from owui_manifold.steady import steadied
from owui_manifold.store import ChatStore, open_store


async def prepare_chat(asked: Asked) -> Job:
    """Return the job for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    endpoint = asked_endpoint(asked)
    detail = asked.valves.IMAGE_DETAIL
    messages, carried = with_records(messages_of(asked.body))
    instructions, stretches = read_messages(messages, detail)
    store = await open_store(asked.caller, asked.valves)
    model, why = choice_for(asked, stretches, store)
    verbosity = ""
    if model.facts.verbosity:
        guided = bool(asked.around.metadata.get("regeneration_message_id"))
        stretches, verbosity = without_directive(stretches, is_guided=guided)
    origin = origin_at(model.family, endpoint)
    before = last_round(asked.state, asked.caller.message_id)
    stretches = with_tool_images(stretches, store.messages if store else {})
    if store:
        rewritten = str(asked.around.metadata.get("regeneration_message_id") or "")
        stretches = with_kept(stretches, store.runs(rewritten))
        carried |= store.records
    items = continued_input(before, stretches) if before else None
    if before:
        instructions = before.instructions
    instructions, stretches = steadied(asked, instructions, stretches, store, model)
    if items is None:
        stretches = await _with_attachments(asked, stretches, store, model)
        items = await _history(asked, stretches, carried, origin)
    tools = _tools(asked, model)
    choice = later_choice(tools.choice) if before else tools.choice
    body = _body(asked, choice, verbosity)
    settings = _settings(asked, endpoint, tools, model)
    request = build_request(model, instructions, items, body, settings)
    return Job(
        asked,
        request,
        endpoint,
        origin,
        limits_of(asked.valves, tools_ran=before is not None),
        store,
        before,
        _toolset(asked, tools),
        notices=() if before or not why else (why,),
    )


def _body(asked: Asked, choice: object, verbosity: str) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer wins over them."""
    body = {**asked.body, "tool_choice": choice}
    if verbosity:
        text = body.get("text")
        own = dict(text) if isinstance(text, Mapping) else {}
        body["text"] = {**own, "verbosity": verbosity}
    return body


def _tools(asked: Asked, model: ResolvedModel) -> Offered:
    features = asked.around.metadata.get("features")
    hosted = hosted_tools(asked.valves, asked.user_valves, features, model)
    offered = offered_tools(asked.body, model, asked.valves, hosted)
    if _runs_calls(asked, offered):
        return offered
    withheld = not_for_the_host(asked.valves, asked.around.tools)
    return offered_tools(asked.body, model, asked.valves, hosted, withheld)


def _runs_calls(asked: Asked, offered: Offered) -> bool:
    """Say whether calls are run here, as none of them has to be left to others."""
    known = offered.names.known
    ours = asked.valves.TOOL_EXECUTION == "pipe" and bool(known)
    return ours and all(name in asked.around.tools for name in known)


def _settings(
    asked: Asked, endpoint: Endpoint, tools: Offered, model: ResolvedModel
) -> Settings:
    defaults = default_parameters(asked.caller, asked.valves, asked.user_valves)
    if endpoint.is_azure:  # it does not compact (responses-api.md §6)
        defaults.pop("context_management", None)
    if any(map(is_hosted_tool, tools.items)):  # the API counts no others
        defaults["max_tool_calls"] = asked.valves.MAX_TOOL_CALLS
    names = (model.id, model.family, asked.caller.model)
    background = runs_in_background(asked.valves, names)
    # Asked for in one piece, a background answer has no encrypted reasoning.
    settings = chosen_settings(
        asked.valves,
        asked.user_valves,
        streams=asked.caller.streams or background,
        tools=tools.items,
        refused=asked.lessons.of(endpoint),
        defaults=defaults,
    )
    return replace(settings, background=background)


async def _with_attachments(
    asked: Asked,
    stretches: list[Stretch],
    store: ChatStore | None,
    model: ResolvedModel,
) -> list[Stretch]:
    """Return the chat with what people attached, in the forms that the API reads."""
    messages, metadata = store.messages if store else {}, asked.around.metadata
    attached = attachments_by_place(stretches, messages, metadata)
    stretches = with_readable_images(stretches, attached)
    wanted = asked.valves.FILE_INPUT
    if wanted == "off" or not model.facts.vision or not any(attached.values()):
        return stretches
    user = await user_model(asked.caller.user_id)
    return await with_documents(stretches, attached, user, wanted)


async def _history(
    asked: Asked,
    stretches: list[Stretch],
    records: Mapping[str, Record],
    origin: Origin,
) -> list[Item]:
    """Return the input of a chat's history."""
    reader = origin if asked.valves.remembers_reasoning() else None
    user_id = asked.caller.user_id
    records = await with_kept_pictures(records, stretches, user_id)
    items = build_input(
        stretches, records, reader, with_tools=asked.valves.PERSIST_TOOL_RESULTS
    )
    refuse_too_much(items)
    return items


def _toolset(asked: Asked, offered: Offered) -> Toolset:
    """Return what runs the calls here, unless others have to run one of them."""
    around, valves = asked.around, asked.valves
    log = partial(asked.log.line, "DEBUG")
    approver = approver_of(valves, around.metadata, around.event_call, log)
    tools = HostTools(around, offered.names, asked.threads)
    return toolset_of(
        valves,
        tools,
        approver,
        log,
        runs_calls=_runs_calls(asked, offered),
    )
