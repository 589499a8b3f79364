"""Thoughts of a run: shown as reasoning, or not at all (R14)."""

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import Item, is_call_output, item_type, message_text
from openai_responses.loop.events import GIVEN_UP, RunDone, RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.render.completions import ChunkRenderer
from runs.sample import call, message, on_page, reasoning, refusal, run_of, shifted
from strategies.thoughts import RunTexts, read_answer_text

TAGGED = "<think>First I look.</think>\n\nIt <THINK>hm</THINK>rains."
SHOWN = True
HIDDEN = False


def shown(
    emits: bool, *rounds: Sequence[Item], may_call: bool = True
) -> tuple[RunTexts, list[RunEvent]]:
    """What is made of rounds with these items."""
    responses: list[list[RunEvent]] = []
    first = 0
    for items in rounds:
        responses.append([shifted(event, first) for event in run_of(*items)[:-1]])
        first += len(items)
    responses[-1].append(run_of()[-1])
    return fed(emits, *responses, may_call=may_call)


def fed(
    emits: bool, *rounds: Sequence[RunEvent], may_call: bool = True
) -> tuple[RunTexts, list[RunEvent]]:
    """What is made of the events of rounds."""
    thoughts = RunTexts(are_shown=emits)
    events: list[RunEvent] = []
    for response in rounds:
        thoughts.begin_round(may_call=may_call)
        for event in response:
            events += thoughts.feed(event)
    return thoughts, events


