"""Thoughts of a run: shown as reasoning, or not at all (R14)."""

from collections.abc import Sequence

import pytest

from openai_responses.items import Item, item_type, message_text
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.render.completions import ChunkRenderer
from runs.sample import Page, call, message, reasoning, refusal, run_of
from strategies.thoughts import ThoughtFilter, read_answer_text

TAGGED = "<think>First I look.</think>\n\nIt <THINK>hm</THINK>rains."
SHOWN = True
HIDDEN = False


def shown(
    emits: bool, *rounds: Sequence[Item], may_call: bool = True
) -> tuple[ThoughtFilter, list[RunEvent]]:
    """What is made of rounds with these items."""
    thoughts = ThoughtFilter(shows_thoughts=emits)
    events: list[RunEvent] = []
    first = 0
    for items in rounds:
        thoughts.begin_round(may_call=may_call)
        for event in moved(run_of(*items)[:-1], first):
            events += thoughts.show(event)
        first += len(items)
    events += thoughts.show(run_of()[-1])
    return thoughts, events


def moved(events: Sequence[RunEvent], first: int) -> list[RunEvent]:
    """A later round: its items are counted on."""
    return [
        (
            event._replace(output_index=event.output_index + first)
            if isinstance(event, ItemAdded | TextDelta | ItemDone)
            else event
        )
        for event in events
    ]


def page(events: Sequence[RunEvent]) -> list[tuple[str, str]]:
    """What Open WebUI shows in the end."""
    view = Page(lambda: 1.0)
    for event in events:
        list(view.render(event))
    return [(item_type(item), text_in(item)) for item in view.items]


def text_in(item: Item) -> str:
    """The text of an item that is shown."""
    if item_type(item) == "message":
        return message_text(item)
    return "".join(part["text"] for part in item.get("summary", ()))


def plain(events: Sequence[RunEvent]) -> list[tuple[str, str]]:
    """What a plain client reads, one kind of text after another."""
    view = ChunkRenderer("c", 1, "m")
    read = list[tuple[str, str]]()
    for chunk in (chunk for event in events for chunk in view.render(event)):
        for choice in chunk["choices"]:
            for kind in ("content", "reasoning_content"):
                if kind in choice["delta"]:
                    read.append((kind, choice["delta"][kind]))
    joined: list[tuple[str, str]] = []
    for kind, text in read:
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


ANSWER = ("message", "It rains.")
CALL = ("function_call", "")
FIRST = message("1", "I look it up.")
WEATHER = call("1")
SAID = message("2", "It rains.")


def test_round_without_a_call_is_an_answer_byte_for_byte() -> None:
    """The model's own item ends it."""
    _, events = shown(SHOWN, [SAID])

    assert page(events) == [ANSWER]
    assert [event for event in events if isinstance(event, ItemDone)] == [
        ItemDone(0, SAID)
    ]


@pytest.mark.parametrize("emits", [SHOWN, HIDDEN])
def test_answer_without_tools_grows_as_it_comes(emits: bool) -> None:
    """Nothing is held back when there is nothing to call."""
    _, events = shown(emits, [SAID], may_call=False)

    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "It ra",
        "ins.",
    ]
    assert isinstance(events[1], TextDelta)


def test_r14_text_of_a_round_that_calls_becomes_a_thought_once() -> None:
    """It was shown as it grew; when the call comes it changes its kind."""
    _, events = shown(SHOWN, [FIRST, WEATHER], [SAID])

    assert page(events) == [("reasoning", "I look it up."), CALL, ANSWER]
    grown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert grown.count("I look it up.") == 1
    assert plain(events) == [("content", "I look it up.\n\nIt rains.")]


def test_r14_text_of_a_round_that_calls_is_not_shown_at_all() -> None:
    """Not even for a moment; the answer is there in the end."""
    _, events = shown(HIDDEN, [FIRST, WEATHER], [SAID])

    assert page(events) == [CALL, ANSWER]
    assert not any("look" in e.text for e in events if isinstance(e, TextDelta))
    assert plain(events) == [("content", "It rains.")]


def test_r14_text_after_a_call_is_a_thought_from_the_beginning() -> None:
    """A plain client reads it as reasoning."""
    _, events = shown(SHOWN, [WEATHER, FIRST], [SAID])
    _, hidden = shown(HIDDEN, [WEATHER, FIRST], [SAID])

    fallback = ("reasoning", "I am going to use get_weather.")
    thought = ("reasoning", "I look it up.")
    assert page(events) == [fallback, CALL, thought, ANSWER]
    assert page(hidden) == [CALL, ANSWER]
    assert plain(events) == [
        ("reasoning_content", "I am going to use get_weather.\n\nI look it up."),
        ("content", "It rains."),
    ]


def test_r14_round_that_calls_without_a_word_gets_a_thought() -> None:
    """One for the round, in front of its calls."""
    _, events = shown(SHOWN, [WEATHER, call("2")], [call("3")], [SAID])
    _, hidden = shown(HIDDEN, [WEATHER, call("2")], [SAID])

    fallback = ("reasoning", "I am going to use get_weather.")
    assert page(events) == [fallback, CALL, CALL, fallback, CALL, ANSWER]
    assert page(hidden) == [CALL, CALL, ANSWER]


