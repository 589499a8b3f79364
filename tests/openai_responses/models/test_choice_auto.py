"""The choice behind gpt-5-auto: each branch of its rule."""

import pytest

from openai_responses.items import Item
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import resolve_model

SMALL = "gpt-6.1-terra"
LARGE = "gpt-6.1-sol"


def question(text: str, *more: Item) -> Item:
    """Return a first message of a user."""
    parts = [{"type": "input_text", "text": text}, *more]
    return {"type": "message", "role": "user", "content": parts}


ONE_MORE = {"type": "input_text", "text": "x"}
SHORT = "the question is short, without files or tools"
EARLIER = "it began this chat"


@pytest.mark.parametrize(
    ("first", "earlier", "choice"),
    [
        pytest.param(question("Hi"), [], (SMALL, SHORT), id="short"),
        pytest.param(question("x" * 600), [], (SMALL, SHORT), id="600 characters"),
        pytest.param(
            question("x" * 600, ONE_MORE),
            [],
            (LARGE, "the question is long"),
            id="601 characters in two parts",
        ),
        pytest.param(
            question("```py\n1\n```"),
            [],
            (LARGE, "the question holds code"),
            id="code",
        ),
        pytest.param(
            question("x" * 900), ["gpt-4o", SMALL], (SMALL, EARLIER), id="small chat"
        ),
        pytest.param(question("Hi"), [LARGE], (LARGE, EARLIER), id="large chat"),
        pytest.param(
            None, [], (LARGE, "there is no question to judge by"), id="no question"
        ),
    ],
)
def test_first_question_or_earlier_answer_decides(
    first: Item | None, earlier: list[str], choice: tuple[str, str]
) -> None:
    """A chat stays with its model, whatever its first question would come to."""
    assert choose_auto_model("gpt-5-auto", first, False, earlier) == choice


@pytest.mark.parametrize(
    ("first", "tools"),
    [
        (question("?", {"type": "input_file"}), False),
        (question("?", {"type": "input_image"}), False),
        (question("Hi"), True),
    ],
    ids=["a file", "a picture", "tools"],
)
def test_attachments_and_tools_go_to_the_large_one(first: Item, tools: bool) -> None:
    """Those that the user chose."""
    choice = choose_auto_model("gpt-5-auto", first, tools, ())
    assert choice
    assert choice[0] == LARGE


def test_fallback_is_what_the_alias_names_elsewhere() -> None:
    """Where nobody chooses, the large model answers."""
    assert resolve_model("gpt-5-auto").id == LARGE


def test_other_names_are_no_choice() -> None:
    """A model that was named is the model that answers."""
    assert choose_auto_model("gpt-6.1-sol", question("Hi"), False, ()) is None


def test_both_models_exist_and_are_of_one_family() -> None:
    """The catalog knows them, not retired."""
    small = resolve_model(SMALL)
    large = resolve_model(LARGE)
    assert small.id.split("-")[:2] == large.id.split("-")[:2]
    assert small.facts.shutdown is large.facts.shutdown is None
    assert small.facts.functions
    assert large.facts.functions
