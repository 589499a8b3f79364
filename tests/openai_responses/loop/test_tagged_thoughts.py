"""Thoughts in tags, of servers without a parser for reasoning: reasoning like any other."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import Item, item_texts, item_type
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import (
    NO_THOUGHT,
    HiddenMessage,
    ResponseDone,
    RunEvent,
)
from openai_responses.loop.run import run
from openai_responses.loop.tagged_thoughts import (
    THOUGHT_TAGS,
    TaggedThoughts,
    _TaggedText,
)
from openai_responses.loop.tools import Toolset
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    TextDelta,
)
from runs.against_server import AT_ONCE, asking, end_of
from runs.against_server import limits as often
from runs.sample import call, message, reasoning, refusal
from runs.tools import MemoryTools, calling
from upstream.server import (
    Answerer,
    Upstream,
    breaking,
    in_turn,
    replying,
    streaming,
)

Part = tuple[str, str]


def thought(text: str) -> Part:
    """A thought."""
    return "reasoning", text


def answer(text: str) -> Part:
    """A message."""
    return "message", text


CASES = {
    "It rains.": [answer("It rains.")],
    "<think>Hm.</think>It rains.": [thought("Hm."), answer("It rains.")],
    "\n<think>\n\nHm.\n</think>\n\nIt rains.\n": [
        thought("Hm."),
        answer("It rains.\n"),
    ],
    "Hm.\n</think>\n\nIt rains.": [thought("Hm."), answer("It rains.")],
    "</think>\n\nIt rains.": [answer("It rains.")],
    "<think>\n\n</think>\n\nIt rains.": [answer("It rains.")],
    "<think>Hm.": [thought("Hm.")],
    "<think>Hm.</th": [thought("Hm.</th")],
    "<think>Hm.</think>": [thought("Hm.")],
    "<think></think>": [],
    "<think>a<think>b</think>c": [thought("a<think>b"), answer("c")],
    "<think>a</think>b</think>c": [thought("a"), answer("b</think>c")],
    "<think>a</think><think>b</think>": [thought("a"), answer("<think>b</think>")],
    "<thinking>a</think>b</thinking>c": [thought("a</think>b"), answer("c")],
    "◁think▷a◁/think▷b": [thought("a"), answer("b")],
    "A <think> opens it, </think> closes it.": [
        answer("A <think> opens it, </think> closes it.")
    ],
    "`</think>` closes it.": [answer("`</think>` closes it.")],
    "Like so:\n```\na</think>\n```\nb</think>c": [
        answer("Like so:\n```\na</think>\n```\nb</think>c")
    ],
    "```\ncode\n```\nHm.</think>It rains.": [
        thought("```\ncode\n```\nHm."),
        answer("It rains."),
    ],
    "It costs `1 </reason>": [answer("It costs `1 </reason>")],
    "1 < 2 <thi": [answer("1 < 2 <thi")],
    "<thinker>": [answer("<thinker>")],
    "": [answer("")],
}


def wire_events(item: Item, pieces: Iterable[str], index: int = 0) -> list[RunEvent]:
    """The events of a message whose text comes in these pieces."""
    growing = [TextDelta(index, "text", 0, piece) for piece in pieces]
    return [ItemAdded(index, {**item, "content": []}), *growing, ItemDone(index, item)]


class Page:
    """What becomes of the items that are shown, by their indexes."""

    def __init__(self, events: Iterable[RunEvent]) -> None:
        self.items: dict[int, Item] = {}
        self.grown: dict[int, str] = {}
        self.open: set[int] = set()
        for event in events:
            if isinstance(event, ItemAdded):
                assert event.output_index not in self.items
                self.items[event.output_index] = event.item
                self.grown[event.output_index] = ""
                self.open.add(event.output_index)
            elif isinstance(event, TextDelta):
                assert event.output_index in self.items
                self.grown[event.output_index] += event.text
            elif isinstance(event, ItemDone):
                self.items[event.output_index] = event.item
                self.open.discard(event.output_index)

    def parts(self) -> list[Part]:
        """The items as they are shown at the end."""
        assert not self.open
        return parts_of([self.items[index] for index in sorted(self.items)])


def parts_of(items: Sequence[Item]) -> list[Part]:
    """The types and texts of items."""
    return [
        (item_type(item), "".join(text for _, text in item_texts(item)))
        for item in items
    ]


def split(text: str, length: int) -> list[str]:
    """A text in pieces of this length."""
    return [text[at : at + length] for at in range(0, len(text), length)]


@pytest.mark.parametrize(("text", "parts"), CASES.items())
def test_a_message_with_tags_becomes_reasoning_and_answer(
    text: str, parts: list[Part]
) -> None:
    """Whole and in pieces, on the page and for the next request."""
    for length in (1, 2, 3, 5, len(text) or 1):
        tagged = TaggedThoughts(3, THOUGHT_TAGS)
        item = message("1", text)
        events = [
            shown
            for event in wire_events(item, split(text, length), 3)
            for shown in tagged.feed(event)
        ]

        page = Page(events)
        assert page.parts() == parts
        assert tagged.items([(3, item)]) == sorted(page.items.items())
        assert sorted(page.items) == [*range(3, 3 + len(parts))]
        if parts == [answer(text)]:
            assert page.items[3] is item
        for (_, whole), grown in zip(parts, page.grown.values(), strict=True):
            assert grown.strip() == whole.strip()


def test_texts_are_shown_as_they_come() -> None:
    """No more waits than what could be the beginning of a tag."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    tagged.feed(ItemAdded(0, message("1", "")))

    def shown(text: str) -> list[str]:
        events = tagged.feed(TextDelta(0, "text", 0, text))
        return [event.text for event in events if isinstance(event, TextDelta)]

    assert shown("\n<thi") == []
    assert shown("nk>Hm. ") == ["Hm. "]
    assert shown("So <") == ["So "]
    assert shown("/b></th") == ["</b>"]
    assert shown("ink>\n") == []
    assert shown("\n It rains <") == ["It rains <"]
    assert shown("think>") == ["think>"]


