"""What the valves come to for one call: they are read once, into a `Config`.

The switches of the composer come from the companion filter, in
`__metadata__["openai_responses"]`: `version`, `web_search` and `code_interpreter`
(true), `thinking` (an effort). A value that cannot be used is an error only when a
request needs it, so it is kept as an exception until then.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from openai_responses.endpoint import Endpoint, Network, connection_secrets
from openai_responses.errors import PIPE_VALVES, InvalidRequest, valve_error
from openai_responses.items import Item
from openai_responses.loop.attempts import Limits
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.tools import (
    Approval,
    Approver,
    CallableTools,
    CallLimits,
    Toolset,
    read_rules,
)
from openai_responses.models.resolve import (
    REASONING_EFFORTS,
    ModelPrices,
    ResolvedModel,
    read_overrides,
)
from openai_responses.models.usage import read_prices
from openai_responses.requests.build import Settings
from openai_responses.requests.mcp_servers import RemoteServers, read_servers
from openai_responses.transport.connections import Timeouts
from owui_manifold.valves import UserValves, Valves

_Value = TypeVar("_Value")
_Headers = Mapping[str, str]


class Config(NamedTuple):
    """What holds for one call; a user's choice replaces the administrator's."""

    valves: Valves
    secrets: tuple[str, ...]
    """Texts that must appear in no log and no chat."""
    problems: tuple[str, ...]
    """Sentences for administrators; the call works without what they name."""

    endpoint: Endpoint | InvalidRequest
    own_key: str
    """The user's own API key, if the administrator permits one."""
    overrides: Mapping[str, ResolvedModel] | InvalidRequest
    prices: Mapping[str, ModelPrices] | InvalidRequest
    rules: Sequence[tuple[str, Approval]] | InvalidRequest
    remote: RemoteServers
    location: Mapping[str, str] | InvalidRequest
    image_options: Item | InvalidRequest

    effort: str | None
    summary: str | None
    verbosity: str | None
    service_tier: str
    web_search: bool
    replaces_search: bool
    """Whether the page's switch means OpenAI's search instead of the host's."""
    code_interpreter: bool
    image_generation: bool
    shows_cost: bool
    shows_log: bool
    log_level: str


def usable(value: _Value | InvalidRequest) -> _Value:
    """Return a value of the `Config`; raises InvalidRequest if it cannot be used."""
    if isinstance(value, InvalidRequest):
        raise value
    return value


