"""What a server refused a key before, so that it is not asked again."""

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
        self._told: set[str] = set()

    def of(self, endpoint: Endpoint) -> Learned:
        """Return what this key has been refused at this address."""
        return self._by_account.get(endpoint.account(), Learned())

    def is_news(self, text: str) -> bool:
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
