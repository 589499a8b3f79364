"""Which models are offered, which of two answers, and what is said of one that ends."""

from datetime import date

import pytest

from openai_responses.endings import ASKED_MODEL
from openai_responses.items import Item
from openai_responses.models import choice
from openai_responses.models.choice import (
    choose_auto_model,
    name_asked_model,
    newest_models,
    read_context_windows,
    read_models,
    replacement,
    retirement_notice,
)
from openai_responses.models.resolve import CATALOG_FACTS, ResolvedModel, resolve_model

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
        ({"gpt-6-cyber", "gpt-7-cyber"}, []),
        (set(), []),
    ],
    ids=["an older one", "newer than the catalog", "a closed circle", "nothing"],
)
def test_only_what_a_key_may_use_is_offered(
    usable: set[str], offered: list[str]
) -> None:
    """A version that the catalog does not know takes its place on its first day.

    A closed circle is not offered even to a key that may use it: an administrator lists
    such a model.
    """
    assert "gpt-6-cyber" in CATALOG_FACTS
    assert newest_models(TODAY, usable) == offered


def test_only_chat_models_are_offered() -> None:
    """By OpenAI's own rules of naming; those of other servers have to be named."""
    chat_models = ["gpt-6.2-sol", "gpt-9-nova"]
    others = ("chatgpt-5-latest", "llama-3.3-70b", "gpt-9-audio", "gpt-9-image")
    names = [*chat_models, *others, "gpt-4-turbo", "gpt-3.5-instruct", ""]
    assert [name for name in names if newest_models(TODAY, [name])] == chat_models


OTHERS = [
    "meta-llama/llama-3.3-70b-instruct",
    "perplexity/sonar-deep-research",
    "nousresearch/hermes-4-405b",
]


@pytest.mark.parametrize(
    "answer", [None, {"data": None}, {"data": [None, 7, {}, {"id": 7}]}, "x", [7]]
)
def test_an_answer_without_models(answer: object) -> None:
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
    answer = {"data": [{"id": "gpt-5", "shutdown_date": given}]}
    assert read_models(answer) == {"gpt-5": day}


@pytest.mark.parametrize("in_data", [True, False])
def test_each_model_of_another_server_is_listed(in_data: bool) -> None:
    """OpenAI's rules of naming say nothing there; Together sends the rows alone.

    The list is remembered for an hour, and a gateway writes it, so it has an end. A host
    could not send a name that is no text, and a database not count its use.
    """
    odd = ["half \ud83d", "zero \0", "two\nlines", "m" * 201]
    names = [*OTHERS, "m", *(f"model-{number}" for number in range(2000))]
    rows = [{"id": name} for name in [*odd, *names]]
    assert list(read_models({"data": rows} if in_data else rows)) == names[:1000]


@pytest.mark.parametrize(
    ("rows", "windows"),
    [
        ([("a", 512)], {"a": 512, "": 512}),
        ([("a", 512), ("b", 2)], {"a": 512, "b": 2}),
        ([("a", 512), ("b", 1), ("", 512), (7, 512)], {"a": 512}),
        ([("x" * 300, 512)], {"x" * 200: 512, "": 512}),
        *(([("a", size)], {}) for size in ("512", None, 0, -1, True, 1.5)),
    ],
)
def test_server_says_how_much_its_models_take(
    rows: list[tuple[object, object]], windows: dict[str, int]
) -> None:
    """As llama.cpp does. One with one model ignores the name: any name has its size."""
    listed = [{"id": name, "meta": {"n_ctx": size}} for name, size in rows]
    assert read_context_windows({"data": listed}) == windows
    without = [
        {"id": "c"},
        {"id": "d", "meta": []},
        {"id": None, "meta": {"n_ctx": 512}},
    ]
    assert read_context_windows({"data": [*without, 7, None]}) == {}
    assert read_context_windows({"data": None}) == {}


SMALL = "gpt-6.1-terra"
LARGE = "gpt-6.1-sol"


def question(text: str, *more: Item) -> Item:
    parts = [{"type": "input_text", "text": text}, *more]
    return {"type": "message", "role": "user", "content": parts}


HI = question("Hi")
LONGEST = question("x" * 600)
LONG = question("x" * 600, {"type": "input_text", "text": "x"})
CODE = question("```py\n1\n```")
FILE = question("?", {"type": "input_file"})
PICTURE = question("?", {"type": "input_image"})
SHORT_QUESTION = "the question is short, without files or tools"
LONG_QUESTION = "the question is long"
WITH_CODE = "the question holds code"
ATTACHED = "something is attached to the question"
TOOLS_ON = "tools are switched on"
EARLIER = "it began this chat"
NO_QUESTION = "there is no question to judge by"