@pytest.mark.parametrize("summary", ["Thinking.", ""])
def test_r14_summary_of_the_model_is_thought_enough(summary: str) -> None:
    """Reasoning without a summary shows nothing."""
    _, events = shown(SHOWN, [reasoning("1", summary), WEATHER])

    texts = [text for kind, text in page(events) if kind == "reasoning" and text]
    assert texts == [summary or "I am going to use get_weather."]


@pytest.mark.parametrize("may_call", [True, False])
def test_r14_tags_become_thoughts(may_call: bool) -> None:
    """What stands between thoughts is one message each."""
    thoughts, events = shown(SHOWN, [message("1", TAGGED)], may_call=may_call)

    assert page(events) == [
        ("reasoning", "First I look."),
        ("message", "It"),
        ("reasoning", "hm"),
        ("message", "rains."),
    ]
    names = [e.item["id"] for e in events if isinstance(e, ItemAdded)]
    assert len(set(names)) == len(names)
    assert thoughts.get_text(0) == "It \nrains."


@pytest.mark.parametrize("may_call", [True, False])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        (TAGGED, "It rains."),
        ("Rain.<think>never closed", "Rain."),
        ("<think>all</think>", ""),
        ("Rain, he said, <thin", "Rain, he said, <thin"),
    ],
)
def test_r14_tags_are_removed_where_thoughts_are_not_shown(
    text: str, left: str, may_call: bool
) -> None:
    """Complete, never closed, or spread over pieces."""
    thoughts, events = shown(HIDDEN, [message("1", text)], may_call=may_call)

    assert page(events) == ([("message", left)] if left else [])
    assert thoughts.get_text(0).strip() == left


def test_thoughts_in_a_round_that_calls_stay_thoughts() -> None:
    """What stands between them joins them."""
    _, events = shown(SHOWN, [message("1", TAGGED), WEATHER])
    _, hidden = shown(HIDDEN, [message("1", TAGGED), WEATHER])

    assert [kind for kind, _ in page(events)] == ["reasoning"] * 4 + ["function_call"]
    assert page(hidden) == [CALL]


@pytest.mark.parametrize("called", [True, False])
def test_commentary_is_a_thought_whatever_comes(called: bool) -> None:
    """The model itself says that it is no answer."""
    comment = message("1", "I look it up.", "commentary")
    items = [comment, WEATHER] if called else [comment, SAID]

    _, events = shown(SHOWN, items)
    _, hidden = shown(HIDDEN, items)

    rest = [CALL] if called else [ANSWER]
    assert page(events) == [("reasoning", "I look it up."), *rest]
    assert page(hidden) == rest
    assert ("content", "I look it up.") not in plain(events)


def test_commentary_that_is_all_there_is_is_the_answer() -> None:
    """Nobody is left without one."""
    look, rains = (
        message(name, text, "commentary")
        for name, text in (("1", "I look it up."), ("2", "It rains."))
    )
    _, hidden = shown(HIDDEN, [rains])
    thoughts, events = shown(SHOWN, [look, rains])

    assert page(hidden) == [ANSWER]
    assert page(events) == [
        ("reasoning", "I look it up."),
        ("reasoning", "It rains."),
        ANSWER,
    ]
    assert [thoughts.get_text(index) for index in (0, 1)] == ["", "It rains."]
    assert plain(events)[-1] == ("content", "It rains.")


def test_final_answer_is_not_held_back() -> None:
    """The model promises that no call comes."""
    _, events = shown(HIDDEN, [message("1", "It rains.", "final_answer")])

    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        "It ra",
        "ins.",
    ]


def test_refusal_is_read_like_an_answer() -> None:
    """The item that ends it is the model's."""
    item = refusal("1", "I would rather not.")
    _, events = shown(SHOWN, [item])

    assert ItemDone(0, item) in events
    assert plain(events) == [("content", "I would rather not.")]


def test_broken_answer_shows_what_there_is() -> None:
    """Text that was held back, or waited for the rest of a tag, is not lost."""
    for emits in (SHOWN, HIDDEN):
        thoughts = ThoughtFilter(shows_thoughts=emits)
        thoughts.begin_round(may_call=True)
        events = run_of(message("1", "It rains <"))
        shown_events = [t for e in [*events[:3], events[-1]] for t in thoughts.show(e)]

        assert isinstance(shown_events[-1], RunDone)
        grown = "".join(e.text for e in shown_events if isinstance(e, TextDelta))
        assert grown == "It rains <"
        assert thoughts.get_text(0) == "It rains <"


def test_status_notes_pass_the_filter() -> None:
    """They belong to no item."""
    thoughts = ThoughtFilter(shows_thoughts=False)

    assert list(thoughts.show(Status("Wait."))) == [Status("Wait.")]


def test_carrier_is_an_empty_thought() -> None:
    """It has an index of its own."""
    thoughts, _ = shown(HIDDEN, [WEATHER])

    assert page(list(thoughts.build_carrier())) == [("reasoning", "")]
    assert {
        e.output_index for e in thoughts.build_carrier() if isinstance(e, ItemDone)
    } == {2}


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([FIRST, SAID], "I look it up.\n\nIt rains."),
        ([message("1", "Hm.", "commentary"), SAID], "It rains."),
        ([message("1", "Hm.", "commentary")], "Hm."),
        ([reasoning("1"), message("1", TAGGED)], "It rains."),
        ([reasoning("1")], ""),
    ],
)
def test_answer_has_neither_thoughts_nor_comments(items: list[Item], text: str) -> None:
    """It is what a person asked for."""
    assert read_answer_text(items) == text