def test_words_before_a_lone_closing_tag_turn_into_a_thought() -> None:
    """They were shown as text; the answer is another item."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    *begun, turned, added, text = [
        shown
        for event in wire_events(message("1", ""), ["Hm.", "</think>", "It rains."])
        if not isinstance(event, ItemDone)
        for shown in tagged.feed(event)
    ]

    assert begun[1:] == [TextDelta(0, "text", 0, "Hm.")]
    assert isinstance(turned, ItemDone)
    assert parts_of([turned.item]) == [thought("Hm.")]
    assert turned.output_index == 0
    assert isinstance(added, ItemAdded)
    assert text == TextDelta(1, "text", 0, "It rains.")


def test_thoughts_that_are_not_kept_leave_nothing() -> None:
    """Neither on the page nor for the next request; the answer stays."""
    for text in ("<think>Hm.</think>It rains.", "Hm.</think>It rains."):
        for length in (1, len(text)):
            tagged = TaggedThoughts(0, THOUGHT_TAGS, keeps_thoughts=False)
            item = message("1", text)
            events = [
                shown
                for event in wire_events(item, split(text, length))
                for shown in tagged.feed(event)
            ]

            page = Page(events)
            left = [item for item in page.items.values() if item != NO_THOUGHT]
            assert parts_of(left) == [answer("It rains.")]
            kept = [item for _, item in tagged.items([(0, item)])]
            assert kept == left
            if text.startswith("<"):
                assert "Hm." not in repr(events)


def test_other_items_keep_their_order() -> None:
    """A thought moves those after it; a message without one moves nothing."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    items = [reasoning("1"), message("2", "<think>Hm.</think>Rain."), call("3")]
    silent = message("4", "")
    refused = refusal("5", "No </think>.")
    events: list[RunEvent] = [
        ItemAdded(0, items[0]),
        TextDelta(0, "summary", 0, "Thinking."),
        ItemDone(0, items[0]),
        *wire_events(items[1], ["<think>Hm.</think>Rain."], 1),
        AnnotationAdded(1, {"type": "url_citation"}),
        ItemAdded(3, silent),
        ItemAdded(2, items[2]),
        ItemDone(2, items[2]),
        ItemDone(3, silent),
        ItemAdded(4, refused),
        TextDelta(4, "refusal", 0, "No </think>."),
        ItemDone(4, refused),
        ResponseDone("completed"),
    ]
    shown = [each for event in events for each in tagged.feed(event)]

    page = Page(shown)
    expected = ["reasoning", "reasoning", "message", "message", "function_call"]
    kinds = [item_type(page.items[index]) for index in sorted(page.items)]
    assert kinds == [*expected, "message"]
    assert page.items[5] is refused
    [cited] = [event for event in shown if isinstance(event, AnnotationAdded)]
    assert cited.output_index == 2
    assert shown[-1] == events[-1]
    whole = [*items, silent, refused]
    assert tagged.items(enumerate(whole)) == sorted(page.items.items())


