"""Do the tests of a room see a fault of its sources?

    scripts/faults.py                                   the known faults, and 40 others
                                                        in each room
    scripts/faults.py pipes/owui_chat --faults 200      in one room
    scripts/faults.py --seed 7                          other faults
    scripts/faults.py pipes/openai_responses --under loop --faults 200
                                                        in one folder of a room

One small fault at a time is put into a copy of what is committed. The known ones are
those that people thought of, with what somebody would notice (`faulting/known.json`).
The others are drawn: a condition that never or always holds, half of a condition, a
limit that is off by one, a statement, a call, an argument or an element of a table that
is gone (`faulting/faults.py`). Then the tests of the room that run this line, or use
this table, are run until one fails; the table of both doors is one of theirs where it
shows what they do. Those of other rooms and the hosts do not count. Faults that no test
saw are printed. Some of the drawn ones change nothing that matters; the others are what
a test is missing for.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# A fork of this process runs the tests: what is imported here, it need not import again.
import aiohttp.web  # noqa: F401
import hypothesis.strategies  # noqa: F401
import openai.types.responses  # noqa: F401
import pytest

from faulting.faults import Fault, find_faults, find_uses, read_known_faults
from faulting.runs import CollectedTests, NotInFunctionsError, run_anew
from progress import Progress

ROOT = Path(__file__).resolve().parent.parent
KNOWN = Path(__file__).parent / "faulting/known.json"
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
TESTED_WITH = {"pipes/owui_manifold": ["pipes/owui_host"]}
"""Rooms without tests of their own."""
DOORS = "tests/doors"
BEHIND_DOORS = (
    "pipes/manifold",
    "pipes/owui_manifold",
    "pipes/shells",
    "pipes/strategies",
    "pipelines/gpt5_agent",
)
"""The rooms whose behaviors are rows of the table of both doors."""
LEAST_KNOWN_SEEN = 0.95
LEAST_SEEN = 0.8
"""Of the drawn faults of all rooms. Some change nothing that anybody could see, as a limit
of a million that is one more."""
NO_SERVERS = "not (oldest or pipelines or browser or databases)"
"""Open WebUI's own functions are asked by a room's tests, in one process for all."""


class Room:
    """A package of the sources, with the tests that mirror it."""

    def __init__(self, source: str, copy: Path, scratch: Path) -> None:
        """Find out which test runs which line."""
        self.copy = copy
        self.scratch = scratch
        sources = [source, *TESTED_WITH.get(source, [])]
        self.paths = [
            path.relative_to(copy)
            for each in sources
            for path in sorted((copy / each).rglob("*.py"))
        ]
        tests = [f"tests/{Path(source).name}"]
        if source in BEHIND_DOORS:
            tests.append(DOORS)
        self.tests = CollectedTests(copy, [*tests, "-m", NO_SERVERS], scratch)
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
                if self.tests.first_failing(fault.path, faulty, tests):
                    return True
                # What is made of this function while modules are imported is sound yet.
        return self._sees_anew(fault.path, faulty, tests)

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
        return sorted(tests, key=lambda name: (own not in name, seconds[name]))


def main() -> int:
    """Print what each room saw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", default=ROOMS)
    parser.add_argument("--faults", type=int, default=40, help="in each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--under", default="", metavar="PART", help="of a path, for the drawn ones"
    )
    options = parser.parse_args()
    known_tried = known_seen = drawn_tried = drawn_seen = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # some tests run servers of other users
        copy = Path(scratch, "copy")
        subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
        Path(copy, ".venv").symlink_to(ROOT / ".venv")  # Open WebUI is in there
        all_known = read_known_faults(copy, KNOWN)
        for source in options.rooms:
            progress = Progress(f"   {source}")
            room = Room(source, copy, Path(scratch))
            known = [fault for fault in all_known if fault.path in room.paths]
            drawn = [f for f in room.faults() if options.under in str(f.path)]
            random.Random(options.seed).shuffle(drawn)
            del drawn[options.faults :]
            unseen: list[Fault] = []
            for number, fault in enumerate([*known, *drawn], 1):
                if not room.sees(fault):
                    unseen.append(fault)
                progress.show(f"{number} of {len(known) + len(drawn)}")
            room.tests.end()
            known_unseen = sum(fault in known for fault in unseen)
            room_known_seen = len(known) - known_unseen
            room_drawn_seen = len(drawn) - (len(unseen) - known_unseen)
            progress.end(
                f"{room_known_seen} of {len(known)} known ones, "
                f"{room_drawn_seen} of {len(drawn)} drawn ones seen"
            )
            for fault in unseen:
                print(f"   unseen: {fault}", flush=True)
            known_tried += len(known)
            known_seen += room_known_seen
            drawn_tried += len(drawn)
            drawn_seen += room_drawn_seen
    print(
        f"The tests of their room see {known_seen} of {known_tried} known faults, and "
        f"{drawn_seen} of {drawn_tried} drawn ones."
    )
    sees_known = known_seen >= LEAST_KNOWN_SEEN * known_tried
    return 0 if sees_known and drawn_seen >= LEAST_SEEN * drawn_tried else 1


if __name__ == "__main__":
    sys.exit(main())
