"""The rooms of the sources, each with the tests that mirror it."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from faulting.faults import Fault, find_faults, find_uses
from faulting.runs import CollectedTests, NotInFunctionsError, function_of, run_anew

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "pipes/openai_responses",
    "pipes/owui_chat",
    "pipes/owui_manifold",
    "pipes/owui_administration",
    "pipes/owui_controls",
    "pipes/strategies",
    "pipes/shells",
    "pipes/settings",
    "pipes/manifold",
    "pipelines/gpt5_agent",
    "pipes/sandbox",
    "pipes/owui_sandbox",
)
TESTED_BY = {"pipes/owui_host": "pipes/owui_manifold"}
"""Rooms without tests of their own, with the one whose tests run them."""
DOORS = "tests/doors"
BEHIND_DOORS = (
    "pipes/manifold",
    "pipes/owui_manifold",
    "pipes/shells",
    "pipes/strategies",
    "pipelines/gpt5_agent",
)
"""The rooms whose behaviors are rows of the table of both doors."""
NO_SERVERS = "not (oldest or pipelines or browser or databases)"
"""Open WebUI's own functions are asked by a room's tests, in one process for all."""


def folders_of_tests(source: str) -> list[str]:
    """Return the folders of the tests that run a room."""
    tested = TESTED_BY.get(source, source)
    doors = [DOORS] if tested in BEHIND_DOORS else []
    return [f"tests/{Path(tested).name}", *doors]


class Room:
    """A package of the sources, with the tests that mirror it."""

    def __init__(self, source: str, copy: Path, scratch: Path) -> None:
        """Find out which test runs which line."""
        self.copy = copy
        self.scratch = scratch
        sources = [source, *(each for each in TESTED_BY if TESTED_BY[each] == source)]
        self.paths = [
            path.relative_to(copy)
            for each in sources
            for path in sorted((copy / each).rglob("*.py"))
        ]
        tests = [*folders_of_tests(source), "-m", NO_SERVERS]
        self.tests = CollectedTests(copy, tests, scratch)
        try:
            self.measured = self.tests.measure(sources)
        except (EOFError, ValueError) as error:
            log = (scratch / "log").read_text()
            raise SystemExit(f"{source}: {error}\n{log}") from None

    def faults(self) -> list[Fault]:
        """Return all that could be put in."""
        return [fault for path in self.paths for fault in find_faults(self.copy, path)]

    def sees(self, fault: Fault) -> bool:
        """Let the tests that run a fault look for it."""
        tests = self.tests_of(fault)
        if not tests:
            return False
        faulty = fault.apply((self.copy / fault.path).read_bytes())
        if not fault.constant:
            with suppress(NotInFunctionsError):
                if self.tests.failing(fault.path, faulty, tests):
                    return True
                # What is made of this function while modules are imported is sound yet.
        return self._sees_anew(fault.path, faulty, tests)

    def functions_that_see(
        self, fault: Fault, tests: Sequence[str], enough: int
    ) -> set[str]:
        """Return functions of tests that see a fault, until `enough` of them do.

        A fault of a table, or of what is made while modules are imported, is seen by
        none: the tests of each would be collected anew.
        """
        faulty = fault.apply((self.copy / fault.path).read_bytes())
        with suppress(NotInFunctionsError):
            failing = self.tests.failing(fault.path, faulty, tests, enough)
            return {function_of(name) for name in failing}
        return set()

    def _sees_anew(self, path: Path, faulty: bytes, tests: Sequence[str]) -> bool:
        names = self.scratch / "names"
        names.write_text("\n".join(tests))
        sound = (self.copy / path).read_bytes()
        (self.copy / path).write_bytes(faulty)
        try:
            code = run_anew(self.copy, [f"@{names}"], self.scratch)
            if code == pytest.ExitCode.USAGE_ERROR:  # a row has another name
                files = {name.partition("::")[0] for name in tests}
                code = run_anew(self.copy, sorted(files), self.scratch)
        finally:
            (self.copy / path).write_bytes(sound)
        # Also where a file of tests cannot be read any more, or the run does not end.
        return code != pytest.ExitCode.OK

    def tests_of(self, fault: Fault) -> list[str]:
        """Return the tests that run a fault: those of its module first, then by time."""
        places = [(str(fault.path), line) for line in fault.lines]
        if fault.constant:
            places = list(find_uses(fault.constant, self.copy, self.paths))
        tests = {
            name for place in places for name in self.measured.tests.get(place, ())
        }
        own = f"test_{fault.path.stem}"
        seconds = self.measured.seconds
        # What is run while a module is imported belongs to no test; a table may be read
        # as a text, or be used by other rooms alone.
        if fault.constant or not tests:
            tests |= {name for name in seconds if own in name}
        # Modules that are all alike may share a file of tests.
        tests = tests or set(seconds)
        return sorted(tests, key=lambda name: (own not in name, seconds[name]))


@contextmanager
def scratch_copy() -> Iterator[tuple[Path, Path]]:
    """Return a copy of what is committed, and a folder for what is written beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # some tests run servers of other users
        copy = Path(scratch, "copy")
        subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
        Path(copy, ".venv").symlink_to(ROOT / ".venv")  # Open WebUI is in there
        yield copy, Path(scratch)
