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
        pytest.param(question("Hi"), False, [], (SMALL, SHORT_QUESTION), id="short"),
        pytest.param(
            question("x" * 600), False, [], (SMALL, SHORT_QUESTION), id="600 characters"
        ),
        pytest.param(LONG, False, [], (LARGE, LONG_QUESTION), id="601 in two parts"),
        pytest.param(CODE, False, [], (LARGE, WITH_CODE), id="code"),
        pytest.param(FILE, False, [], (LARGE, ATTACHED), id="a file"),
        pytest.param(PICTURE, False, [], (LARGE, ATTACHED), id="a picture"),
        pytest.param(question("Hi"), True, [], (LARGE, TOOLS_ON), id="tools"),
        pytest.param(
            question("x" * 900),
            False,
            ["gpt-4o", SMALL],
            (SMALL, EARLIER),
            id="small chat",
        ),
        pytest.param(question("Hi"), False, [LARGE], (LARGE, EARLIER), id="large chat"),
        pytest.param(
            question("Hi"),
            False,
            [LARGE, SMALL],
            (LARGE, EARLIER),
            id="large chat with one small answer",
        ),
        pytest.param(None, False, [], (LARGE, NO_QUESTION), id="no question"),
    ],
)
def test_first_question_or_earlier_answer_decides(
    first: Item | None, tools: bool, earlier: list[str], choice: tuple[str, str]
) -> None:
    """A chat stays with its model, whatever its first question would come to."""
    assert choose_auto_model("gpt-5-auto", first, tools, earlier) == choice


def test_fallback_is_what_the_alias_names_elsewhere() -> None:
    """Where no one chooses, the large model answers."""
    assert resolve_model("gpt-5-auto").id == LARGE


def test_other_names_are_no_choice() -> None:
    """A model that was named is the model that answers."""
    assert choose_auto_model("gpt-6.1-sol", question("Hi"), False, ()) is None


def test_both_models_are_in_the_catalog_and_not_retired() -> None:
    for model in (SMALL, LARGE):
        facts = resolve_model(model).facts
        assert facts.known_family
        assert facts.functions
        assert facts.shutdown is None
