"""The tables of docs/ say what the code says."""

import re
import shutil
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

import readme
from owui_manifold.call.valves import UserValves, Valves

ROOT = Path(__file__).parents[1]


class Sample(BaseModel):
    """Settings of every kind of default."""

    WHERE: str = Field(default="", description="Where it is.")
    MODE: Literal["a", "b"] = Field(default="a", description="Either a|b.")
    MANY: int = Field(default=3, description="How many.")
    NEW: bool = Field(default=True, description="Whether it is new.")


def test_a_table_has_a_row_for_each_setting() -> None:
    """Name, default and the words of the settings page."""
    assert readme.valves_table(Sample) == (
        "| Valve | Default | What it does |\n"
        "| --- | --- | --- |\n"
        "| `WHERE` | empty | Where it is. |\n"
        "| `MODE` | `a` | Either a\\|b. |\n"
        "| `MANY` | `3` | How many. |\n"
        "| `NEW` | on | Whether it is new. |\n"
    )


def test_a_message_has_one_row_with_all_its_causes() -> None:
    """Codes, statuses and kinds; dots where the words of one answer stand."""
    same = "It failed{code}. Try {model}."
    sentences = {
        "failed": {"busy": same, "": "It failed."},
        "refused": {"429": same, "5": "HTTP {status}{param}."},
        "idle_timeout": {"": "Too|slow."},
    }

    assert readme.messages_table(sentences) == (
        "| Message | Cause |\n"
        "| --- | --- |\n"
        "| It failed (…). Try …. | failed `busy`, HTTP 429 |\n"
        "| It failed. | failed, all others |\n"
        "| HTTP … (…). | HTTP 5xx |\n"
        "| Too\\|slow. | idle timeout |\n"
    )


def test_only_the_tables_change() -> None:
    """What stands around them is the author's."""
    text = "Before\n<!-- table t -->\nold\n<!-- end -->\nafter\n"
    changed = readme.with_tables(text, {"t": "new\n"})
    assert changed == "Before\n<!-- table t -->\nnew\n<!-- end -->\nafter\n"


def test_an_unknown_table_is_an_error() -> None:
    """A misspelled name would never be brought up to date."""
    with pytest.raises(KeyError):
        readme.with_tables("<!-- table t -->\n<!-- end -->", {})


def test_every_page_is_current() -> None:
    """Every table is on a page, as the code says it."""
    assert readme.main(["--check"]) == 0


@pytest.mark.parametrize("page", ["README.md", "docs/agent.md"])
def test_pipelines_are_called_legacy(page: str) -> None:
    """As their own project does: nobody should install them for the agents."""
    words = " ".join((ROOT / page).read_text("utf-8").split())

    assert re.search(r"Pipelines server.{0,120} its project calls (it )?legacy", words)


def test_a_table_without_a_page_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that went away would take its table with it."""
    monkeypatch.setattr(readme, "DOCS", tmp_path)

    with pytest.raises(
        ValueError, match="agent-expert-settings, agent-parameters, agent-valves"
    ):
        readme.main([])


def test_a_changed_default_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check fails, and says what to run."""
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


@pytest.mark.parametrize("valves", [Valves, UserValves])
def test_every_setting_says_what_it_does(valves: type[BaseModel]) -> None:
    """In a sentence that ends."""
    for name, field in valves.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
