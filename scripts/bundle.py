"""Build the one-file bundles that the hosts load, or check that they are current.

python scripts/bundle.py            writes every bundle whose entry module exists
python scripts/bundle.py --check    writes nothing; exit status 1 names what is stale
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bundling.building import build
from bundling.refusals import BundleRefused
from bundling.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build or check all bundles; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Build the bundles from their modules."
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    exit_status = 0
    for target in TARGETS:
        message = _bring_up_to_date(target, check)
        if message:
            print(message, file=sys.stderr)
            exit_status = 1
    return exit_status


def _bring_up_to_date(target: Target, check: bool) -> str:
    """Return what is wrong with a bundle; nothing if it is current or now written.

    Modules are made when they are first needed, so a bundle whose entry module does
    not exist yet is not an error.
    """
    if target.path_of(target.entry, ROOT) is None:
        return ""
    try:
        built = build(target, ROOT).encode()
    except BundleRefused as refused:
        return f"{target.output} cannot be built:\n{refused}"
    output = ROOT / target.output
    if output.exists() and output.read_bytes() == built:
        return ""
    if check:
        return f"{target.output} is stale; run: python scripts/bundle.py"
    output.write_bytes(built)
    print(f"built {target.output} ({len(built):,} bytes)")
    return ""


if __name__ == "__main__":
    sys.exit(main())
