"""What a run leaves behind, and in front of which text it says so."""

from collections.abc import Sequence

import pytest

from openai_responses.items import Item, has_encrypted_reasoning
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.requests.replay import strip_for_replay
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.storage.recorder import NewRecord, Recorder
from owui_chat.storage.records import Record, text_digest
from runs.sample import (
    AUTHOR,
    TRANSCRIPTS,
    Ids,
    call,
    joined_rounds,
    message,
    reasoning,
    recorded,
    refusal,
    run_of,
    run_of_transcript,
    search,
    tell,
    without,
)

STUB: Item = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "annotations": []}],
}


def stub(phase: str) -> Item:
    """A message kept for its phase alone: the chat has its text."""
    return {**STUB, "phase": phase}


def payloads(*items: Item) -> list[list[Item]]:
    """What is in the records of a run of these items, in the order of their ids."""
    return [list(record.payload) for record in tell(run_of(*items)).records.values()]


def written_at(events: Sequence[RunEvent]) -> list[tuple[RunEvent, Record]]:
    """Each record with the event that asked for it."""
    pairs: list[tuple[RunEvent, Record]] = []
    waiting: list[Record] = []
    for event in recorded(events, Recorder(AUTHOR, Ids())):
        if isinstance(event, NewRecord):
            waiting.append(event.record)
        elif isinstance(event, TextDelta | ItemDone | RunDone):
            pairs += [(event, record) for record in waiting]
            waiting = []
    return pairs


def test_reasoning_is_kept_in_front_of_its_answer() -> None:
    """Without id and status, sealed as it came; the answer itself is in the chat."""
    rendered = tell(run_of(reasoning("1"), message("1", "Rain.")))

    [record] = rendered.records.values()
    assert record.payload == (without(reasoning("1"), "id", "status"),)
    assert record.kind == "reasoning"
    assert record.model == AUTHOR.model
    assert record.message_id == AUTHOR.message_id
    assert record.origin == AUTHOR.origin
    assert record.created_at == 1_795_262_400


def test_record_comes_with_the_first_growth_of_the_text() -> None:
    """And not again when the end tells nothing new."""
    [(event, _)] = written_at(run_of(reasoning("1"), message("1", "Rain.")))

    assert event == TextDelta(1, "text", 0, "Rai")


def test_sealed_bytes_are_those_of_the_end() -> None:
    """What the beginning of an item shows of them may be incomplete."""
    [[kept]] = payloads(reasoning("1"), message("1", "Rain."))

    assert kept["encrypted_content"] == "sealed-1"


def test_items_in_front_of_one_text_share_a_marker() -> None:
    """A copied answer shows each line."""
    items = reasoning("1"), reasoning("2"), message("1", "Rain.")

    [record] = tell(run_of(*items)).records.values()

    assert record.kind == "items"
    assert list(record.payload) == [
        strip_for_replay(reasoning("1")),
        strip_for_replay(reasoning("2")),
    ]


def test_plain_answer_needs_no_record() -> None:
    """All there is to know of it is its text."""
    assert payloads(message("1", "Rain.")) == []


def test_phase_is_kept_with_a_message() -> None:
    """The text of an answer is not: the chat gives it back. That of a remark is."""
    remark = message("1", "Look", "commentary")
    answer = message("2", "It", "final_answer")

    kept = payloads(remark, reasoning("1"), answer)

    assert kept == [
        [strip_for_replay(remark)],
        [strip_for_replay(reasoning("1")), stub("final_answer")],
    ]


def test_remark_is_kept_with_what_led_to_it_when_it_has_ended() -> None:
    """Whatever happens to the run from there on, it is there."""
    remark = message("1", "Look", "commentary")

    [(event, record)] = written_at(run_of(reasoning("1"), remark, call("1"))[:-1])

    assert event == ItemDone(1, remark, shown="Look")
    assert record.payload == (
        strip_for_replay(reasoning("1")),
        strip_for_replay(remark),
    )
    assert record.shown == ""  # the chat has no text of it


def test_record_of_the_last_remark_tells_that_the_chat_has_its_text() -> None:
    """It is the answer then: what a person makes of it counts."""
    look, done = (message(n, f"{n}.", "commentary") for n in "12")

    first, second = tell(run_of(look, done)).records.values()
    [other, _] = tell(run_of(look, message("2", "Rain."))).records.values()

    assert (first.shown, second.shown) == ("", text_digest("2."))
    assert second.payload == (strip_for_replay(done),)
    assert other.shown == ""


def test_remark_that_says_nothing_is_not_kept() -> None:
    """What led to it waits for what follows."""
    blank = message("1", " \n", "commentary")

    kept = payloads(reasoning("1"), blank, message("2", "Rain."))

    assert kept == [[strip_for_replay(reasoning("1"))]]


