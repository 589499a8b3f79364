"""Thoughts next to messages that stay items of their own (R14)."""

from collections.abc import Sequence

import pytest

from measures.work_count import count_work
from openai_responses.items import Item, item_type, message_text
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import CitedEvent
from runs.sample import call, message, reasoning, refusal, run_of
from strategies.thoughts import ShownThoughts

TAGGED = "<think>First I look.</think>\n\nIt <THINK>hm</THINK>rains."
FALLBACK = "I am going to use get_weather."
CODE: Item = {"type": "code_interpreter_call", "id": "ci_1", "code": "2 + 2"}
"""Of what the API runs itself."""


def shown(*responses: Sequence[Item], are_shown: bool = True) -> list[CitedEvent]:
    """What is made of responses, each with its items."""
    thoughts = ShownThoughts(are_shown=are_shown, keeps_messages=True)
    events: list[RunEvent] = []
    for items in responses:
        *begun, _ = run_of(*items)
        events += [*begun, ResponseDone()]
    output = tuple(item for items in responses for item in items)
    ended = run_of()[-1]
    assert isinstance(ended, RunDone)
    events.append(ended._replace(output=output))
    shown_events: list[CitedEvent] = []
    for event in events:
        cited = event
        if isinstance(event, ItemDone):
            cited = event._replace(shown=message_text(event.item))
        shown_events += [_finished(thoughts, each) for each in thoughts.feed(cited)]
    return shown_events


def _finished(thoughts: ShownThoughts, event: CitedEvent) -> CitedEvent:
    if isinstance(event, RunDone):
        return thoughts.shown_end(event)
    finished = thoughts.without_thoughts(event)
    assert isinstance(finished, type(event))
    return finished


def outline(events: Sequence[CitedEvent]) -> list[tuple[str, str]]:
    """The items in the order in which they begin, with the text that grew in each."""
    kinds: dict[int, str] = {}
    texts: dict[int, str] = {}
    for event in events:
        if isinstance(event, ItemAdded):
            kinds[event.output_index] = item_type(event.item)
            texts[event.output_index] = ""
        elif isinstance(event, TextDelta) and event.kind != "arguments":
            texts[event.output_index] += event.text
    return [(kinds[index], texts[index]) for index in kinds]


def ended_texts(events: Sequence[CitedEvent]) -> list[str]:
    ended = [event for event in events if isinstance(event, ItemDone)]
    return [event.shown for event in ended if item_type(event.item) == "message"]


@pytest.mark.parametrize(
    ("text", "begun", "answer"),
    [
        (
            TAGGED,
            [
                ("reasoning", "First I look."),
                ("message", "It rains."),
                ("reasoning", "hm"),
            ],
            "It rains.",
        ),
        (
            "Rain.<think>never closed",
            [("message", "Rain."), ("reasoning", "never closed")],
            "Rain.",
        ),
        ("<think>all</think>", [("reasoning", "all"), ("message", "")], ""),
        ("<think> </think>Rain.", [("message", "Rain.")], "Rain."),
        ("\n Rain, <thin", [("message", "\n Rain, <thin")], "\n Rain, <thin"),
        ("`<think>` is a tag", [("message", "`<think>` is a tag")], None),
    ],
    ids=["two", "never closed", "all", "blank", "no tag", "in backticks"],
)
def test_r14_a_message_is_shown_without_its_thoughts(
    text: str, begun: list[tuple[str, str]], answer: str | None
) -> None:
    """Thoughts are items of their own, in front of what follows them, or nothing."""
    for are_shown in (True, False):
        events = shown([message("1", text)], are_shown=are_shown)

        expected = [each for each in begun if are_shown or each[0] == "message"]
        assert outline(events) == expected
        assert {e.part for e in events if isinstance(e, TextDelta)} <= {0}
        assert ended_texts(events) == [text if answer is None else answer]


def test_a_message_without_thoughts_stays_as_it_came() -> None:
    items = [reasoning("1", "Hm."), message("2", "It rains.", "final_answer")]
    events = shown(items)

    before = [event for event in run_of(*items) if isinstance(event, ItemAdded)]
    assert [event for event in events if isinstance(event, ItemAdded)] == before
    [*_, ended] = [event for event in events if isinstance(event, ItemDone)]
    assert ended.item == items[1]


@pytest.mark.parametrize(
    ("text", "deltas"), [("<think>all</think>", [""]), ("It rains.", None), ("", [])]
)
def test_a_message_with_text_has_a_first_text(
    text: str, deltas: list[str] | None
) -> None:
    """Whoever records the message does it there."""
    events = shown([message("1", text)])

    grown = [e for e in events if isinstance(e, TextDelta) and e.output_index == 0]
    assert "".join(each.text for each in grown) == (text if deltas is None else "")
    texts = [each.text for each in grown]
    assert all(texts) if deltas is None else texts == deltas


@pytest.mark.parametrize("keeps", [True, False])
def test_a_message_without_text_begins_before_the_next_item(keeps: bool) -> None:
    """Where it is an item of the chat; elsewhere it may still become a thought."""
    thoughts = ShownThoughts(are_shown=True, keeps_messages=keeps)
    events = [ItemAdded(0, message("1", "")), ItemAdded(1, call("1"))]
    added = [
        event.output_index
        for each in events
        for event in thoughts.feed(each)
        if isinstance(event, ItemAdded | ItemDone)
    ]

    assert added == ([0] if keeps else []) + [-1, -1, 1]


