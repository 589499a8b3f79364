"""The table of wishes is read from the page's own words."""

from pathlib import Path

import pytest

import directives
from owui_chat.input.directives import words_digest

CHUNK = 'const a={"Add Details":"D\\u00e9tails","More Concise":"","More":x};'


def test_table_has_the_digests_of_a_pages_words_in_order() -> None:
    """As the page shows them, in English without a translation.

    The same bytes for the same pages, whatever the order of the files.
    """
    other = CHUNK.replace("D\\u00e9tails", "Dettagli")
    made = directives.build_module([CHUNK, other])

    assert made == directives.build_module([other, CHUNK])
    digests = sorted(map(words_digest, ["Add Details", "Détails", "Dettagli"]))
    assert f'DETAILED = """\n{" ".join(digests)}\n"""' in made
    assert f'CONCISE = """\n{words_digest("More Concise")}\n"""' in made


def test_only_chunks_with_words_are_read(tmp_path: Path) -> None:
    folder = tmp_path / directives.CHUNKS.replace("*", "1") / "chunks"
    folder.mkdir(parents=True)
    (folder / "a.js").write_text(CHUNK, "utf-8")
    (folder / "b.js").write_text("export {}", "utf-8")

    assert list(directives.read_chunks(tmp_path)) == [CHUNK]


def test_changed_words_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "directive_words.py"
    table.write_text("", "utf-8")
    monkeypatch.setattr(directives, "TABLE", table)
    monkeypatch.setattr(directives, "ROOT", tmp_path)

    assert directives.main(["--check"]) == 1
    assert "python scripts/directives.py" in capsys.readouterr().out
    assert directives.main([]) == 0
    assert directives.main(["--check"]) == 0


@pytest.mark.host
def test_words_of_the_page_are_known() -> None:
    """In every language of every supported version; if not, run the script."""
    assert directives.main(["--check"]) == 0
