"""Lines in the server's log, without secrets; the newest of each run are kept in
memory.
"""

import logging
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from threading import Lock

from openai_responses.clock import unix_seconds
from openai_responses.redaction import redact, redact_line

_LOGGER = logging.getLogger("openai_responses_manifold")

LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""The numbers that `logging` has for them."""

_KEPT_LINES = 2000
_LONGEST_LINE = 4000


class RunLog:
    """The log of one run; can be used from other threads."""

    def __init__(self, threshold: str, secrets: Iterable[str], run_id: str) -> None:
        """Start empty; lines from `threshold` on are written to the server's log."""
        self.run_id = run_id
        self._threshold = LOG_LEVELS[threshold]
        self._secrets = tuple(secrets)
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def hide(self, secret: str) -> None:
        """Let one more text be in no line."""
        self._secrets += (secret,)

    def line(self, level: str, text: str) -> None:
        """Keep `text` as one line, with its time in UTC; also write it, with the run's
        id, if its level is enough.

        Long text is cut: an exception of a tool may say anything.
        """
        one_line = redact_line(text[: 2 * _LONGEST_LINE], self._secrets)[:_LONGEST_LINE]
        time = datetime.fromtimestamp(unix_seconds(), UTC)
        with self._lock:
            self._lines.append(f"{time:%Y-%m-%d %H:%M:%S} {level:<8} {one_line}")
        if LOG_LEVELS[level] >= self._threshold:
            _write(level, f"{self.run_id} {one_line}")

    def warn(self, text: str) -> None:
        """Write what somebody has to look at."""
        self.line("WARNING", text)

    def audit(self, line: str) -> None:
        """Write a line of the audit log, which has its own valve."""
        _write("INFO", redact(line, self._secrets))

    def text(self) -> str:
        """Return the newest lines, oldest first."""
        with self._lock:
            return "\n".join(self._lines)


def _write(level: str, line: str) -> None:
    """Hand `line` to the handlers of the server.

    The logger's level belongs to the server and to other copies of the pipe, so it is
    not changed: the record goes to the handlers directly. Those of Open WebUI drop
    levels below INFO, so a DEBUG line is sent as INFO and says that it is DEBUG.
    """
    number = max(LOG_LEVELS[level], logging.INFO)
    text = line if LOG_LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)
