"""The valves as they apply to one call: they are read once, into a `Config`.

The switches of the composer come from filters (`owui_controls`), in
`__metadata__["openai_responses"]`: `version`, kinds of tools like `web_search` (true),
`agent` (true), `thinking` (an effort).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from manifold.request_settings import request_timeouts
from openai_responses.endpoint import Endpoint, bare_key, connection_secrets
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import JsonObject, parse_string_map, value_at
from openai_responses.loop.attempt import Limits
from openai_responses.loop.tools import ApprovalRules
from openai_responses.models.facts import ModelPrices
from openai_responses.models.resolve import REASONING_EFFORTS, ResolvedModel
from openai_responses.retries import RetryPolicy
from owui_manifold.call.agent import add_agents, read_agent_parameters
from owui_manifold.call.expert import (
    PipeExpertKeys,
    read_expert_json,
    read_file_search_options,
    read_image_options,
    read_search_options,
)
from owui_manifold.call.model_valves import read_overrides, read_prices
from owui_manifold.call.remote_servers import RemoteServers, read_servers
from owui_manifold.call.valves import (
    CALL_TOKENS,
    TOOL_SETTINGS,
    TOOL_SWITCHES,
    UserValves,
    Valves,
)
from settings.table import rows_of
from shells.answer_log import LOG_LEVELS
from shells.endpoint_valves import endpoint_of_valves, missing_key_error, read_headers
from shells.tool_valves import ToolTimeouts, read_rules, read_timeouts
from shells.valve_messages import PIPE_SHELL, Shell
from shells.valve_texts import comma_list, unknown_words
from strategies.parameters import StrategyParameters


class Config(NamedTuple):
    """What applies to one call.

    What a valve says alone is read from `valves` where it is asked for.
    """

    valves: Valves
    """The administrator's, with what the user chose of the same name."""
    replaced: Mapping[str, object]
    """The administrator's values of the valves that the user's choices replaced."""
    expert: PipeExpertKeys
    """What EXPERT_JSON says."""
    secrets: tuple[str, ...]
    """Texts that must appear in no log and no chat."""
    problems: tuple[str, ...]
    """Messages for administrators; the call works without what they name."""
    shell: Shell
    """The pipe in messages about valves, for the endpoint of the call."""

    own_key: str
    """The user's own API key, if the administrator permits one."""
    effort: str | None
    verbosity: str | None
    tool_kinds: frozenset[str]
    """The kinds of OpenAI's tools to offer."""
    replaces_search: bool
    """Whether the page's switch means OpenAI's search instead of the host's."""
    shows_log: bool
    wants_agent: bool
    """Whether the switch makes the chat's model an agent."""
    permitted: frozenset[str]
    """The words of USER_MAY_CHANGE for what the user may change."""
    refused: Sequence[str]
    """Settings that the user chose and may not change."""

    @property
    def remote(self) -> RemoteServers:
        """The remote MCP servers."""
        return read_servers(self.valves.REMOTE_MCP_SERVERS_JSON)

    @property
    def approval_rules(self) -> ApprovalRules:
        """The rules about calls of tools."""
        return read_rules(self.valves.TOOL_APPROVAL, PIPE_SHELL)[0]

    @property
    def timeouts(self) -> ToolTimeouts:
        """The time limits of calls of tools."""
        return read_timeouts(self.valves.TOOL_TIMEOUTS, PIPE_SHELL)[0]

    @property
    def prices(self) -> Mapping[str, ModelPrices] | None:
        """The administrator's own prices; None if they cannot be read."""
        return read_prices(self.valves.CUSTOM_MODEL_PRICING_JSON)[0]

    @property
    def agent(self) -> StrategyParameters:
        """What AGENT_JSON says."""
        return read_agent_parameters(self.valves.AGENT_JSON)[0]


_LEFT_EMPTY: JsonObject = MappingProxyType({})


