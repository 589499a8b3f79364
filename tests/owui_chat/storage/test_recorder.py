"""What a run leaves behind, and in front of which text it says so."""

from collections.abc import Callable, Sequence

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.items import Item, is_reasoning
from openai_responses.loop.events import (
    GIVEN_UP,
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
    ToolOutput,
)
from openai_responses.requests.replay import strip_for_replay
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import AnswerEvent, TurnDetails
from owui_chat.storage.recorder import DetailsRecorder, NewRecord, Recorder
from owui_chat.storage.records import Record, text_digest
from runs.sample import (
    AUTHOR,
    Ids,
    call,
    custom_call,
    joined_rounds,
    message,
    on_page,
    output,
    reasoning,
    recorded,
    refusal,
    run_of,
    run_with_tools,
    search,
    shifted,
    tell,
    without,
)
from stand_in.signing import SIGN

STUB_PART: Item = {"type": "output_text", "annotations": []}
STUB: Item = {"type": "message", "role": "assistant", "content": [STUB_PART]}
FINAL_STUB: Item = {**STUB, "phase": "final_answer"}
"""A message kept for its phase alone: the chat has its text."""


def payloads(*items: Item) -> list[list[Item]]:
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
    """When the text begins to grow, and not again when the end tells nothing new."""
    [(event, record)] = written_at(run_of(reasoning("1"), message("1", "Rain.")))

    assert event == TextDelta(1, "text", 0, "Rai")
    assert record == Record(
        record.ulid,
        payload=(without(reasoning("1"), "id", "status"),),
        message_id=AUTHOR.message_id,
        origin=AUTHOR.origin,
    )


SEALED = strip_for_replay(reasoning("1"))
COMPACTION: Item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "sealed"}
REMARK = message("1", "Look", "commentary")
RAIN = message("2", "Rain.")
NOTE = {"type": "file_path", "file_id": "file-1", "index": 0}
WORDS = [{"type": "reasoning_text", "text": "Rain, I think."}]
PLAIN: Item = {"type": "reasoning", "id": "rs_p", "summary": [], "content": WORDS}
UNSEALED = without(reasoning("1"), "encrypted_content")


@pytest.mark.parametrize(
    ("items", "records"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([RAIN], [], id="all there is to know of a text is the text"),
        pytest.param(
            [reasoning("1"), reasoning("2"), RAIN],
            [[SEALED, strip_for_replay(reasoning("2"))]],
            id="items in front of one text share a marker",
        ),
        pytest.param(
            [REMARK, reasoning("1"), message("2", "It", "final_answer")],
            [[strip_for_replay(REMARK)], [SEALED, FINAL_STUB]],
            id="the phase of an answer, and the text of a remark",
        ),
        pytest.param(
            [reasoning("1"), message("1", " \n", "commentary"), RAIN],
            [[SEALED]],
            id="what led to an empty remark waits for what follows",
        ),
        pytest.param(
            [reasoning("1"), message("2", "Rain.", annotations=[NOTE])],
            [[SEALED, {**STUB, "content": [{**STUB_PART, "annotations": [NOTE]}]}]],
            id="annotations without the text",
        ),
        pytest.param([RAIN, reasoning("1")], [], id="reasoning that led to nothing"),
        pytest.param([UNSEALED, RAIN], [], id="unsealed reasoning"),
        pytest.param(
            [reasoning("1", encrypted_content=""), RAIN], [], id="an empty seal"
        ),
        pytest.param(
            [reasoning("1"), call("1", status="incomplete")],
            [],
            id="nobody will answer an incomplete call",
        ),
        pytest.param(
            [reasoning("1"), search("1"), RAIN],
            [[SEALED, strip_for_replay(search("1"))]],
            id="searches between the reasoning and the answer",
        ),
        pytest.param(
            [reasoning("1"), search("1"), reasoning("2")],
            [[SEALED, strip_for_replay(search("1"))]],
            id="a search that no text followed",
        ),
        pytest.param(
            [message("1", "One"), RAIN],
            [[STUB]],
            id="the host joins neighbors by a newline",
        ),
        pytest.param(
            [message("1", "One"), {**search("1"), "status": "in_progress"}, RAIN],
            [[STUB]],
            id="neighbors with an open search between them",
        ),
        pytest.param(
            [message("1", "One"), UNSEALED, RAIN],
            [[STUB]],
            id="neighbors with unsealed reasoning between them",
        ),
        pytest.param(
            [{"type": "mystery_call", "id": "mys_1", "status": "completed"}, RAIN],
            [],
            id="an item of an unknown type",
        ),
        pytest.param(
            [reasoning("1"), message("1", ""), RAIN],
            [[SEALED]],
            id="a message without a text leaves its marker to the next",
        ),
        pytest.param(
            [refusal("1", "I can't.")],
            [[strip_for_replay(refusal("1", "I can't."))]],
            id="as a text a refusal would say that the model answered",
        ),
        pytest.param(
            [COMPACTION, reasoning("1"), RAIN],
            [[without(COMPACTION, "id"), SEALED]],
            id="a compaction",
        ),
    ],
)
def test_only_what_the_chat_cannot_give_back_is_kept(
    items: list[Item], records: list[list[Item]]
) -> None:
    assert payloads(*items) == records


