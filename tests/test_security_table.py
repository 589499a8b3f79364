"""docs/reference/attacks.md names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/reference/attacks.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))


@pytest.mark.parametrize("name", TESTS, ids=lambda name: name.removeprefix("tests/"))
def test_named_test_exists(name: str) -> None:
    """So that each line of the page is shown by something."""
    path, _, function = name.partition("::")
    assert f"def {function}" in (ROOT / path).read_text()


def test_every_attack_names_a_test() -> None:
    """A row without one belongs under "Known limitations" of docs/security.md."""
    tables = PAGE.split("## Denial of service")[1]
    memories = PAGE.split("## What is kept between requests")[1].split("\n## ")[0]
    tables = tables.replace(memories, "")  # tests/test_kept_memory.py reads those
    rows = [line for line in tables.splitlines() if line.startswith("| ")]
    attacks = [row for row in rows if row.split("|")[3].strip() not in ("Test", "---")]

    assert len(attacks) > 40
    assert [row for row in attacks if "`tests/" not in row.split("|")[3]] == []
