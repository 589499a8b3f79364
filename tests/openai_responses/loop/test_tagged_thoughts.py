"""Thoughts in tags, of servers without a parser for reasoning: reasoning like any other."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import Item, item_texts, item_type
from openai_responses.loop.events import (
    GIVEN_UP,
    HiddenMessage,
    ResponseDone,
    RunEvent,
)
from openai_responses.loop.tagged_thoughts import (
    THOUGHT_TAGS,
    TaggedThoughts,
    ThoughtTags,
    _TaggedText,
)
from openai_responses.loop.tools import Toolset
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    TextDelta,
)
from runs.against_server import AT_ONCE, Runs, assert_output_holds, limits
from runs.sample import call, message, reasoning, refusal
from runs.tools import MemoryTools
from upstream import wire
from upstream.server import Answerer, breaking, replying, streaming

Part = tuple[str, str]


def thought(text: str) -> Part:
    return "reasoning", text


def answer(text: str) -> Part:
    return "message", text


CASES = {
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
    "<think>\n": [],
    "<think>a<think>b</think>c": [thought("a<think>b"), answer("c")],
    "<think>a</think>b</think>c": [thought("a"), answer("b</think>c")],
    "<think>a</think><think>b</think>": [thought("a"), answer("<think>b</think>")],
    "<thinking>a</think>b</thinking>c": [thought("a</think>b"), answer("c")],
    "◁think▷a◁/think▷b": [thought("a"), answer("b")],
    "```\ncode\n```\nHm.</think>It rains.": [
        thought("```\ncode\n```\nHm."),
        answer("It rains."),
    ],
    "<think>Hm.\n\nWhy?</think>It rains.": [
        thought("Hm.\n\nWhy?"),
        answer("It rains."),
    ],
    **{
        text: [answer(text)]
        for text in (
            "It rains.",
            "A <think> opens it, </think> closes it.",
            "`</think>` closes it.",
            "Like so:\n```\na</think>\n```\nb</think>c",
            "It costs `1 </reason>",
            "1 < 2 <thi",
            "<thinker>",
            "",
        )
    },
}


KINDS = {"message": ("text", "refusal"), "reasoning": ("reasoning", "summary")}
"""The kinds of texts that items have."""


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
                grown_type = item_type(self.items[event.output_index])
                assert event.kind in KINDS[grown_type]
                self.grown[event.output_index] += event.text
            elif isinstance(event, ItemDone):
                self.items[event.output_index] = event.item
                self.open.discard(event.output_index)

    def parts(self) -> list[Part]:
        assert not self.open
        return parts_of([self.items[index] for index in sorted(self.items)])


def parts_of(items: Sequence[Item]) -> list[Part]:
    """The types and texts of items."""
    return [
        (item_type(item), "".join(text for _, text in item_texts(item)))
        for item in items
    ]


def split(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def wire_events(item: Item, pieces: Iterable[str], index: int = 0) -> list[RunEvent]:
    """The events of a message whose text comes in these pieces."""
    growing = [TextDelta(index, "text", 0, piece) for piece in pieces]
    return [ItemAdded(index, {**item, "content": []}), *growing, ItemDone(index, item)]


def fed(tagged: TaggedThoughts, *events: RunEvent) -> list[RunEvent]:
    return [shown for event in events for shown in tagged.feed(event)]


@pytest.mark.parametrize(("text", "parts"), CASES.items())
def test_a_message_with_tags_becomes_reasoning_and_answer(
    text: str, parts: list[Part]
) -> None:
    for length in (1, 2, 3, 5, len(text) or 1):
        tagged = TaggedThoughts(3, THOUGHT_TAGS)
        item = message("1", text)

        events = fed(tagged, *wire_events(item, split(text, length), 3))
        page = Page(events)

        assert page.parts() == parts
        bounds = [type(e) for e in events if isinstance(e, ItemAdded | ItemDone)]
        assert bounds == [ItemAdded, ItemDone] * len(parts)  # one after the other
        assert {each["id"] for each in page.items.values()} <= {"msg_1", "rs_msg_1"}
        assert tagged.items([(3, item)]) == sorted(page.items.items())
        assert sorted(page.items) == [*range(3, 3 + len(parts))]
        if parts == [answer(text)]:
            assert page.items[3] is item
        for (_, whole), grown in zip(parts, page.grown.values(), strict=True):
            assert grown.strip() == whole.strip()


def texts_of(events: Iterable[RunEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def test_texts_are_shown_as_they_come() -> None:
    """No more waits than what could be the beginning of a tag."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    tagged.feed(ItemAdded(0, message("1", "")))

    def shown(text: str) -> list[str]:
        return texts_of(tagged.feed(TextDelta(0, "text", 0, text)))

    assert shown("\n<thi") == []
    assert shown("nk>Hm. ") == ["Hm. "]
    assert shown("\n\n") == ["\n\n"]
    assert shown("So <") == ["So "]
    assert shown("/b></th") == ["</b>"]
    assert shown("ink>\n") == []
    assert shown("\n It rains <") == ["It rains <"]
    assert shown("think>") == ["think>"]