def test_remark_is_kept_with_what_led_to_it_when_it_has_ended() -> None:
    """Whatever happens to the run from there on, it is there."""
    [(event, record)] = written_at(run_of(reasoning("1"), REMARK, call("1"))[:-1])

    assert event == ItemDone(1, REMARK, shown="Look")
    assert record.payload == (SEALED, strip_for_replay(REMARK))
    assert record.shown == ""  # the chat has no text of it


def test_record_of_the_last_remark_tells_that_the_chat_has_its_text() -> None:
    """It is the answer then: what a person makes of it counts."""
    look, done = (message(n, f"{n}.", "commentary") for n in "12")

    first, second = tell(run_of(look, done)).records.values()
    [other, _] = tell(run_of(look, message("2", "Rain."))).records.values()

    assert (first.shown, second.shown) == ("", text_digest("2."))
    assert second.payload == (strip_for_replay(done),)
    assert other.shown == ""


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
    events = run_of(reasoning("1"), item)

    (_, begun), (_, amended) = written_at(events)

    assert begun.payload == (SEALED,)
    assert amended == begun._replace(payload=(SEALED, strip_for_replay(item)))


@pytest.mark.parametrize(
    ("text", "is_kept"), [("Rain.", False), (" Rain.", True), ("Rain.\n", True)]
)
def test_text_that_the_host_strips_is_kept_where_no_marker_is_needed(
    text: str, is_kept: bool
) -> None:
    """A marker would have to be in front of the text, which is there already."""
    item = message("1", text)
    *begun, ended, response, run = run_of(item)
    events = [*begun, ended, ended, response, run]  # some servers end an item twice

    records = tell(events, in_output=True).records.values()

    kept = [record.payload for record in records]
    assert kept == [(strip_for_replay(item),)] * is_kept
    assert tell(run_of(item)).written == []


def test_text_that_was_a_thought_gives_its_record_back() -> None:
    """What led to it leads to the answer now; its own record is empty."""
    thought: Item = {"type": "reasoning", "summary": [], "content": []}
    *led, _, _ = run_of(reasoning("1"), search("1"))
    begun = [shifted(e, 2) for e in run_of(message("2", "Hm.", "final_answer"))[:-3]]
    rest = [shifted(event, 3) for event in run_of(message("3", "Rain."))]
    events: list[RunEvent] = [*led, *begun, ItemDone(2, thought), *rest]
    held = (SEALED, strip_for_replay(search("1")))

    first, emptied, second = (record for _, record in written_at(events))

    assert first.payload == (*held, FINAL_STUB)
    assert (emptied.ulid, emptied.payload) == (first.ulid, ())
    assert second.ulid != first.ulid
    assert second.payload == held