def read_config(
    valves: Valves,
    user: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Config:
    """Read the valves for a call of `user`, the host's `__user__`."""
    host, person = metadata or {}, user or {}
    is_admin = person.get("role") == "admin"
    stored = person.get("valves")
    given = stored if isinstance(stored, UserValves) else UserValves()
    own = _allowed_choices(_with_switches(given, host), valves, is_admin)
    own_key = own.API_KEY.strip() if valves.USER_API_KEYS != "off" else ""
    headers = _attempt(lambda: _extra_headers(valves))
    remote = read_servers(valves.REMOTE_MCP_SERVERS_JSON)
    features = host.get("features")
    switches = features if isinstance(features, Mapping) else {}
    replaces_search = valves.MAP_WEB_SEARCH and bool(switches.get("web_search"))
    searches = valves.ENABLE_WEB_SEARCH or replaces_search
    return Config(
        valves=valves,
        secrets=_secrets(valves, headers, own.API_KEY.strip(), *remote.secrets),
        problems=tuple(filter(None, (_permission_error(valves), _filter_error(host)))),
        endpoint=_attempt(lambda: _user_endpoint(valves, headers, own_key, is_admin)),
        own_key=own_key,
        overrides=_attempt(lambda: read_overrides(valves.MODEL_OVERRIDES_JSON)),
        prices=_attempt(lambda: read_prices(valves.CUSTOM_MODEL_PRICING_JSON)),
        rules=_attempt(lambda: read_rules(valves.TOOL_APPROVAL)),
        remote=remote,
        location=_attempt(lambda: _location(valves.WEB_SEARCH_USER_LOCATION)),
        image_options=_attempt(lambda: _image_options(valves)),
        effort=_inherit(own.REASONING_EFFORT, None),
        summary=_inherit(own.REASONING_SUMMARY, valves.REASONING_SUMMARY),
        verbosity=_inherit(own.VERBOSITY, None),
        service_tier=_inherit(own.SERVICE_TIER, valves.SERVICE_TIER),
        web_search=_is_on(own.WEB_SEARCH, searches),
        replaces_search=replaces_search,
        code_interpreter=_is_on(own.CODE_INTERPRETER, valves.ENABLE_CODE_INTERPRETER),
        image_generation=_is_on(own.IMAGE_GENERATION, valves.ENABLE_IMAGE_GENERATION),
        shows_cost=_is_on(own.SHOW_COST, valves.SHOW_COST),
        shows_log=own.SHOW_LOG_ON_ERROR and is_admin,
        log_level=_inherit(own.LOG_LEVEL, valves.LOG_LEVEL),
    )


def _secrets(
    valves: Valves, headers: _Headers | InvalidRequest, *others: str
) -> tuple[str, ...]:
    values: Iterable[str] = [valves.EXTRA_HEADERS]
    if not isinstance(headers, InvalidRequest):
        values = headers.values()
    keys = (valves.effective_key(), valves.STORE_ENCRYPTION_KEY)
    return connection_secrets(values, valves.PROXY, *keys, *others)


def _attempt(read: Callable[[], _Value]) -> _Value | InvalidRequest:
    try:
        return read()
    except InvalidRequest as error:
        return error


def _inherit(own: str, default: _Value) -> str | _Value:
    return default if own == "inherit" else own


def _is_on(own: str, default: bool) -> bool:
    return default if own == "inherit" else own == "on"


# What users choose

_FILTER_KEY = "openai_responses"
_FILTER_VERSION = 1
_SWITCHES = {"web_search": "WEB_SEARCH", "code_interpreter": "CODE_INTERPRETER"}

_OTHER_FILTER_VERSION = (
    "The filter OpenAI Responses Controls is of another version than this pipe, so its "
    "switches do nothing. An administrator has to install both from the same release."
)

_CHOICES: Mapping[str, str] = {
    "effort": "REASONING_EFFORT",
    "summary": "REASONING_SUMMARY",
    "verbosity": "VERBOSITY",
    "web_search": "WEB_SEARCH",
    "code_interpreter": "CODE_INTERPRETER",
    "image_generation": "IMAGE_GENERATION",
    "service_tier": "SERVICE_TIER",
    "show_cost": "SHOW_COST",
    "log_level": "LOG_LEVEL",
}
"""The words of USER_MAY_CHANGE, with the user valve that each allows."""


def _with_switches(user: UserValves, metadata: Mapping[str, Any]) -> UserValves:
    """Return a user's settings, changed by the composer switches of this message."""
    given = metadata.get(_FILTER_KEY)
    if not isinstance(given, Mapping) or given.get("version") != _FILTER_VERSION:
        return user
    changed = {valve: "on" for switch, valve in _SWITCHES.items() if given.get(switch)}
    if given.get("thinking") in REASONING_EFFORTS:
        changed["REASONING_EFFORT"] = str(given["thinking"])
    return user.model_copy(update=changed)


def _filter_error(metadata: Mapping[str, Any]) -> str:
    given = metadata.get(_FILTER_KEY)
    is_other = isinstance(given, Mapping) and given.get("version") != _FILTER_VERSION
    return _OTHER_FILTER_VERSION if is_other else ""


def _allowed_choices(user: UserValves, valves: Valves, is_admin: bool) -> UserValves:
    """Return a user's settings without those that they may not change."""
    words = _permitted_words(valves)
    if is_admin or "all" in words:
        return user
    fields = UserValves.model_fields
    reset = {v: fields[v].default for word, v in _CHOICES.items() if word not in words}
    return user.model_copy(update=reset)


def _permission_error(valves: Valves) -> str:
    unknown = sorted(_permitted_words(valves) - {*_CHOICES, "all", "nothing"})
    if not unknown:
        return ""
    return (
        f"USER_MAY_CHANGE holds {unknown[0][:40]}, which is no setting of users. Choose "
        f"from {', '.join(_CHOICES)}, all, nothing."
    )


def _permitted_words(valves: Valves) -> set[str]:
    return set(comma_list(valves.USER_MAY_CHANGE.lower()))


# Single valves


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas, each of them once."""
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(word for word in words if word))


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)  # at first use: it is not free, and few valves are set


def _json_value(form: Any, text: str, problem: str, example: str) -> Any:
    """Return the value of a JSON valve; an empty valve is an empty object."""
    try:
        return _adapter(form).validate_json(text.strip() or "{}", strict=True)
    except ValidationError:
        raise valve_error(problem, example, place=PIPE_VALVES) from None


def _extra_headers(valves: Valves) -> _Headers:
    problem = "EXTRA_HEADERS is not a JSON object of texts"
    example = '{"X-Team": "blue"}'
    text = valves.EXTRA_HEADERS
    headers: _Headers = _json_value(dict[str, str], text, problem, example)
    return headers


def _image_options(valves: Valves) -> Item:
    problem = "IMAGE_GENERATION_OPTIONS is not a JSON object"
    example = '{"quality": "high"}'
    text = valves.IMAGE_GENERATION_OPTIONS
    options: Item = _json_value(dict[str, Any], text, problem, example)
    return options


_PLACE = ("city", "region", "country", "timezone")


def _location(text: str) -> Mapping[str, str]:
    """Return the place of WEB_SEARCH_USER_LOCATION, by the API's names."""
    problem = "WEB_SEARCH_USER_LOCATION is neither a JSON object nor a place"
    example = "Bern, BE, CH, Europe/Zurich (city, region, country, timezone)"
    words = [word.strip() for word in text.split(",")]
    if text.strip().startswith("{"):
        given = _json_value(dict[str, Any], text, problem, example)
    elif len(words) <= len(_PLACE):
        given = dict(zip(_PLACE, words, strict=False))
    else:
        raise valve_error(problem, example, place=PIPE_VALVES)
    if not all(isinstance(given.get(key, ""), str) for key in _PLACE):
        raise valve_error(problem, example, place=PIPE_VALVES)
    return {key: given[key] for key in _PLACE if given.get(key)}


# The endpoint

_NO_OWN_KEY = (
    "This pipe wants an OpenAI API key of your own. Set API_KEY in your settings of "
    "this pipe: the slider icon beside the chat input, or Controls > Valves."
)
_BILLED_HEADERS = frozenset(
    {"authorization", "api-key", "openai-organization", "openai-project"}
)


def build_endpoint(valves: Valves) -> Endpoint:
    """Return where requests with the pipe's own key go; raises InvalidRequest."""
    headers = _attempt(lambda: _extra_headers(valves))
    return _endpoint(valves, valves.effective_key(), headers)


def _user_endpoint(
    valves: Valves, headers: _Headers | InvalidRequest, own_key: str, is_admin: bool
) -> Endpoint:
    """Return where a user's requests go; raises InvalidRequest.

    Organization, project and billed headers belong to the administrator's account, so
    they are not sent with a user's own key.
    """
    if not own_key:
        if valves.USER_API_KEYS == "required" and not is_admin:
            raise InvalidRequest(_NO_OWN_KEY)
        return _endpoint(valves, valves.effective_key(), headers)
    endpoint = _endpoint(valves, own_key, headers)
    rest = {
        name: text
        for name, text in endpoint.extra_headers.items()
        if name.lower() not in _BILLED_HEADERS
    }
    return replace(endpoint, organization="", project="", extra_headers=rest)


def _endpoint(valves: Valves, key: str, headers: _Headers | InvalidRequest) -> Endpoint:
    if not key:
        raise InvalidRequest(
            "This pipe has no API key yet. An administrator has to set API_KEY in the "
            "valves of this pipe (Admin Panel > Functions > the gear beside it)."
        )
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=key,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=usable(headers),
        network=Network(
            valves.VERIFY_SSL, valves.CA_BUNDLE.strip(), valves.PROXY.strip()
        ),
        strict=valves.COMPATIBILITY == "strict",
    )


