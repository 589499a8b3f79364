"""Links to the pages of a search are whole before they are shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from owui_chat.citations import (
    LINK,
    OPEN_LINK,
    OPEN_TRACKING,
    HoldbackBuffer,
    is_tracked_url,
    strip_tracking,
    strip_tracking_place,
)

LINKED = "([a.example](https://a.example/x_(y)?utm_source=openai))"


def grown(text: str, unfinished: re.Pattern[str], size: int = 1) -> list[str]:
    """What is shown after each piece of a text, and when it has ended."""
    held = HoldbackBuffer(unfinished)
    pieces = [text[place : place + size] for place in range(0, len(text), size)]
    return [*(held.feed(piece) for piece in pieces), held.rest()]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_link_comes_in_one_piece(size: int) -> None:
    """However it was cut; what stands around it is not held back."""
    shown = grown(f"Rain. {LINKED} Snow.", OPEN_LINK, size)

    assert "".join(shown) == f"Rain. {LINKED} Snow."
    assert next(piece for piece in shown if "](" in piece).count(LINKED) == 1
    assert "".join(shown[: 6 // size]).startswith("Rain."[: 6 // size])


@pytest.mark.parametrize(
    "text",
    [
        "a[0] = b(c)",
        "- [ ] to do\n- [x] done",
        "An [open bracket\nand more",
        "[label](not a link)",
        "[1, 2, 3]",
        "f(x)(y)",
        "see (later)",
        "What? And who?",
    ],
)
def test_what_is_no_link_is_let_go(text: str) -> None:
    """At the latest with the next character that a link could not have."""
    shown = grown(f"{text} and then", OPEN_LINK)

    assert "".join(shown) == f"{text} and then"
    assert shown[-1] == ""


def test_text_without_spaces_goes_on_behind_a_link() -> None:
    """Japanese has none."""
    shown = grown(f"雨{LINKED}。雪が降る", OPEN_LINK)

    assert "".join(shown[:-3]) == f"雨{LINKED}。雪が"


def test_bracket_that_never_closes_is_held_for_a_while_only() -> None:
    """A label has at most 300 characters, an address some thousands."""
    assert grown("[" + "x" * 400, OPEN_LINK)[-1] == ""
    assert grown("[x](" + "y" * 4000, OPEN_LINK)[-1] == ""


pieces_of_links = st.sampled_from(
    [*"()[]?& \n.a", "](", "https://", "a.example", "utm_source=openai", LINKED, "utm_"]
)


@given(st.lists(pieces_of_links, max_size=20).map("".join), st.integers(1, 9))
def test_cut_anywhere_the_same_links_are_found(text: str, size: int) -> None:
    """Numbers that were shown are those of the whole text."""
    shown = grown(text, OPEN_LINK, size)

    assert "".join(shown) == text
    found = [link[0] for piece in shown for link in LINK.finditer(piece)]
    assert found == [link[0] for link in LINK.finditer(text)]
    assert "".join(map(strip_tracking, shown)) == strip_tracking(text)


@given(st.lists(pieces_of_links, max_size=20).map("".join), st.integers(1, 9))
def test_cut_anywhere_the_same_tracking_goes(text: str, size: int) -> None:
    """For those who get the links themselves."""
    shown = grown(text, OPEN_TRACKING, size)

    assert "".join(map(strip_tracking, shown)) == strip_tracking(text)


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://a.example?utm_source=openai", "https://a.example"),
        ("https://a.example/?b=1&utm_source=openai", "https://a.example/?b=1"),
        ("https://a.example?utm_source=openai&b=1", "https://a.example?b=1"),
        ("https://a.example?b=1&utm_source=openai&c=2", "https://a.example?b=1&c=2"),
        ("https://a.example?utm_source=openai#part", "https://a.example#part"),
        (
            "https://a.example?utm_source=openai2",
            "https://a.example?utm_source=openai2",
        ),
        (
            "https://a.example?my_utm_source=openai",
            "https://a.example?my_utm_source=openai",
        ),
    ],
)
def test_address_tells_not_who_searched(url: str, clean: str) -> None:
    """What else it asks for stays."""
    assert strip_tracking(url) == clean
    assert is_tracked_url(url) is (url != clean)


def test_places_move_with_what_is_gone() -> None:
    """In front of a place, not behind it."""
    text = f"One {LINKED} two {LINKED} three"
    clean = strip_tracking(text)

    for word in ("One", "two", "three"):
        place = strip_tracking_place(text, text.index(word))
        assert clean[place:].startswith(word)
    assert strip_tracking_place(text, len(text)) == len(clean)
