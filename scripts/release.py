"""Build the files that people download, or check that they are current.

python scripts/release.py                  writes release/ from the built files
python scripts/release.py --check          writes nothing; exit status 1 names what is stale
python scripts/release.py --verify FILE    whether a packed file holds the built source

`release/` is in the repository, because installing must not need more than a download.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "pipes")]

from bundling.targets import TARGETS  # noqa: E402 - the path first
from owui_manifold.config import comma_list  # noqa: E402
from owui_manifold.valves import Valves  # noqa: E402
from releasing.imports import functions_file, models_file  # noqa: E402
from releasing.packed import PackedError, pack, unpack  # noqa: E402

PIPE_ID = "openai_responses"
ADMINISTRATION_ID = "openai_responses_administration"
"""The pipe looks for a filter of this id."""
READABLE = "pipes/openai_responses_manifold.py"
FUNCTIONS = "release/openai_responses.json"
ADMINISTRATION = "release/openai_responses_administration.json"
MODELS = "release/openai_responses_models.json"
PACKED = "release/openai_responses_packed.py"
FILTERS = [target for target in TARGETS if "owui_controls" in target.packages]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, check or verify; the exit status."""
    parser = argparse.ArgumentParser(description="Build the files of a release.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--verify", type=Path, metavar="FILE", help="a packed file")
    options = parser.parse_args(arguments)
    if options.verify:
        return verify(options.verify)
    stale = [(path, text) for path, text in files() if not is_current(path, text)]
    for path, text in stale:
        if options.check:
            message = f"{path} is stale; run: python scripts/release.py"
            print(message, file=sys.stderr)
            continue
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")
        print(f"wrote {path} ({len(text.encode()):,} bytes)")
    return 1 if options.check and stale else 0


def files() -> Iterator[tuple[str, str]]:
    """Every file of the release, with what belongs into it."""
    pipe, switches = (ROOT / READABLE).read_text("utf-8"), filters()
    models = comma_list(Valves().MODEL_ID)
    yield FUNCTIONS, functions_file({PIPE_ID: pipe, **switches})
    administration = (ROOT / "pipes" / f"{ADMINISTRATION_ID}.py").read_text("utf-8")
    yield ADMINISTRATION, functions_file({ADMINISTRATION_ID: administration})
    yield MODELS, models_file(PIPE_ID, models, switches)
    yield PACKED, pack(pipe, READABLE)


def filters() -> dict[str, str]:
    """The built switches by the ids that they are installed under."""
    paths = (ROOT / target.output for target in FILTERS)
    return {path.stem: path.read_text("utf-8") for path in paths}


def is_current(path: str, text: str) -> bool:
    """Whether a file is there as it should be; zlib's versions write other bytes."""
    if not (ROOT / path).exists():
        return False
    found = (ROOT / path).read_text("utf-8")
    if path != PACKED or found == text:
        return found == text
    try:
        return unpack(found) == unpack(text)
    except PackedError:
        return False


def verify(packed: Path) -> int:
    """Say whether a packed file holds the built source of this repository."""
    try:
        source = unpack(packed.read_text("utf-8"))
    except (PackedError, OSError, UnicodeDecodeError) as error:
        print(f"{packed}: {error}", file=sys.stderr)
        return 1
    if source != (ROOT / READABLE).read_text("utf-8"):
        print(f"{packed} holds another source than {READABLE}.", file=sys.stderr)
        return 1
    print(f"{packed} holds {READABLE}, byte for byte.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