class Capabilities(NamedTuple):
    """Refusals that hold for every request: of summaries, of streams."""

    summary: bool = False
    stream: bool = False


class AccountCapabilities:
    """What each key was refused at each address, while the pipe is loaded."""

    def __init__(self) -> None:
        """Start without any known refusal."""
        self._by_account: dict[str, Capabilities] = {}
        self._mentioned: set[str] = set()

    def of(self, endpoint: Endpoint) -> Capabilities:
        """Return what this key has been refused at this address."""
        return self._by_account.get(endpoint.account(), Capabilities())

    def first_time(self, text: str) -> bool:
        """Say whether `text` is asked about for the first time."""
        is_new = text not in self._mentioned
        self._mentioned.add(text)
        return is_new

    def note(self, endpoint: Endpoint, cause: str) -> None:
        """Remember a refusal by its cause; others concern only one request."""
        if cause in Capabilities._fields:
            known = self.of(endpoint)._replace(**{cause: True})
            self._by_account[endpoint.account()] = known


# A request

_LEAST_THRESHOLD = 1000
"""A smaller threshold would compact every answer."""

_BATCH_SHARE = 5
"""Calls made at once run in parallel, but not all of them."""


def default_parameters(config: Config, user_id: str, chat_id: str) -> dict[str, Any]:
    """Return parameters of the API; the caller's own replace them.

    The same chat and user always get the same values, because the prompt cache and,
    from gpt-6.2 on, encrypted reasoning depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    valves, tier = config.valves, config.service_tier
    threshold = max(valves.COMPACTION_TOKENS, _LEAST_THRESHOLD)
    compaction = [{"type": "compaction", "compact_threshold": threshold}]
    chosen = {
        "safety_identifier": _hash_id("user", user_id),
        "prompt_cache_key": _cache_key(valves.PROMPT_CACHE_KEY, user_id, chat_id),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": compaction if valves.COMPACTION_TOKENS else None,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _cache_key(kind: str, user_id: str, chat_id: str) -> str | None:
    if kind == "off":
        return None
    chat = _hash_id("chat", chat_id) if kind == "chat" else None
    return chat or _hash_id("cache", user_id)


def _hash_id(kind: str, value: str) -> str | None:
    """Return a stable name for an id, which is random and cannot be guessed."""
    text = f"openai_responses:{kind}:{value}"
    return sha256(text.encode()).hexdigest()[:48] if value else None


def request_settings(
    config: Config,
    *,
    streams: bool,
    tools: Sequence[Item],
    refused: Capabilities,
    defaults: Mapping[str, Any],
) -> Settings:
    """Return the settings of a request, without what the server `refused` before."""
    valves, summary = config.valves, config.summary
    return Settings(
        effort=config.effort,
        summary=None if summary == "disabled" or refused.summary else summary,
        verbosity=config.verbosity,
        stream=streams and valves.ENABLE_STREAM and not refused.stream,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=defaults,
    )


def is_background_model(valves: Valves, names: Iterable[str]) -> bool:
    """Say whether BACKGROUND_MODELS matches one of a model's names."""
    if valves.COMPATIBILITY == "strict":  # such servers do not store responses
        return False
    patterns = comma_list(valves.BACKGROUND_MODELS.lower())
    return any(fnmatchcase(n.lower(), p) for n in names for p in patterns)


