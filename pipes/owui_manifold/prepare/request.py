"""What a request has in addition to the chat: tools, settings, limits of efforts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from manifold.learning import has_fields_of, known_repairs
from manifold.models import completion_window, cost_of_request
from manifold.preparation import OfferedTools, build_fields, offer_tools
from manifold.request_settings import settings_of_valves
from openai_responses.appended import APPENDED
from openai_responses.items import Item, is_hosted_tool, item_type
from openai_responses.json_input import JsonObject, as_mapping, as_text, value_at
from openai_responses.loop.attempt import Limits
from openai_responses.loop.tools import Toolset
from openai_responses.models.facts import ModelFacts
from openai_responses.models.resolve import REASONING_EFFORTS, ResolvedModel
from openai_responses.models.usage import Cost, Usage
from openai_responses.repairs.request_repairs import Repair
from openai_responses.requests.build import ResponsesRequest, Settings
from openai_responses.requests.parameters import hash_ids
from openai_responses.requests.tools import ToolNames
from owui_chat.storage.recorder import RecordScope
from owui_chat.storage.records import Record
from owui_manifold.call.config import build_endpoint, read_config
from owui_manifold.call.context import Call
from owui_manifold.call.research import research_ceiling
from owui_manifold.call.valves import USER_TOKENS
from owui_manifold.prepare.hosted_tools import (
    called_tools,
    hosted_tools,
    left_out_tools,
)
from owui_manifold.prepare.python_files import PythonFile
from owui_manifold.store.stored_chat import StoredChat
from owui_manifold.store.writers import StoredAnswer
from shells.valve_texts import comma_list, fits_pattern


class Prepared(NamedTuple):
    """One request, and where its answer is stored."""

    call: Call
    request: ResponsesRequest
    limits: Limits
    toolset: Toolset | None = None
    """Without it no calls are answered here."""
    tool_names: ToolNames = ToolNames()
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

    def cost_of(
        self, usages: Iterable[Usage], output: Iterable[Item] = ()
    ) -> Cost | None:
        """Return what responses with this output cost; None if it cannot be known.

        The administrator's price of the model comes first, then what the server says,
        then the catalog, which has OpenAI's prices.
        """
        own_prices = self.call.config.prices
        if own_prices is None:
            return None
        model = self.request.model
        facts = self.call.resolve(model).facts
        endpoint = self.call.endpoint
        if model in own_prices:
            facts = facts._replace(prices=own_prices[model])
            usages = [usage._replace(cost=None) for usage in usages]
        elif not endpoint.serves_openai:
            facts = facts._replace(prices=None)
        return cost_of_request(self.request, endpoint, facts, usages, output)


def offered_tools(call: Call, model: ResolvedModel) -> OfferedTools:
    """Return the tools that a model is offered, and the choice among them."""
    repairs = learned_repairs(call, model.id)
    hosted, replaced = hosted_tools(call.config, model, repairs)
    called: Sequence[Item] = ()
    if not model.research:
        called = called_tools(call.config, model, call.body, call.log.warn)
    builtin = {name for name in call.host.tools if call.host.is_builtin(name)}
    choice = call.body.get("tool_choice")
    offered = offer_tools(choice, hosted, called, replaced, builtin)
    call.note_left_out(left_out_tools(call.body, model, called, offered, builtin))
    return offered


def request_settings(call: Call, tools: OfferedTools, model: ResolvedModel) -> Settings:
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
    call: Call, request: ResponsesRequest, stored: StoredChat | None
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


def build_with_allowed_effort(
    call: Call,
    facts: ModelFacts,
    body: JsonObject,
    build: Callable[[JsonObject], ResponsesRequest],
) -> ResponsesRequest:
    """Return the request of a body, with another effort if the user's limits say so."""
    request = build(body)
    if call.account is None:
        return request
    effort = (request.reasoning or {}).get("effort") or facts.default_effort
    known: Sequence[str] = ()
    if effort or facts.reasoning:
        known = facts.efforts or REASONING_EFFORTS
    allowed = call.account.limits.nearest_allowed_effort(effort, known)
    if not allowed:
        return request
    call.note_left_out({f"the effort {effort}": f"limits allow {allowed}"})
    reasoning = {**as_mapping(body.get("reasoning")), "effort": allowed}
    return build({**body, "reasoning": reasoning})


def is_as_configured(prepared: Prepared) -> bool:
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
    plain = replace(call, body=body, config=read_config(valves))
    model = call.resolve(sent.model)._replace(
        pro=call.model.pro, research=call.model.research
    )
    hosted, _ = hosted_tools(plain.config, model, sent.repairs)
    settings = request_settings(plain, offer_tools(None, hosted), model)
    agent = plain.config.agent if call.agent else None
    return has_fields_of(sent, build_fields(model, body, settings, agent))


def learned_repairs(call: Call, model: str) -> tuple[Repair, ...]:
    """Return what earlier refusals showed of a model."""
    memory = call.memory.repairs
    return known_repairs(memory, call.endpoint, model, call.caller.user_id)
