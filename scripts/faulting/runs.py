"""Runs tests with one fault after the other, each time in a process of its own.

The process that has collected the tests of a room forks for each fault: the fork puts it
into the functions that are loaded, and runs the tests. So a fault takes a second instead
of five. What is made while a module is imported, such as a table, is tried in a fork that
imports everything anew.
"""

import gc
import inspect
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

# A fork of this process runs the tests: what is imported here, it need not import again.
import aiohttp.web  # noqa: F401
import coverage
import hypothesis.strategies  # noqa: F401
import openai.types.responses  # noqa: F401
import pytest

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
HUNG = "a run that does not end"
WAIT_SECONDS = 150
MEASURE_SECONDS = 1_800


class NotInFunctionsError(Exception):
    """Only a process that imports a file anew knows what a change of it does."""


class Measured(NamedTuple):
    """What tests do where there is no fault."""

    tests: dict[tuple[str, int], list[str]]
    """Who runs a line in a function, by path and number."""
    seconds: dict[str, float]
    """Of each test."""


class CollectedTests:
    """Tests of the copy at `root`, in a process that has collected them."""

    def __init__(self, root: Path, arguments: Sequence[str], scratch: Path) -> None:
        """Start it; its output and its files are in `scratch`."""
        self._asking, answering = Pipe()
        self._process = os.fork()
        if not self._process:
            try:
                self._asking.close()  # else it would never see the other side end
                _use_for_files(scratch)
                os.chdir(root)
                answers = _Answers(root, scratch, answering)
                pytest.main([*OPTIONS, *arguments], [answers])
            finally:
                os._exit(0)
        answering.close()

    def measure(self, sources: Sequence[str]) -> Measured:
        """Run all tests, and find out which of them run which lines in functions.

        Raises EOFError where they cannot be collected, ValueError where one fails.
        """
        self._asking.send(("measure", sources))
        answer = self._asking.recv()
        if not isinstance(answer, Measured):
            raise ValueError(f"without a fault: {answer}")
        return answer

    def failing(
        self, path: Path, faulty: bytes, names: Sequence[str], enough: int = 1
    ) -> list[str]:
        """Run tests with the functions of another version of a file.

        Returns those that fail, until `enough` functions of tests have failed; HUNG
        stands for one that does not end. Raises NotInFunctionsError where a file cannot
        be tried in this way.
        """
        self._asking.send(("try", path, faulty, names, enough))
        answer = self._asking.recv()
        if answer is None:
            raise NotInFunctionsError
        return [HUNG] if answer == HUNG else list(answer)

    def end(self) -> None:
        """End the process."""
        self._asking.close()
        os.waitpid(self._process, 0)


def run_anew(root: Path, arguments: Sequence[str], scratch: Path) -> object:
    """Collect and run tests until one fails; return pytest's exit code, or HUNG."""

    def work() -> int:
        os.chdir(root)
        return pytest.main([*OPTIONS, "-x", *arguments])

    return _fork(work, scratch, WAIT_SECONDS)


class _Answers:
    """A plugin of pytest that answers CollectedTests instead of running the tests."""

    def __init__(self, root: Path, scratch: Path, asked: Connection) -> None:
        self._root = root
        self._scratch = scratch
        self._asked = asked
        self._has_failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # a file cannot be imported
            return True
        self._items = {item.nodeid: item for item in session.items}
        self._functions = _find_functions()
        while True:
            try:
                question = self._asked.recv()
            except EOFError:
                return True
            match question:
                case ("measure", sources):
                    measuring = partial(self._measure, sources)
                    self._asked.send(_fork(measuring, self._scratch, MEASURE_SECONDS))
                case ("try", path, faulty, names, enough):
                    trying = partial(self._try, path, faulty, names, enough)
                    self._asked.send(_fork(trying, self._scratch, WAIT_SECONDS))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed |= report.failed

    def _measure(self, sources: Sequence[str]) -> Measured | str:
        measuring = coverage.Coverage(
            data_file=None,
            config_file=False,
            source=[str(self._root / source) for source in sources],
        )
        measuring.start()
        seconds: dict[str, float] = {}
        items = list(self._items.values())
        for item, following in zip(items, [*items[1:], None], strict=True):
            measuring.switch_context(item.nodeid)
            began = time.perf_counter()
            if self._fails(item, following):
                return f"{item.nodeid} fails"
            seconds[item.nodeid] = time.perf_counter() - began
        measuring.stop()
        data = measuring.get_data()
        tests = {
            (str(Path(file).relative_to(self._root)), line): list(filter(None, names))
            for file in data.measured_files()
            for line, names in data.contexts_by_lineno(file).items()
        }
        return Measured(tests, seconds)

    def _try(
        self, path: Path, faulty: bytes, names: Sequence[str], enough: int
    ) -> list[str] | None:
        file = str(self._root / path)
        try:
            sound = compile((self._root / path).read_bytes(), file, "exec")
            for old, new in _changed(sound, compile(faulty, file, "exec")):
                for function in self._functions[_place(old)]:
                    function.__code__ = new
        # It is no Python, is not imported yet, or has lost a call of `super`.
        except (SyntaxError, KeyError, ValueError):
            return None
        failing: list[str] = []
        items = [self._items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            if self._fails(item, following):
                failing.append(item.nodeid)
                if len({function_of(name) for name in failing}) == enough:
                    break
        return failing

    def _fails(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        self._has_failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        return self._has_failed


def function_of(name: str) -> str:
    """Return the name of a test without that of its row."""
    return name.partition("[")[0]


_FunctionPlace = tuple[str, int, str]


def _place(code: CodeType) -> _FunctionPlace:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _find_functions() -> dict[_FunctionPlace, list[FunctionType]]:
    found: dict[_FunctionPlace, list[FunctionType]] = {}
    gc.unfreeze()  # what tests/conftest.py has frozen is not listed
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            found.setdefault(_place(each.__code__), []).append(each)
    gc.freeze()
    return found


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Find the outermost functions that differ between two versions of a module."""
    for was, now in zip(_parts(old), _parts(new), strict=True):
        if was == now:
            continue
        if was.co_flags & inspect.CO_OPTIMIZED:  # else the body of a class
            yield was, now
        else:
            yield from _changed(was, now)


def _parts(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _fork(work: Callable[[], Any], scratch: Path, wait_seconds: float) -> Any:
    """Return what a fork of this process returns from some work, HUNG if it does not.

    Processes of its own end with it, and its files are removed.
    """
    receiving, sending = Pipe(duplex=False)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o755)  # some tests run servers of other users
    child = os.fork()
    if not child:
        try:
            os.setsid()
            _use_for_files(folder)
            sending.send(work())
        finally:
            os._exit(0)
    sending.close()
    try:
        return receiving.recv() if receiving.poll(wait_seconds) else HUNG
    except EOFError:
        return HUNG
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)


def _use_for_files(folder: Path) -> None:
    """Let output and temporary files of this process be in a folder.

    Runs beside each other would remove each other's files.
    """
    os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = str(folder)
    output = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
