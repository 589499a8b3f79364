"""The comparison of the catalog with a published list finds what differs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog.compare import main

SOL: dict[str, Any] = {  # two facts of gpt-6.1-sol differ
    "input_cost_per_token": 2e-6,
    "cache_read_input_token_cost": 1e-7,
    "cache_creation_input_token_cost": 2.5e-6,
    "cache_creation_input_token_cost_above_12hr": 6e-6,
    "output_cost_per_token": 1e-5,
    "max_input_tokens": 5,
    "search_context_cost_per_query": {"search_context_size_medium": 0.01},
}


def test_what_differs_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also a price of pictures; and the command ends with 1."""
    file = tmp_path / "prices.json"
    pictures = {"output_cost_per_image_token": 4.1e-5}
    listed = {"gpt-6.1-sol": SOL, "gpt-image-2": pictures}
    file.write_text(json.dumps(listed))
    monkeypatch.setattr(sys, "argv", ["compare.py", str(file)])

    assert main() == 1

    printed = capsys.readouterr().out
    assert "gpt-6.1-sol: max_input_tokens is 922000 here, 5 in the list" in printed
    assert "gpt-6.1-sol: cache_write, 12 h is 5.0 here, 6.0 in the list" in printed
    assert "gpt-5.2: not in the list" in printed
    assert "gpt-image-2: output is 30 here, 41.0 in the list" in printed
    assert "12 facts of 2 models compared" in printed
