"""The settings of one call, derived from the valves.

They combine the administrator's valves, the user's valves as far as the administrator
permits them, and the switches in the composer. The companion filter puts these into
`__metadata__["openai_responses"]`: `version`, `web_search`, `code_interpreter` (true)
and `thinking` (an effort). Refusals that concern a whole account are remembered, so
that the same request is not refused again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from openai_responses.endpoint import Endpoint, Network, proxy_secrets
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import parse_string_map
from openai_responses.loop.attempts import Limits
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.tools import Approver, CallableTools, CallLimits, Toolset
from openai_responses.models.resolve import REASONING_EFFORTS
from openai_responses.redaction import header_secrets
from openai_responses.requests.build import Settings
from openai_responses.requests.mcp_servers import secrets_in_servers
from openai_responses.transport.connections import Timeouts
from owui_manifold.valves import UserValves, Valves


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Refusals that hold for every request: of summaries, of streams."""

    summary: bool = False
    stream: bool = False


class AccountCapabilities:
    """The refusals of each key at each address, as long as the pipe is loaded."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._by_account: dict[str, Capabilities] = {}
        self._told: set[str] = set()

    def of(self, endpoint: Endpoint) -> Capabilities:
        """Return what this key has been refused at this address."""
        return self._by_account.get(endpoint.account(), Capabilities())

    def first_time(self, text: str) -> bool:
        """Say whether `text` has not been told yet; from now on it has."""
        is_new = text not in self._told
        self._told.add(text)
        return is_new

    def note(self, endpoint: Endpoint, cause: str) -> None:
        """Remember a refusal by its cause; others concern one request alone."""
        if cause in ("summary", "stream"):
            known = self.of(endpoint)
            learned = replace(known, **{cause: True})
            self._by_account[endpoint.account()] = learned


_KEY = "openai_responses"
_SWITCHES_VERSION = 1
_SWITCHES = {"web_search": "WEB_SEARCH", "code_interpreter": "CODE_INTERPRETER"}

OTHER_VERSION = (
    "The filter OpenAI Responses Controls is of another version than this pipe, so its "
    "switches do nothing. An administrator has to install both from the same release."
)


def apply_composer_switches(
    user: UserValves, metadata: Mapping[str, Any]
) -> UserValves:
    """Return a user's settings as the switches change them for this message."""
    told = metadata.get(_KEY)
    if not isinstance(told, Mapping) or told.get("version") != _SWITCHES_VERSION:
        return user
    wishes = {valve: "on" for switch, valve in _SWITCHES.items() if told.get(switch)}
    if told.get("thinking") in REASONING_EFFORTS:
        wishes["REASONING_EFFORT"] = str(told["thinking"])
    return user.model_copy(update=wishes)


def is_of_another_version(metadata: Mapping[str, Any]) -> bool:
    """Say whether a filter spoke that this pipe does not understand."""
    told = metadata.get(_KEY)
    return isinstance(told, Mapping) and told.get("version") != _SWITCHES_VERSION


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
"""The words of USER_MAY_CHANGE, with the valve that each allows."""


def allowed_user_valves(user: UserValves, valves: Valves, is_admin: bool) -> UserValves:
    """Return a user's settings without those that are not theirs to change.

    An administrator may change them all.
    """
    words = _words_of(valves)
    if is_admin or "all" in words:
        return user
    kept = {valve for word, valve in _CHOICES.items() if word in words}
    fields = UserValves.model_fields
    reset = {v: fields[v].default for v in _CHOICES.values() if v not in kept}
    return user.model_copy(update=reset)


def permission_error(valves: Valves) -> str:
    """Return what is wrong with USER_MAY_CHANGE, or nothing."""
    unknown = sorted(_words_of(valves) - {*_CHOICES, "all", "nothing"})
    if not unknown:
        return ""
    return (
        f"USER_MAY_CHANGE holds {unknown[0][:40]}, which is no setting of users. Choose "
        f"from {', '.join(_CHOICES)}, all, nothing."
    )


