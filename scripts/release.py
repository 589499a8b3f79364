"""Write the files that people download, or check them.

python scripts/release.py                  writes release/ from the built files, for a release
python scripts/release.py --check          exit status 1 if release/ contradicts itself
python scripts/release.py --verify FILE    whether a file holds the built sources alone

`release/` is in the repository, because installing must not need more than a download.
It changes with the version, and never without. Both checks need the standard library alone.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "release"
sys.path[:0] = [str(ROOT / "pipes")]

from releasing.contents import (  # noqa: E402 - the path
    PIPE_ID,
    READABLE,
    SWITCHES,
    check_models,
    check_release,
    read_import,
    version_of,
)
from releasing.download_page import PAGE, download_page  # noqa: E402 - the path
from releasing.packed import (  # noqa: E402 - the path
    PackedError,
    read_packed,
    unpack,
    without_comments,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, check or verify; the exit status."""
    parser = argparse.ArgumentParser(description="Build the files of a release.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--verify", type=Path, metavar="FILE", help="a packed one or JSON"
    )
    options = parser.parse_args(arguments)
    if options.verify:
        return verify(options.verify)
    if options.check:
        return check(RELEASE)
    version = version_of((ROOT / READABLE[PIPE_ID]).read_text("utf-8"))
    if version.endswith(".dev"):
        print(f"{version} is no release: see CONTRIBUTING.md.", file=sys.stderr)
        return 1
    write(RELEASE)
    for file in sorted(RELEASE.iterdir()):
        print(f"{file.name} ({file.stat().st_size:,} bytes)")
    return 0


def write(folder: Path) -> None:
    """Write all files of a release into a folder, made of the built files as they are.

    This needs pydantic, which the checks do not; hence the import in here.
    """
    from releasing.files import write_release  # noqa: PLC0415 - see above

    write_release(folder)


def check(folder: Path) -> int:
    """Say what is wrong with the files of a release."""
    messages = list(check_release(folder))
    if not messages and not _is_page_current(folder):
        messages.append(f"{PAGE} does not describe these files.")
    for message in messages:
        print(message, file=sys.stderr)
    return 1 if messages else 0


def _is_page_current(folder: Path) -> bool:
    """Say whether the page about the files is that of these files."""
    page = folder / PAGE
    return page.exists() and page.read_text("utf-8") == download_page(folder)


def verify(file: Path) -> int:
    """Say whether a file holds built sources of this checkout, and only that."""
    try:
        text = read_packed(file)
        if text.startswith("["):
            held = _verify_import(text)
        else:
            readable = readable_of(text)
            _compare_code(unpack(text, readable), readable)
            held = f"the code of {readable}"
    except (PackedError, OSError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return 1
    print(f"{file} holds {held}, and nothing else.")
    return 0


def _verify_import(text: str) -> str:
    """Return what a file to import holds; raises PackedError."""
    if '"content"' not in text:
        for message in check_models(text):
            raise PackedError(message)
        return f"models of {PIPE_ID} without prompts and tools"
    held = []
    for plugin_id, content in read_import(text).items():
        if plugin_id in READABLE:
            readable = READABLE[plugin_id]
            _compare_code(unpack(content, readable), readable)
        elif plugin_id in SWITCHES:
            readable = SWITCHES[plugin_id]
            _compare(content, (ROOT / readable).read_text("utf-8"), readable)
        else:
            raise PackedError(f"{plugin_id} is not one of ours.")
        held.append(readable)
    return f"the code of {', '.join(held)}"


def _compare_code(code: str, readable: str) -> None:
    """Raise PackedError if packed code is not that of this checkout."""
    built = (ROOT / readable).read_text("utf-8")
    _compare(code, without_comments(built), readable)


def _compare(text: str, built: str, readable: str) -> None:
    """Raise PackedError if a text is not the built one."""
    if text != built:
        raise PackedError(
            f"It holds another source than {readable} has here. A file of a release is "
            "compared in a checkout of its tag."
        )


def readable_of(text: str) -> str:
    """Return the path of the built file that a packed file says it is."""
    for readable in READABLE.values():
        if f"\nThis is {readable}, compressed" in text:
            return readable
    return READABLE[PIPE_ID]


if __name__ == "__main__":
    sys.exit(main())
