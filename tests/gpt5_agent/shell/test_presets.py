"""The guides that can be chosen."""

import json
from pathlib import Path

import pytest

from gpt5_agent.shell.presets import find_preset
from openai_responses.errors import InvalidRequest
from strategies.guide import Guide


def test_file_of_an_administrator_is_a_guide(tmp_path: Path) -> None:
    members = {
        "systemPrompt": "You sail.",
        "temperature": 0.5,
        "memoryPolicy": "sliding-window:2",
        "initialMemories": ["The boat is red.", "It leaks."],
    }
    (tmp_path / "sailor.json").write_text(json.dumps(members), "utf-8")

    assert find_preset("sailor", f" {tmp_path} ") == Guide(
        system_prompt="You sail.",
        temperature=0.5,
        memory_policy="sliding-window:2",
        initial_memories=("The boat is red.", "It leaks."),
    )


def test_file_wins_over_what_is_built_in(tmp_path: Path) -> None:
    """Names of Python are understood too, and what may be left out is nothing."""
    (tmp_path / "engineer.json").write_text('{"system_prompt": "Own."}', "utf-8")

    guide = find_preset(" engineer ", str(tmp_path))

    assert guide == Guide(system_prompt="Own.")
    researcher = find_preset("researcher")
    assert find_preset("researcher", str(tmp_path)) == researcher
    assert "find things out" in researcher.system_prompt


@pytest.mark.parametrize("folder", ["/no/such/folder", "/pre\0sets"])
def test_folder_that_cannot_be_has_no_guides(folder: str) -> None:
    """Not even one with a zero byte, which no folder has."""
    assert find_preset("engineer", folder) == find_preset("engineer")


def test_no_name_is_no_guide(tmp_path: Path) -> None:
    assert find_preset("  ", str(tmp_path)) == Guide(system_prompt="")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"systemPrompt": "A.", "surprise": 1}',
        '{"systemPrompt": "A.", "temperature": 9}',
        '{"systemPrompt": "A.", "temperature": NaN}',
        '{"systemPrompt": "secret, but not',
    ],
)
def test_file_that_is_no_guide_is_refused_by_a_sentence(
    text: str, tmp_path: Path
) -> None:
    """The message says nothing of what is in it."""
    (tmp_path / "broken.json").write_text(text, "utf-8")

    with pytest.raises(InvalidRequest) as refused:
        find_preset("broken", str(tmp_path))

    assert "The preset broken cannot be read as a preset." in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["unknown", "../outside", "link", "a\0b"])
def test_only_files_of_the_folder_are_read(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "presets"
    folder.mkdir()
    (tmp_path / "outside.json").write_text('{"systemPrompt": "Out."}', "utf-8")
    (folder / "link.json").symlink_to(tmp_path / "outside.json")

    with pytest.raises(InvalidRequest, match="is neither a file of PRESETS_DIR"):
        find_preset(name, str(folder))