@pytest.mark.parametrize(
    ("text", "hidden"),
    [("Rain.", 1), ("<think>Hm.</think>Rain.", 1), ("<think>Hm.</think>", 0)],
)
def test_a_message_that_is_hidden_has_no_tags(text: str, hidden: int) -> None:
    """It repeats the one before it; its thought is neither shown nor sent again."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    items = [message("1", text), message("2", text), call("3")]
    events: list[RunEvent] = [
        *wire_events(items[0], [text]),
        HiddenMessage(1, items[1]),
        ItemAdded(2, items[2]),
        ItemDone(2, items[2]),
        ResponseDone("completed"),
    ]
    shown = [each for event in events for each in tagged.feed(event)]

    repeated = [event for event in shown if isinstance(event, HiddenMessage)]
    assert [parts_of([event.item]) for event in repeated] == [
        [answer("Rain.")]
    ] * hidden
    page = Page(shown)
    known = {**page.items, **{e.output_index: e.item for e in repeated}}
    assert len(known) == len(page.items) + hidden
    assert tagged.items(enumerate(items)) == sorted(known.items())
    assert "think" not in repr(known)


def test_what_waits_is_shown_when_a_response_ends() -> None:
    """Also if its message never ends."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    tagged.feed(ItemAdded(0, message("1", "")))
    tagged.feed(TextDelta(0, "text", 0, "It rains <thi"))

    rest, ended = tagged.feed(ResponseDone("incomplete"))

    assert rest == TextDelta(0, "text", 0, "<thi")
    assert isinstance(ended, ResponseDone)


def test_citations_keep_their_words() -> None:
    """Their places count in the answer; places in the thought are its beginning."""
    text = "<think>Hm.</think>\n\nIt rains."
    span = {"start_index": text.index("rains"), "end_index": len(text)}
    cited = [{"type": "url_citation", **span}, {"start_index": 2, "end_index": None}]
    cited += [{"index": text.index("rains")}, {"start_index": -1, "end_index": -1}]
    item = message("1", text, annotations=cited)
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    for event in wire_events(item, [text]):
        tagged.feed(event)

    (_, _), (_, shown) = tagged.items([(0, item)])

    [part] = shown["content"]
    first, second, file, placeless = part["annotations"]
    assert part["text"][first["start_index"] : first["end_index"]] == "rains."
    assert second == {"start_index": 0, "end_index": None}
    assert part["text"][file["index"] :] == "rains."
    assert placeless == {"start_index": -1, "end_index": -1}
    assert item["content"][0]["text"] == text


def test_a_thought_that_ends_in_another_part_leaves_no_tag() -> None:
    """Older vLLM gives each delta a part of its own, in the final item as well."""
    pieces = ["<think>ab", "cd</think>", "It ", "rains."]
    item = message("1", "")
    item["content"] = [{"type": "output_text", "text": piece} for piece in pieces]
    item["content"][2]["annotations"] = [{"start_index": 0, "end_index": 2}]
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    page = Page(
        shown for event in wire_events(item, pieces) for shown in tagged.feed(event)
    )

    assert page.parts() == [thought("abcd"), answer("It rains.")]
    (_, _), (_, final) = tagged.items([(0, item)])
    assert [part["text"] for part in final["content"]] == ["", "", "It ", "rains."]
    assert final["content"][2:] == item["content"][2:]


