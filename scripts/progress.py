"""What a person sees while something takes its time."""

import sys
import time
from typing import TextIO

QUIET_SECONDS = 10  # between two lines where the output is not a terminal
WIDTH = 79


class Progress:
    """One step: a line that moves on a terminal, with the seconds it took."""

    def __init__(self, step: str, output: TextIO = sys.stderr) -> None:
        """The clock starts here."""
        self.step = step
        self.output = output
        self._began = time.monotonic()
        self._shown = self._began
        self._moves = output.isatty()

    def show(self, state: str = "") -> None:
        """Say how far the step has come, every few seconds at most in a file."""
        now = time.monotonic()
        if self._moves:
            self.output.write("\r" + self._line(state).ljust(WIDTH)[:WIDTH])
        elif now - self._shown >= QUIET_SECONDS:
            self._shown = now
            self.output.write(self._line(state) + "\n")
        self.output.flush()

    def end(self, state: str = "") -> None:
        """Keep the step's last line on the screen."""
        line = self._line(state)
        if self._moves:  # it replaces what is on this line
            line = "\r" + line.ljust(WIDTH)
        self.output.write(line + "\n")
        self.output.flush()

    def _line(self, state: str) -> str:
        step = f"{self.step}: {state}" if state else self.step
        seconds = time.monotonic() - self._began
        return f"{step}  [{seconds:.0f} s]"