def test_message_that_is_shown_otherwise_is_kept_whole() -> None:
    """With what tells whether the shown text was edited."""
    text = "Rain. ([a.example](https://a.example?utm_source=openai))"

    (_, begun), (_, amended) = written_at(run_of(search("1"), message("1", text)))

    assert begun.payload == (strip_for_replay(search("1")),)
    whole = (strip_for_replay(search("1")), strip_for_replay(message("1", text)))
    shown = "Rain. [1]\n\n[1]: https://a.example"
    assert amended == begun._replace(payload=whole, shown=text_digest(shown))


def test_message_of_a_run_that_may_cite_has_a_record_from_its_beginning() -> None:
    author = AUTHOR._replace(cites=True)

    rendered = tell(run_of(message("1", "Rain.")), author=author)

    [record] = rendered.written
    assert record.payload == (STUB,)
    assert tell(run_of(message("1", "Rain."))).written == []


@pytest.mark.parametrize(
    ("item", "kind", "change", "kept"),
    [
        pytest.param(
            message("1", "Rain.", "final_answer"),
            ItemAdded,
            lambda item: without(item, "phase"),
            [FINAL_STUB],
            id="only the end has the phase",
        ),
        pytest.param(
            message("1", "Rain."),
            ItemAdded,
            lambda item: {**item, "phase": "final_answer"},
            [],
            id="only the beginning has the phase",
        ),
        pytest.param(
            message("1", "Rain."),
            ItemDone,
            lambda item: {**item, "content": None},
            [{"type": "message", "role": "assistant"}],
            id="the end has no content, as of other servers",
        ),
    ],
)
def test_end_of_a_message_counts(
    item: Item,
    kind: type[ItemAdded | ItemDone],
    change: Callable[[Item], Item],
    kept: list[Item],
) -> None:
    events = [
        (
            event._replace(item=change(event.item))
            if isinstance(event, kind) and event.output_index == 1
            else event
        )
        for event in run_of(reasoning("1"), item)
    ]

    [_, (_, amended)] = written_at(events)

    assert amended.payload == (SEALED, *kept)


def test_author_that_keeps_no_reasoning_keeps_the_rest() -> None:
    """Phases and the bytes of calls are no secret of the model."""
    author = AUTHOR._replace(keeps_reasoning=False)
    answered = message("1", "Rain.", "final_answer")

    rendered = tell(run_of(COMPACTION, reasoning("1"), call("0"), answered), author)

    [record] = rendered.records.values()
    assert record.payload == (strip_for_replay(call("0")), FINAL_STUB)
    assert "encrypted_content" not in str(rendered.written)


def test_plain_reasoning_is_kept_for_calls_that_the_host_makes() -> None:
    """It asks again with their outputs; a run that makes its calls has sent it itself."""
    left = payloads(message("0", "Wait."), PLAIN, call("1"), call("2"))
    assert left == [[PLAIN, *map(strip_for_replay, (call("1"), call("2")))]]
    made: list[RunEvent] = [
        ItemDone(0, PLAIN),
        ItemDone(1, call("1")),
        ToolOutput(2, output("1")),
        RunDone(COMPLETED, output=(PLAIN, call("1"), output("1"))),
    ]
    assert [record.payload for record in tell(made).records.values()] == [(card("1"),)]
    assert payloads(PLAIN, message("1", "Rain.")) == []
    for payload in payloads(PLAIN, message("1", "Rain.", "final_answer"), call("1")):
        assert PLAIN not in payload
    nothing = tell(run_of(PLAIN, call("1")), AUTHOR._replace(keeps_reasoning=False))
    assert "Rain, I think." not in str(nothing.written)


