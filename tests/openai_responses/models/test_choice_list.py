"""Which models are offered when none are listed."""

from typing import Any

import pytest

from openai_responses.models import choice
from openai_responses.models.choice import (
    newest_models,
    read_context_windows,
    read_models,
)
from openai_responses.models.resolve import CATALOG_FACTS

TODAY = "2026-11-22"


def test_the_newest_of_each_family() -> None:
    """Newest first; none that is retired or has a successor."""
    assert newest_models(TODAY) == [
        "gpt-6.2-sol",
        "gpt-6.2-astra",
        "gpt-6.1-terra",
        "gpt-6-luna",
        "gpt-5.5-pro",
        "gpt-5.5",
        "gpt-5.4-mini",
    ]


@pytest.mark.parametrize(
    ("today", "is_offered"),
    [("2026-12-10", True), ("2026-12-11", False), ("2026-12-12", False)],
)
def test_model_is_offered_up_to_the_day_before_it_goes(
    today: str, is_offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On that day it may be gone in the middle of a chat."""
    name = "gpt-5.5"
    ending = CATALOG_FACTS[name]._replace(shutdown="2026-12-11", successor=None)
    monkeypatch.setattr(choice, "CATALOG_FACTS", {name: ending})

    assert newest_models(today) == [name] * is_offered


@pytest.mark.parametrize(
    ("usable", "offered"),
    [
        ({"gpt-5.6-sol", "gpt-6.1-terra", "gpt-4o"}, ["gpt-6.1-terra", "gpt-5.6-sol"]),
        ({"gpt-6.2-sol", "gpt-6.10-sol", "gpt-7-nova"}, ["gpt-7-nova", "gpt-6.10-sol"]),
        (set(), []),
    ],
    ids=["an older one in the place", "newer than the catalog", "nothing"],
)
def test_only_what_a_key_may_use_is_offered(
    usable: set[str], offered: list[str]
) -> None:
    """A version that the catalog does not know takes its place on its first day."""
    assert newest_models(TODAY, usable) == offered


def test_a_closed_circle_is_not_offered() -> None:
    """Even to a key that may use it: an administrator lists such a model."""
    assert "gpt-6-cyber" in CATALOG_FACTS
    assert newest_models(TODAY, {"gpt-6-cyber", "gpt-7-cyber"}) == []


@pytest.mark.parametrize(
    ("name", "is_offered"),
    [
        ("gpt-6.2-sol", True),
        ("gpt-9-nova", True),
        ("chatgpt-5-latest", False),
        ("llama-3.3-70b", False),
        ("gpt-9-audio", False),
        ("gpt-9-image", False),
        ("gpt-4-turbo", False),
        ("gpt-3.5-instruct", False),
        ("", False),
    ],
)
def test_only_chat_models_are_offered(name: str, is_offered: bool) -> None:
    """By OpenAI's own rules of naming; those of other servers have to be named."""
    assert newest_models(TODAY, [name]) == [name] * is_offered


OTHERS = [
    "meta-llama/llama-3.3-70b-instruct",
    "perplexity/sonar-deep-research",
    "nousresearch/hermes-4-405b",
]


@pytest.mark.parametrize("form", ["with data", "bare"])
def test_each_model_of_another_server_is_listed(form: str) -> None:
    """OpenAI's rules of naming say nothing there; Together sends the rows alone."""
    rows = [{"id": name} for name in OTHERS]
    assert list(read_models({"data": rows} if form == "with data" else rows)) == OTHERS


@pytest.mark.parametrize(
    "answer",
    [None, {"data": None}, {"data": [None, 7, {}, {"id": 7}]}, "x", [7]],
)
def test_an_answer_without_models(answer: object) -> None:
    """Other servers answer as they like."""
    assert read_models(answer) == {}


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-12-11T00:00:00Z", "2026-12-11"),
        (None, ""),
        ("soon", ""),
        ("2026-13-40", ""),
        (["2026-12-11"], ""),
        ("2026-12-11" * 10**5, "2026-12-11"),
    ],
)
def test_the_last_day_of_a_model(given: object, day: str) -> None:
    """As the server says it; what is no date says nothing."""
    answer = {"data": [{"id": "gpt-5", "shutdown_date": given}]}
    assert read_models(answer) == {"gpt-5": day}


@pytest.mark.parametrize("name", ["half \ud83d", "zero \0", "two\nlines"])
def test_name_that_is_no_text_is_not_listed(name: str) -> None:
    """A host could not send its list with it, and a database not count its use."""
    assert read_models({"data": [{"id": name}, {"id": "gpt-5"}]}) == {"gpt-5": ""}


def test_list_and_its_names_have_an_end() -> None:
    """It is remembered for an hour, and a gateway writes it."""
    rows = [{"id": f"model-{number}"} for number in range(2000)]
    models = read_models({"data": [{"id": "m" * 201}, *rows]})

    assert list(models) == [f"model-{number}" for number in range(1000)]


def row(name: object, size: object) -> dict[str, Any]:
    """A model as llama.cpp lists it."""
    return {"id": name, "meta": {"n_ctx": size}}


@pytest.mark.parametrize(
    ("rows", "windows"),
    [
        ([row("a", 512)], {"a": 512, "": 512}),
        ([row("a", 512), row("b", 2)], {"a": 512, "b": 2}),
        ([row("a", 512), row("b", 1), row("", 512), row(7, 512)], {"a": 512}),
        ([row("x" * 300, 512)], {"x" * 200: 512, "": 512}),
        ([row("a", "512"), row("b", None), {"id": "c"}, 7], {}),
        (None, {}),
    ],
)
def test_server_says_how_much_its_models_take(
    rows: Any, windows: dict[str, int]
) -> None:
    """A server with one model ignores the name, so any name has its size."""
    assert read_context_windows({"data": rows}) == windows
