"""What the host makes of our events is the run as it was."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from calls.outcomes import host_events
from hosts.servers.functions import HostFunctions
from openai_responses.endings import COMPLETED, CUT, Ending, ending_of_incomplete
from openai_responses.items import Item, message_text, open_calls
from openai_responses.loop.events import (
    GIVEN_UP,
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.models.usage import Cost, Usage
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import AnswerReport, Marker
from owui_chat.render.chunks import (
    error_chunk,
    host_usage,
    source_chunk,
    status_chunk,
    warning_chunk,
)
from owui_chat.render.items import (
    begun_host_item,
    call_host_item,
    message_host_item,
    reasoning_host_item,
)
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.markers import format_marker
from runs.sample import (
    Page,
    call,
    custom_call,
    message,
    natives,
    on_page,
    output,
    reasoning,
    refusal,
    run_of,
    run_of_transcript,
    run_with_tools,
    search,
    shifted,
    tell,
    without,
)
from upstream.odd_streams import FOLDER, LATE_ENDS

Json = dict[str, Any]
OUTPUT = "function_call_output"
LINE = format_marker("items", "A" * 26)
ONE = Usage(10, 5, 15, 2, 1, 3)
TWO = Usage(30, 7, 37, 4, 2, 5)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def shown(*items: Item) -> list[Item]:
    return on_page(run_of(*items))[1]


def text_part(text: str) -> Item:
    """The one part of a message as the chat shows it."""
    return {"type": "output_text", "text": text, "annotations": []}


def test_reasoning_is_shown_with_its_summary_and_time() -> None:
    """`Thought for 7 seconds`, and nothing of what was sealed."""
    times: Iterator[float] = iter([90.0, 100.0, 107.4, 108.0])
    view = Page(lambda: next(times))

    for event in run_of(reasoning("1")):
        list(view.render(event))

    thought = without(reasoning("1"), "encrypted_content")
    assert view.items == [{**thought, "duration": 7}]


def test_a_thought_ends_when_something_follows_it() -> None:
    """llama.cpp ends all items at the end of its stream (recorded): one second a word."""
    view = Page(now := Clock())
    chunks: list[Json] = []
    begun: list[float] = []
    for event in run_of_transcript(f"{LATE_ENDS}.sse", FOLDER):
        now.seconds += isinstance(event, TextDelta)
        if isinstance(event, ItemAdded):
            begun.append(now.seconds)
        chunks += view.render(event)

    thought, answer = view.items
    assert thought["duration"] == begun[1] - begun[0] == 28
    assert now.seconds > 150
    [done, *_] = [c for c in chunks if c.get("type") == "response.output_item.done"]
    at = chunks.index(done)
    assert chunks[at + 1]["type"] == "response.output_item.added"
    assert done["item"] == {**thought, "summary": []}
    assert thought["content"][0]["text"].startswith("\nA hash table")
    assert message_text(answer).startswith("HashMap")


def test_a_thought_that_goes_on_and_on_is_sent_whole_a_few_times() -> None:
    """A server may send a thought and an answer in turn."""
    turns = [TextDelta(0, "summary", 0, "Hm. "), TextDelta(1, "text", 0, "Rain. ")]
    chunks, _ = on_page(
        [
            ItemAdded(0, {**reasoning("1"), "summary": []}),
            ItemAdded(1, {**message("2", ""), "content": []}),
            *(turns * 100),
            ItemDone(0, reasoning("1")),
        ]
    )

    ends = [c for c in chunks if c.get("type") == "response.output_item.done"]
    assert len(ends) == 3  # the first when the message was announced
    assert ends[-1]["item"]["summary"] == reasoning("1")["summary"]


@pytest.mark.parametrize(
    "follows",
    [search("2"), call("2"), message("2", "Let me look.", "commentary")],
    ids=lambda item: item.get("phase") or item["type"],
)
def test_whatever_follows_ends_a_thought(follows: Item) -> None:
    """Also what the page draws in another way, or not at all."""
    view = Page(now := Clock())
    begun, first, second, ended, *_ = run_of(reasoning("1"))
    line = Status("Still at work.")
    for event in (begun, first, line, second, shifted(run_of(follows)[0], 1)):
        list(view.render(event))
        now.seconds += 1
    assert view.items[0]["duration"] == 4
    assert view.items[0]["summary"] == reasoning("1")["summary"]

    list(view.render(ended))
    assert view.items[0]["duration"] == 4


def test_a_thought_that_goes_on_ends_later() -> None:
    """A message may be announced before its time; its words end the thought again."""
    view = Page(now := Clock())
    begun, first, second, ended, *_ = run_of(reasoning("1"))
    announced, word, *_ = [shifted(event, 1) for event in run_of(message("2", "Rain."))]
    for event in (begun, first, announced, second, word, word, ended):
        now.seconds += 1
        list(view.render(event))

    assert view.items[0]["duration"] == 4
    assert view.items[0]["summary"] == reasoning("1")["summary"]


def test_refusal_is_shown_as_text() -> None:
    """The host gives only texts back."""
    [_, first, *_], [item] = on_page(run_of(refusal("1", "I can't.")))

    assert item["content"] == [text_part("I can't.")]
    assert first["type"] == "response.output_text.delta"


def test_marker_grows_in_front_of_the_text() -> None:
    """In one piece, as half of one would flash; and it is stored, for a reload."""
    begun, *grown = run_of(message("1", "Rain."))

    chunks, [item] = on_page([begun, Marker(LINE), *grown])

    deltas = [chunk["delta"] for chunk in chunks if "delta" in chunk]
    assert deltas == [f"{LINE}Rai", "n."]
    assert item["content"] == [text_part(f"{LINE}Rain.")]


def test_marker_at_the_end_has_a_message_of_its_own() -> None:
    """Stored as it is; while it streams there is nothing to see."""
    chunks, items = on_page([Marker(LINE), RunDone(Ending("completed"))])

    begun, done, _ = chunks
    assert begun["item"]["content"] == [text_part("")]
    assert done["item"]["content"] == [text_part(LINE)]
    assert done["item"] == items[0]
    assert (begun["output_index"], done["output_index"]) == (0, 0)


@pytest.mark.parametrize(("length", "grows"), [(1200, 2), (499, 0)])
def test_call_is_shown_as_it_grows(length: int, grows: int) -> None:
    """Each event costs the host, so arguments that end soon come with their end."""
    whole = call("1", arguments=f'"{"x" * (length - 2)}"')

    chunks = natives(tell(run_of(whole)).chunks)[: grows + 2]

    delta = "function_call_arguments.delta"
    assert [chunk["type"].removeprefix("response.") for chunk in chunks] == [
        "output_item.added",
        *[delta] * grows,
        "output_item.done",
    ]
    begun = {"arguments": "", "status": "in_progress"}
    assert chunks[0]["item"] == {**whole, **begun}
    shown = "".join(chunk["delta"] for chunk in chunks[1:-1])
    assert shown == (whole["arguments"] if grows else "")
    assert chunks[-1]["item"] == whole


def test_raw_reasoning_grows_in_its_content() -> None:
    """As open-weight models stream it."""
    item = {
        **without(reasoning("1"), "encrypted_content"),
        "content": [{"type": "reasoning_text", "text": "Hm, rain?"}],
    }

    chunks = natives(tell(run_of(item)).chunks)

    raw = [c for c in chunks if c["type"] == "response.reasoning_text.delta"]
    assert "".join(chunk["delta"] for chunk in raw) == "Hm, rain?"
    assert {chunk["content_index"] for chunk in raw} == {0}
    assert chunks[-1]["item"]["content"] == item["content"]


@pytest.mark.parametrize("key", ["summary", "content"])
def test_parts_of_a_thought_are_shown_as_one(key: str) -> None:
    """A blank line apart, while they grow as after a reload."""
    kinds = {"summary": "summary_text", "content": "reasoning_text"}
    parts = [{"type": kinds[key], "text": text} for text in ("One", "Two")]
    thought = {**without(reasoning("1"), "summary"), "summary": [], key: parts}

    rendered = tell(run_of(thought))

    deltas = [chunk["delta"] for chunk in rendered.chunks if "delta" in chunk]
    assert "".join(deltas) == "One\n\nTwo"
    [item] = rendered.view.output.items
    assert [part["text"] for part in item[key]] == ["One\n\nTwo"]


def test_refusal_in_a_message_is_a_paragraph_of_its_own() -> None:
    parts = message("1", "One")["content"] + refusal("1", "Two")["content"]

    rendered = tell(run_of({**message("1", ""), "content": parts}))

    deltas = [chunk["delta"] for chunk in rendered.chunks if "delta" in chunk]
    assert "".join(deltas) == "One\n\nTwo"
    assert message_text(rendered.view.output.items[0]) == "One\n\nTwo"


def test_unknown_item_is_not_shown() -> None:
    unknown = {"type": "telescope_call", "id": "tc_1", "status": "completed"}

    items = shown(unknown, message("1", "Rain."))

    assert [item["type"] for item in items] == ["message"]


def test_item_that_was_never_announced_is_not_shown() -> None:
    """A run announces every item; a view that missed it cannot place it."""
    grew = TextDelta(3, "text", 0, "Rain.")
    ended = ItemDone(3, message("1", "Rain."))

    assert on_page([grew, ended, ResponseDone()]) == ([], [])


def test_shown_items_do_not_change_the_runs() -> None:
    item = reasoning("1")

    shown(item)

    assert item == reasoning("1")


def test_item_without_a_status_is_complete_when_it_ends() -> None:
    """The page would show it as unfinished."""
    [item] = shown(without(message("1", "Rain."), "status"))

    assert item["status"] == "completed"


def test_usage_is_for_billing_and_for_compaction() -> None:
    """Sums, and the last turn's size of the chat."""
    assert host_usage(RunDone(CUT, TWO, ONE)) == {
        "usage": {
            "input_tokens": 30,
            "output_tokens": 7,
            "total_tokens": 37,
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
            "output_tokens_details": {"reasoning_tokens": 5},
        }
    }
    # where it was not told which was the last
    assert host_usage(RunDone(CUT, ONE))["usage"]["prompt_tokens"] == 10