def test_nothing_of_items_that_the_run_gives_up_is_kept() -> None:
    """The same question is asked again, and the answer follows it directly."""
    begun = run_of(reasoning("1"), PLAIN, call("1"))[:-2]
    given_up = [ItemDone(index, GIVEN_UP) for index in range(3)]
    again = [shifted(event, 3) for event in run_of(call("2"))]

    [record] = tell([*begun, *given_up, *again]).records.values()
    assert record.payload == (strip_for_replay(call("2")),)
    [turn] = turns_in(details_of([*begun, *given_up, *again]))
    assert [entry["item"]["call_id"] for entry in turn.details[1:]] == ["call_2"]


def test_thought_is_not_kept_if_its_response_is_given_up_after_a_text() -> None:
    """The text stays; the calls that the next response makes follow no thought of it."""
    begun = run_of(PLAIN, message("1", "Rain."))[:-2]
    again = [shifted(event, 2) for event in run_of(call("2"))]

    [record] = tell([*begun, ItemDone(0, GIVEN_UP), *again]).records.values()
    assert record.payload == (strip_for_replay(call("2")),)


@pytest.mark.parametrize("first", [reasoning("1"), PLAIN, call("1")])
def test_item_in_the_place_of_a_thought_that_was_given_up_is_kept(first: Item) -> None:
    """The items of the next attempt are numbered as those of the first one."""
    again = run_of(first, call("2"))

    given_up: list[RunEvent] = [ItemAdded(0, PLAIN), ItemDone(0, GIVEN_UP)]
    assert tell([*given_up, *again]).records == tell(again).records


def card(name: str, **more: str) -> Item:
    """A call whose words are in its card; its fields have their order."""
    item = strip_for_replay(call(name))
    return {**item, "name": None, "arguments": None, **more}


def test_calls_of_all_rounds_are_kept_in_front_of_the_text() -> None:
    """With the reasoning that led to them; their words and outputs are in the chat."""
    called = (reasoning("1"), call("1"), call("2"))
    rounds = [run_of(*called), run_of(reasoning("2"), message("1", "Rain."))]

    [record] = tell(joined_rounds(rounds)).records.values()

    thoughts = [strip_for_replay(reasoning(name)) for name in "12"]
    assert list(record.payload) == [thoughts[0], card("1"), card("2"), thoughts[1]]


@pytest.mark.parametrize(
    "item",
    [
        call("1", namespace="weather"),
        custom_call("1", "Rain."),
        call("1", caller={"type": "direct"}),
    ],
    ids=["namespace", "custom", "field of tomorrow"],
)
def test_call_is_kept_whole_if_its_card_lacks_something(item: Item) -> None:
    rounds = [run_of(item), run_of(message("1", "Rain."))]

    [record] = tell(joined_rounds(rounds)).records.values()

    assert record.payload == (strip_for_replay(item),)


def test_parallel_calls_are_kept_in_the_order_of_the_wire() -> None:
    """They may end in another one; the next request sends them in this."""
    events = run_of(reasoning("1"), call("1"), call("2"))
    ends = [e for e in events if isinstance(e, ItemDone)]
    others = [e for e in events if not isinstance(e, ItemDone)]

    [record] = tell([*others[:-1], ends[0], ends[2], ends[1], others[-1]]).written

    kept = [strip_for_replay(item) for item in (reasoning("1"), call("1"), call("2"))]
    assert list(record.payload) == kept


def test_calls_that_no_text_follows_are_kept_at_the_end() -> None:
    """Not the reasoning after them, which led to nothing."""
    rounds = [run_of(reasoning("1"), call("1")), run_of(reasoning("2"))]

    [record] = tell(joined_rounds(rounds)).records.values()

    assert record.payload == (strip_for_replay(reasoning("1")), card("1"))
    assert record.kind == "items"


