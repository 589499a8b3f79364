"""What the valves come to for one request."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from openai_responses.approvals import Approver
from openai_responses.deadlines import Timeouts
from openai_responses.endpoint import Endpoint, Network, proxy_secrets
from openai_responses.errors import InvalidRequest
from openai_responses.exchange import Limits
from openai_responses.items import Item
from openai_responses.json_texts import typed_texts
from openai_responses.mcp_servers import secrets_in_servers
from openai_responses.redaction import header_secrets
from openai_responses.request import Settings
from openai_responses.retries import RetryPolicy
from openai_responses.toolset import CallableTools, CallLimits, Toolset
from owui_manifold.learned import Learned
from owui_manifold.valves import UserValves, Valves

_BATCH_SHARE = 5
"""Calls made at once run beside each other, but not all of them."""


def endpoint_of(valves: Valves, own_key: str = "") -> Endpoint:
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
    headers = typed_texts(text)
    if headers is not None:
        return headers
    raise InvalidRequest(
        "EXTRA_HEADERS is not a JSON object of texts. An administrator has to correct "
        'it in the valves of this pipe, for example {"X-Team": "blue"}.'
    )


def limits_of(valves: Valves, *, tools_ran: bool) -> Limits:
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


def chosen_settings(
    valves: Valves,
    user: UserValves,
    *,
    streams: bool,
    tools: Sequence[Item],
    refused: Learned,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Return what holds for one request; a user's own choice wins.

    `streams` says whether a stream is wanted; what the server `refused` before is not
    asked for again.
    """
    summary = _chosen(user.REASONING_SUMMARY, valves.REASONING_SUMMARY)
    return Settings(
        effort=_chosen(user.REASONING_EFFORT, None),
        summary=None if summary == "disabled" or refused.summary else summary,
        verbosity=_chosen(user.VERBOSITY, None),
        stream=streams and valves.ENABLE_STREAM and not refused.stream,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=defaults or {},
    )


def toolset_of(
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


def runs_in_background(valves: Valves, names: Iterable[str]) -> bool:
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
    return _chosen(user.LOG_LEVEL, valves.LOG_LEVEL) or "INFO"


def secrets_of(valves: Valves, user: UserValves) -> list[str]:
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


def _chosen(user: str, administrator: str | None) -> str | None:
    return administrator if user == "inherit" else user
