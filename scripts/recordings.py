"""Run the decoder, the pipe and the simulator against recorded exchanges with the API.

    scripts/recordings                   everything; a table of what differs
    scripts/recordings --show GROUP      the rows of one group, with their details
    scripts/recordings --only requests   the simulator's rules alone (or: streams, pipe)

Each recorded stream is replayed whole and in pieces through the decoder. Streams and
JSON answers are replayed through the built pipe, to a page and to a plain client. Text,
reasoning, calls, sources, usage and ending have to be those of the recording's own
final object, and the deltas have to add up to the finished items. The simulator checks
each recorded request: it has to accept what was accepted, and to refuse what was
refused with the same status, code and param.

Differences whose reason is known (`recorded/explained.py`) are counted apart.

The recordings are no part of the project: they lie next to the checkout, in
`../shared/recordings`, or where `--from` says, which takes folders and files. Without
them there is nothing to do.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("pipes", "testkit", "scripts")]

from recorded.explained import split_explained  # noqa: E402 - the path first
from recorded.pipe_replay import replay_through_pipe  # noqa: E402
from recorded.requests import compare_requests  # noqa: E402
from recorded.rows import Difference, find_files, read_recordings  # noqa: E402
from recorded.streams import compare_streams  # noqa: E402

RECORDINGS = ROOT.parent / "shared/recordings"
MAX_SHOWN_CHARACTERS = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; return 1 if a difference has no explanation."""
    parser = argparse.ArgumentParser(description="Run against recorded exchanges.")
    parser.add_argument("--only", choices=["streams", "pipe", "requests"])
    parser.add_argument("--show", default="", help="a group, with all of its rows")
    parser.add_argument(
        "--from", dest="paths", type=Path, nargs="+", default=[RECORDINGS]
    )
    options = parser.parse_args(arguments)
    files = find_files(options.paths)
    if not files:
        print(f"No recordings at {options.paths[0]}: nothing is compared.")
        return 0
    recordings = [row for path in files for row in read_recordings(path)]
    print(f"{len(recordings)} recorded exchanges in {len(files)} files")
    differences: list[Difference] = []
    if options.only in (None, "streams"):
        differences += compare_streams(recordings)
    if options.only in (None, "pipe"):
        differences += asyncio.run(replay_through_pipe(recordings))
    if options.only in (None, "requests"):
        differences += compare_requests(recordings)
    unexplained, explained = split_explained(differences)
    if options.show:
        print_differences(differences, options.show)
    else:
        print_explained(explained)
        print_differences(unexplained, "")
    return 1 if unexplained else 0


def print_explained(explained: Mapping[str, Sequence[Difference]]) -> None:
    """Print how many differences have each reason, and in how many recordings."""
    print("\nexplained differences")
    for reason, rows in explained.items():
        recordings = {(row.recording.file, row.recording.number) for row in rows}
        print(f"{len(rows):5}  in {len(recordings)} recordings: {reason}")


def print_differences(differences: Iterable[Difference], shown: str) -> None:
    """Print how many rows differ in each way, with an example, or all of one group."""
    groups: dict[str, list[Difference]] = defaultdict(list)
    for difference in differences:
        groups[difference.group].append(difference)
    total = sum(len(rows) for rows in groups.values())
    noun = "differences" if shown else "unexplained differences"
    print(f"\n{total} {noun}")
    for group, rows in sorted(groups.items(), key=_most_rows_first):
        is_shown = bool(shown) and shown in group
        print(f"{len(rows):5}  {group}")
        for row in rows if is_shown else rows[:1]:
            print(f"         {row.recording.source}")
            print(f"         {row.detail[:MAX_SHOWN_CHARACTERS]}")


def _most_rows_first(group: tuple[str, list[Difference]]) -> int:
    _, rows = group
    return -len(rows)


if __name__ == "__main__":
    sys.exit(main())
