"""What a server refused a key before, so that it is not asked again."""

import hashlib
from dataclasses import dataclass, replace

from openai_responses.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Learned:
    """Refusals that hold for every request: of summaries, of streams."""

    summary: bool = False
    stream: bool = False


class Lessons:
    """The refusals of each key at each address, as long as the pipe is loaded."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._by_account: dict[str, Learned] = {}

    def of(self, endpoint: Endpoint) -> Learned:
        """Return what this key has been refused at this address."""
        return self._by_account.get(_account(endpoint), Learned())

    def note(self, endpoint: Endpoint, cause: str) -> None:
        """Remember a refusal by its cause; others concern one request alone."""
        if cause in ("summary", "stream"):
            known = self.of(endpoint)
            learned = replace(known, **{cause: True})
            self._by_account[_account(endpoint)] = learned


def _account(endpoint: Endpoint) -> str:
    """Return a name for an account that does not tell its key."""
    told = f"{endpoint.base_url}\n{endpoint.organization}\n{endpoint.api_key}"
    return hashlib.sha256(told.encode("utf-8", errors="replace")).hexdigest()