def test_usage_and_error_both_come() -> None:
    """Tokens were spent although it failed."""
    chunks, _ = on_page([RunDone(CUT, ONE, ONE)])

    used = host_usage(RunDone(CUT, ONE, ONE))
    counted = {"choices": [{"index": 0, "delta": {}}], **used}
    assert chunks == [counted, error_chunk(CUT.message)]


def broken_off(*deltas: str) -> list[RunEvent]:
    """A message that grew by these texts, and did not end."""
    begun = ItemAdded(0, {**message("1", ""), "content": []})
    return [begun, *(TextDelta(0, "text", 0, delta) for delta in deltas)]


def in_one_piece(text: str) -> list[RunEvent]:
    """A message without deltas, as some servers send it."""
    begun = {**message("1", ""), "content": []}
    return [ItemAdded(0, begun), ItemDone(0, message("1", text))]


@pytest.mark.parametrize(
    ("events", "has_text"),
    [
        pytest.param(broken_off("Rain", " "), True, id="a text that broke off"),
        pytest.param(broken_off(" \n"), False, id="white space that broke off"),
        pytest.param(in_one_piece("Rain"), True, id="a text in one piece"),
        pytest.param(in_one_piece(" \n"), False, id="white space"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_answer_that_can_go_on_is_no_error(
    events: list[RunEvent], has_text: bool
) -> None:
    """A status line says so: an error would stay below the whole answer.

    The line is above it, so the reader of its last words is told in the page's corner.
    """
    ending = ending_of_incomplete("max_output_tokens")

    chunks, _ = on_page([*events, RunDone(ending)])

    errors = [chunk for chunk in chunks if "error" in chunk]
    assert errors == ([] if has_text else [error_chunk(ending.message)])
    assert chunks.count(status_chunk(ending.message)) == has_text
    assert chunks.count(warning_chunk(ending.message)) == has_text


def test_answer_that_can_go_on_is_an_error_where_no_line_is_read() -> None:
    """Other functions get no status lines."""
    ending = ending_of_incomplete("max_output_tokens")
    view = NativeRenderer(Clock(), has_status_lines=False)
    events = [*run_of(message("1", "Rain"))[:-1], RunDone(ending)]

    chunks = [chunk for event in events for chunk in view.render(event)]

    assert chunks[-1] == error_chunk(ending.message)
    assert not any("event" in chunk for chunk in chunks)


def test_custom_call_is_shown_as_a_function_with_an_argument() -> None:
    """The host knows no other kind of call."""
    chunks, [item] = on_page(run_of(custom_call("1", 'a "note"'))[:-1])

    assert (item["type"], item["name"]) == ("function_call", "take_note")
    assert item["arguments"] == '{"input": "a \\"note\\""}'
    assert "input" not in item
    begun = {**item, "arguments": "", "status": "in_progress"}
    assert chunks[0]["item"] == begun


def test_thought_that_is_announced_with_its_words_grows_from_nothing() -> None:
    """Else the page would have them twice."""
    content = [{"type": "reasoning_text", "text": "Hm."}]
    whole = {**reasoning("1"), "content": content}

    [begun], _ = on_page([ItemAdded(0, whole)])

    assert begun["item"]["summary"] == []
    assert "content" not in begun["item"]


def test_the_end_says_how_long_it_took() -> None:
    """From the first moment on; without usage, failure or marker nothing else."""
    times = iter([100.0, 112.0])
    view = Page(lambda: next(times))

    chunks = list(view.render(RunDone(Ending("completed"))))

    assert chunks == [status_chunk("Finished in 12 s")]


def test_a_usage_note_is_the_end_of_the_last_line() -> None:
    """A phone shows the beginning alone; a tiny cost has no exponent."""
    usage_note = "about 9 tokens describe 2 tools"
    used = Usage(10, 5, 15, cached=5)
    report = AnswerReport(cost=Cost(0.0000123), usage_note=usage_note)

    [line] = on_page([report, RunDone(Ending("completed"), used)])[0]

    expected = f"· $0.000012 · 15 tokens · 50% of the input cached · {usage_note}"
    assert line["event"]["data"]["description"].endswith(expected)


def test_a_failed_answer_ends_its_notes() -> None:
    """None of them tells any more what is going on."""
    notes = [Status("Trying again in 3 s."), Status("")]

    [_, ended, closing, *_], _ = on_page([*notes, RunDone(CUT)])

    hidden = {"description": "", "done": True, "hidden": True}
    assert ended["event"]["data"] == hidden
    assert closing == status_chunk("Failed after under a second · 1 note")


def test_a_failure_counts_the_attempts_of_its_last_request() -> None:
    """Those before an answer began, or before a tool was called, did succeed."""
    retry = Status("Trying again in 3 s.", is_retry=True)
    begun = run_of(message("1", "One"))[:-1]
    failed = RunDone(Ending("failed"))
    runs: list[list[RunEvent]] = [
        [retry, retry, failed],
        [retry, *begun, failed],
        [*begun, retry, failed],
        [retry, *run_of(call("1"))[:-1], ToolOutput(1, output("1")), failed],
        [retry, RunDone(COMPLETED)],
    ]
    ends = []
    for events in runs:
        chunks, _ = on_page(events)
        ends.append(status_lines(chunks)[-1])

    assert ends == [
        "Failed after 3 attempts",
        "Failed after under a second · 1 note",
        "Failed after 2 attempts",
        "Failed after under a second · 1 note",
        "Finished in under a second · 1 note",
    ]


def test_calls_that_the_host_will_run_are_no_end() -> None:
    ended = RunDone(Ending("completed"), output=(call("1"),))
    assert on_page([ended]) == ([], [])


def test_note_is_a_status_line() -> None:
    """Done at once, so that nothing spins above a finished answer."""
    told = Status("Trying again in 3 s.", subject="a setting is gone")
    [chunk, last], items = on_page([told, *run_of()])

    line = last["event"]["data"]["description"]
    assert line.endswith(" · a setting is gone · 15 tokens · 1 note")
    assert chunk == status_chunk("Trying again in 3 s.")
    status = {"description": "Trying again in 3 s.", "done": True}
    assert chunk["event"] == {"type": "status", "data": status}
    assert items == []


@pytest.mark.parametrize("chunk", [status_chunk("Wait."), source_chunk("Log", "one")])
def test_event_of_the_host_has_an_empty_choice(chunk: Json) -> None:
    """Stream filters that look for one would drop it; the answer does not change."""
    assert set(chunk) == {"event", "choices"}
    assert chunk["choices"] == [{"index": 0, "delta": {}}]


@pytest.mark.parametrize(("failed", "status"), [(False, "completed"), (True, "failed")])
def test_output_of_a_call_is_shown_as_the_host_stores_it(
    failed: bool, status: str
) -> None:
    """Complete at once, at a place of its own; the page marks a card that failed."""
    [chunk], items = on_page([ToolOutput(7, output("1"), failed=failed)])

    parts = [{"type": "input_text", "text": "rain"}]
    stored = {**output("1"), "id": "fco_call_1", "output": parts, "status": status}
    assert items == [stored]
    assert chunk["type"] == "response.output_item.done"
    assert (chunk["output_index"], chunk["item"]) == (0, stored)

    done = ToolOutput(1, output("1"), failed=failed)
    _, [card, _] = on_page([*run_of(call("1"))[:-1], done])
    assert card["status"] == status


def test_card_has_files_and_embeds_and_sources_of_their_own() -> None:
    source = {"source": {"name": "search_web"}}
    card = {"files": ["f"], "embeds": ["<b>"], "sources": [source]}

    chunks, [item] = on_page([ToolOutput(0, output("1"), card=card)])

    assert (item["files"], item["embeds"]) == (["f"], ["<b>"])
    assert "sources" not in item
    assert chunks[-1]["event"] == {"type": "source", "data": source}
    assert chunks[-1]["choices"] == [{"index": 0, "delta": {}}]


def test_picture_is_shown_by_its_address_alone() -> None:
    """Its bytes are for the model."""
    text = {"type": "input_text", "text": "A map"}
    bytes_ = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    stored = {"type": "input_image", "image_url": "/api/v1/files/1/content"}
    item = {**output("1"), "output": [text, bytes_]}

    chunks, [shown_item] = on_page([ToolOutput(0, item, card={"stored": [stored]})])

    assert shown_item["output"] == [text, stored]
    assert "base64" not in str(chunks)


def test_custom_call_is_a_card_like_any_other(host_functions: HostFunctions) -> None:
    """The host gives call and output back as a pair."""
    *events, end = run_of(custom_call("1", 'a "note"\nfor Zürich'))
    given = {**output("1"), "type": "custom_tool_call_output"}
    chunks, items = on_page([*events, ToolOutput(1, given), end])

    assert host_functions.reduce(natives(chunks)) == items
    called, returned = host_functions.convert(items)
    text = '{"input": "a \\"note\\"\\nfor Zürich"}'
    function = called["tool_calls"][0]["function"]
    assert function == {"name": "take_note", "arguments": text}
    assert (returned["role"], returned["content"]) == ("tool", "rain")


def test_host_makes_no_call_of_an_answer_that_broke_off(
    host_functions: HostFunctions,
) -> None:
    """It would, with half of its arguments."""
    chunks, items = on_page([*run_of(call("1"))[:2], RunDone(CUT)])

    assert host_functions.reduce(natives(chunks)) == items
    assert host_functions.convert(items) == []


@pytest.mark.parametrize("count", [1, 2], ids=["begun", "growing"])
def test_host_makes_the_calls_alone_that_the_run_leaves_to_it(count: int) -> None:
    """It would make each without an output, such as one that its server never ended."""
    begun = run_of(call("1"))[:count]
    _, [never_ended, output] = on_page([*begun, RunDone(COMPLETED)])
    assert (never_ended["status"], output["status"]) == ("incomplete", "failed")

    left = call("2")
    end = RunDone(COMPLETED, output=(left,))
    _, items = on_page([*begun, ItemAdded(1, left), ItemDone(1, left), end])
    assert [item["call_id"] for item in open_calls(items)] == [left["call_id"]]


def test_items_that_a_run_gives_up_leave_the_page(
    host_functions: HostFunctions,
) -> None:
    """But for a thought as people have read it. What follows may have their ids."""
    given_up = run_of(reasoning("1"), call("1"))[:-1]
    events = [*given_up, ItemDone(0, GIVEN_UP), ItemDone(1, GIVEN_UP)]
    again = [shifted(event, 2) for event in run_of(reasoning("1"), message("1", "Hi"))]
    chunks, items = on_page([*events, *again])

    assert host_functions.reduce(natives(chunks)) == items
    types = [item["type"] for item in items]
    assert types == ["reasoning", "openai_responses:end", "reasoning", "message"]
    assert open_calls(items) == []


@pytest.mark.parametrize("count", [1, 2, 4], ids=["begun", "growing", "whole"])
def test_call_of_an_answer_that_broke_off_gets_an_output(count: int) -> None:
    """None is open at the end of an answer that failed."""
    chunks, items = on_page([*run_of(call("1"))[:count], RunDone(CUT)])

    called, returned = items
    assert (called["type"], called["status"]) == ("function_call", "incomplete")
    assert (returned["type"], returned["status"]) == (OUTPUT, "failed")
    assert returned["call_id"] == called["call_id"]
    assert "interrupted" in returned["output"][0]["text"]
    ends = [chunk for chunk in chunks if chunk.get("type", "").endswith("done")]
    assert [chunk["item"] for chunk in ends[-2:]] == items
    assert chunks[-1] == error_chunk(CUT.message)


def test_failure_closes_no_call_that_has_its_output() -> None:
    """An earlier round of the run is whole."""
    _, items = on_page([*run_with_tools()[:-1], RunDone(CUT)])

    outputs = [item["output"] for item in items if item["type"] == OUTPUT]
    assert [parts[0]["text"] for parts in outputs] == ["rain", "snow"]
    calls = [item["status"] for item in items if item["type"] == "function_call"]
    assert calls == ["completed", "failed"]  # as its output says


def test_call_that_ends_again_after_its_output_is_closed_already() -> None:
    """A second output for it would be refused in the next turn."""
    begun, *_, ended, _, _ = run_of(call("1"))
    events = [begun, ended, ToolOutput(1, output("1")), ended, RunDone(CUT)]

    _, items = on_page(events)

    assert [item["type"] for item in items] == ["function_call", OUTPUT]
    assert items[0]["status"] == "completed"


@pytest.mark.parametrize(
    "follows",
    [
        message("1", "The answer."),
        message("1", "Let me look.", "commentary"),
        search("1"),
        call("1"),
    ],
    ids=lambda item: item.get("phase") or item["type"],
)
def test_item_after_reasoning_of_a_failed_attempt_has_its_own_index(
    follows: Item,
) -> None:
    """The next attempt may use its index: it has a place of its own on the page."""
    begun = {"type": "reasoning", "id": "rs_1", "summary": []}
    failed: list[RunEvent] = [ItemAdded(0, begun), ItemDone(0, GIVEN_UP)]

    _, [first, *rest] = on_page([*failed, *run_of(follows)])

    assert first["type"] == "openai_responses:end"
    assert "content" not in first
    assert rest == on_page(run_of(follows))[1]


@pytest.mark.parametrize("kind", ["summary", "reasoning"])
def test_text_of_a_thought_that_no_attempt_finished_stays(kind: str) -> None:
    """People have read it; the item after it has a place of its own."""
    begun = {"type": "reasoning", "id": "rs_1", "summary": []}
    failed: list[RunEvent] = [
        ItemAdded(0, begun),
        TextDelta(0, kind, 0, "I think"),
        TextDelta(0, kind, 1, "so"),
        ItemDone(0, GIVEN_UP),
    ]

    _, [thought, *rest] = on_page([*failed, *run_of(message("msg_9", "Hello"))])

    assert thought["type"] == "reasoning"
    field = "summary" if kind == "summary" else "content"
    assert thought[field][0]["text"] == "I think\n\nso"
    assert thought["status"] == "completed"
    assert rest == on_page(run_of(message("msg_9", "Hello")))[1]


def test_text_of_an_earlier_item_is_no_part_of_an_unfinished_thought() -> None:
    begun = {"type": "reasoning", "id": "rs_2", "summary": []}
    failed: list[RunEvent] = [ItemAdded(5, begun), ItemDone(5, GIVEN_UP)]

    _, items = on_page([*run_of(reasoning("rs_1", "Before"))[:-1], *failed])

    kinds = [item["type"] for item in items]
    assert kinds == ["reasoning", "openai_responses:end"]


COMPACTION: Item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}


def status_lines(chunks: list[Json]) -> list[str]:
    return [data["description"] for data in host_events(chunks, "status")]


def test_compaction_is_seen_while_it_lasts_and_afterwards() -> None:
    """By the host's own event, and by a line that it stores; its item is not shown."""
    begun = {"type": "compaction", "id": "cmp_1"}
    chunks, items = on_page(
        [ItemAdded(0, begun), ItemDone(0, COMPACTION), RunDone(COMPLETED)]
    )

    began, ended = host_events(chunks, "context_compaction")
    assert (began["action"], began["done"]) == ("context_compaction", False)
    assert (ended["action"], ended["done"]) == ("context_compaction", True)
    assert "error" not in ended
    line, closing = status_lines(chunks)
    assert line.startswith("This chat was compacted")
    assert closing.endswith(" · 1 note")
    assert items == []
    assert "gAAAA" not in json.dumps(chunks)


def test_compaction_that_breaks_off_is_not_awaited() -> None:
    """The page would say for ever that it is in progress."""
    chunks, _ = on_page([ItemAdded(0, {"type": "compaction"}), RunDone(CUT)])

    _, ended = host_events(chunks, "context_compaction")
    assert ended["done"]
    assert not [line for line in status_lines(chunks) if "compacted" in line]


@pytest.mark.parametrize(
    ("shown", "item"),
    [
        (begun_host_item, reasoning("1")),
        (call_host_item, call("1")),
        (partial(reasoning_host_item, seconds=1), reasoning("1")),
        (partial(message_host_item, text="a"), message("1", "a")),
    ],
)
def test_items_of_the_page_have_no_secret_and_no_null(
    shown: Callable[[Item], Item], item: Item
) -> None:
    """The host leaves out a call whose status is none of its own.

    It sends the tags and the details of a thought to the next model, unseen.
    """
    unseen = {"encrypted_content": "gAAAA", "start_tag": "x", "reasoning_details": [{}]}
    host_item = shown({**item, **unseen, "status": None, "phase": None})
    assert host_item["status"]
    assert not {*unseen, "phase"} & host_item.keys()


@pytest.mark.parametrize("odd", [5, "a", {"a": 1}, [None, 5, ["a"]], [{"text": 5}]])
def test_values_that_the_page_cannot_read_are_left_out(odd: Any) -> None:
    """The page would draw nothing of the chat, and the host refuse its next question."""
    found: Item = {"type": "file_search_call", "id": "fs_1", "queries": odd}
    looked = {**search("1"), "action": {"type": "search", "query": odd, "queries": odd}}
    thought = {**reasoning("1"), "summary": odd, "content": odd}
    named = {**call("1"), "name": odd}
    ran: Item = {"type": "code_interpreter_call", "id": "ci_1", "status": odd}

    for item in shown(found, looked, thought, named, ran, message("m", "Rain.")):
        assert isinstance(item.get("name", ""), str)
        assert isinstance(item.get("status", ""), str)
        for fields in (item, item.get("action", {})):
            assert isinstance(fields.get("query", ""), str)
            queries = fields.get("queries", [])
            assert isinstance(queries, list)
            assert all(isinstance(query, str) for query in queries)
        for key in ("summary", "content"):
            parts = item.get(key, [])
            assert isinstance(parts, list)
            assert all(isinstance(part["text"], str) for part in parts)


@pytest.mark.parametrize("status", ["pending", "queued", "requires_approval", ["x"]])
def test_server_says_nothing_about_the_approval_of_a_call(status: object) -> None:
    """The host would make a call that is `approved` without asking."""
    made = {**call("1"), "status": status, "approved": True}
    chunks, items = on_page(run_of(made))

    [shown] = [item for item in items if item["type"] == "function_call"]
    assert shown["status"] in ("completed", "incomplete")
    assert "approved" not in json.dumps(chunks)


def test_status_lines_without_an_end() -> None:
    """For each the host writes the message with all of them; the last one still comes."""
    lists: list[Item] = [
        {"type": "mcp_list_tools", "id": f"l_{n}", "server_label": "crm", "tools": []}
        for n in range(1_000)
    ]

    chunks, _ = on_page(run_of(*lists, message("m", "Rain.")))

    lines = [line["description"] for line in host_events(chunks, "status")]
    assert lines[:-1] == ["crm offers 0 tools."] * 200
    assert lines[-1].startswith("Finished in ")


def test_long_status_lines_are_few() -> None:
    """A server chooses queries and addresses of any length."""
    pages = [{"url": f"https://e.example/{n:03900}"} for n in range(150)]
    action = {"type": "search", "queries": ["q" * 1_000_000], "sources": pages}
    search = {"type": "web_search_call", "status": "completed", "action": action}
    searches = [{**search, "id": f"ws_{n}"} for n in range(9)]

    chunks, _ = on_page(run_of(*searches, message("m", "Rain.")))

    first, last = host_events(chunks, "status")
    assert len(first["description"]) == 2_000
    assert last["description"].startswith("Finished in ")
