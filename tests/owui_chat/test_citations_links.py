"""Links to the pages of a search are whole before they are shown."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openai_responses.endings import COMPLETED
from openai_responses.items import message_text, text_part
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.transport.stream import ItemDone, TextDelta
from owui_chat.citations import (
    Citations,
    HoldbackBuffer,
    chat_annotations,
    length_before_tracking,
    strip_tracking,
)
from runs.sample import without_addresses

LINKED = "([a.example](https://a.example/x_(y)?utm_source=openai))"
OTHER = "([b.example](https://b.example/?utm_source=openai))"
OWN_MARK = "\ue200cite\ue202turn0search0\ue202turn0search3\ue201"


def pieces_of(text: str, size: int) -> Iterator[str]:
    return (text[index : index + size] for index in range(0, len(text), size))


def grown(text: str, size: int = 1) -> list[str]:
    """What is shown after each piece of a text, and when it has ended."""
    citations = Citations()
    events: list[RunEvent] = [
        TextDelta(0, "text", 0, piece) for piece in pieces_of(text, size)
    ]
    return [
        "".join(e.text for e in citations.feed(event) if isinstance(e, TextDelta))
        for event in [*events, RunDone(COMPLETED)]
    ]


def whole(text: str) -> str:
    """What is shown of a text when all of it is known."""
    part = {"type": "output_text", "text": text, "annotations": []}
    ended = ItemDone(0, {"type": "message", "content": [part]})
    [shown] = [e for e in Citations().feed(ended) if isinstance(e, ItemDone)]
    return without_addresses(shown.shown)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_link_comes_in_one_piece(size: int) -> None:
    link = LINKED.replace("?utm_source=openai", "")
    shown = grown(f"Rain. {link} Snow.", size)

    assert "".join(shown) == f"Rain. {link} Snow."
    assert next(piece for piece in shown if "](" in piece).count(link) == 1
    assert "".join(grown(f"Rain. {LINKED} Snow.", size)) == "Rain. [1] Snow."
    assert "".join(shown[: 6 // size]).startswith("Rain."[: 6 // size])


@pytest.mark.parametrize(
    "text",
    [
        "a[0] = b(c)",
        "- [ ] to do\n- [x] done",
        "An [open bracket\nand more",
        "[label](not a link)",
        "[1, 2, 3]",
        "see (later)",
        "What? And who?",
    ],
)
def test_text_that_is_not_a_link_is_released(text: str) -> None:
    """At the latest with the next character that a link could not have."""
    shown = grown(f"{text} and then")

    assert "".join(shown) == f"{text} and then"
    assert shown[-1] == ""


@pytest.mark.parametrize(
    ("text", "numbered"),
    [
        (f"Rain {LINKED}{LINKED}", "Rain [1]"),
        (f"{LINKED}{LINKED}{LINKED}.", "[1]."),
        (f"{LINKED} {LINKED}", "[1] [1]"),
        (f"{LINKED}x{LINKED}", "[1]x[1]"),
        (f"{LINKED}{OTHER}{OTHER}{LINKED}", "[1][2][1]"),
        (f"[1]{LINKED}", "[1][1]"),
        (f"Rain ({LINKED[1:-1]}, so)", "Rain ([1], so)"),
    ],
    ids=["twice", "three", "space", "letter", "other", "the model's own", "one half"],
)
def test_repeated_number_is_left_out(text: str, numbered: str) -> None:
    assert whole(text) == numbered
    for size in (1, 2, 7, 60, 1000):
        assert "".join(grown(text, size)) == numbered


def test_number_after_one_letter_is_no_repeat() -> None:
    """Wherever a delta ends, the letter is between the two."""
    citations = Citations()
    shown: list[str] = []
    for piece in (LINKED, f"x{LINKED}"):
        events = citations.feed(TextDelta(0, "text", 0, piece))
        shown += [event.text for event in events if isinstance(event, TextDelta)]

    assert shown == ["[1]", "x[1]"]


def test_text_without_spaces_goes_on_behind_a_link() -> None:
    """Japanese has no spaces to wait for."""
    shown = grown(f"雨{LINKED}。雪が降る")

    assert "".join(shown[:-3]) == "雨[1]。雪が"


def test_bracket_that_never_closes_is_held_for_a_while_only() -> None:
    """A label has at most 300 characters, an address some thousands."""
    assert grown("[" + "x" * 400)[-1] == ""
    assert grown("[x](" + "y" * 4000)[-1] == ""


pieces_of_links = st.sampled_from(
    [
        *[*"()[]?& \n.a", "](", "https://", "a.example", "utm_source=openai", "utm_"],
        *[LINKED, OWN_MARK, *"\ue200\ue201", "cite\ue202"],
    ]
)


@given(st.lists(pieces_of_links, max_size=20).map("".join), st.integers(1, 9))
def test_cut_anywhere_the_same_links_are_found(text: str, size: int) -> None:
    """Numbers that were shown are those of the whole text."""
    assert "".join(grown(text, size)) == whole(text)


@given(st.lists(pieces_of_links, max_size=20).map("".join), st.integers(1, 9))
@example("https://a.example?utm_source=openai&b=1", 1)
@example("https://a.example?utm_source=openai&utm_medium=1", 1)
def test_cut_anywhere_the_same_tracking_goes(text: str, size: int) -> None:
    """For those who get the links themselves."""
    held = HoldbackBuffer(length_before_tracking)
    shown = [*map(held.feed, pieces_of(text, size)), held.rest()]

    assert "".join(map(strip_tracking, shown)) == strip_tracking(text)


@pytest.mark.parametrize(
    ("query", "clean"),
    [
        ("?utm_source=openai", ""),
        ("/?b=1&utm_source=openai", "/?b=1"),
        ("?utm_source=openai&b=1", "?b=1"),
        ("?utm_source=openai&utm_source=openai", ""),
        ("?b=1&utm_source=openai&c=2", "?b=1&c=2"),
        ("?utm_source=openai#part", "#part"),
        ("?utm_source=openai2", "?utm_source=openai2"),
        ("?my_utm_source=openai", "?my_utm_source=openai"),
    ],
)
def test_address_tells_not_who_searched(query: str, clean: str) -> None:
    url = f"https://a.example{query}"
    clean_url = f"https://a.example{clean}"

    assert strip_tracking(url) == clean_url
    number = "[1]" if url != clean_url else ""
    assert "".join(grown(f"[a b]({url})")) == f"[a b]({clean_url}){number}"


def test_positions_shift_by_removed_tracking() -> None:
    text = f"One {LINKED} two {LINKED} three"
    clean = strip_tracking(text)

    def cited(index: int) -> int:
        """Where a citation at this place of the text begins for a plain client."""
        note = {"type": "url_citation", "url": "https://a.example"}
        notes = [{**note, "start_index": index}]
        part = {"type": "output_text", "text": text, "annotations": notes}
        [annotation] = chat_annotations({"type": "message", "content": [part]}, 0)
        return int(annotation["url_citation"]["start_index"])

    for word in ("One", "two", "three"):
        assert clean[cited(text.index(word)) :].startswith(word)
    assert cited(len(text)) == cited(-1) == len(clean)


def test_position_after_a_refusal_counts_the_blank_line() -> None:
    note = {"type": "url_citation", "url": "https://a.example", "start_index": 0}
    cited = {**text_part("text", "Rain."), "annotations": [note]}
    content = [text_part("text", "a"), text_part("refusal", "No."), cited]

    [annotation] = chat_annotations({"type": "message", "content": content}, 0)

    start = annotation["url_citation"]["start_index"]
    assert message_text({"content": content})[start:] == "Rain."


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"Rain.{OWN_MARK} Snow.", "Rain. Snow."),
        (f"Rain.{OWN_MARK.replace('cite', 'filecite')}", "Rain."),
        (f"{LINKED}{OWN_MARK}{OTHER}", "[1][2]"),
        # These have words of the answer, or are no mark.
        (
            'In \ue200entity\ue202["Bern"]\ue201.',
            'In \ue200entity\ue202["Bern"]\ue201.',
        ),
        ("It is \ue200cite\ue202all", "It is \ue200cite\ue202all"),
    ],
)
def test_names_that_only_the_model_knows_are_not_shown(text: str, seen: str) -> None:
    assert whole(text) == seen
    for size in (1, 2, 7, 1000):
        assert "".join(grown(text, size)) == seen


def test_citation_without_a_beginning_is_at_its_end() -> None:
    """For a plain client, which would cut a text out backward."""
    note = {"type": "url_citation", "url": "https://a.example", "end_index": 2}
    part = {"type": "output_text", "text": "It rains.", "annotations": [note]}
    [annotation] = chat_annotations({"content": [part]}, 0)
    cited = annotation["url_citation"]
    assert (cited["start_index"], cited["end_index"]) == (2, 2)


def test_places_that_count_bytes_are_told_as_characters() -> None:
    """A program cuts the text by them."""
    note = {"type": "url_citation", "url": "https://a.example"}
    notes = [{**note, "start_index": 5, "end_index": 19}]
    part = {"type": "output_text", "text": "Öl. Über Zürich.", "annotations": notes}
    [annotation] = chat_annotations({"content": [part]}, 0)
    cited = annotation["url_citation"]
    assert (cited["start_index"], cited["end_index"]) == (4, 16)


def test_title_of_a_citation_is_short() -> None:
    """Whoever wrote the page chose it."""
    note = {"type": "url_citation", "url": "https://a.example", "title": "x" * 5000}
    part = {"type": "output_text", "text": "One", "annotations": [note]}
    [annotation] = chat_annotations({"type": "message", "content": [part]}, 0)
    assert len(annotation["url_citation"]["title"]) == 200