def run_limits(valves: Valves, *, tools_ran: bool) -> Limits:
    """Return the limits of a run; a request after a tool is sent only once."""
    return Limits(
        timeouts=Timeouts(
            connect=valves.CONNECT_TIMEOUT_SECONDS,
            first_event=valves.FIRST_EVENT_TIMEOUT_SECONDS,
            idle=valves.IDLE_TIMEOUT_SECONDS,
            total=valves.TOTAL_TIMEOUT_SECONDS,
        ),
        retries=RetryPolicy(
            0 if tools_ran else valves.MAX_RETRIES, valves.MAX_RETRY_WAIT_SECONDS
        ),
    )


def build_toolset(
    valves: Valves,
    tools: CallableTools,
    approver: Approver,
    log: Callable[[str], object],
    *,
    runs_calls: bool = True,
) -> Toolset:
    """Return what a run needs to answer calls itself, or to leave them to others."""
    return Toolset(
        tools,
        approver,
        CallLimits(
            seconds=valves.TOOL_TIMEOUT_SECONDS,
            batch_seconds=_BATCH_SHARE * valves.TOOL_TIMEOUT_SECONDS,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
        ),
        log,
        rounds=valves.MAX_FUNCTION_CALL_LOOPS,
        most_calls=valves.MAX_TOOL_CALLS,
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=runs_calls,
    )