def test_words_before_a_lone_closing_tag_turn_into_a_thought() -> None:
    """They were shown as text; the answer is another item."""
    growing = wire_events(message("1", ""), ["Hm.", "</think>", "It rains."])[:-1]

    _, begun, turned, added, text = fed(TaggedThoughts(0, THOUGHT_TAGS), *growing)

    assert begun == TextDelta(0, "text", 0, "Hm.")
    assert isinstance(turned, ItemDone)
    assert parts_of([turned.item]) == [thought("Hm.")]
    assert turned.output_index == 0
    assert isinstance(added, ItemAdded)
    assert text == TextDelta(1, "text", 0, "It rains.")


@pytest.mark.parametrize("opening", ["<think>", ""])
@pytest.mark.parametrize("length", [1, 100])
def test_thoughts_that_are_not_kept_leave_nothing(opening: str, length: int) -> None:
    """Neither on the page nor for the next request; the answer stays."""
    text = f"{opening}Hm.</think>It rains."
    tagged = TaggedThoughts(0, THOUGHT_TAGS, keeps_thoughts=False)
    item = message("1", text)
    events = fed(tagged, *wire_events(item, split(text, length)))

    left = [item for item in Page(events).items.values() if item != GIVEN_UP]
    assert parts_of(left) == [answer("It rains.")]
    assert [item for _, item in tagged.items([(0, item)])] == left
    assert not opening or "Hm." not in repr(events)


def test_other_items_keep_their_order() -> None:
    """A thought moves those after it; a message without one moves nothing."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    items = [reasoning("1"), message("2", "<think>Hm.</think>Rain."), call("3")]
    silent = message("4", "")
    refused = refusal("5", "No </think>.")
    shown = fed(
        tagged,
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
        ResponseDone(),
    )

    page = Page(shown)
    kinds = [item_type(page.items[index]) for index in sorted(page.items)]
    expected = ["reasoning", "reasoning", "message", "message", "function_call"]
    assert kinds == [*expected, "message"]
    assert page.items[5] is refused
    [cited] = [event for event in shown if isinstance(event, AnnotationAdded)]
    assert cited.output_index == 2
    assert shown[-1] == ResponseDone()
    whole = [*items, silent, refused]
    assert tagged.items(enumerate(whole)) == sorted(page.items.items())


def plain_thought(name: str, words: str) -> Item:
    """As LocalAI ends it: with parts of another type."""
    content = [{"type": "output_text", "text": words, "annotations": []}]
    item = {"type": "reasoning", "id": name, "summary": [], "content": content}
    return {**item, "status": "completed"}


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        ([], [thought("Hm."), answer("It rains.")]),
        (["Hm."], [thought("Hm."), answer("It rains.")]),
        (["Ah."], [thought("Hm."), answer("It rains."), thought("Ah.")]),
        (["Hm.", "Hm."], [thought("Hm."), answer("It rains."), thought("Hm.")]),
    ],
)
@pytest.mark.parametrize("final", ["It rains.", "<think>Hm.</think>It rains."])
def test_a_thought_that_its_server_tells_at_the_end_is_shown_once(
    final: str, told: list[str], parts: list[Part]
) -> None:
    """LocalAI streams it with its tags, and makes an item of it in the end."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    ended = message("1", final)
    thoughts = [plain_thought(f"rs_{words}", words) for words in told]
    begun = wire_events(ended, split("<think>\n\nHm.\n</think>\n\nIt rains.", 4))[:-1]
    shown = fed(tagged, *begun)
    for index, item in enumerate(thoughts, 1):
        words = parts_of([item])[0][1]
        shown += fed(
            tagged,
            ItemAdded(index, {**item, "content": []}),
            TextDelta(index, "reasoning", 0, words),
            ItemDone(index, item),
        )
    shown += fed(tagged, ItemDone(0, ended), ResponseDone())

    page = Page(shown)
    assert page.parts() == parts
    assert tagged.items(enumerate([ended, *thoughts])) == sorted(page.items.items())


