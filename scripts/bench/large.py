"""Measure the CPU that very large bodies, chats and answers cost.

python scripts/bench/large.py                   every case at its size
python scripts/bench/large.py --share 0.1       a tenth of each size
python scripts/bench/large.py turns records     only cases with one of these words

A caller, the owner of a chat or a model chooses these sizes. So the work of each case has
to be linear: `tests/test_large.py` counts it at two sizes.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipelines"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench import large_answers as answers
from bench import large_chats as chats
from openai_responses.clock import pause_collection

GOAL = 0.5
"""Seconds of CPU."""

Work = Callable[[], object]


class Case(NamedTuple):
    """Prepares work of a chosen size; the goal holds for `size`."""

    prepare: Callable[[int], Work]
    size: int
    counts: bool = True
    """Whether the interpreter's steps show its work: not where a regex does it."""

    @property
    def name(self) -> str:
        """The words by which it is chosen and shown."""
        return self.prepare.__name__


CASES = (
    Case(chats.calls_in_one_run, 5_000),
    Case(chats.many_messages, 50_000),
    Case(chats.many_answers, 50_000),
    Case(chats.many_parts, 100_000),
    Case(chats.tool_messages, 20_000),
    Case(chats.tool_pictures, 5_000),
    Case(chats.attachments, 10_000),
    Case(chats.turns_with_details, 20_000),
    Case(chats.details_in_one_message, 20_000),
    Case(chats.one_call_many_times, 5_000),
    Case(chats.one_marker_many_times, 5_000),
    Case(chats.codes_in_one_answer, 2_000),
    Case(chats.turns_with_kept_items, 200),
    Case(chats.kept_items_of_one_answer, 5_000),
    Case(chats.edited_answers, 2_000),
    Case(chats.chain_of_messages, 50_000),
    Case(chats.ring_of_messages, 50_000),
    Case(chats.records_of_one_key, 10_000),
    Case(chats.pruning, 20_000),
    Case(chats.changed_instructions, 5_000),
    Case(chats.rounds_of_the_agent, 5_000),
    Case(chats.context_of_the_agent, 5_000),
    Case(answers.shown_calls, 5_000),
    Case(answers.recorded_calls, 5_000),
    Case(answers.late_items, 5_000),
    Case(answers.recorded_messages, 5_000),
    Case(answers.recorded_commentary, 5_000),
    Case(answers.long_commentary, 100_000),
    Case(answers.plain_answer, 5_000),
    Case(answers.cited_sources, 5_000),
    Case(answers.plain_sources, 5_000),
    Case(answers.run_many_calls, 5_000),
    Case(answers.calls_of_the_agent, 5_000),
    Case(answers.half_markers, 10_000_000, counts=False),
    Case(answers.details_blocks, 10_000_000, counts=False),
    Case(answers.foreign_lines, 10_000_000, counts=False),
    Case(answers.half_links, 10_000_000, counts=False),
    Case(answers.one_long_link, 1_000_000, counts=False),
    Case(answers.container_addresses, 10_000_000, counts=False),
    Case(answers.long_arguments, 10_000_000, counts=False),
)


def main() -> int:
    """Print the seconds of each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="a part of the name of a case")
    parser.add_argument("--share", type=float, default=1.0, help="of each size")
    given = parser.parse_args()
    words = given.words or [""]
    slow = 0
    for case in CASES:
        if any(word in case.name for word in words):
            size = max(1, int(case.size * given.share))
            seconds = measured(case.prepare(size))
            slow += seconds > GOAL
            name = case.name.replace("_", " ")
            print(f"{name:28} {size:>12,} {seconds:8.2f} s", flush=True)
    verdict = "met" if not slow else f"MISSED by {slow}"
    print(f"Goal: each at most {GOAL} s of CPU: {verdict}.")
    return 0


def measured(work: Work) -> float:
    """Return the seconds of CPU of one piece of work, as a thread of the pipe runs it.

    What Python's garbage collection has put off until then counts, too.
    """
    gc.collect()
    began = time.process_time()
    made = pause_collection(work)
    gc.collect(0)
    seconds = time.process_time() - began
    del made
    return seconds


if __name__ == "__main__":
    sys.exit(main())