def ends_early(short: Item, longer: Item, *rest: Item) -> list[RunEvent]:
    """A run whose first item, after reasoning, goes on after its end."""
    *events, done, ended = run_of(reasoning("1"), short, *rest)
    assert isinstance(ended, RunDone)
    output = (*ended.output[:1], longer, *ended.output[2:])
    return [*events, ItemDone(1, longer), done, ended._replace(output=output)]


@pytest.mark.parametrize(
    ("short", "longer", "kept"),
    [
        (call("1", "{"), call("1", "{}"), strip_for_replay(call("1", "{}"))),
        (message("1", "R", "commentary"), REMARK, strip_for_replay(REMARK)),
        (
            message("1", "R", "final_answer"),
            message("1", "Rain.", "final_answer"),
            FINAL_STUB,
        ),
    ],
    ids=["call", "commentary", "answer"],
)
def test_item_that_ends_twice_is_recorded_once(
    short: Item, longer: Item, kept: Item
) -> None:
    [record] = tell(ends_early(short, longer)).records.values()

    assert record.payload == (SEALED, kept)


def test_call_that_was_recorded_is_not_recorded_again() -> None:
    """Its record belongs to the text after it, and two calls of one id are refused."""
    events = ends_early(call("1", "{"), call("1", "{}"), message("2", "Rain."))

    items = [i for record in tell(events).records.values() for i in record.payload]

    assert [item["type"] for item in items] == ["reasoning", "function_call"]


def test_hidden_message_is_kept_in_front_of_the_text_after_it() -> None:
    """As it is; at the end of a run, as one of which the chat shows nothing."""
    hidden = message("3", "Rain.")

    [record] = tell(run_of(RAIN, hidden, message("4", "Snow."))).records.values()
    [last] = tell(run_of(RAIN, hidden)).records.values()
    [searched] = tell(run_of(RAIN, search("1"))).records.values()

    assert record.payload == (strip_for_replay(hidden), STUB)
    assert last.payload == (strip_for_replay(hidden),)
    assert last.shown == text_digest("")
    assert searched.shown == ""


def test_text_after_a_hidden_message_that_breaks_off() -> None:
    *events, _, _, ended = run_of(RAIN, message("3", "Rain."), message("4", "Snow."))

    [record] = tell([*events, ended]).records.values()

    assert record.payload == (strip_for_replay(message("3", "Rain.")), STUB)


def details_of(events: Sequence[RunEvent]) -> list[AnswerEvent | NewRecord]:
    """What is recorded of a run in a chat without a row."""
    scope = AUTHOR._replace(carrier="details", sign=SIGN)
    return list(recorded(events, DetailsRecorder(scope, Ids())))


def turns_in(events: Sequence[AnswerEvent | NewRecord]) -> list[TurnDetails]:
    return [event for event in events if isinstance(event, TurnDetails)]


def page_of(events: Sequence[AnswerEvent | NewRecord]) -> list[Item]:
    """The items that the host stores of what is recorded."""
    return on_page(each for each in events if not isinstance(each, NewRecord))[1]


def test_each_turn_rides_in_a_thought_of_its_own() -> None:
    """The host binds a thought to the message that it precedes."""
    second: list[RunEvent] = [
        ItemAdded(2, reasoning("2")),
        ItemDone(2, reasoning("2")),
        ItemAdded(3, message("1", "")),
        ItemDone(3, message("1", "Rain.")),
        ResponseDone(),
    ]
    events = details_of([*run_of(reasoning("1"), call("1"))[:-1], *second])

    items = filter(is_reasoning, page_of(events))

    thoughts = [item["reasoning_details"] for item in items]
    turns = [{entry["turn"] for entry in thought} for thought in thoughts]
    assert turns == [{turn.details[0]["turn"]} for turn in turns_in(events)]
    assert len(turns) == 2


def test_turn_without_a_thought_is_not_carried() -> None:
    """There is nothing of it that the host would not give back."""
    [item] = page_of(details_of(run_of(message("1", "Rain."))))

    assert "reasoning_details" not in item