def test_a_message_that_is_announced_before_its_thought_follows_it() -> None:
    """Its server announces it before it knows that the model thinks."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    items = [message("1", "Rain."), reasoning("2"), call("3")]
    begun, *said = wire_events(items[0], ["Rain."])
    thinking: list[RunEvent] = [ItemAdded(1, items[1]), ItemDone(1, items[1])]
    calling: list[RunEvent] = [ItemAdded(2, items[2]), ItemDone(2, items[2])]
    page = Page(fed(tagged, begun, *thinking, *calling, *said))

    kinds = [item_type(page.items[index]) for index in sorted(page.items)]
    assert kinds == ["reasoning", "message", "function_call"]
    assert tagged.items(enumerate(items)) == sorted(page.items.items())


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ("Rain.", [answer("Rain.")]),
        ("<think>Hm.</think>Rain.", [answer("Rain.")]),
        ("<think>Hm.</think>", []),
    ],
)
def test_a_message_that_is_hidden_has_no_tags(text: str, repeated: list[Part]) -> None:
    """It repeats the one before it; its thought is neither shown nor sent again."""
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    items = [message("1", text), message("2", text), call("3")]
    shown = fed(
        tagged,
        *wire_events(items[0], [text]),
        HiddenMessage(1, items[1]),
        ItemAdded(2, items[2]),
        ItemDone(2, items[2]),
        ResponseDone(),
    )

    hidden = {e.output_index: e.item for e in shown if isinstance(e, HiddenMessage)}
    assert parts_of([*hidden.values()]) == repeated
    page = Page(shown)
    known = {**page.items, **hidden}
    assert len(known) == len(page.items) + len(hidden)
    assert tagged.items(enumerate(items)) == sorted(known.items())
    assert "think" not in repr(known)


def test_what_waits_is_shown_when_a_response_ends() -> None:
    tagged = TaggedThoughts(0, THOUGHT_TAGS)
    tagged.feed(ItemAdded(0, message("1", "")))
    tagged.feed(TextDelta(0, "text", 0, "It rains <thi"))

    rest, ended = tagged.feed(ResponseDone())

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
    page = Page(fed(tagged, *wire_events(item, pieces)))

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
    assert [item["id"] for item in items[::2]] == ["rs_msg", "rs_msg_1"]
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
    text = "".join(pieces)
    item = message("1", text)
    results = []
    for parts in (pieces, [text], [*text]):
        tagged = TaggedThoughts(0, THOUGHT_TAGS)
        page = Page(fed(tagged, *wire_events(item, [part for part in parts if part])))
        assert tagged.items([(0, item)]) == sorted(page.items.items())
        results.append(page.parts())

    assert results[0] == results[1] == results[2]
    words = "".join(shown for _, shown in results[0])
    bare = text.replace("<think>", "").replace("</think>", "")
    for tag in ("<think>", "</think>", "<reason>", "</reason>", "\n", " "):
        words, bare = words.replace(tag, ""), bare.replace(tag, "")
    assert words == bare


def answering(text: str, size: int | None = 3) -> Answerer:
    """Answer with this text, streamed like vLLM without a parser, or in one piece."""
    return sending([wire.message(*split(text, size or 100))], size)


def sending(groups: Sequence[wire.Events], size: int | None) -> Answerer:
    """Answer with these items, streamed, or in one piece without a size."""
    stream = wire.whole_stream(*groups)
    if size is None:
        return replying(json.dumps(stream[-1]["response"]))
    return streaming(wire.on_the_wire(*stream))


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, None])
@pytest.mark.parametrize("opening", ["<think>", ""])
async def test_a_run_shows_and_sends_thoughts_as_reasoning(
    opening: str, size: int | None, runs: Runs
) -> None:
    said = "<think>The user asks.</think>\n\nI look."
    call = wire.function_call("get_weather", '{"city": "Bern"}', at=1)
    told = await runs.against(
        sending([wire.message(*split(said, size or 100)), call], size),
        answering(f"{opening}Hm.</think>It rains.", size),
        toolset=Toolset(MemoryTools()),
    )

    first = ["reasoning", "message", "function_call", "function_call_output"]
    types = [item_type(item) for item in told.output]
    assert types == [*first, "reasoning", "message"]
    assert "think>" not in repr(told.events)
    _, *sent = told.sent[1]["input"]
    assert "think>" not in json.dumps(sent)
    assert [item["type"] for item in sent] == first
    assert sent[0]["content"] == [{"type": "reasoning_text", "text": "The user asks."}]
    assert_output_holds(told.events)


TAGS: ThoughtTags = (("<th", "</think>"),)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("compatibility", "within", "shown"),
    [
        # An administrator says with COMPATIBILITY that a gateway leads to OpenAI.
        ("openai", {}, [answer("<think>Hm.</think>It rains.")]),
        ("auto", {"thought_tags": ()}, [answer("<think>Hm.</think>It rains.")]),
        ("auto", {"thought_tags": TAGS}, [thought("ink>Hm."), answer("It rains.")]),
        ("auto", {"keeps_tagged_thoughts": False}, [answer("It rains.")]),
    ],
)
async def test_which_tags_count_and_what_is_kept_is_a_choice(
    compatibility: Any, within: dict[str, Any], shown: list[Part], runs: Runs
) -> None:
    said = answering("<think>Hm.</think>It rains.")
    told = await runs.against(
        said, within=AT_ONCE._replace(**within), compatibility=compatibility
    )
    assert parts_of(told.output) == shown


@pytest.mark.asyncio
async def test_a_thought_in_tags_that_breaks_off_goes_on(runs: Runs) -> None:
    """Like that of a server with a parser: the next attempt thinks in the same place."""
    begun = wire.on_the_wire(*wire.message("<think>I look")[:3])
    said = answering("<think>Hm.</think>It rains.")

    told = await runs.against(breaking(begun), said, within=limits(2))

    assert len(told.sent) == 2
    page = Page(told.events)
    assert page.parts() == [thought("Hm."), answer("It rains.")]
    assert page.grown[0].startswith("I look")
    assert page.grown[1] == "It rains."
    assert parts_of(told.output) == page.parts()


@pytest.mark.parametrize(
    ("blank", "kinds"),
    [(1_000, ["reasoning", "message"]), (1_001, ["message"]), (5_000, ["message"])],
)
def test_few_blanks_are_waited_through(blank: int, kinds: list[str]) -> None:
    text = "\n" * blank + "<think>Hm.</think>It rains."
    tagged = TaggedThoughts(0, THOUGHT_TAGS)

    page = Page(fed(tagged, *wire_events(message("1", text), text)))

    assert [kind for kind, _ in page.parts()] == kinds
    whole = [text.strip() for _, text in page.parts()]
    assert [text.strip() for text in page.grown.values()] == whole


def test_blanks_without_an_end_are_not_held() -> None:
    """Each would be looked at again with all before it."""
    growing = wire_events(message("1", ""), " " * 3_000)[:-1]

    grown = fed(TaggedThoughts(0, THOUGHT_TAGS), *growing)

    assert 3_000 - len("".join(texts_of(grown))) <= 1_000


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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[THINK]Hm.[/THINK]It rains.", [thought("Hm."), answer("It rains.")]),
        (
            "<|channel>thought\nHm.<channel|>It rains.",
            [thought("Hm."), answer("It rains.")],
        ),
        (
            "<|channel|>analysis<|message|>Hm.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>It rains.",
            [thought("Hm."), answer("It rains.")],
        ),
        ("[THI", [answer("[THI")]),
        ("[a](b) is [THINK]", [answer("[a](b) is [THINK]")]),
        ("It rains.[/THINK]", [answer("It rains.[/THINK]")]),
    ],
)
def test_tags_that_only_some_models_write(text: str, parts: list[Part]) -> None:
    test_a_message_with_tags_becomes_reasoning_and_answer(text, parts)
