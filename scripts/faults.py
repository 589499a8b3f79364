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
import random
import sys
from pathlib import Path

from faulting.faults import Fault, read_known_faults
from faulting.rooms import ROOMS, Room, scratch_copy
from progress import Progress

KNOWN = Path(__file__).parent / "faulting/known.json"
LEAST_KNOWN_SEEN = 0.95
LEAST_SEEN = 0.8
"""Of the drawn faults of all rooms. Some change nothing that anybody could see, as a limit
of a million that is one more."""


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
    with scratch_copy() as (copy, scratch):
        all_known = read_known_faults(copy, KNOWN)
        for source in options.rooms:
            progress = Progress(f"   {source}")
            room = Room(source, copy, scratch)
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
