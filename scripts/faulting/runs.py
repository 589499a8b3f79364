"""Runs tests again and again in a copy of the project, each time in a process of its own.

The processes are forks of this one, which has imported the libraries already but none of
the sources: a run of a few tests takes less than a second.
"""

import json
import os
import signal
import tempfile
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import coverage
import pytest

HANGS = -1
"""The exit code of a run that did not end."""
WAIT_SECONDS = 150
OPTIONS = (
    "--quiet",
    "--tb=no",
    "--timeout=20",
    "-p",
    "no:cacheprovider",
    "-W",
    # It complains about what this process has imported already.
    "ignore::pytest.PytestAssertRewriteWarning",
)


class LinesOfTests:
    """A plugin of pytest that writes down which tests ran which lines, and their seconds.

    The file has two objects, in JSON: `lines` (path, line, names of tests) and `seconds`
    (name of a test).
    """

    def __init__(self, root: Path, sources: Sequence[str], to: Path) -> None:
        """Begin to measure."""
        self.root = root
        self.to = to
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            source=[str(root / source) for source in sources],
        )
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        """What runs from now on belongs to this test."""
        self.coverage.switch_context(item.nodeid)
        began = time.perf_counter()
        ran = yield
        self.seconds[item.nodeid] = time.perf_counter() - began
        return ran

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(name).relative_to(self.root)): data.contexts_by_lineno(name)
            for name in data.measured_files()
        }
        self.to.write_text(json.dumps({"lines": lines, "seconds": self.seconds}))


def run_tests(
    root: Path,
    arguments: Sequence[str],
    log: Path,
    measured: tuple[Sequence[str], Path] | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> int:
    """Run pytest in the copy at `root`; return its exit code.

    `measured` has the sources whose lines are measured, and where to write them.
    """
    child = os.fork()
    if not child:
        try:
            os.setsid()
            os.chdir(root)
            # Runs beside this one would remove each other's folders, and what this one
            # leaves when it ends goes with the log.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(log.parent)
            tempfile.tempdir = str(log.parent)
            for stream in (1, 2):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                os.dup2(os.open(log, flags, 0o600), stream)
            plugins = [LinesOfTests(root, *measured)] if measured else []
            os._exit(pytest.main([*OPTIONS, *arguments], plugins))
        finally:
            os._exit(pytest.ExitCode.INTERNAL_ERROR)
    deadline = time.monotonic() + wait_seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return HANGS
        time.sleep(0.02)
