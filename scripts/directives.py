"""Write the table of what Open WebUI's page says for two wishes, in its languages.

python scripts/directives.py            writes it, from the hosts that are installed
python scripts/directives.py --check    writes nothing; exit status 1 says it is stale
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "pipes"))

from owui_chat.input.directives import words_digest  # noqa: E402 - the path first

TABLE = ROOT / "pipes/owui_chat/input/directive_words.py"
CHUNKS = ".venv/hosts/open-webui-*/lib/*/site-packages/open_webui/frontend/_app"
WISHES = {"DETAILED": "Add Details", "CONCISE": "More Concise"}
_MODULE = '''\
"""What Open WebUI's page says for two wishes, in each of its languages.

Written by `scripts/directives.py`: the first digits of the SHA-256 of each text.
"""
'''


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the table; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the table of wishes.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    made = build_module(list(read_chunks(ROOT)))
    if made == TABLE.read_text("utf-8"):
        return 0
    if check:
        print(f"{TABLE.name} is stale; run: python scripts/directives.py")
        return 1
    TABLE.write_text(made, "utf-8")
    print(f"wrote {TABLE.name}")
    return 0


def read_chunks(root: Path) -> Iterator[str]:
    """Yield the scripts of the pages that hold words, of every installed host."""
    for folder in root.glob(CHUNKS):
        for path in folder.rglob("*.js"):
            text = path.read_text("utf-8")
            if any(f'"{wish}":' in text for wish in WISHES.values()):
                yield text


def build_module(texts: Iterable[str]) -> str:
    """Return the source of the table."""
    rows = list(texts)
    tables = [
        _constant(name, find_sayings(wish, rows)) for name, wish in WISHES.items()
    ]
    return "".join([_MODULE, *tables])


def find_sayings(wish: str, texts: Iterable[str]) -> set[str]:
    """Return what the page says for a wish, in English without a translation."""
    entry = re.compile(rf'"{wish}":\s*("(?:[^"\\]|\\.)*")')
    sayings = {wish}
    for text in texts:
        sayings |= {json.loads(quoted) for quoted in entry.findall(text)}
    sayings.discard("")
    return sayings


def _constant(name: str, texts: Iterable[str]) -> str:
    digests = " ".join(sorted(map(words_digest, texts)))
    lines = "\n".join(wrap(digests, 80))
    return f'\n{name} = """\n{lines}\n"""\n'


if __name__ == "__main__":
    sys.exit(main())
