"""Remarks in passing are progress on the page, and no part of the answer."""

from collections.abc import Iterator
from typing import Any

import pytest

from hosts.servers.functions import HostFunctions
from openai_responses.endings import CUT
from openai_responses.items import Item, message_text
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.transport.stream import ItemAdded, TextDelta
from owui_chat.answers import COMMENTARY_TYPE, closing_commentary
from owui_chat.events import TurnDetails
from owui_chat.render.completions import ChunkRenderer
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.recorder import DetailsRecorder
from runs.sample import (
    AUTHOR,
    Ids,
    call,
    message,
    natives,
    on_page,
    output,
    reasoning,
    recorded,
    run_of,
    run_of_transcript,
    search,
    tell,
)

Json = dict[str, Any]
LOOK = message("1", "I look:\n\n- here", "commentary")
DONE = message("2", "Done.", "commentary")
ANSWER = message("3", "Rain.", "final_answer")
ASKS: Item = {"id": "mcpr_1", "type": "mcp_approval_request", "arguments": "{}"}


def remarks(items: list[Item]) -> list[str]:
    return [message_text(item) for item in items if item["type"] == COMMENTARY_TYPE]


def texts(items: list[Item]) -> list[str]:
    """What the items say as an answer; lines that no one sees are not in it."""
    spoken = (message_text(item) for item in items if item["type"] == "message")
    return [text for text in map(strip_markers, spoken) if text]


def grown(parts: list[str]) -> Iterator[RunEvent]:
    yield ItemAdded(0, message("1", "", "commentary"))
    yield from (TextDelta(0, "text", 0, part) for part in parts)


def test_remark_is_a_quotation_between_the_cards() -> None:
    rendered = tell(run_of(reasoning("1"), LOOK, reasoning("2"), ANSWER))

    kinds = [item["type"] for item in rendered.view.output.items]
    assert kinds == ["reasoning", COMMENTARY_TYPE, "message", "reasoning", "message"]
    assert remarks(rendered.view.output.items) == ["> I look:\n> \n> - here"]
    assert rendered.view.output.items[1]["status"] == "completed"
    assert texts(rendered.view.output.items) == ["Rain."]


def test_host_stores_it_and_gives_it_to_no_model(host_functions: HostFunctions) -> None:
    rendered = tell(run_of(reasoning("1"), LOOK, ANSWER), in_output=True)

    items = host_functions.reduce(natives(rendered.chunks))

    assert remarks(items) == ["> I look:\n> \n> - here"]
    assert [m["content"] for m in host_functions.convert(items)] == ["Rain."]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_stopped_commentary_keeps_at_least_half_its_text(
    count: int, host_functions: HostFunctions
) -> None:
    """The host lets no text of such an item grow: it gets all of it now and then."""
    parts = [f"word{number} " for number in range(count)]

    chunks, _ = on_page(grown(parts))

    [stored] = remarks(host_functions.reduce(chunks))
    whole = "> " + "".join(parts)
    assert whole.startswith(stored)
    assert len(stored) >= len(whole) / 2


def test_a_long_remark_costs_about_what_a_text_does() -> None:
    """Whole texts are sent ever more rarely, and growth in between."""
    parts = [f"word{number:04} " for number in range(1000)]

    chunks, _ = on_page(grown(parts))

    deltas = [chunk["delta"] for chunk in chunks if "delta" in chunk]
    again = [message_text(chunk["item"]) for chunk in chunks if "item" in chunk]
    assert len(again) < 15
    # What the host has stored if the answer is stopped here.
    assert len(again[-1]) > len("".join(parts)) / 2
    assert len("".join([*deltas, *again])) < 4 * len("".join(parts))


def test_growth_keeps_to_the_quotation() -> None:
    """A line's end in any delta begins another quoted line."""
    chunks, _ = on_page(grown(["One\n", "\ntwo", "\n"]))

    shown = ""
    for chunk in chunks:
        item = chunk.get("item")
        shown = shown + chunk["delta"] if item is None else message_text(item)

    assert shown == "> One\n> \n> two\n> "
    assert {c["item"]["type"] for c in chunks if "item" in c} == {COMMENTARY_TYPE}


