"""Why nothing is to be seen of an answer, and what is no reason to complain."""

import pytest

from openai_responses.endings import COMPLETED, CUT, ending_of_incomplete
from openai_responses.items import Item
from openai_responses.loop.events import RunDone
from owui_chat.answers import explain_ending
from runs.sample import call, message, output, reasoning, search

CODE: Item = {"type": "code_interpreter_call", "code": "1", "outputs": []}
DRAWN: Item = {"type": "image_generation_call", "result": "AAAA"}
HM = {"type": "reasoning_text", "text": "Hm."}
MADE: Item = {"type": "mcp_call", "name": "now", "arguments": "{}", "output": "12:00"}
LOOK = message("1", "I look.", "commentary")
RAN = (call("1"), output("1"))


@pytest.mark.parametrize(
    ("items", "earlier", "code"),
    [
        ([message("1", "Rain.")], [], None),
        ([LOOK], [], None),
        ([CODE], [], None),
        ([DRAWN], [], None),
        ([{**DRAWN, "output_format": "gif"}], [], None),
        ([call("1")], [], None),
        (RAN, [], None),
        ([MADE], [], None),
        ([], RAN, None),
        ([], [], "no_answer"),
        ([{**reasoning("1"), "content": [HM]}], [], "no_answer"),
        ([message("1", " \n")], [], "no_answer"),
        ([LOOK, message("2", "\n", "final_answer")], [], None),
        ([reasoning("1"), search("1")], [message("0", "Before.")], "no_answer"),
    ],
)
def test_complete_answer_of_which_nothing_is_seen_says_so(
    items: list[Item], earlier: list[Item], code: str | None
) -> None:
    """Unless a tool has run: whoever regenerates the answer would run it again."""
    ending = explain_ending(RunDone(COMPLETED, output=tuple(items)), earlier)

    assert ending.code == code
    assert ending.is_failure is (code is not None)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("rounds", "more tool calls than one answer may make"),
        ("calls", "more tool calls than one answer may make"),
        ("seconds", "used up the time or the tokens"),
        ("tokens", "used up the time or the tokens"),
    ],
)
def test_answer_that_a_limit_kept_from_more_tools_names_it(
    limit: str, words: str
) -> None:
    """Only where it has no text; the outputs of its tools are none."""
    ended = RunDone(COMPLETED, output=RAN, limit=limit)  # type: ignore[arg-type]

    assert words in explain_ending(ended).message
    told = ended._replace(output=(*RAN, message("1", "Rain.")))
    assert explain_ending(told) == COMPLETED


TOKENS = ending_of_incomplete("max_output_tokens")


@pytest.mark.parametrize(
    ("items", "is_explained"),
    [
        ([reasoning("1")], True),
        ([reasoning("1"), LOOK, *RAN], True),
        ([], False),
        ([search("1")], False),
        ([reasoning("1"), message("1", "Rain.")], False),
    ],
)
def test_answer_that_is_all_reasoning_tells_what_to_raise(
    items: list[Item], is_explained: bool
) -> None:
    """To ask the model to continue would not help."""
    ending = explain_ending(RunDone(TOKENS, output=tuple(items)))

    assert ending.code == "max_output_tokens"
    assert ("spent all tokens" in ending.message) is is_explained
    assert (ending == TOKENS) is not is_explained


@pytest.mark.parametrize("ending", [CUT, ending_of_incomplete("content_filter")])
def test_failure_keeps_its_own_words(ending: object) -> None:
    ended = RunDone(ending, output=(reasoning("1"),))  # type: ignore[arg-type]

    assert explain_ending(ended) == ending
