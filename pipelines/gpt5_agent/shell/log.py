"""Lines in the server's log, with the id of their answer and without secrets."""

import logging
from collections.abc import Iterable

from openai_responses.redaction import redact_line

_LOGGER = logging.getLogger("gpt5_agent_strategies")


class AgentLog:
    """The log of one answer, for any thread; `run_id` is in front of every line."""

    def __init__(self, run_id: str) -> None:
        """Know no secrets yet."""
        self.run_id = run_id
        self._secrets: tuple[str, ...] = ()

    def hide(self, secrets: Iterable[str]) -> None:
        """Remove these texts too from every line from now on."""
        self._secrets = (*self._secrets, *secrets)

    def line(self, text: str) -> None:
        """Write `text` as one line."""
        self._write(logging.INFO, text)

    def warn(self, text: str) -> None:
        """Write a problem as one line."""
        self._write(logging.WARNING, text)

    def _write(self, level: int, text: str) -> None:
        _LOGGER.log(level, "%s %s", self.run_id, redact_line(text, self._secrets))