def read_config(
    valves: Valves,
    user: JsonObject = _LEFT_EMPTY,
    metadata: JsonObject = _LEFT_EMPTY,
    body: JsonObject = _LEFT_EMPTY,
) -> Config:
    """Read the valves for a call of `user`, the host's `__user__`.

    Without one they are as they hold for anybody.
    """
    # What the user chose, of what the user may choose.
    is_admin = user.get("role") == "admin"
    stored = user.get("valves")
    chosen = stored if isinstance(stored, UserValves) else UserValves()
    file_input = body.get(FILE_INPUT_KEY)
    if file_input in ("off", "pdf", "all"):
        chosen = chosen.model_copy(update={"FILE_INPUT": file_input})
    switched, wants_agent, switch_problem = _read_switches(metadata.get(_SWITCHES_KEY))
    chosen = chosen.model_copy(update=switched)
    permitted, _ = _read_permissions("all" if is_admin else valves.USER_MAY_CHANGE)
    refused: list[str] = []
    for word, name in _CHOICES.items():
        if word not in permitted and vars(chosen)[name] != _UNCHANGED[name]:
            refused.append(name)
    own = chosen.model_copy(update={name: _UNCHANGED[name] for name in refused})
    own_key = typed_key = bare_key(own.API_KEY)
    if own_key and valves.USER_API_KEYS == "off":
        refused.append("API_KEY")
        own_key = ""
    if wants_agent and _AGENT_WORD not in permitted:
        refused.append("AGENT")
        wants_agent = False

    # The valves as they hold for this call.
    expert, _ = read_expert_json(valves.EXPERT_JSON)
    changes = _chosen_values(valves, own, is_admin=is_admin)
    if own_key:
        # What a user's own key does not get, such as the administrator's headers.
        given = ("", *_KEY_LEVELS[: _KEY_LEVELS.index(expert.user_keys_get) + 1])
        for name, row in rows_of(Valves).items():
            if row.own_key not in given:
                changes[name] = ""
    effective = valves.model_copy(update=changes) if changes else valves

    # With legacy function calling the host has searched before it asks the model: a
    # second, billed search would be for the same question.
    is_searching = bool(value_at(metadata, "features", "web_search"))
    can_search = is_searching and not calls_are_legacy(metadata)
    maps_search = valves.MAP_WEB_SEARCH and can_search
    tool_kinds = _offered_kinds(own, effective, maps_search)
    headers = parse_string_map(valves.EXTRA_HEADERS)
    secrets = connection_secrets(
        # Headers that cannot be read hold secrets all the same.
        [valves.EXTRA_HEADERS] if headers is None else headers.values(),
        valves.PROXY,
        valves.effective_key(),
        valves.STORE_ENCRYPTION_KEY,
        typed_key,
        *read_servers(valves.REMOTE_MCP_SERVERS_JSON).secrets,
    )
    return Config(
        valves=effective,
        replaced={name: vars(valves)[name] for name in changes},
        expert=expert,
        secrets=secrets,
        problems=_valve_mistakes(valves, switch_problem),
        shell=PIPE_SHELL,
        own_key=own_key,
        effort=None if own.REASONING_EFFORT == "inherit" else own.REASONING_EFFORT,
        verbosity=None if own.VERBOSITY == "inherit" else own.VERBOSITY,
        tool_kinds=tool_kinds,
        replaces_search=maps_search and "web_search" in tool_kinds,
        shows_log=own.SHOW_LOG_ON_ERROR and is_admin,
        wants_agent=wants_agent,
        permitted=permitted,
        refused=refused,
    )


def _valve_mistakes(valves: Valves, switch_problem: str) -> tuple[str, ...]:
    """Return what is wrong in valves that hold several values, the worst first."""
    problems = (
        read_rules(valves.TOOL_APPROVAL, PIPE_SHELL)[1],
        read_timeouts(valves.TOOL_TIMEOUTS, PIPE_SHELL)[1],
        _read_permissions(valves.USER_MAY_CHANGE)[1],
        switch_problem,
        *read_agent_parameters(valves.AGENT_JSON)[1],
        read_prices(valves.CUSTOM_MODEL_PRICING_JSON)[1],
        *read_expert_json(valves.EXPERT_JSON)[1],
        *read_search_options(valves.WEB_SEARCH_OPTIONS)[1],
        *read_file_search_options(valves.FILE_SEARCH_VECTOR_STORES)[1],
        *read_image_options(valves.IMAGE_GENERATION_OPTIONS)[1],
    )
    return tuple(problem for problem in problems if problem)


def named_models(valves: Valves) -> dict[str, ResolvedModel]:
    """Return the administrator's models and the agents, by the names in MODEL_ID.

    Raises InvalidRequest.
    """
    overrides = read_overrides(valves.MODEL_OVERRIDES_JSON)
    return add_agents(overrides, read_agent_parameters(valves.AGENT_JSON)[0])


def calls_are_legacy(metadata: JsonObject) -> bool:
    """Say whether the host runs tools by itself, before it asks the model."""
    return bool(value_at(metadata, "params", "function_calling") == "legacy")


def _offered_kinds(
    own: UserValves, valves: Valves, maps_search: bool
) -> frozenset[str]:
    """Return the kinds of OpenAI's tools that valves and user want.

    `maps_search` says that the page's own switch is on, and means OpenAI's search.
    """
    kinds: set[str] = set()
    for kind, setting in TOOL_SETTINGS.items():
        is_on = bool(vars(valves)[setting.valve])
        if kind == "web_search":
            is_on = is_on or maps_search
        if setting.user_valve:
            is_on = _choose_switch(vars(own)[setting.user_valve], is_on)
        if is_on:
            kinds.add(kind)
    return frozenset(kinds)


def _choose_switch(own: str, default: bool) -> bool:
    """Say whether a switch is on that a user set to `on`, `off` or `inherit`."""
    return default if own == "inherit" else own == "on"


_SWITCHES_KEY = "openai_responses"
"""Where the composer's filters write in the metadata."""
SWITCH_CONTRACT = 1
"""The number of what the switches write; those with another one have no effect."""

