"""Measure the CPU that very large bodies, chats and answers cost.

python scripts/bench/large.py                   every case at its size
python scripts/bench/large.py --share 0.1       a tenth of each size

A caller, the owner of a chat or a model chooses these sizes, so the work of each case
has to be linear: `tests/test_large.py` counts it at three sizes.
"""

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
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import goal_line, parse_options
from large_cases import answers, chats

GOAL = 0.5
"""Seconds of CPU."""

Work = Callable[[], object]


class Case(NamedTuple):
    """A function that prepares work of a given size, and the size that has the goal.

    `uses_regex` says that a regular expression does the work: the interpreter cannot
    count its steps.
    """

    prepare: Callable[[int], Work]
    size: int
    uses_regex: bool = False

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.prepare.__name__


CASES = (
    Case(chats.calls_in_one_run, 5_000),
    Case(chats.many_messages, 50_000),
    Case(chats.tool_messages, 20_000),
    Case(chats.tool_pictures, 5_000),
    Case(chats.attachments, 10_000),
    Case(chats.turns_with_details, 20_000),
    Case(chats.details_in_one_message, 20_000),
    Case(chats.one_call_many_times, 5_000),
    Case(chats.one_marker_many_times, 5_000),
    Case(chats.turns_with_kept_items, 200),
    Case(chats.kept_items_of_one_answer, 5_000),
    Case(chats.edited_answers, 2_000),
    Case(chats.records_of_one_key, 10_000),
    Case(chats.pruning, 20_000),
    Case(chats.changed_instructions, 5_000),
    Case(chats.rounds_of_the_agent, 5_000),
    Case(answers.recorded_calls, 5_000),
    Case(answers.recorded_messages, 5_000),
    Case(answers.recorded_commentary, 5_000),
    Case(answers.cited_sources, 5_000),
    Case(answers.plain_sources, 5_000),
    Case(answers.calls_of_the_agent, 5_000),
    Case(answers.foreign_lines, 10_000_000, uses_regex=True),
    Case(answers.half_links, 10_000_000, uses_regex=True),
)


def main() -> None:
    """Print the seconds of each case."""
    options = parse_options(__doc__, share=(1.0, "of each size"))
    slowest = 0.0
    for case in CASES:
        size = max(1, int(case.size * options.share))
        seconds = cpu_seconds(case.prepare(size))
        slowest = max(slowest, seconds)
        name = case.name.replace("_", " ")
        print(f"{name:28} {size:>12,} {seconds:8.2f} s", flush=True)
    goal = f"each at most {GOAL} s of CPU"
    print(goal_line(goal, slowest <= GOAL, f"{slowest:.2f}"))


def cpu_seconds(work: Work) -> float:
    """Return the seconds of CPU that some work takes.

    As in the pipe, garbage is collected after the work, not during it; that counts.
    """
    gc.collect()
    gc.disable()
    began = time.process_time()
    result = work()
    gc.enable()
    gc.collect(0)
    seconds = time.process_time() - began
    del result  # freeing it is not measured
    return seconds


if __name__ == "__main__":
    main()