def _words_of(valves: Valves) -> set[str]:
    return {word.strip().lower() for word in valves.USER_MAY_CHANGE.split(",")} - {""}


_BATCH_SHARE = 5
"""Calls made at once run beside each other, but not all of them."""


def build_endpoint(valves: Valves, own_key: str = "") -> Endpoint:
    """Return where requests go; raises InvalidRequest for what cannot work."""
    key = own_key or valves.effective_key()
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
        extra_headers=extra_headers(valves.EXTRA_HEADERS),
        network=Network(
            valves.VERIFY_SSL, valves.CA_BUNDLE.strip(), valves.PROXY.strip()
        ),
        strict=valves.COMPATIBILITY == "strict",
    )


def extra_headers(text: str) -> Mapping[str, str]:
    """Return the headers of a JSON object; raises InvalidRequest for anything else."""
    headers = parse_string_map(text)
    if headers is not None:
        return headers
    raise InvalidRequest(
        "EXTRA_HEADERS is not a JSON object of texts. An administrator has to correct "
        'it in the valves of this pipe, for example {"X-Team": "blue"}.'
    )


def run_limits(valves: Valves, *, tools_ran: bool) -> Limits:
    """Return how a run behaves; what comes after a tool is sent once only."""
    retries = 0 if tools_ran else valves.MAX_RETRIES
    return Limits(
        timeouts=Timeouts(
            connect=valves.CONNECT_TIMEOUT_SECONDS,
            first_event=valves.FIRST_EVENT_TIMEOUT_SECONDS,
            idle=valves.IDLE_TIMEOUT_SECONDS,
            total=valves.TOTAL_TIMEOUT_SECONDS,
        ),
        retries=RetryPolicy(retries, valves.MAX_RETRY_WAIT_SECONDS),
    )


def request_settings(
    valves: Valves,
    user: UserValves,
    *,
    streams: bool,
    tools: Sequence[Item],
    refused: Capabilities,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Return what holds for one request; a user's own choice wins.

    `streams` says whether a stream is wanted; what the server `refused` before is not
    asked for again.
    """
    summary = _inherit(user.REASONING_SUMMARY, valves.REASONING_SUMMARY)
    return Settings(
        effort=_inherit(user.REASONING_EFFORT, None),
        summary=None if summary == "disabled" or refused.summary else summary,
        verbosity=_inherit(user.VERBOSITY, None),
        stream=streams and valves.ENABLE_STREAM and not refused.stream,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=defaults or {},
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


def is_background_model(valves: Valves, names: Iterable[str]) -> bool:
    """Say whether BACKGROUND_MODELS means a model, by one of its names.

    Servers that know only the least of the API store nothing.
    """
    if valves.COMPATIBILITY == "strict":
        return False
    wanted = (text.strip().lower() for text in valves.BACKGROUND_MODELS.split(","))
    patterns = [text for text in wanted if text]
    return any(fnmatchcase(n.lower(), p) for n in names for p in patterns)


def log_level(valves: Valves, user: UserValves) -> str:
    """Return from which level on lines go to the server's log."""
    return _inherit(user.LOG_LEVEL, valves.LOG_LEVEL) or "INFO"


def valve_secrets(valves: Valves, user: UserValves) -> list[str]:
    """Return the texts that must be in no line and no chat."""
    try:
        headers = list(extra_headers(valves.EXTRA_HEADERS).values())
    except InvalidRequest:
        headers = [valves.EXTRA_HEADERS]
    secrets = [valves.effective_key(), user.API_KEY.strip()]
    secrets += [secret for value in headers for secret in header_secrets(value)]
    secrets.append(valves.STORE_ENCRYPTION_KEY)
    secrets += secrets_in_servers(valves.REMOTE_MCP_SERVERS_JSON)
    secrets += proxy_secrets(valves.PROXY)
    return [text for text in secrets if text.strip()]


def _inherit(user: str, administrator: str | None) -> str | None:
    return administrator if user == "inherit" else user
