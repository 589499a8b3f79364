"""Tokens of Microsoft Entra ID, for servers of Azure that take no key.

The package `azure-identity` finds out who this server is: a managed identity, a workload
identity, the variables `AZURE_CLIENT_ID`, `AZURE_TENANT_ID` and `AZURE_CLIENT_SECRET`,
or a login of Azure's programs. It is looked up when it is used.
The sign-in of another cloud is the environment's `AZURE_AUTHORITY_HOST`.
"""

import asyncio
from importlib import import_module
from typing import Any, NamedTuple

from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.errors import REASON_GIVEN, InvalidRequest
from openai_responses.redaction import redact

_RENEWED_BEFORE = 300
"""Seconds before a token's end from which on another is asked for."""
_PAUSE_AFTER_FAILURE = 30
"""Seconds."""
_MAX_REASON_CHARACTERS = 300


class _EntraToken(NamedTuple):
    """A token, and how long it holds."""

    text: str = ""
    end: int = 0
    """Its last second."""
    last_moment: float = 0.0
    """The same, by a clock that nobody sets back."""

    @property
    def seconds_left(self) -> float:
        """How long it still holds, by the clock that says less."""
        left = self.last_moment - monotonic_seconds()
        return min(left, self.end - unix_seconds())


class EntraTokens:
    """The token of each scope; one at a time is asked for, in a thread."""

    def __init__(self) -> None:
        self._credential: Any = None
        self._known: dict[str, _EntraToken] = {}
        """The token of each scope."""
        self._next_try = 0
        """From when on a token that still holds may be renewed."""
        self._failure = ("", "")
        """The last one: its scope, and the reason."""
        self._lock = asyncio.Lock()

    async def token(self, scope: str) -> str:
        """Return a token that still holds for some minutes; raises InvalidRequest.

        If there is no other, the one that ends is used until then. As long as it holds,
        one request at a time waits for the next one, and none for a while after a
        failure, because Entra may take long to answer nothing.
        """
        token = self._known.get(scope) or _EntraToken()
        is_asked = self._lock.locked() or unix_seconds() < self._next_try
        if is_asked and token.seconds_left > 0:
            return token.text
        earlier = self._failure
        async with self._lock:
            token = self._known.get(scope) or _EntraToken()
            if token.seconds_left < _RENEWED_BEFORE:
                # Who waited while another request failed does not wait once more.
                failed_scope, reason = self._failure
                if self._failure is not earlier and failed_scope == scope:
                    raise InvalidRequest(reason)
                try:
                    text, end = await asyncio.to_thread(self._ask, scope)
                    # The package gives the same one again until it has ended by the clock
                    # of the day: it holds no longer than was known of it.
                    if text != token.text:
                        last_moment = monotonic_seconds() + end - unix_seconds()
                        token = _EntraToken(text, end, last_moment)
                except InvalidRequest as error:
                    if token.seconds_left <= 0:
                        self._failure = (scope, str(error))
                        raise
                    self._next_try = unix_seconds() + _PAUSE_AFTER_FAILURE
                for known, other in list(self._known.items()):
                    if other.seconds_left <= 0:  # of earlier settings
                        del self._known[known]
                self._known[scope] = token
        return token.text

    def _ask(self, scope: str) -> tuple[str, int]:
        """Return a token and its last second; raises InvalidRequest."""
        try:
            if self._credential is None:
                identity = import_module("azure.identity")
                self._credential = identity.DefaultAzureCredential()
            token = self._credential.get_token(scope)
        except ImportError:
            raise InvalidRequest(
                "Tokens of Microsoft Entra ID need the package azure-identity, which "
                "this server does not have. An administrator has to install it, or to "
                "choose another kind of authentication."
            ) from None
        except Exception as error:  # whatever the package and its network raise
            reason = redact(" ".join(str(error).split()))[:_MAX_REASON_CHARACTERS]
            raise InvalidRequest(
                "Microsoft Entra ID issued no token for this server. An administrator "
                f"has to check this server's identity.{REASON_GIVEN}{reason}"
            ) from None
        return str(token.token), int(token.expires_on)


def entra_scope(endpoint: Endpoint) -> str:
    """Return what a token for a server of Azure is asked for, by its cloud."""
    cloud = "com"
    if endpoint.is_azure:
        cloud = endpoint.host.rpartition(".azure.")[2]
    return f"https://cognitiveservices.azure.{cloud}/.default"