def test_remark_without_words_is_nothing() -> None:
    """The page draws no card without text."""
    view = tell(run_of(message("1", "", "commentary"), ANSWER)).view

    assert remarks(view.output.items) == [""]
    assert texts(view.output.items) == ["Rain."]


def test_remark_that_broke_off_is_shown_as_far_as_it_came() -> None:
    rendered = tell(run_of_transcript("remark-cut.sse"))

    [remark] = remarks(rendered.view.output.items)
    assert remark.startswith("> One line.\n> \n> And")
    assert texts(rendered.view.output.items) == []
    assert rendered.written == []


def test_record_names_the_item_whose_text_follows() -> None:
    events = run_of(reasoning("1"), LOOK, reasoning("2"), ANSWER, call("1"))

    items = tell(events, in_output=True).view.output.items

    kept = [item for item in items if item["type"] == "openai_responses:kept"]
    assert [item["before"] for item in kept] == ["msg_1", "msg_3", ""]


def test_remark_that_only_its_end_calls_one_is_not_said_again() -> None:
    [begun, *rest] = run_of(DONE)
    assert isinstance(begun, ItemAdded)
    view = ChunkRenderer("chatcmpl-1", 1, "f.gpt-5.2")
    events = [begun._replace(item=message("2", "")), *rest]

    chunks = [chunk for event in events for chunk in view.render(event)]

    deltas = [choice["delta"] for c in chunks for choice in c["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "Done."


@pytest.mark.parametrize("in_output", [False, True])
def test_remark_with_which_a_run_ends_is_its_answer(
    in_output: bool, host_functions: HostFunctions
) -> None:
    """No one looks at an empty answer; the one before stays progress."""
    rendered = tell(run_of(reasoning("1"), LOOK, DONE), in_output=in_output)

    items = host_functions.reduce(natives(rendered.chunks))

    assert items == rendered.view.output.items
    assert texts(items) == ["Done."]
    assert [text for text in remarks(items) if text] == ["> I look:\n> \n> - here"]


def test_failed_run_shows_its_last_commentary_as_commentary() -> None:
    """The tool that it announced never ran."""
    events = run_of(LOOK, call("1"))
    ended = RunDone(CUT, None, None, (LOOK, call("1"), output("1")))

    _, items = on_page([*events[:-1], ended])

    assert (len(remarks(items)), texts(items)) == (1, [])


@pytest.mark.parametrize(
    ("items", "closing"),
    [
        ([LOOK], LOOK),
        ([LOOK, DONE], DONE),
        ([LOOK, reasoning("1"), search("1")], LOOK),
        ([ANSWER, LOOK], LOOK),
        ([LOOK, message("4", " \n", "final_answer")], LOOK),
        ([call("1"), output("1"), LOOK], LOOK),
        ([], None),
        ([ANSWER], None),
        ([LOOK, ANSWER], None),
        ([message("4", "", "commentary")], None),
        ([LOOK, call("1"), output("1")], None),
        ([call("1"), LOOK, output("1")], None),
        ([LOOK, call("1")], None),
        ([call("1"), LOOK], None),
        ([LOOK, ASKS], None),
    ],
)
def test_closing_commentary_is_the_last_item(
    items: list[Item], closing: Item | None
) -> None:
    """A remark counts when nothing is said or done after it."""
    assert closing_commentary(items) == closing


@pytest.mark.parametrize("last", [ANSWER, DONE], ids=["text", "remark"])
def test_host_gives_back_answers_alone(last: Item) -> None:
    recorder = DetailsRecorder(AUTHOR._replace(carrier="details"), Ids())
    events = list(recorded(run_of(LOOK, last), recorder))

    [turn] = [event for event in events if isinstance(event, TurnDetails)]

    assert [entry["shown"] for entry in turn.details[1:]] == ["", len("Rain.")]


def test_sources_of_a_remark_count() -> None:
    """Its numbers are those of the page's list."""
    link = "([a.example](https://a.example?utm_source=openai))"
    remark = message("1", f"So far: rain {link}.", "commentary")

    rendered = tell(run_of(remark, ANSWER))

    assert remarks(rendered.view.output.items) == ["> So far: rain [1]."]
    assert [c for c in rendered.chunks if c.get("event", {}).get("type") == "source"]