def test_a_message_with_a_text_as_content_and_one_with_more_parts() -> None:
    """The form of other servers; what comes after the first part stays."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    short: Item = {"type": "message", "content": "<think>Hm.</think>Rain."}
    more = message("1", "<think>Hm.</think>")
    more["content"].append({"type": "refusal", "refusal": "No."})
    for index, item in enumerate([short, more]):
        tagged.feed(ItemAdded(index, {**item, "content": []}))
        for (kind, part), text in [*item_texts(item)] or [(("text", 0), "<think>Hm.")]:
            assert kind in ("text", "refusal")
            tagged.feed(TextDelta(index, "text", part, text))
        tagged.feed(ItemDone(index, item))

    items = [item for _, item in tagged.items(enumerate([short, more]))]

    assert parts_of(items[::2]) == [thought("Hm.")] * 2
    assert items[1]["content"] == [{"type": "output_text", "text": "Rain."}]
    assert [part["type"] for part in items[3]["content"]] == ["output_text", "refusal"]


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<reason>", "</reason>", "<", "a ", "th", "`", "\n"]
        )
    )
)
def test_no_words_are_lost_however_they_come(pieces: list[str]) -> None:
    """All ways to cut a text give the same items."""
    text = "".join(pieces)
    item = message("1", text)
    results = []
    for parts in (pieces, [text], [*text]):
        tagged = TaggedThoughts(0, THOUGHT_TAGS)
        events = [
            shown
            for event in wire_events(item, [part for part in parts if part])
            for shown in tagged.feed(event)
        ]
        page = Page(events)
        assert tagged.items([(0, item)]) == sorted(page.items.items())
        results.append(page.parts())

    assert results[0] == results[1] == results[2]
    words = "".join(shown for _, shown in results[0])
    bare = text.replace("<think>", "").replace("</think>", "")
    for tag in ("<think>", "</think>", "<reason>", "</reason>", "\n", " "):
        words, bare = words.replace(tag, ""), bare.replace(tag, "")
    assert words == bare


# ------------------------------------------------------------------ a whole run


def event_of(kind: str, **fields: Any) -> bytes:
    """One event as it is sent."""
    return f"data: {json.dumps({'type': kind, **fields})}\n\n".encode()


def answering(*output: Item, size: int | None = 3) -> Answerer:
    """Answer with this output, streamed like vLLM without a parser, or in one piece."""
    response = {"id": "r", "status": "completed", "output": output}
    if size is None:
        return replying(json.dumps(response))
    wire = event_of("response.created", response={**response, "output": []})
    for index, item in enumerate(output):
        at: dict[str, Any] = {"output_index": index}
        begun = {**item, "content": []} if item_type(item) == "message" else item
        wire += event_of("response.output_item.added", **at, item=begun)
        for (kind, part), text in item_texts(item):
            if kind == "text":
                place = {**at, "item_id": item["id"], "content_index": part}
                for piece in split(text, size):
                    wire += event_of("response.output_text.delta", **place, delta=piece)
        wire += event_of("response.output_item.done", **at, item=item)
    return streaming(wire + event_of("response.completed", response=response))


async def events_of(
    connections: Connections,
    *answers: Answerer,
    compatibility: Any = "auto",
    limits: Limits = AT_ONCE,
) -> tuple[list[RunEvent], list[Any]]:
    """What a run reports, and what it sent."""
    async with Upstream(in_turn(*answers)) as upstream:
        endpoint = replace(upstream.endpoint, compatibility=compatibility)
        toolset = Toolset(MemoryTools())
        sent = run(asking(), endpoint, connections, limits, toolset)
        return [event async for event in sent], upstream.bodies


TOOL_ROUND = (
    message("1", "<think>The user asks.</think>\n\nI look."),
    calling("get_weather", arguments='{"city": "Bern"}', id="fc_1", call_id="call_1"),
)


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, None])
@pytest.mark.parametrize(
    "text", ["<think>Hm.</think>It rains.", "Hm.</think>It rains."]
)
async def test_a_run_shows_and_sends_thoughts_as_reasoning(
    text: str, size: int | None, connections: Connections
) -> None:
    """Between rounds they go back as reasoning, and no tag goes anywhere."""
    events, bodies = await events_of(
        connections,
        answering(*TOOL_ROUND, size=size),
        answering(message("2", text), size=size),
    )

    output = end_of(events).output
    assert [item_type(item) for item in output] == [
        *["reasoning", "message", "function_call", "function_call_output"],
        *["reasoning", "message"],
    ]
    assert "think>" not in repr(events)
    _, *sent = bodies[1]["input"]
    assert "think>" not in json.dumps(sent)
    assert [item["type"] for item in sent] == [item_type(item) for item in output[:4]]
    assert sent[0]["content"] == [{"type": "reasoning_text", "text": "The user asks."}]
    for event in events:
        if isinstance(event, ItemDone):
            assert output[event.output_index] == event.item


@pytest.mark.asyncio
async def test_words_of_openais_models_stay(connections: Connections) -> None:
    """An administrator says with COMPATIBILITY that a gateway leads to OpenAI."""
    events, _ = await events_of(
        connections,
        answering(message("1", "<think>Hm.</think>It rains.")),
        compatibility="openai",
    )

    [item] = end_of(events).output
    assert parts_of([item]) == [answer("<think>Hm.</think>It rains.")]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        ((), [answer("[THINK]Hm.[/THINK]It rains.")]),
        ((("[THINK]", "[/THINK]"),), [thought("Hm."), answer("It rains.")]),
    ],
)
async def test_the_tags_are_a_choice(
    tags: tuple[tuple[str, str], ...], shown: list[Part], connections: Connections
) -> None:
    """None at all is one, too."""
    events, _ = await events_of(
        connections,
        answering(message("1", "[THINK]Hm.[/THINK]It rains.")),
        limits=AT_ONCE._replace(thought_tags=tags),
    )

    assert parts_of(end_of(events).output) == shown


@pytest.mark.asyncio
async def test_a_thought_in_tags_that_breaks_off_goes_on(
    connections: Connections,
) -> None:
    """Like that of a server with a parser: the next attempt thinks in the same place."""
    said = message("1", "<think>Hm.</think>It rains.")
    begun = event_of(
        "response.output_item.added", output_index=0, item={**said, "content": []}
    )
    place = {"item_id": said["id"], "output_index": 0, "content_index": 0}
    begun += event_of("response.output_text.delta", **place, delta="<think>I look")

    events, bodies = await events_of(
        connections, breaking(begun), answering(said), limits=often(2)
    )

    assert len(bodies) == 2
    page = Page(events)
    assert page.parts() == [thought("Hm."), answer("It rains.")]
    assert page.grown[0].startswith("I look")
    assert page.grown[1] == "It rains."
    assert parts_of(end_of(events).output) == page.parts()


@pytest.mark.parametrize("blank", [999, 1_000, 1_001, 5_000])
def test_few_blanks_are_waited_through(blank: int) -> None:
    """After more of them a text is a text, in pieces and whole."""
    text = "\n" * blank + "<think>Hm.</think>It rains."
    is_thought = blank <= 1_000
    said = message("1", text)

    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    events = tagged.feed(ItemAdded(0, {**said, "content": []}))
    for letter in text:
        events += tagged.feed(TextDelta(0, "text", 0, letter))
    events += tagged.feed(ItemDone(0, said))

    ended = [event.item for event in events if isinstance(event, ItemDone)]
    kinds = [item_type(item) for item in ended]
    assert kinds == (["reasoning", "message"] if is_thought else ["message"])
    grown = [event for event in events if isinstance(event, TextDelta)]
    assert {event.kind for event in grown} == (
        {"reasoning", "text"} if is_thought else {"text"}
    )


def test_blanks_without_an_end_are_not_held() -> None:
    """Each would be looked at again with all before it."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    tagged.feed(ItemAdded(0, {**message("1", ""), "content": []}))

    grown: list[RunEvent] = []
    for _ in range(3_000):
        grown += tagged.feed(TextDelta(0, "text", 0, " "))

    shown = [event.text for event in grown if isinstance(event, TextDelta)]
    assert 3_000 - len("".join(shown)) <= 1_000


def test_messages_without_words_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many of them, and many calls after them: the work is their sum."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    for index in range(300):
        tagged.feed(ItemAdded(index, {**message(str(index), ""), "content": []}))

    looks: list[object] = []

    def look(text: object) -> bool:
        looks.append(text)
        return True

    monkeypatch.setattr(_TaggedText, "is_unread", property(look))

    for index in range(300, 400):
        tagged.feed(ItemAdded(index, call("1")))

    assert len(looks) == 300
