"""The choice behind gpt-5-auto: each branch of its rule."""

from openai_responses.items import Item
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import resolve_model

SMALL, LARGE = "gpt-6.1-terra", "gpt-6.1-sol"


def question(text: str, *more: Item) -> Item:
    """Return a first message of a user."""
    parts = [{"type": "input_text", "text": text}, *more]
    return {"type": "message", "role": "user", "content": parts}


def chosen(
    first: Item | None, tools: bool = False, earlier: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the model for gpt-5-auto, and why."""
    choice = choose_auto_model("gpt-5-auto", first, tools, earlier)
    assert choice is not None
    return choice


def test_a_short_question_goes_to_the_small_model() -> None:
    """Up to 600 characters."""
    assert chosen(question("Hi"))[0] == SMALL
    assert chosen(question("x" * 600))[0] == SMALL


def test_a_long_question_goes_to_the_large_one() -> None:
    """From 601 on, over all its parts."""
    more = {"type": "input_text", "text": "x"}
    assert chosen(question("x" * 600, more)) == (LARGE, "the question is long")


def test_code_goes_to_the_large_one() -> None:
    """A fence is a sign of it in every language."""
    assert chosen(question("```py\n1\n```"))[1] == "the question holds code"


def test_what_is_attached_goes_to_the_large_one() -> None:
    """Pictures and files alike."""
    for kind in ("input_file", "input_image"):
        assert chosen(question("?", {"type": kind}))[0] == LARGE


def test_tools_go_to_the_large_one() -> None:
    """Those that the user switched on."""
    assert chosen(question("Hi"), tools=True)[0] == LARGE


def test_a_chat_stays_with_its_model() -> None:
    """Whatever the question would come to."""
    assert chosen(question("x" * 900), earlier=("gpt-4o", SMALL))[0] == SMALL
    assert chosen(question("Hi"), earlier=(LARGE,))[0] == LARGE


def test_without_a_question_the_large_one_answers() -> None:
    """The fallback is the model that the alias names everywhere else."""
    assert chosen(None)[0] == LARGE == resolve_model("gpt-5-auto").id


def test_other_names_are_no_choice() -> None:
    """A model that was named is the model that answers."""
    assert choose_auto_model("gpt-6.1-sol", question("Hi"), False, ()) is None


def test_both_models_exist_and_are_of_one_family() -> None:
    """The catalog knows them, not retired."""
    small, large = resolve_model(SMALL), resolve_model(LARGE)
    assert small.id.split("-")[:2] == large.id.split("-")[:2]
    assert small.facts.shutdown is large.facts.shutdown is None
    assert small.facts.functions
    assert large.facts.functions
