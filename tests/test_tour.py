"""The words that the demo prints."""

import pytest

import tour
from simulator.__main__ import main
from simulator.options import NAMES
from simulator.scenarios.catalog import ALL_SCENARIOS, SCENARIOS


def test_ten_words_with_a_line_each() -> None:
    """Each is a scenario; what follows it is an option."""
    printed = list(tour.describe_words())

    assert len(printed) == len(tour.WORDS) == 10
    assert max(map(len, printed)) <= 79
    for entry in tour.WORDS:
        name, *options = entry.word.split(",")
        assert name in SCENARIOS
        assert {option.partition("=")[0] for option in options} <= NAMES


def test_words_for_the_agents_are_scenarios() -> None:
    """Each with a line of its own."""
    for words in (tour.AGENT_WORDS, tour.SERVER_AGENT_WORDS):
        printed = list(tour.describe_words(words))
        assert len(printed) == len(words)
        assert max(map(len, printed)) <= 79
        for word in words:
            assert word.word.partition(",")[0] in SCENARIOS


def test_the_simulator_lists_what_it_can_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every scenario and every option, without starting anything."""
    monkeypatch.setattr("sys.argv", ["simulator", "--list"])

    main()

    printed = capsys.readouterr().out
    assert all(f"{scenario.name} " in printed for scenario in ALL_SCENARIOS)
    assert all(f"``{name}" in printed for name in NAMES)
