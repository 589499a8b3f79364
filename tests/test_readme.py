"""The tables of docs/ say what the code says."""

import shutil
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

import readme
from owui_manifold.call.valves import UserValves, Valves


def test_a_changed_default_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for page in readme.DOCS.glob("*.md"):
        shutil.copy(page, tmp_path)
    copy = tmp_path / "settings.md"
    text = copy.read_text("utf-8")
    stale = text.replace("| `MAX_TOOL_CALLS` | `100` |", "| `MAX_TOOL_CALLS` | `7` |")
    assert stale != text
    copy.write_text(stale, "utf-8")
    monkeypatch.setattr(readme, "DOCS", tmp_path)

    assert readme.main(["--check"]) == 1
    assert "settings.md is stale; run: python scripts/re" in capsys.readouterr().err
    assert readme.main([]) == 0
    assert copy.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Literal["", "a", "b"], ["a", "b"]),
        (Literal["a", "b"] | None, ["a", "b"]),
        (bool | None, []),
        (Literal["a"] | int, []),
    ],
)
def test_words_of_a_setting_are_those_it_can_be(
    annotation: object, words: list[str]
) -> None:
    assert readme.possible_words(annotation) == words


@pytest.mark.parametrize("valves", [Valves, UserValves])
def test_every_setting_says_what_it_does(valves: type[BaseModel]) -> None:
    for name, field in valves.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
