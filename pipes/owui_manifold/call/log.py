"""The pipe's lines in the server's log; the newest of each run are kept in memory."""

import logging
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from threading import Lock

from openai_responses.clock import unix_seconds
from shells.answer_log import LOG_LEVELS, AnswerLog, LogLevel

_LOGGER = logging.getLogger("openai_responses_manifold")

_KEPT_LINES = 2000


class RunLog(AnswerLog):
    """The log of one run; can be used from other threads."""

    def __init__(
        self,
        threshold: str,
        secrets: Iterable[str],
        run_id: str,
        *,
        keeps_all: bool = True,
    ) -> None:
        """Lines from `threshold` on are written to the server's log.

        Without `keeps_all` no one will read the `text`, and other lines are dropped.
        """
        super().__init__(run_id, secrets)
        self._threshold = LOG_LEVELS[threshold]
        self._keeps_all = keeps_all
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def line(self, level: LogLevel, text: str) -> None:
        """Write `text` as one line, unless no one reads lines of this level."""
        if self._keeps_all or LOG_LEVELS[level] >= self._threshold:
            super().line(level, text)

    def _write(self, level: LogLevel, one_line: str) -> None:
        """Keep a line with its time in UTC; write it too if its level is high enough."""
        if self._keeps_all:
            time = datetime.fromtimestamp(unix_seconds(), UTC)
            with self._lock:
                self._lines.append(f"{time:%Y-%m-%d %H:%M:%S} {level:<8} {one_line}")
        if LOG_LEVELS[level] >= self._threshold:
            _write_to_server(level, f"{self.run_id} {one_line}")

    def _write_audit(self, line: str) -> None:
        _write_to_server("INFO", line)

    def text(self) -> str:
        """Return the newest lines, oldest first."""
        with self._lock:
            return "\n".join(self._lines)


def _write_to_server(level: LogLevel, line: str) -> None:
    """Hand `line` to the handlers of the server.

    The logger's level belongs to the server and to other copies of the pipe, so it is
    not changed: the record goes to the handlers directly. Those of Open WebUI drop
    levels below INFO, so a DEBUG line is sent as INFO and says that it is DEBUG.
    """
    number = max(LOG_LEVELS[level], logging.INFO)
    text = line if LOG_LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)