@pytest.mark.parametrize(
    ("first", "tools", "earlier", "choice"),
    [
        pytest.param(HI, False, [], (SMALL, SHORT_QUESTION), id="short"),
        pytest.param(LONGEST, False, [], (SMALL, SHORT_QUESTION), id="600 characters"),
        pytest.param(LONG, False, [], (LARGE, LONG_QUESTION), id="601 in two parts"),
        pytest.param(CODE, False, [], (LARGE, WITH_CODE), id="code"),
        pytest.param(FILE, False, [], (LARGE, ATTACHED), id="a file"),
        pytest.param(PICTURE, False, [], (LARGE, ATTACHED), id="a picture"),
        pytest.param(HI, True, [], (LARGE, TOOLS_ON), id="tools"),
        pytest.param(LONG, False, ["gpt-4o", SMALL], (SMALL, EARLIER), id="small chat"),
        pytest.param(HI, False, [LARGE], (LARGE, EARLIER), id="large chat"),
        pytest.param(HI, False, [LARGE, SMALL], (LARGE, EARLIER), id="one small"),
        pytest.param(None, False, [], (LARGE, NO_QUESTION), id="no question"),
    ],
)
def test_first_question_or_earlier_answer_decides(
    first: Item | None, tools: bool, earlier: list[str], choice: tuple[str, str]
) -> None:
    """A chat stays with its model, whatever its first question would come to."""
    assert choose_auto_model("gpt-5-auto", first, tools, earlier) == choice
    # A model that was named is the model that answers.
    assert choose_auto_model("gpt-6.1-sol", first, tools, earlier) is None


def test_both_models_are_in_the_catalog_and_not_retired() -> None:
    assert resolve_model("gpt-5-auto").id == LARGE  # where no one chooses
    for model in (SMALL, LARGE):
        facts = resolve_model(model).facts
        assert facts.known_family
        assert facts.functions
        assert facts.shutdown is None


LAST = date(2026, 12, 11)


def ending(shutdown: str | None, successor: str | None = None) -> ResolvedModel:
    """Return a model that ends on a day."""
    model = resolve_model("gpt-5")
    facts = model.facts._replace(shutdown=shutdown, successor=successor)
    return model._replace(facts=facts)


@pytest.mark.parametrize(
    ("today", "notice"),
    [
        (date(2026, 11, 10), ""),
        (date(2026, 11, 11), "GPT-5 is switched off on 2026-12-11."),
        (date(2026, 12, 10), "GPT-5 is switched off on 2026-12-11."),
        (LAST, "GPT-5 was switched off on 2026-12-11."),
    ],
)
def test_the_last_thirty_days_and_afterwards(today: date, notice: str) -> None:
    """Early enough to change a preset, not for months."""
    model = ending(LAST.isoformat())
    assert retirement_notice(model, today, model) == notice
    # The successor is named as people know it.
    named = f"GPT-5 (high){notice.removeprefix('GPT-5')} Use GPT-6.1 Sol instead."
    high = resolve_model("gpt-5-high")
    assert retirement_notice(high, today, high) == named * bool(notice)


@pytest.mark.parametrize("shutdown", [None, "next year"])
def test_a_model_without_a_date(shutdown: str | None) -> None:
    """An administrator's own text for a date means nothing."""
    model = ending(shutdown)
    assert retirement_notice(model, LAST, model) == ""


@pytest.mark.parametrize("name", ["gpt-5-pro", "o3-pro", "gpt-5-pro-2025-10-06"])
def test_the_successor_of_a_pro_model_has_the_mode(name: str) -> None:
    """As OpenAI's page of deprecations says it; its name does not tell it."""
    model = resolve_model(name)
    notice = retirement_notice(model, date(2026, 12, 1), model)
    assert notice == (
        f"{model.name} is switched off on 2026-12-11. Use GPT-6.1 Sol pro instead."
    )
    assert replacement(model, date(2026, 12, 10)) is None

    answering = replacement(model, LAST)

    assert answering
    assert answering.id == "gpt-6.1-sol"
    assert answering.pro
    assert answering.effort is None
    assert retirement_notice(model, LAST, answering) == (
        f"{model.name} was switched off on 2026-12-11. GPT-6.1 Sol pro answers instead."
    )


@pytest.mark.parametrize("name", ["o1-pro", "gpt-6.1-sol-pro", "llama3:8b", "gpt-5"])
def test_other_models_are_sent_as_they_are(name: str) -> None:
    """A model without the mode has a successor that people choose by its name."""
    assert replacement(resolve_model(name), date(2030, 1, 1)) is None


@pytest.mark.parametrize(
    ("model", "successor"),
    [("o1-2024-12-17", "GPT-5.6 Sol"), ("o1-pro", "GPT-5.6 Sol pro")],
)
def test_a_refused_model_that_is_switched_off(model: str, successor: str) -> None:
    assert name_asked_model(f"No {ASKED_MODEL} here.", model) == (
        f"No {model} here. OpenAI has shut it down and recommends {successor}."
    )


@pytest.mark.parametrize("model", ["gpt-5", "openai/gpt-4", ""])
def test_a_refused_model_without_a_known_successor(model: str) -> None:
    assert name_asked_model(f"No {ASKED_MODEL} here.", model) == f"No {model} here."
    assert name_asked_model("Try again.", "o3-mini") == "Try again."


def test_vllm_says_how_much_its_models_take() -> None:
    """An adapter (LoRA) has the window of its model, and names none."""
    base = {"id": "qwen", "owned_by": "vllm", "parent": None, "max_model_len": 32768}
    adapter = {"id": "sql", "owned_by": "vllm", "parent": "qwen", "max_model_len": None}

    assert read_context_windows({"data": [base, adapter]}) == {"qwen": 32768}


def test_sizes_of_a_thousand_models_are_read() -> None:
    """A gateway writes the list."""
    listed = [{"id": f"m-{n}", "meta": {"n_ctx": 512}} for n in range(1001)]
    assert len(read_context_windows({"data": listed})) == 1000