def test_thoughts_have_indexes_and_ids_of_their_own() -> None:
    """Records are stored by the others."""
    events = shown([message("1", TAGGED), call("1")], [call("2")])

    added = [event for event in events if isinstance(event, ItemAdded)]
    thoughts = [event for event in added if item_type(event.item) == "reasoning"]
    assert [event.output_index for event in thoughts] == [-1, -2, -3]
    assert len({event.item["id"] for event in added}) == len(added)
    ended = [event for event in events if isinstance(event, ItemDone)]
    assert {event.output_index for event in ended} == {0, 1, -1, -2, -3}


@pytest.mark.parametrize(
    ("items", "is_announced"),
    [
        ([call("1"), call("2")], True),
        ([CODE, call("1")], True),
        ([reasoning("1", ""), call("1")], True),
        ([reasoning("1", "Hm.\n\n\n"), call("1")], False),
        ([message("1", "I look.", "commentary"), call("1")], False),
        ([message("1", "<think>Hm.</think>"), call("1")], False),
        ([refusal("1", "No."), call("1")], False),
        ([message("1", "It rains.")], False),
    ],
    ids=[
        "silent",
        "code",
        "empty",
        "summary",
        "commentary",
        "tags",
        "refusal",
        "no call",
    ],
)
def test_r14_a_silent_call_is_announced_once(
    items: list[Item], is_announced: bool
) -> None:
    """In each response, in front of its calls; not if thoughts are hidden."""
    events = shown(items, items)
    hidden = shown(items, are_shown=False)

    announced = [text for kind, text in outline(events) if kind == "reasoning"]
    assert announced.count(FALLBACK) == 2 * is_announced
    assert FALLBACK not in str(hidden)


def test_a_whole_answer_has_its_thoughts_as_reasoning() -> None:
    tagged = [{"type": "reasoning_text", "text": TAGGED}]  # a server's own thought
    said = message("2", f"<think>\n</think>{TAGGED}")
    items = [call("1"), said, reasoning("3", content=tagged)]
    *_, ended = shown(items)
    *_, hidden = shown(items, are_shown=False)

    assert isinstance(ended, RunDone)
    assert isinstance(hidden, RunDone)
    kinds = [item_type(item) for item in ended.output]
    assert kinds == ["reasoning", "function_call", "reasoning", "message", "reasoning"]
    texts = [item["summary"][0]["text"] for item in ended.output if "summary" in item]
    assert texts == [FALLBACK, "First I look.\n\nhm", "Thinking."]
    assert ended.output[2]["id"] == "rs_msg_2"
    assert ended.output[3:] == hidden.output[1:]
    assert message_text(hidden.output[1]) == "It rains."
    assert hidden.output[2] == items[2]


def test_citations_keep_their_words() -> None:
    """Their places count in the answer."""
    text = "<THINK>Hm.</Think>\n\nIt rains."
    span = {"start_index": text.index("rains"), "end_index": len(text)}
    item = message("1", text)
    item["content"][0]["annotations"] = [
        {"type": "url_citation", **span},
        {"type": "file_citation", "index": text.index("rains")},
        {"type": "url_citation", "start_index": -1, "end_index": -1},
    ]
    declined = {"type": "refusal", "refusal": "No."}
    item["content"] += [None, declined]  # a server's own null is no part
    *_, ended = shown([item])

    assert isinstance(ended, RunDone)
    part, last = ended.output[-1]["content"]
    assert last == declined
    annotation, file, placeless = part["annotations"]
    assert part["text"][file["index"] :] == "rains."
    assert placeless == item["content"][0]["annotations"][2]
    start = annotation["start_index"]
    end = annotation["end_index"]
    assert part["text"][start:end] == "rains."


@pytest.mark.parametrize("text", ["<think>Never clo", "It rains <thi"])
def test_an_interrupted_message_loses_nothing(text: str) -> None:
    """What could have been a tag is shown, and a thought ends."""
    thoughts = ShownThoughts(are_shown=True, keeps_messages=True)
    begun, *growing, _, _ = run_of(message("1", text))[:-1]
    events = [begun, *growing, run_of()[-1]]
    shown_events = [each for event in events for each in thoughts.feed(event)]

    grown = "".join(each.text for each in shown_events if isinstance(each, TextDelta))
    assert grown == text.removeprefix("<think>")
    added = [each for each in shown_events if isinstance(each, ItemAdded)]
    ended = [each for each in shown_events if isinstance(each, ItemDone)]
    is_thought = text.startswith("<think>")
    assert len(ended) == is_thought
    assert len(added) == 1 + is_thought


def test_places_of_citations_take_linear_work() -> None:
    """A server chooses how many there are, and how long the text is."""

    def work_of(many: int) -> int:
        item = message("1", "<think>Hm.</think> It rains. " * many)
        cited = {"type": "file_citation", "index": many}
        item["content"][0]["annotations"] = [cited] * many
        return count_work(lambda: shown([item]))

    assert work_of(200) < 2.5 * work_of(100)