@pytest.mark.parametrize(
    "between",
    [
        [],
        [{**search("1"), "status": "in_progress"}],
        [without(reasoning("1"), "encrypted_content")],
    ],
    ids=["nothing", "open search", "unsealed reasoning"],
)
def test_second_message_in_a_row_is_kept_apart(between: list[Item]) -> None:
    """The host joins neighbors by a newline, and leaves out what is not kept."""
    assert payloads(message("1", "One"), *between, message("2", "Two")) == [[STUB]]


@pytest.mark.parametrize(
    "item",
    [
        refusal("1", "I can't."),
        message("1", " Rain.\n"),
        {**message("1", "One"), "content": message("1", "One")["content"] * 2},
    ],
    ids=["refusal", "white space", "two parts"],
)
def test_message_that_the_chat_cannot_give_back_is_kept_whole(item: Item) -> None:
    """The record is written again when the end of the message tells."""
    events = run_of(reasoning("1"), item)

    (_, begun), (_, amended) = written_at(events)

    assert begun.payload == (strip_for_replay(reasoning("1")),)
    assert amended == begun._replace(
        payload=(strip_for_replay(reasoning("1")), strip_for_replay(item))
    )


def test_refusal_without_reasoning_is_kept_whole() -> None:
    """As a text it would say that the model answered."""
    item = refusal("1", "I can't.")

    *_, (_, amended) = written_at(run_of(item))

    assert amended.payload == (strip_for_replay(item),)


def test_annotations_are_kept_without_the_text() -> None:
    """They are not in the chat's text."""
    note = {"type": "file_path", "file_id": "file-1", "index": 0}
    item = message("1", "Rain.", annotations=[note])

    [[_, kept]] = payloads(reasoning("1"), item)

    assert kept["content"] == [{"type": "output_text", "annotations": [note]}]


def test_message_that_is_shown_otherwise_is_kept_whole() -> None:
    """With what tells whether the shown text was edited."""
    text = "Rain. ([a.example](https://a.example?utm_source=openai))"

    records = [
        record for _, record in written_at(run_of(search("1"), message("1", text)))
    ]

    begun, amended = records
    assert begun.payload == (strip_for_replay(search("1")),)
    whole = (strip_for_replay(search("1")), strip_for_replay(message("1", text)))
    assert amended == begun._replace(payload=whole, shown=text_digest("Rain. [1]"))


def test_message_of_a_run_that_may_cite_has_a_record_from_its_beginning() -> None:
    """Only its end tells whether it is shown otherwise; then it is too late for one."""
    author = AUTHOR._replace(cites=True)

    rendered = tell(run_of(message("1", "Rain.")), author=author)

    [record] = rendered.written
    assert record.payload == (STUB,)
    assert tell(run_of(message("1", "Rain."))).written == []


def test_phase_that_only_the_end_tells_is_kept() -> None:
    """The end of an item is what counts."""
    late = message("1", "Rain.", "final_answer")
    events = [
        (
            event._replace(item=without(event.item, "phase"))
            if isinstance(event, ItemAdded)
            else event
        )
        for event in run_of(reasoning("1"), late)
    ]

    [_, (_, amended)] = written_at(events)

    assert amended.payload == (strip_for_replay(reasoning("1")), stub("final_answer"))


def test_phase_that_the_end_takes_back_is_not_kept() -> None:
    """Then the text is again all there is to know."""
    events = [
        (
            event._replace(item={**event.item, "phase": "final_answer"})
            if isinstance(event, ItemAdded) and event.output_index == 1
            else event
        )
        for event in run_of(reasoning("1"), message("1", "Rain."))
    ]

    [_, (_, amended)] = written_at(events)

    assert amended.payload == (strip_for_replay(reasoning("1")),)


def test_message_that_ends_without_content_does_no_harm() -> None:
    """Other servers leave fields out."""
    item = {**message("1", "Rain."), "content": None}
    events = [
        (
            event._replace(item=item)
            if isinstance(event, ItemDone) and event.output_index == 1
            else event
        )
        for event in run_of(reasoning("1"), message("1", "Rain."))
    ]

    [_, (_, amended)] = written_at(events)

    kept = {"type": "message", "role": "assistant"}
    assert amended.payload == (strip_for_replay(reasoning("1")), kept)


def test_message_without_text_leaves_its_marker_to_the_next() -> None:
    """There is nothing that the marker could stand in front of."""
    items = reasoning("1"), message("1", ""), message("2", "Rain.")

    [record] = tell(run_of(*items)).records.values()

    assert record.payload[0] == strip_for_replay(reasoning("1"))


def test_reasoning_that_nothing_follows_is_not_kept() -> None:
    """Alone it would be refused."""
    rendered = tell(run_of(message("1", "Rain."), reasoning("1")))

    assert rendered.records == {}


