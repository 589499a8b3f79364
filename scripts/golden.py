"""Show that a change of the code changes nothing that a host, a user or the API sees.

python scripts/golden.py --write DIR       writes the outcome of every case
python scripts/golden.py --compare DIR     prints what differs from it; exit 1 if so

Each case is a chat of two turns or more with the built pipe, in the stand-in of Open
WebUI, or with the built pipeline: all transcripts of testkit/streams, and chats with the
simulator. An outcome has the requests that arrive at the server, everything that is
yielded or returned, and what the chat stores. `--pipe` and `--pipeline` name the built
files of another revision.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

from golden_run.built_files import BUILT_PIPE, BUILT_PIPELINE, ROOT
from golden_run.comparison import SHOWN_DIFFERENCES, SHOWN_LINES, find_differences
from golden_run.running import GoldenRun
from hosts.servers.functions import run_host_functions

STREAMS = ROOT / "testkit/streams"


def main() -> int:
    """Write or compare; return the exit code."""
    arguments = read_arguments()
    began = time.monotonic()
    outcomes = run_cases(arguments)
    seconds = time.monotonic() - began
    print(f"{len(outcomes)} cases in {seconds:.0f} s", file=sys.stderr)
    if arguments.write:
        write_outcomes(arguments.write, outcomes)
        return 0
    golden = read_outcomes(arguments.compare, arguments.cases)
    differences = find_differences(golden, outcomes)
    for difference in differences[: arguments.differences]:
        print(difference.text(arguments.lines), end="\n\n")
    hidden = len(differences) - arguments.differences
    if hidden > 0:
        print(f"... and {hidden} more differences, each in fewer cases\n")
    names: set[str] = set()
    for difference in differences:
        names.update(difference.cases)
    print(f"{len(names)} cases differ." if names else "Nothing differs.")
    return 1 if names else 0


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="DIR")
    action.add_argument("--compare", type=Path, metavar="DIR")
    parser.add_argument("--pipe", type=Path, default=BUILT_PIPE, help="a built file")
    parser.add_argument(
        "--pipeline", type=Path, default=BUILT_PIPELINE, help="a built file"
    )
    parser.add_argument(
        "--cases", default="", help="only those with this in their name"
    )
    parser.add_argument(
        "--differences", type=int, default=SHOWN_DIFFERENCES, help="at most"
    )
    parser.add_argument(
        "--lines", type=int, default=SHOWN_LINES, help="of a difference, at most"
    )
    return parser.parse_args()


def run_cases(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the outcome of each case, by its name."""
    with (
        tempfile.TemporaryDirectory() as home,
        run_host_functions(Path(home)) as functions,
    ):
        run = GoldenRun(arguments.pipe, arguments.pipeline, functions)
        outcomes = dict(run.outcomes(STREAMS, arguments.cases))
    unknown = run.unknown_settings()
    if unknown:
        print(f"Neither file knows {', '.join(unknown)}", file=sys.stderr)
    return outcomes


def write_outcomes(folder: Path, outcomes: dict[str, str]) -> None:
    """Write a file for each case."""
    for name, text in outcomes.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def read_outcomes(folder: Path, wanted: str) -> dict[str, str]:
    """Return the texts of the cases whose names contain `wanted`."""
    outcomes = {}
    for path in folder.rglob("*.json"):
        name = path.relative_to(folder).with_suffix("").as_posix()
        if wanted in name:
            outcomes[name] = path.read_text("utf-8")
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
