"""The comparison of the catalog with a published list finds what differs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog.compare import compare_catalog, main

SOL: dict[str, Any] = {
    "input_cost_per_token": 2e-6,
    "cache_read_input_token_cost": 1e-7,
    "cache_creation_input_token_cost": 2.5e-6,
    "cache_creation_input_token_cost_above_12hr": 5e-6,
    "output_cost_per_token": 1e-5,
    "max_input_tokens": 922_000,
    "search_context_cost_per_query": {"search_context_size_medium": 0.01},
}


@pytest.mark.parametrize(
    ("name", "value", "fact"),
    [
        ("output_cost_per_token", 1.1e-5, "output"),
        ("cache_read_input_token_cost", None, "cached"),
        ("cache_creation_input_token_cost_above_12hr", 6e-6, "cache_write, 12 h"),
        ("max_input_tokens", 272_000, "max_input_tokens"),
        (
            "search_context_cost_per_query",
            {"search_context_size_medium": 0.025},
            "search_fee",
        ),
    ],
)
def test_a_fact_that_differs_is_found(name: str, value: Any, fact: str) -> None:
    """Alone; a model that the list lacks is named."""
    same, missing = compare_catalog({"gpt-6.1-sol": SOL})
    changed, _ = compare_catalog({"gpt-6.1-sol": {**SOL, name: value}})

    assert not any(comparison.differs for comparison in same)
    assert [comparison.fact for comparison in changed if comparison.differs] == [fact]
    assert "gpt-6.1-sol" not in missing
    assert "gpt-5.2" in missing


def test_what_differs_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also a price of pictures; and the command ends with 1."""
    file = tmp_path / "prices.json"
    pictures = {"output_cost_per_image_token": 4.1e-5}
    listed = {"gpt-6.1-sol": {**SOL, "max_input_tokens": 5}, "gpt-image-2": pictures}
    file.write_text(json.dumps(listed))
    monkeypatch.setattr(sys, "argv", ["compare.py", str(file)])

    assert main() == 1

    printed = capsys.readouterr().out
    assert "gpt-6.1-sol: max_input_tokens is 922000 here, 5 in the list" in printed
    assert "gpt-image-2: output is 30 here, 41.0 in the list" in printed
    assert "12 facts of 2 models compared" in printed
