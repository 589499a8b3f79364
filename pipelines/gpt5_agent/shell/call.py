"""One call of the pipeline, from its valves and its request."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from gpt5_agent.agent.delegation import DELEGATE, task_tools
from gpt5_agent.pictures import PictureMemory
from gpt5_agent.ports import StoreFile, Tool
from gpt5_agent.request import AgentRequest, OwnToolSettings, PipelineCaller
from gpt5_agent.shell.inlet import AttachedToChat, replace_query
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import NO_OFFER, OwnToolOffer, OwnToolPool
from gpt5_agent.shell.presets import find_preset
from gpt5_agent.shell.sealing import is_sealed, reveal_secret, signing_secret
from gpt5_agent.shell.server_access import ACCESS_VARIABLE, BLOCKED_ADDRESS
from gpt5_agent.shell.valves import Valves, ValveSettings
from manifold.models import answering_model, retirement
from manifold.request_settings import (
    call_limits,
    chat_limits,
    request_timeouts,
    settings_of_valves,
)
from openai_responses.endpoint import Endpoint, bare_key
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import clamp_number, well_formed
from openai_responses.loop.attempt import Limits
from openai_responses.loop.attempts import Attempts
from openai_responses.loop.tools import Approver
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.recent_texts import RecentTexts
from openai_responses.redaction import hide_keys
from openai_responses.repairs.memory import RepairMemory
from openai_responses.requests.build import Settings
from openai_responses.requests.parameters import hash_ids, read_bool
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from shells.endpoint_valves import (
    endpoint_of_valves,
    environment_key,
    missing_key_error,
    read_headers,
)
from shells.model_list import ModelList
from shells.valve_messages import PIPELINE_SHELL
from strategies.guide import Guide
from strategies.parameters import DEFAULTS, PARAMETERS, StrategyParameters

_NOTICE_SECONDS = 3600.0
"""After an hour, a notice is read again."""


@dataclass(frozen=True)
class SharedState:
    """What all answers of a pipeline share; whoever makes it closes it."""

    connections: Connections = field(default_factory=Connections)
    own_tools: OwnToolPool = field(default_factory=OwnToolPool)
    repairs: RepairMemory = field(default_factory=RepairMemory)
    pictures: PictureMemory = field(default_factory=PictureMemory)
    listed: ModelList = field(default_factory=ModelList)
    notices: RecentTexts = field(
        default_factory=partial(RecentTexts, seconds=_NOTICE_SECONDS)
    )
    """Those that were shown: an administrator's notice once an hour for all of them, the
    end of a model once an hour in each chat."""

    logged: RecentTexts = field(default_factory=RecentTexts)
    """What the log has said today about requests, valves and models."""

    async def close(self) -> None:
        """Close the tools and the connections."""
        try:
            await self.own_tools.close()
        finally:
            await self.connections.close()


class PipelineCall(NamedTuple):
    """One call of the pipeline, and what it shares with others."""

    strategy: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    """Only what a request may set."""
    settings: ValveSettings
    shared: SharedState
    log: AgentLog
    caller: PipelineCaller = PipelineCaller()
    attached: AttachedToChat = AttachedToChat()

    @property
    def valves(self) -> Valves:
        """The valves that hold one value each."""
        return self.settings.valves

    @property
    def model(self) -> str:
        """The name of the model that is asked for."""
        key = PARAMETERS["model"].request_key
        return self.choose_text(key, self.valves.MODEL or DEFAULTS.model)

    def choose_text(self, key: str, default: str) -> str:
        """Return a text of the request; an object or list in it as JSON.

        Half a character, which JSON may have, is a question mark.
        """
        value = self.body.get(key)
        if isinstance(value, Mapping | list):
            return json.dumps(value)
        if isinstance(value, str) and value.strip():
            return well_formed(value)
        return default


def build_agent_request(
    call: PipelineCall,
    endpoint: Endpoint,
    offer: OwnToolOffer = NO_OFFER,
    store_file: StoreFile | None = None,
) -> AgentRequest:
    """Return the request to the agent; raises InvalidRequest.

    `offer` has the tools that run here; `store_file` gives their files to the user.
    """
    shared = call.shared
    parameters = _build_parameters(call)
    messages = call.messages
    if not call.caller.task:
        messages = replace_query(messages, call.choose_text("query", ""))
    asked = shared.listed.as_listed(resolve_model(parameters.model), endpoint)
    model = answering_model(asked, endpoint)
    return AgentRequest(
        strategy=call.strategy,
        model=model,
        parameters=parameters,
        messages=messages,
        body=call.body,
        endpoint=endpoint,
        signing_secret=signing_secret(endpoint.api_key),
        settings=_build_request_settings(call, endpoint, model),
        own_tools=_build_tool_settings(call, offer.tools, store_file),
        take_notices=_find_notices(call, retirement(asked, endpoint), offer.problems),
        caller=call.caller,
        has_wish=call.attached.has_wish,
        log=call.log,
        debug=call.valves.DEBUG,
        repairs=shared.repairs,
        pictures=shared.pictures,
    )


def _find_notices(
    call: PipelineCall, end_of_model: str, problems: Sequence[str]
) -> Callable[[], list[str]]:
    """Return what takes the notices above an answer that were not shown yet.

    The page shows the last one, so the most serious one comes last.
    """
    shared = call.shared
    notices: dict[str, str] = {}
    if end_of_model:
        notices[f"chat {call.caller.workspace}: {end_of_model}"] = end_of_model
        call.log.warn_once(end_of_model, shared.logged)
    if call.caller.is_admin:
        told = filter(None, (*problems, *call.settings.problems))
        notices |= {problem: hide_keys(problem) for problem in told}

    def take_notices() -> list[str]:
        is_new = shared.notices.first_time
        return [notice for name, notice in notices.items() if is_new(name)]

    return take_notices


def build_limits(call: PipelineCall, request: AgentRequest) -> Limits:
    """Return the limits of a run."""
    expert = call.settings.expert
    limits = Limits(
        timeouts=request_timeouts(expert, request.model),
        retries=RetryPolicy(expert.max_retries),
        context_window=request.model.facts.context_window,
    )
    return chat_limits(limits, request.parameters, call.attached.tags)


def make_provider(call: PipelineCall, request: AgentRequest) -> Attempts:
    """Return the Responses API at the request's endpoint."""
    limits = build_limits(call, request)
    return Attempts(request.endpoint, call.shared.connections, limits)


