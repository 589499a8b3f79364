"""Why a server cannot be reached, in words for administrators.

The words are ours: those of the system and of aiohttp can quote an address with its
password.
"""

import errno
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp

from openai_responses.endings import FAULTS, MESSAGES
from openai_responses.endpoint import Endpoint
from openai_responses.errors import NO_FAULT, ConnectionFailed

_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ServerTimeoutError,
)
"""The last is of connecting: aiohttp is given no other limit."""

_NAME_ERROR: type[Exception] = getattr(
    aiohttp, "ClientConnectorDNSError", socket.gaierror
)
"""aiohttp 3.9, which the Pipelines server has, lacks it: there it is only a cause."""

_IN_TIME = "it did not accept the connection in time"
_CLOSED = "it closed the connection without an answer"
_NO_ROUTE = "there is no route to it"
_REASONS: Mapping[int | None, str] = {
    errno.ECONNREFUSED: "it refused the connection",
    errno.EHOSTUNREACH: _NO_ROUTE,
    errno.ENETUNREACH: _NO_ROUTE,
    errno.ETIMEDOUT: _IN_TIME,
    errno.ECONNRESET: _CLOSED,
    errno.EPIPE: _CLOSED,
}
"""What the system reports about a connection."""
_NO_NAME = "its name was not found"
_NO_NAME_SERVER = "the name server does not answer"
_MAY_NEED_A_PROXY = (_NO_ROUTE, _IN_TIME, _NO_NAME, _NO_NAME_SERVER)


def unreachable_error(
    error: Exception, endpoint: Endpoint, proxy: str | None
) -> ConnectionFailed:
    """Return our error for one of aiohttp's; `proxy` is the one on the way."""
    was_sent = not isinstance(error, _NEVER_CONNECTED)
    kind = "unreachable"
    word, server, reason = _find_cause(error, endpoint, proxy)
    if isinstance(error, aiohttp.ClientHttpProxyError) and error.status == 407:
        kind = "refused"
        word = "407"
    message = MESSAGES[kind][word].format(server=server, reason=reason)
    fault = FAULTS.get((kind, word), NO_FAULT)
    failed = ConnectionFailed(message, was_sent=was_sent, fault=fault)
    if word in ("407", "certificate"):  # only an administrator can change it
        failed.failure = None
    return failed


def _find_cause(
    error: Exception, endpoint: Endpoint, proxy: str | None
) -> tuple[str, str, str]:
    """Return the word of the message, what cannot be reached, and the reason."""
    reason = _reason(error)
    match error:
        # With a proxy no other name is looked up here.
        case aiohttp.ClientConnectorError() if proxy and (
            isinstance(error, aiohttp.ClientProxyConnectionError) or _is_of_name(error)
        ):
            parts = urlsplit(proxy)
            port = f":{parts.port}" if parts.port else ""
            word = "proxy" if endpoint.proxy.strip() else "environment_proxy"
            return word, f"{parts.hostname}{port}", reason
        case aiohttp.ClientHttpProxyError():
            return "tunnel", endpoint.host, f"HTTP {error.status}"
        # The limit is one for the connection to the proxy and for the proxy's own.
        case aiohttp.ServerTimeoutError() if proxy:
            return "tunnel", endpoint.host, "it takes too long"
        case aiohttp.ClientConnectorCertificateError():
            cause = getattr(error.certificate_error, "verify_message", "")
            return "certificate", endpoint.host, f": {cause}" if cause else ""
        case aiohttp.ClientSSLError():
            return "tls", endpoint.host, reason
    may_need_proxy = proxy is None and reason in _MAY_NEED_A_PROXY
    return "no_way" if may_need_proxy else "", endpoint.host, reason


def _is_of_name(error: Exception) -> bool:
    """Say whether a name could not be looked up; not every resolver says why."""
    cause = getattr(error, "os_error", error)
    return isinstance(cause, socket.gaierror) or isinstance(error, _NAME_ERROR)


def _reason(error: Exception) -> str:
    """Return why a connection failed, as the end of a message."""
    # That of a certificate has none in aiohttp 3.9, although its class says so.
    cause: Exception = getattr(error, "os_error", error)
    if isinstance(cause, ssl.SSLError):
        return "it does not use TLS, or its certificate is not trusted"
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
        return _NO_NAME_SERVER
    if _is_of_name(error):
        return _NO_NAME
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return _CLOSED
    if isinstance(cause, TimeoutError):
        return _IN_TIME
    number = cause.errno if isinstance(cause, OSError) else None
    return _REASONS.get(number, type(error).__name__)