@pytest.mark.parametrize("field", ["encrypted_content", "none"])
def test_reasoning_that_is_not_sealed_is_not_kept(field: str) -> None:
    """The API could not read it back."""
    item = without(reasoning("1", encrypted_content=""), field)
    assert payloads(item, message("1", "Rain.")) == []


def test_author_that_keeps_no_reasoning_keeps_the_rest() -> None:
    """Phases and the bytes of calls are no secret of the model."""
    author = AUTHOR._replace(keeps_reasoning=False)
    items = reasoning("1"), call("0"), message("1", "Rain.", "final_answer")

    rendered = tell(run_of(*items), author)

    [record] = rendered.records.values()
    assert record.payload == (strip_for_replay(call("0")), stub("final_answer"))
    assert "encrypted_content" not in str(rendered.written)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_author_that_keeps_no_reasoning_never_does(name: str) -> None:
    """Whatever the run."""
    author = AUTHOR._replace(keeps_reasoning=False)

    rendered = tell(run_of_transcript(name), author=author)

    assert "encrypted_content" not in str(rendered.written)


def test_calls_of_all_rounds_are_kept_in_front_of_the_text() -> None:
    """With the reasoning that led to them; their outputs are in the chat."""
    called = (reasoning("1"), call("1"), call("2"))
    rounds = [run_of(*called), run_of(reasoning("2"), message("1", "Rain."))]

    [record] = tell(joined_rounds(rounds)).records.values()

    kept = [strip_for_replay(item) for item in (*called, reasoning("2"))]
    assert list(record.payload) == kept


def test_parallel_calls_are_kept_in_the_order_of_the_wire() -> None:
    """They may end in another one; the next request sends them in this."""
    events = run_of(reasoning("1"), call("1"), call("2"))
    ends = [e for e in events if isinstance(e, ItemDone)]
    others = [e for e in events if not isinstance(e, ItemDone)]

    [record] = tell([*others[:-1], ends[0], ends[2], ends[1], others[-1]]).written

    kept = [strip_for_replay(item) for item in (reasoning("1"), call("1"), call("2"))]
    assert list(record.payload) == kept


def test_calls_that_no_text_follows_are_kept_at_the_end() -> None:
    """Not the reasoning behind them, which led to nothing."""
    rounds = [run_of(reasoning("1"), call("1")), run_of(reasoning("2"))]

    [record] = tell(joined_rounds(rounds)).records.values()

    kept = [strip_for_replay(reasoning("1")), strip_for_replay(call("1"))]
    assert list(record.payload) == kept
    assert record.kind == "items"


def test_incomplete_call_is_not_kept() -> None:
    """Nobody will answer it."""
    assert payloads(reasoning("1"), call("1", status="incomplete")) == []


def test_searches_are_kept_between_the_reasoning_and_the_answer() -> None:
    """The next turn begins with all that this one received."""
    [kept] = payloads(reasoning("1"), search("1"), message("1", "Rain."))

    assert kept == [strip_for_replay(reasoning("1")), strip_for_replay(search("1"))]


def test_search_that_no_text_followed_is_kept_at_the_end() -> None:
    """The model knows then what it looked for before it broke off."""
    events = run_of(reasoning("1"), search("1"), reasoning("2"))

    [record] = tell(events).written

    assert record.payload == (
        strip_for_replay(reasoning("1")),
        strip_for_replay(search("1")),
    )


def test_rest_of_nothing_is_nothing() -> None:
    """No marker without items."""
    assert tell(run_of()).written == []


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_no_record_is_empty_and_every_kept_item_is_clean(name: str) -> None:
    """Whatever the run: no ids, no states, no reasoning without its seal."""
    rendered = tell(run_of_transcript(name))

    for record in rendered.written:
        assert record.payload
        for item in record.payload:
            assert item == strip_for_replay(item)
            assert item["type"] != "reasoning" or has_encrypted_reasoning(item)


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_each_record_is_begun_once(name: str) -> None:
    """A text grows in thousands of deltas; the chat is written a few times."""
    events = run_of_transcript(name)

    rendered = tell(events)

    messages = {e.output_index for e in events if isinstance(e, ItemAdded)}
    assert len(rendered.records) <= len(messages) + 1
    assert len(rendered.written) <= 2 * len(rendered.records)


def test_compaction_is_kept_as_reasoning_is() -> None:
    """Readable for its makers alone, and only where such is kept."""
    item: Item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "sealed"}
    events = run_of(item, reasoning("1"), message("1", "Rain."))

    [record] = tell(events).records.values()
    forgetful = tell(events, author=AUTHOR._replace(keeps_reasoning=False))

    assert record.payload[0] == without(item, "id")
    assert forgetful.written == []


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_no_picture_is_kept_inline(name: str) -> None:
    """Its file is the host's; a chat is read whole with every answer."""
    kept = str([r.payload for r in tell(run_of_transcript(name)).records.values()])

    assert "iVBORw0KGgo" not in kept
    assert "base64" not in kept