def test_hidden_message_is_carried_without_a_text_of_the_chat() -> None:
    """It is the model's own; the one that is shown has its text."""
    *thought, _, _ = run_of(reasoning("1"))
    shown_again = [shifted(event, 2) for event in run_of(message("2", "Rain."))]
    hidden: RunEvent = HiddenMessage(1, message("1", "Rain."))

    [turn] = turns_in(details_of([*thought, hidden, *shown_again]))

    assert [entry.get("shown") for entry in turn.details[1:]] == [None, "", 5]


def test_turn_details_are_reported_once() -> None:
    events = details_of(run_of(reasoning("1"), REMARK, reasoning("2"), RAIN))

    assert len(turns_in(events)) == 1
    assert isinstance(events[-1], RunDone)
    assert not isinstance(events[-2], TurnDetails)


def test_round_is_recorded_as_soon_as_its_calls_are_made() -> None:
    """Whoever presses Stop after that ends the run without a word to the recorder."""
    recorder = Recorder(AUTHOR._replace(carrier="output"), Ids())
    written: list[tuple[RunEvent, Record]] = []
    for event in run_with_tools():
        for new in recorder.feed(event):
            if isinstance(new, NewRecord):
                written.append((event, new.record))

    first, record = written[0]
    assert isinstance(first, ToolOutput)
    assert first.item["call_id"] == "call_2"
    assert record.payload[0] == SEALED
    assert [item["call_id"] for item in record.payload[1:]] == ["call_1", "call_2"]


def written_for_output(*rounds: Sequence[RunEvent]) -> list[tuple[str, list[str]]]:
    """Each record in the host's output as it begins: the event that asks, what it holds."""
    recorder = Recorder(AUTHOR._replace(carrier="output"), Ids())
    written: list[tuple[str, list[str]]] = []
    for event in joined_rounds(rounds):
        for new in recorder.feed(event):
            if isinstance(new, NewRecord) and not isinstance(event, ItemDone):
                kinds = [str(item["type"]) for item in new.record.payload]
                written.append((type(event).__name__, kinds))
    return written


AGAIN = [ItemDone(1, call("1", call_id="call_0")), ItemDone(1, call("1"))]
"""A call whose id changes when it ends for the second time."""


@pytest.mark.parametrize(
    ("rounds", "written"),
    [
        pytest.param(
            [run_of(reasoning("1"), call("1")), run_of(RAIN)],
            [
                ("ToolOutput", ["reasoning", "function_call"]),
                ("TextDelta", ["message"]),
            ],
            id="the text after it has a record of its own",
        ),
        pytest.param(
            [run_of(call("1")), run_of(RAIN)],
            [("TextDelta", ["function_call"])],
            id="no reasoning that could be lost",
        ),
        pytest.param(
            [run_of(reasoning("1"), call("1"), search("1")), run_of(RAIN)],
            [("TextDelta", ["reasoning", "function_call", "web_search_call"])],
            id="what follows a call waits for its text",
        ),
        pytest.param(
            [run_of(reasoning("1"), call("1"), COMPACTION), run_of(RAIN)],
            [
                ("ToolOutput", ["reasoning", "function_call", "compaction"]),
                ("TextDelta", ["message"]),
            ],
            id="a compaction after its calls",
        ),
        pytest.param(
            [
                [*run_of(reasoning("1"))[:-2], *AGAIN, *run_of(call("1"))[-1:]],
                run_of(RAIN),
            ],
            [
                ("ToolOutput", ["reasoning", "function_call"]),
                ("TextDelta", ["message"]),
            ],
            id="a call that ended twice is made once",
        ),
    ],
)
def test_round_is_recorded_if_its_reasoning_could_be_lost(
    rounds: list[list[RunEvent]], written: list[tuple[str, list[str]]]
) -> None:
    assert written_for_output(*rounds) == written
