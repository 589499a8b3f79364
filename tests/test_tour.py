"""The words that the demo prints."""

import pytest

import tour
from simulator.__main__ import main
from simulator.options import NAMES
from simulator.scenarios.catalog import ALL_SCENARIOS, SCENARIOS


def test_words_are_scenarios() -> None:
    """What follows one is an option; each has a line that fits the terminal."""
    assert len(tour.WORDS) == 10
    for words in (tour.WORDS, tour.AGENT_WORDS, tour.SERVER_AGENT_WORDS):
        printed = list(tour.describe_words(words))
        assert len(printed) == len(words)
        assert max(map(len, printed)) <= 79
        for entry in words:
            name, *options = entry.word.split(",")
            assert name in SCENARIOS
            assert {option.partition("=")[0] for option in options} <= NAMES


def test_the_simulator_lists_what_it_can_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulator", "--list"])

    main()

    printed = capsys.readouterr().out
    assert all(f"{scenario.name} " in printed for scenario in ALL_SCENARIOS)
    assert all(f"``{name}" in printed for name in NAMES)