def pages(
    *rounds: Sequence[Item],
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return page(shown(SHOWN, *rounds)[1]), page(shown(HIDDEN, *rounds)[1])


def grown(events: Sequence[RunEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def page(events: Sequence[RunEvent]) -> list[tuple[str, str]]:
    """What people see, without the outputs: nobody makes the calls of these runs."""
    items = [item for item in on_page(events)[1] if not is_call_output(item)]
    return [(item_type(item), text_in(item)) for item in items]


def text_in(item: Item) -> str:
    if item_type(item) == "message":
        return message_text(item)
    return "".join(part["text"] for part in item.get("summary", ()))


def plain(events: Sequence[RunEvent]) -> list[tuple[str, str]]:
    """What a plain client reads, one kind of text after another."""
    view = ChunkRenderer("c", 1, "m")
    chunks = [chunk for event in events for chunk in view.render(event)]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    kinds = ("content", "reasoning_content")
    read = [(kind, delta[kind]) for delta in deltas for kind in kinds if kind in delta]
    groups = groupby(filter(itemgetter(1), read), key=itemgetter(0))
    return [(kind, "".join(text for _, text in group)) for kind, group in groups]


ANSWER = ("message", "It rains.")
CALL = ("function_call", "")
FALLBACK = ("reasoning", "I am going to use get_weather.")
FIRST = message("1", "I look it up.")
LOOK = message("1", "I look it up.", "commentary")
LOOKED = ("reasoning", "I look it up.")
WEATHER = call("1")
ASKED = [shifted(event, 1) for event in run_of(WEATHER)[:-2]]
"""A call that is shown after the item in front of it."""
SAID = message("2", "It rains.")


@pytest.mark.parametrize("item", [SAID, refusal("1", "It rains.")])
def test_round_without_a_call_is_an_answer_byte_for_byte(item: Item) -> None:
    """The model's own item ends it."""
    _, events = shown(SHOWN, [item])

    assert page(events) == [ANSWER]
    assert plain(events) == [("content", "It rains.")]
    ends = [event for event in events if isinstance(event, ItemDone)]
    assert ends == [ItemDone(0, item)]


@pytest.mark.parametrize(
    ("emits", "phase", "may_call"),
    [
        pytest.param(SHOWN, "", False, id="shown, no tools"),
        pytest.param(HIDDEN, "", False, id="hidden, no tools"),
        pytest.param(HIDDEN, "final_answer", True, id="hidden, final answer"),
    ],
)
def test_answer_grows_as_it_comes(emits: bool, phase: str, may_call: bool) -> None:
    """Nothing is held back where no call can come, or the model promises none."""
    begun = run_of(message("1", "It rains.", phase))[:2]

    assert grown(fed(emits, begun, may_call=may_call)[1]) == ["It ra"]


def test_r14_text_of_a_round_that_calls_becomes_a_thought_once() -> None:
    """It was shown as it grew; when the call comes it changes its kind."""
    _, events = shown(SHOWN, [FIRST, WEATHER], [SAID])

    assert page(events) == [LOOKED, CALL, ANSWER]
    ended = [event.item["id"] for event in events if isinstance(event, ItemDone)]
    assert "rs_msg_1" in ended
    assert "".join(grown(events)).count("I look it up.") == 1
    assert plain(events) == [("content", "I look it up.\n\nIt rains.")]


def test_r14_text_after_a_call_is_a_thought_from_the_beginning() -> None:
    """A plain client reads it as reasoning."""
    rounds = [WEATHER, FIRST], [SAID]

    assert pages(*rounds) == ([FALLBACK, CALL, LOOKED, ANSWER], [CALL, ANSWER])
    assert plain(shown(SHOWN, *rounds)[1]) == [
        ("reasoning_content", "I am going to use get_weather.\n\nI look it up."),
        ("content", "It rains."),
    ]


@pytest.mark.parametrize(
    ("rounds", "with_thoughts"),
    [
        # One for the round, in front of its calls.
        (
            ([WEATHER, call("2")], [call("3")], [SAID]),
            [FALLBACK, CALL, CALL, FALLBACK, CALL, ANSWER],
        ),
        # vLLM sends blank text in front of its calls; it would be an empty thought.
        (([message("1", "\n\n"), WEATHER],), [FALLBACK, CALL]),
        # Of commentary the model itself says that it is no answer.
        (([LOOK, WEATHER],), [LOOKED, CALL]),
        (([LOOK, SAID],), [LOOKED, ANSWER]),
        (([SAID, LOOK],), [ANSWER, LOOKED]),
    ],
)
def test_r14_round_that_calls_without_a_word_gets_a_thought(
    rounds: tuple[list[Item], ...], with_thoughts: list[tuple[str, str]]
) -> None:
    """Where thoughts are hidden, nothing is left of one."""
    without = [part for part in with_thoughts if part[0] != "reasoning"]

    assert pages(*rounds) == (with_thoughts, without)
    assert ("content", "I look it up.") not in plain(shown(SHOWN, *rounds)[1])


@pytest.mark.parametrize("may_call", [True, False])
def test_r14_tags_become_thoughts(may_call: bool) -> None:
    thoughts, events = shown(SHOWN, [message("1", TAGGED)], may_call=may_call)

    assert page(events) == [
        ("reasoning", "First I look."),
        ("message", "It rains."),
        ("reasoning", "hm"),
    ]
    names = [e.item["id"] for e in events if isinstance(e, ItemAdded)]
    assert len(set(names)) == len(names)
    assert thoughts.text_of(0) == "It rains."


@pytest.mark.parametrize(
    ("text", "left", "may_call"),
    [
        (TAGGED, "It rains.", True),
        ("Rain.<think>never closed", "Rain.", False),
        ("<think>all</think>", "", True),
        ("Rain, he said, <thin", "Rain, he said, <thin", False),
    ],
)
def test_r14_tags_are_removed_where_thoughts_are_not_shown(
    text: str, left: str, may_call: bool
) -> None:
    thoughts, events = shown(HIDDEN, [message("1", text)], may_call=may_call)

    assert page(events) == ([("message", left)] if left else [])
    assert thoughts.text_of(0).strip() == left


def turned(emits: bool, may_call: bool, thought: Item) -> list[RunEvent]:
    """What is made of a text that turns out to be a thought, a call and an answer."""
    begun = run_of(message("1", "First I look."))[:3]
    following = [shifted(event, 1) for event in run_of(WEATHER)[:-1]]
    events = [*begun, ItemDone(0, thought), *following]
    return fed(emits, events, may_call=may_call)[1]


@pytest.mark.parametrize("may_call", [True, False])
def test_a_text_that_turns_out_to_be_a_thought(may_call: bool) -> None:
    """It was shown as it came: only its closing tag says what it was."""
    thought = reasoning("1", "First I look.")

    events = turned(SHOWN, may_call, thought)
    assert page(events) == [("reasoning", "First I look."), CALL]
    assert events[3] == ItemDone(0, thought)

    hidden = turned(HIDDEN, may_call, GIVEN_UP)
    kinds = [kind for kind, _ in page(hidden) if ":" not in kind]
    assert kinds == ["function_call"]
    assert ("look" in "".join(grown(hidden))) is not may_call


@pytest.mark.parametrize("emits", [SHOWN, HIDDEN])
def test_call_that_the_run_gave_up_is_none(emits: bool) -> None:
    """The answer is no step before it or after it."""
    given_up = [*run_of(WEATHER)[:2], ItemDone(0, GIVEN_UP)]
    said = [shifted(event, 1) for event in run_of(SAID)]

    thoughts, events = fed(emits, [*given_up, *said])

    assert plain(events)[-1] == ("content", "It rains.")
    assert thoughts.text_of(1) == "It rains."


def test_call_that_is_shown_after_its_response_belongs_to_it() -> None:
    """A person was asked about it first; the next round is one of its own."""
    *begun, _ = run_of(reasoning("1", "Hm."))
    said = [shifted(event, 2) for event in run_of(SAID)]

    _, events = fed(SHOWN, [*begun, *ASKED], said)

    assert page(events) == [("reasoning", "Hm."), CALL, ANSWER]


def test_message_that_ends_after_its_call_stays_a_thought() -> None:
    """Some servers end all items at the end of their stream."""
    *begun, ended, _, _ = run_of(FIRST)

    for emits, left in ((SHOWN, [LOOKED, CALL]), (HIDDEN, [CALL])):
        thoughts, events = fed(emits, [*begun, *ASKED, ended])

        assert page(events) == left
        assert thoughts.text_of(0) == ""


def test_commentary_before_a_late_call_is_no_answer() -> None:
    """It was shown as one until the call came."""
    thoughts, events = fed(SHOWN, [*run_of(LOOK)[:-1], *ASKED])

    assert {kind for kind, _ in page(events)} == {"reasoning", "function_call"}
    assert thoughts.text_of(0) == ""


def test_thoughts_in_a_round_that_calls_stay_thoughts() -> None:
    with_thoughts, without = pages([message("1", TAGGED), WEATHER])

    assert [kind for kind, _ in with_thoughts] == ["reasoning"] * 3 + ["function_call"]
    assert without == [CALL]


def test_commentary_that_is_all_there_is_is_the_answer() -> None:
    """No one is left without an answer."""
    rains = message("2", "It rains.", "commentary")
    *begun, ended = run_of(rains)
    assert isinstance(ended, RunDone)
    _, hidden = fed(HIDDEN, [*begun, ended._replace(output=(rains,))])
    spaced = message("2", "\nIt rains.\n", "commentary")
    thoughts, events = shown(SHOWN, [LOOK, spaced])

    assert [each for each in hidden if isinstance(each, ItemDone)] == [
        ItemDone(0, rains)
    ]
    assert page(hidden) == [ANSWER]
    assert page(events) == [LOOKED, ("reasoning", "It rains."), ANSWER]
    assert [thoughts.text_of(index) for index in (0, 1)] == ["", "It rains."]
    assert plain(events)[-1] == ("content", "It rains.")
    late = [*run_of(message("1", "Hm."))[:3], ItemDone(0, reasoning("1", "Hm."))]
    *said, ended_response, end = run_of(rains)
    following = [shifted(event, 1) for event in late]
    _, events = fed(SHOWN, [*said, *following, ended_response, end])
    assert page(events)[-1] == ANSWER


@pytest.mark.parametrize("emits", [SHOWN, HIDDEN])
def test_broken_answer_shows_what_there_is(emits: bool) -> None:
    """Text that was held back, or waited for the rest of a tag, is not lost."""
    *begun, _, _, end = run_of(message("1", "It rains <"))

    thoughts, cut = fed(emits, [*begun, end])

    assert isinstance(cut[-1], RunDone)
    assert "".join(grown(cut)) == thoughts.text_of(0) == "It rains <"


def test_carrier_is_an_empty_thought() -> None:
    thoughts, _ = shown(HIDDEN, [WEATHER])

    carrier = list(thoughts.build_carrier())
    assert page(carrier) == [("reasoning", "")]
    assert [e.output_index for e in carrier if isinstance(e, ItemDone)] == [-1]


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([message("1", " I look.\n"), SAID], "I look.\n\nIt rains."),
        ([message("1", "Hm.", "commentary"), SAID], "It rains."),
        ([reasoning("1"), message("1", "Hm.", "commentary")], "Hm."),
        ([reasoning("1"), message("1", f"{TAGGED} <thi")], "It rains. <thi"),
        ([reasoning("1")], ""),
    ],
)
def test_answer_has_neither_thoughts_nor_comments(items: list[Item], text: str) -> None:
    """It is what a person asked for."""
    assert read_answer_text(items) == text


Part = tuple[str, str]


def text_part(text: str) -> Part:
    return "text", text


def thought(text: str) -> Part:
    return "summary", text


class Reading:
    """One message, as it is shown piece by piece."""

    def __init__(self) -> None:
        self._thoughts = RunTexts(are_shown=True)
        self._item = {"type": "message", "id": "msg_1", "role": "assistant"}
        self._text = ""
        assert self._shown(ItemAdded(0, self._item)) == []

    def feed(self, text: str) -> list[Part]:
        self._text += text
        return self._shown(TextDelta(0, "text", 0, text))

    def end(self) -> list[Part]:
        part = {"type": "output_text", "text": self._text}
        return self._shown(ItemDone(0, {**self._item, "content": [part]}))

    def _shown(self, event: RunEvent) -> list[Part]:
        events = self._thoughts.feed(event)
        return [
            (delta.kind, delta.text) for delta in events if isinstance(delta, TextDelta)
        ]


def parts_of(pieces: Sequence[str]) -> list[Part]:
    """The parts of a whole message, each in one."""
    reading = Reading()
    shown = [part for piece in pieces for part in reading.feed(piece)]
    shown += reading.end()
    assert all(text for _, text in shown)
    groups = groupby(shown, lambda part: part[0])
    return [(kind, "".join(text for _, text in group)) for kind, group in groups]


TAGGED_TEXTS: dict[str, list[Part]] = {
    "Answer.": [text_part("Answer.")],
    "<think>Plan.</think>Answer.": [thought("Plan."), text_part("Answer.")],
    "a<think>b</think>c": [text_part("a"), thought("b"), text_part("c")],
    "<think>a</think><think>b</think>c": [thought("ab"), text_part("c")],
    "<THINK>a</Think>b": [thought("a"), text_part("b")],
    "<think>never closed": [thought("never closed")],
    "a</think>b": [text_part("ab")],
    "<think>a<think>b</think>c": [thought("ab"), text_part("c")],
    "<think></think>": [],
    "1 < 2 <thi": [text_part("1 < 2 <thi")],
    "<thinker> and </thin>": [text_part("<thinker> and </thin>")],
    "Write `<think>` and `</think>`.": [text_part("Write `<think>` and `</think>`.")],
    "": [],
}


@pytest.mark.parametrize(("text", "parts"), TAGGED_TEXTS.items())
def test_thoughts_are_told_apart(text: str, parts: list[Part]) -> None:
    for length in (1, 2, 3, 5, len(text) or 1):
        pieces = [text[at : at + length] for at in range(0, len(text), length)]
        assert parts_of(pieces) == parts


def test_text_is_not_held_back_longer_than_a_tag_could_begin() -> None:
    reading = Reading()

    assert reading.feed("Fine <") == [text_part("Fine ")]
    assert reading.feed("b> <thin") == [text_part("<b> ")]
    assert reading.feed("g>") == [text_part("<thing>")]
    assert reading.end() == []


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "a ", "th", "`"])))
def test_nothing_but_tags_is_lost(pieces: list[str]) -> None:
    shown = "".join(text for _, text in parts_of(pieces))

    bare = re.sub("(?<!`)</?think>", "", "".join(pieces))
    assert shown.replace(" ", "") == bare.replace(" ", "")
