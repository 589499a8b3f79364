"""The log of one answer, for pipe and agents: lines without secrets."""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from openai_responses.recent_texts import RecentTexts
from openai_responses.redaction import (
    hide_paths,
    redact,
    redact_beginning,
    redact_line,
    redact_words,
)

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""The numbers that `logging` has for them."""

_MAX_LINE = 4000


class AnswerLog:
    """Writes lines from any thread; a shell's own log says where they go.

    `run_id` names the answer: it is in front of every line of the server's log, and the
    error id that people see.
    """

    def __init__(self, run_id: str, secrets: Iterable[str] = ()) -> None:
        """Begin; `secrets` are removed from every line."""
        self.run_id = run_id
        self._secrets = tuple(secrets)

    def hide(self, *secrets: str) -> None:
        """Remove these texts too from every line from now on."""
        # Each once: a tool that fails hundreds of times names the same ones each time.
        self._secrets = tuple(dict.fromkeys((*self._secrets, *secrets)))

    def redacted(self, text: str) -> str:
        """Return a text as one line without secrets."""
        return redact_line(text, self._secrets)

    def redacted_for_model(self, text: str) -> str:
        """Return a text without secrets, and without the paths of this server.

        These are the folders of Python, of the host and of its data.
        """
        roots = {sys.prefix, sys.base_prefix, *sys.path, os.environ.get("DATA_DIR", "")}
        with suppress(OSError, RuntimeError):  # the folder is gone; there is no home
            roots.update((str(Path.cwd()), str(Path.home())))
        absolute = {root.rstrip("/\\") for root in roots if Path(root).is_absolute()}
        return hide_paths(redact(text, self._secrets), absolute - {""})

    def redacted_words(self, text: str) -> str:
        """Return a text as one line without secrets, for people."""
        return redact_words(text, self._secrets)

    def line(self, level: LogLevel, text: str) -> None:
        """Write `text` as one line.

        Long text is cut: an exception of a tool may be of any length.
        """
        one_line = redact_beginning(text, _MAX_LINE, self.redacted)
        self._write(level, one_line)

    def note(self, text: str) -> None:
        """Write a line of level INFO."""
        self.line("INFO", text)

    def warn(self, text: str) -> None:
        """Write a line of level WARNING, which an administrator should read."""
        self.line("WARNING", text)

    def warn_once(self, text: str, logged: RecentTexts) -> None:
        """Write a line of level WARNING, unless it was written lately."""
        if logged.first_time(text):
            self.warn(text)

    def audit(self, line: str) -> None:
        """Write a line of the audit log, which has its own setting, at any level."""
        self._write_audit(redact(line, self._secrets))

    def _write(self, level: LogLevel, one_line: str) -> None:
        """Write a line without secrets and line breaks to the log of the shell."""
        raise NotImplementedError

    def _write_audit(self, line: str) -> None:
        """Write a line without secrets, whatever the level of the log is."""
        raise NotImplementedError
