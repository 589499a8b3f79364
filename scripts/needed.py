"""Which tests are needed: which alone see a small fault of their room's sources?

    scripts/needed.py                                40 tests of each room
    scripts/needed.py pipes/owui_chat --tests 9999   all tests of one room
    scripts/needed.py --seed 7                       other tests

A test with rows counts as one. Faults like those of `scripts/faults.py` are put into the
lines that a test runs and the fewest others run, one at a time, until one is seen by this
test and by no other of the room. Printed are tests that saw none of these faults, and
those that saw some, but none alone. Such a test is not needless for that: not all faults
were tried, and what people get wrong is more than what is drawn here.
"""

import argparse
import random
import sys
from collections import defaultdict

from faulting.faults import Fault
from faulting.rooms import ROOMS, Room, scratch_copy
from faulting.runs import function_of
from progress import Progress

MOST_FAULTS = 14
MOST_ROWS = 12
"""Of the test itself."""
MOST_OTHERS = 100
MOST_SECONDS = 3.0
"""Of one test; longer ones are left out."""


def main() -> int:
    """Print what was found in each room."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="*", metavar="ROOM", default=ROOMS)
    parser.add_argument("--tests", type=int, default=40, help="in each room")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    all_tried = all_alone = all_blind = 0
    with scratch_copy() as (copy, scratch):
        for source in options.rooms:
            progress = Progress(f"   {source}")
            room = Room(source, copy, scratch)
            search = Search(room)
            tests = sorted(search.rows)
            random.Random(options.seed).shuffle(tests)
            del tests[options.tests :]
            alone = blind = 0
            shared: list[str] = []
            for number, test in enumerate(tests, 1):
                saw, saw_alone = search.look(test)
                alone += saw_alone
                blind += not saw
                if not saw_alone:
                    shared.append(f"{test}{'' if saw else '  (saw none)'}")
                progress.show(f"{number} of {len(tests)}")
            room.tests.end()
            progress.end(f"{alone} of {len(tests)} tests alone see a fault")
            for line in shared:
                print(f"   not alone: {line}", flush=True)
            all_tried += len(tests)
            all_alone += alone
            all_blind += blind
    print(
        f"Of {all_tried} tests, {all_alone} alone see a fault, and {all_blind} saw none."
    )
    return 0


class Search:
    """Looks for faults that a test sees, and no other."""

    def __init__(self, room: Room) -> None:
        """Find out which faults are in lines that few tests run."""
        self._room = room
        self.rows: dict[str, list[str]] = defaultdict(list)
        """The tests of the room that run some of its sources, with their rows."""
        runners = {
            place: {function_of(name) for name in names}
            for place, names in room.measured.tests.items()
        }
        self._places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for place in sorted(runners, key=lambda place: len(runners[place])):
            for test in runners[place]:
                self._places[test].append(place)
        for name in room.measured.seconds:
            if function_of(name) in self._places:
                self.rows[function_of(name)].append(name)
        self._faults: dict[tuple[str, int], list[Fault]] = defaultdict(list)
        for fault in room.faults():
            if not fault.constant:
                self._faults[str(fault.path), fault.lines.start].append(fault)

    def look(self, test: str) -> tuple[bool, bool]:
        """Say whether a test sees a fault, and whether it sees one alone."""
        saw = False
        for fault in self._faults_for(test):
            seconds = self._room.measured.seconds
            others = [
                name
                for name in self._room.tests_of(fault)
                if function_of(name) != test and seconds[name] < MOST_SECONDS
            ]
            tests = [*self.rows[test][:MOST_ROWS], *others[:MOST_OTHERS]]
            seeing = self._room.functions_that_see(fault, tests, enough=2)
            saw = saw or test in seeing
            if seeing == {test}:
                return True, True
        return saw, False

    def _faults_for(self, test: str) -> list[Fault]:
        faults: list[Fault] = []
        for place in self._places[test]:
            faults += self._faults.get(place, [])[:2]
            if len(faults) >= MOST_FAULTS:
                break
        return faults


if __name__ == "__main__":
    sys.exit(main())
