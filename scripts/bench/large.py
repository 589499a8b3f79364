"""Measure the CPU that very large bodies, chats and answers cost.

python scripts/bench/large.py                   every case at its size
python scripts/bench/large.py --share 0.1       a tenth of each size
python scripts/bench/large.py turns records     only cases with one of these words

A caller, the owner of a chat or a model chooses these sizes. So the work of each case has
to be linear: `tests/test_large.py` counts it at three sizes.
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

from large_cases.answers import (
    calls_of_the_agent,
    cited_sources,
    foreign_lines,
    half_links,
    plain_sources,
    recorded_calls,
    recorded_commentary,
    recorded_messages,
)
from large_cases.chats import (
    attachments,
    calls_in_one_run,
    changed_instructions,
    details_in_one_message,
    edited_answers,
    kept_items_of_one_answer,
    many_messages,
    one_call_many_times,
    one_marker_many_times,
    pruning,
    records_of_one_key,
    rounds_of_the_agent,
    tool_messages,
    tool_pictures,
    turns_with_details,
    turns_with_kept_items,
)

GOAL = 0.5
"""Seconds of CPU."""

Work = Callable[[], object]


class Case(NamedTuple):
    """Prepares work of a chosen size; the goal holds for `size`.

    `uses_regex` says that a regular expression does the work, whose steps the
    interpreter cannot count.
    """

    prepare: Callable[[int], Work]
    size: int
    uses_regex: bool = False

    @property
    def name(self) -> str:
        """The words by which it is chosen and shown."""
        return self.prepare.__name__


CASES = (
    Case(calls_in_one_run, 5_000),
    Case(many_messages, 50_000),
    Case(tool_messages, 20_000),
    Case(tool_pictures, 5_000),
    Case(attachments, 10_000),
    Case(turns_with_details, 20_000),
    Case(details_in_one_message, 20_000),
    Case(one_call_many_times, 5_000),
    Case(one_marker_many_times, 5_000),
    Case(turns_with_kept_items, 200),
    Case(kept_items_of_one_answer, 5_000),
    Case(edited_answers, 2_000),
    Case(records_of_one_key, 10_000),
    Case(pruning, 20_000),
    Case(changed_instructions, 5_000),
    Case(rounds_of_the_agent, 5_000),
    Case(recorded_calls, 5_000),
    Case(recorded_messages, 5_000),
    Case(recorded_commentary, 5_000),
    Case(cited_sources, 5_000),
    Case(plain_sources, 5_000),
    Case(calls_of_the_agent, 5_000),
    Case(foreign_lines, 10_000_000, uses_regex=True),
    Case(half_links, 10_000_000, uses_regex=True),
)


def main() -> None:
    """Print the seconds of each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("words", nargs="*", help="a part of the name of a case")
    parser.add_argument("--share", type=float, default=1.0, help="of each size")
    arguments = parser.parse_args()
    slow_cases = 0
    for case in CASES:
        if not is_chosen(case, arguments.words):
            continue
        size = max(1, int(case.size * arguments.share))
        seconds = cpu_seconds(case.prepare(size))
        if seconds > GOAL:
            slow_cases += 1
        name = case.name.replace("_", " ")
        print(f"{name:28} {size:>12,} {seconds:8.2f} s", flush=True)
    verdict = f"MISSED by {slow_cases}" if slow_cases else "met"
    print(f"Goal: each at most {GOAL} s of CPU: {verdict}.")


def is_chosen(case: Case, words: list[str]) -> bool:
    """Say whether a case is wanted; without words all are."""
    return not words or any(word in case.name for word in words)


def cpu_seconds(work: Work) -> float:
    """Return the seconds of CPU of one piece of work.

    As in the pipe, no garbage is collected meanwhile; what is put off until then counts.
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