def _build_parameters(call: PipelineCall) -> StrategyParameters:
    """Return what the strategy is to do: the request decides before the valves.

    Raises InvalidRequest.
    """
    valves = call.valves
    values = valves.parameters()
    values["model"] = call.model
    values["guide"] = read_guide(valves)
    for name, row in PARAMETERS.items():
        if not row.request_key:
            continue
        given = call.body.get(row.request_key)
        own = values[name]
        # The valve's own value says of which kind a request's has to be.
        if row.bounds:
            values[name] = clamp_number(given, *row.bounds, own)
        elif isinstance(own, bool) and given is not None:
            values[name] = read_bool(row.request_key, given)
        elif name == "context" and isinstance(given, dict | list):
            values[name] = given or own  # several sources, each with its title
        elif isinstance(own, str):
            values[name] = call.choose_text(row.request_key, own)
    return StrategyParameters(**values)


def _build_tool_settings(
    call: PipelineCall,
    tools: Sequence[Tool],
    store_file: StoreFile | None,
) -> OwnToolSettings:
    """Return the tools that run here, and the rules for all tools."""

    def build_approver(own_names: Iterable[str]) -> Approver:
        names = replace(call.attached.tool_names, own_tools=frozenset(own_names))
        return Approver(
            call.settings.rules,
            other_names=names.other_names,
            may_match=names.may_match,
        )

    valves = call.valves
    own_names = [tool.name for tool in tools]
    own = OwnToolSettings(
        tools=tools,
        approver=build_approver(own_names),
        limits=call_limits(valves, call.settings.timeouts),
        asks_in_chat=call.caller.can_ask,
        delegates=valves.DELEGATION,
        store_file=store_file,
    )
    if task_tools(own):  # then the tool that delegates runs here, too
        own = own._replace(approver=build_approver([*own_names, DELEGATE]))
    return own


def read_guide(valves: Valves) -> Guide:
    """Return the guide that PRESET names; raises InvalidRequest."""
    return find_preset(valves.PRESET, valves.PRESETS_DIR)


def read_api_key(valves: Valves) -> str:
    """Return the API key of the valves or of the environment; empty without one.

    Raises InvalidRequest for a key that cannot be read.
    """
    key = bare_key(reveal_secret(valves.API_KEY, "API_KEY"))
    return key or environment_key()


def build_endpoint(valves: Valves, log: AgentLog) -> Endpoint:
    """Return where requests go; `log` hides its secrets. Raises InvalidRequest."""
    if valves.BASE_URL == BLOCKED_ADDRESS:
        raise InvalidRequest(
            "The Pipelines server does not allow the address in BASE_URL. An "
            "administrator has to correct this valve, or to add the address to the "
            f"server's environment variable {ACCESS_VARIABLE}.",
            remedy="setup",
        )
    key = read_api_key(valves)
    if not key:
        raise missing_key_error(PIPELINE_SHELL)
    valve = "EXTRA_HEADERS"
    stored = valves.EXTRA_HEADERS
    text = reveal_secret(stored, valve)
    # An object is never sealed as a whole. Whatever it would hold there was not compared
    # with what this server allows (server_access.py).
    sealed = read_headers(stored if is_sealed(stored) else text, PIPELINE_SHELL)
    endpoint = endpoint_of_valves(
        valves,
        api_key=key,
        proxy=reveal_secret(valves.PROXY, "PROXY"),
        headers={name: reveal_secret(value, valve) for name, value in sealed.items()},
    )
    log.hide(*endpoint.secrets)
    return endpoint


def _build_request_settings(
    call: PipelineCall, endpoint: Endpoint, model: ResolvedModel
) -> Settings:
    """Return the fields of a request that the valves decide."""
    valves = call.valves
    # OpenAI compacts a chat at this size, or at half of the model's window.
    most_tokens = valves.COMPACTION_TOKENS
    window = model.facts.context_window
    if window:
        most_tokens = min(most_tokens, window // 2)
    shared = settings_of_valves(
        valves,
        endpoint,
        hash_ids("chat", call.caller.user_id, call.caller.chat_id),
        streams=call.caller.streams,
        compaction_tokens=most_tokens,
    )
    return shared._replace(
        effort=valves.REASONING_EFFORT or None, verbosity=valves.VERBOSITY or None
    )
