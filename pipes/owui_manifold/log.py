"""Lines in the server's log, without secrets, the newest of each run kept to be shown."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import NamedTuple

from openai_responses.clock import unix_seconds
from openai_responses.redaction import redact, redact_line

_LOGGER = logging.getLogger("openai_responses_manifold")

_LEVELS: Mapping[str, int] = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
}

_KEPT_LINES = 2000


class LogLine(NamedTuple):
    """One line of a run: when it was written, how grave it is, what it says."""

    seconds: int
    level: str
    text: str

    def __str__(self) -> str:
        """Return the line as it is shown, with its time in UTC."""
        time = datetime.fromtimestamp(self.seconds, UTC)
        return f"{time:%Y-%m-%d %H:%M:%S} {self.level:<8} {self.text}"


class RunLog:
    """The log of one run, for whoever works for it; also from other threads."""

    def __init__(
        self,
        threshold: str,
        secrets: Iterable[str],
        run_id: str,
        now: Callable[[], int] = unix_seconds,
    ) -> None:
        """Begin empty; the server's log gets what reaches `threshold`."""
        self.run_id = run_id
        self._threshold = _level_number(threshold)
        self._secrets = tuple(secrets)
        self._now = now
        self._lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def line(self, level: str, text: str) -> None:
        """Keep `text` as one line; write it too, behind the run's id, if it is grave.

        A level that is not known counts as INFO.
        """
        known = level if level in _LEVELS else "INFO"
        one_line = redact_line(text, self._secrets)
        with self._lock:
            self._lines.append(LogLine(self._now(), known, one_line))
        if _LEVELS[known] >= self._threshold:
            _write(known, f"{self.run_id} {one_line}")

    def audit(self, line: str) -> None:
        """Write a line of the audit log, which has a valve of its own."""
        _write("INFO", redact(line, self._secrets))

    def lines(self) -> list[LogLine]:
        """Return the newest lines, the oldest of them first."""
        with self._lock:
            return list(self._lines)

    def text(self) -> str:
        """Return these lines as they are shown."""
        return "\n".join(map(str, self.lines()))


def _level_number(name: str) -> int:
    return _LEVELS.get(name, logging.INFO)


def _write(level: str, line: str) -> None:
    """Hand `line` to the handlers of the server.

    The logger's own level belongs to the server and to other copies of the pipe, so
    it is not touched: the record goes to the handlers as it is. Those of Open WebUI
    drop what is below INFO, so a DEBUG line goes there as INFO and says what it is.
    """
    number = max(_LEVELS[level], logging.INFO)
    text = line if _LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)