_OTHER_SWITCH_CONTRACT = (
    "The switches next to the chat input have no effect: they do not work with this "
    "version of the pipe. `/check` says what to update."
)

_CHOICES = {row.word: name for name, row in rows_of(UserValves).items() if row.word}
"""The words of USER_MAY_CHANGE, with the user valve that each allows."""
_SAME_NAME = [name for name in _CHOICES.values() if name in Valves.model_fields]
"""The users' valves that replace the administrator's valve of their name."""
_UNCHANGED = dict(UserValves())
"""The valves of a user who has changed none."""

_AGENT_WORD = "agent"
"""The word for the switch that has no user valve."""

FILE_INPUT_KEY = "file_input"
"""A custom parameter of a chat, with the words of the user valve."""


def _read_switches(switches: object) -> tuple[dict[str, object], bool, str]:
    """Return the user valves that the composer's switches set, and if one is the agent's.

    Also the message about switches that cannot be read.
    """
    if not isinstance(switches, Mapping):
        return {}, False, ""
    if switches.get("version") != SWITCH_CONTRACT:
        return {}, False, _OTHER_SWITCH_CONTRACT
    changed: dict[str, object] = {}
    for kind, valve in TOOL_SWITCHES.items():
        if switches.get(kind):
            changed[valve] = "on"
    if switches.get("thinking") in REASONING_EFFORTS:
        changed["REASONING_EFFORT"] = switches["thinking"]
    return changed, bool(switches.get(_AGENT_WORD)), ""


def _chosen_values(
    valves: Valves, own: UserValves, *, is_admin: bool
) -> dict[str, object]:
    """Return the valves that a user's choices replace, with the values that apply."""
    choices = vars(own)
    chosen: dict[str, object] = {}
    for name in _SAME_NAME:
        if name not in ("SHOW_COST", "LOG_LEVEL") and choices[name] != "inherit":
            chosen[name] = choices[name]
    shows_cost = _choose_switch(own.SHOW_COST, valves.SHOW_COST or is_admin)
    if shows_cost != valves.SHOW_COST:
        chosen["SHOW_COST"] = shows_cost
    # Only a more detailed level: a user hides no lines from the administrator.
    level = own.LOG_LEVEL
    if level != "inherit" and LOG_LEVELS[level] <= LOG_LEVELS[valves.LOG_LEVEL]:
        chosen["LOG_LEVEL"] = level
    return chosen


@lru_cache(maxsize=8)
def _read_permissions(text: str) -> tuple[frozenset[str], str]:
    """Return the words that USER_MAY_CHANGE allows, and the message about unknown ones.

    `all` means each word.
    """
    choices = (*_CHOICES, _AGENT_WORD)
    known = (*choices, "all", "nothing")
    words = comma_list(text.lower())
    advice = f"Choose from {', '.join(known)}."
    problem = unknown_words("USER_MAY_CHANGE", words, known, advice)
    return frozenset(choices if "all" in words else words), problem


_KEY_LEVELS = ("nothing", "headers", "all")
"""The words of `user_keys_get`; each gives what those before it give, and more."""

OWN_KEY_PLACE = (
    "API_KEY in your settings of this pipe: the slider icon next to the chat input, or "
    "Controls > Valves."
)
_NO_OWN_KEY = f"This pipe needs your own OpenAI API key. Set {OWN_KEY_PLACE}"
_ACCOUNT_HEADERS = ("authorization", "api-key", "openai-organization", "openai-project")


def build_endpoint(
    valves: Valves, own_key: str = "", *, is_admin: bool = True
) -> Endpoint:
    """Return where requests go, with a user's own key if there is one.

    Headers that name an account are not sent with that key. Raises InvalidRequest for
    unusable valves.
    """
    if not own_key and valves.USER_API_KEYS == "required" and not is_admin:
        raise InvalidRequest(_NO_OWN_KEY)
    key = own_key or valves.effective_key()
    takes_token = valves.AUTH in CALL_TOKENS and not own_key
    if not key and not takes_token:
        raise missing_key_error(PIPE_SHELL)
    headers = read_headers(valves.EXTRA_HEADERS, PIPE_SHELL)
    if own_key:
        headers = {
            name: value
            for name, value in headers.items()
            if name.lower() not in _ACCOUNT_HEADERS
        }
    return endpoint_of_valves(
        valves,
        api_key="" if takes_token else key,
        token=key if valves.AUTH == "bearer" else "",
        proxy=valves.PROXY.strip(),
        headers=headers,
    )


def run_limits(expert: PipeExpertKeys, model: ResolvedModel) -> Limits:
    """Return the limits of a run."""
    return Limits(
        timeouts=request_timeouts(expert, model, expert.total_timeout_seconds),
        retries=RetryPolicy(expert.max_retries, expert.max_retry_wait_seconds),
        flex_falls_back=expert.flex_falls_back,
        context_window=model.facts.context_window,
    )
