"""Items and responses that end in odd ways: an end takes nothing away."""

import json

import pytest

from measures.work_count import count_joins
from openai_responses.items import Item, is_call, message_text
from openai_responses.loop.events import ResponseDone
from openai_responses.loop.repeated_messages import without_repetitions
from openai_responses.loop.response import ResponseState
from openai_responses.requests.replay import replay_output
from openai_responses.transport.stream import (
    EventStreamDecoder,
    FinalResponse,
    ItemDone,
    TextDelta,
    TextDone,
    parse_event,
)
from runs.log import log_of
from upstream import wire
from upstream.odd_streams import stream_of


@pytest.mark.parametrize(
    ("status", "kept"),
    [("completed", True), ("incomplete", True), ("cancelled", True), ("failed", False)],
)
@pytest.mark.parametrize("response", [{"id": "resp_1", "output": []}, {}])
def test_items_that_only_deltas_brought_end_with_the_response(
    response: Item, status: str, kept: bool
) -> None:
    """A response that failed may be asked for once more, so nothing of it ends."""
    state = ResponseState()
    began = wire.message("Hello")[:3]

    for event in began:
        state.feed(wire.parsed(event))
    state.feed(FinalResponse(status, response))

    assert [message_text(item) for item in state.output] == ["Hello"] * kept


@pytest.mark.parametrize(
    ("status", "response", "ending"),
    [
        ("completed", {}, None),
        ("completed", {"id": "resp_1"}, "completed"),
        ("failed", {}, "failed"),
    ],
)
def test_end_that_says_nothing_of_nothing_is_none(
    status: str, response: Item, ending: str | None
) -> None:
    """Another event may still come, as long as the server does not say that it failed."""
    state = ResponseState()

    events = state.feed(FinalResponse(status, response))

    assert [type(event) for event in events] == [ResponseDone] * bool(ending)
    assert (state.ending and state.ending.kind) == ending


@pytest.mark.parametrize("name", [None, ""])
def test_call_keeps_the_name_that_its_end_lacks(name: str | None) -> None:
    """An end takes nothing away; without a name no tool would run."""
    state = ResponseState()
    *began, _ = wire.function_call("look", "{}")
    ended = wire.done({**wire.call_item("look", "{}"), "name": name})
    for event in [*began, ended, wire.ended("completed", output=[])]:
        state.feed(wire.parsed(event))
    [call] = state.output
    assert call["name"] == "look"


@pytest.mark.parametrize("comes", ["in deltas", "with its end", "last", "each time"])
def test_arguments_that_are_encoded_twice_are_read_once(comes: str) -> None:
    """Of vLLM (its issue 54964): no host and no client reads a text as arguments."""
    inner = '{"city":  "Bern"}'
    state = ResponseState()
    began, *deltas, ended = wire.function_call("look", json.dumps(inner))
    plain_end = wire.ended("completed", output=[])
    whole_end = wire.ended("completed", output=[ended["item"]])
    events = {
        "in deltas": [began, *deltas, plain_end],
        "with its end": [began, ended, plain_end],
        "last": [whole_end],
        "each time": [began, *deltas, ended, whole_end],
    }
    for event in events[comes]:
        state.feed(wire.parsed(event))
    [call] = state.output
    assert call["arguments"] == inner


@pytest.mark.parametrize("text", ['"[1]"', '"{"', '"city"', '"{\\"a\\": 1"'])
def test_arguments_that_hold_no_object_stay(text: str) -> None:
    """The model is told that they are none, and reads what it wrote."""
    state = ResponseState()
    for event in [*wire.function_call("look", text), wire.ended("completed")]:
        state.feed(wire.parsed(event))
    [call] = state.output
    assert call["arguments"] == text


def open_items_of(*events: wire.Event) -> list[Item]:
    """The output of a response in which nothing ends these items."""
    state = ResponseState()
    for event in [*events, wire.ended("completed", output=[])]:
        state.feed(wire.parsed(event))
    return state.output


def test_only_what_has_come_is_an_item() -> None:
    """Neither an empty message, nor a call without a name, nor a search of the API."""
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
    code = {"type": "code_interpreter_call", "id": "ci_1", "code": "1"}
    nameless = {**wire.call_item("", '{"a":1}'), "id": "fc_9"}
    for item in (wire.message_item(), search, code, nameless):
        assert open_items_of(wire.added(item)) == []
    [whole] = open_items_of(wire.added(wire.message_item("Hi")))
    assert message_text(whole) == "Hi"


def test_call_with_arguments_counts_next_to_a_snapshot_without_it() -> None:
    state = ResponseState()
    begun = wire.added(wire.call_item("look", '{"a":1}'))
    for event in (begun, wire.completed(wire.message_item("Hi", at=1))):
        state.feed(wire.parsed(event))

    assert [item["type"] for item in state.output] == ["function_call", "message"]


def test_items_of_two_types_may_have_one_id() -> None:
    """A gateway numbers both from the beginning."""
    state = ResponseState()
    items = [wire.reasoning_item("hm"), wire.message_item("Hi", at=1)]
    for at, item in enumerate(items):
        for event in (
            wire.added(item | {"id": "1"}, at),
            wire.done(item | {"id": "1"}, at),
        ):
            state.feed(wire.parsed(event))

    assert [item["type"] for item in state.output] == ["reasoning", "message"]


def test_items_without_ids_are_told_apart_by_their_indexes() -> None:
    """An empty id names none of them."""
    state = ResponseState()
    for at, text in enumerate(("One", "Two")):
        item = {**wire.message_item(text), "id": ""}
        for event in (wire.added(item, at), wire.done(item, at)):
            state.feed(wire.parsed(event))

    assert [message_text(item) for item in state.output] == ["One", "Two"]


def test_call_without_arguments_that_nothing_ends() -> None:
    """It counts where no snapshot says what the response consists of."""
    begun = wire.added({**wire.call_item("look", ""), "status": "in_progress"})

    [call] = open_items_of(begun)

    assert (call["arguments"], call["status"]) == ("{}", "completed")
    state = ResponseState()
    for event in (begun, wire.completed(wire.message_item("Hi", at=1))):
        state.feed(wire.parsed(event))
    assert [item["type"] for item in state.output] == ["message"]


def test_sealed_reasoning_that_nothing_ends_does_not_go_back() -> None:
    """What was announced of its content is no whole, and its words would be refused."""
    *grown, _ = wire.reasoning(["hm"])

    [thought] = open_items_of(*grown)

    assert "encrypted_content" not in thought
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert replay_output([thought], with_reasoning=True) == []


def test_plain_reasoning_that_nothing_ends_goes_back() -> None:
    """A server that never encrypts sends its thought in no other form."""
    begun, *grown, _ = wire.reasoning(["hm"])
    begun = {**begun, "item": {**begun["item"], "encrypted_content": None}}

    [thought] = open_items_of(begun, *grown)

    [again] = replay_output([thought], with_reasoning=True)
    assert again["summary"] == [{"type": "summary_text", "text": "hm"}]


def test_summary_that_only_deltas_brought_stays_with_the_sealed_reasoning() -> None:
    state = ResponseState()
    decoder = EventStreamDecoder()
    for event in decoder.feed(stream_of("summary-only-in-deltas")):
        state.feed(parse_event(event))

    thought = state.output[0]

    assert thought["encrypted_content"] == "gAAAAB-sealed"
    assert thought["summary"] == [
        {"type": "summary_text", "text": "The user asks for weather."}
    ]


def test_item_that_goes_on_after_its_end_is_shown_at_once() -> None:
    """Each delta when it comes; the item ends once more with the response."""
    state = ResponseState()
    events = [
        state.feed(parse_event(event))
        for event in EventStreamDecoder().feed(stream_of("item-ends-early"))
    ]

    ended = [n for n, group in enumerate(events) for e in group if type(e) is ItemDone]
    grown = [n for n, group in enumerate(events) for e in group if type(e) is TextDelta]
    assert len(ended) == 2
    assert len(grown) == 4
    assert [n for n in grown if ended[0] < n < ended[1]] == grown[1:]


def test_snapshot_that_says_something_else_changes_nothing() -> None:
    """Of an item that ended only more of the same text is believed."""
    state = ResponseState()
    events = [*wire.message("Hello"), wire.completed(wire.message_item("Help me"))]
    reported = [state.feed(wire.parsed(event)) for event in events]
    assert [message_text(item) for item in state.output] == ["Hello"]
    assert [type(event) for event in reported[-1]] == [ResponseDone]


def test_longer_snapshot_keeps_the_rest_of_the_item() -> None:
    """Its citations come with the text, its sealed content from the item's own end."""
    cited = wire.message_item("Hello world")
    cited["content"][0]["annotations"] = [{"type": "url_citation", "url": "u"}]
    ended = {**wire.message_item("Hello"), "phase": "final_answer"}
    state = ResponseState()
    for event in (wire.done(ended), wire.completed(cited)):
        state.feed(wire.parsed(event))
    assert state.output == [{**cited, "phase": "final_answer"}]


@pytest.mark.parametrize("body", ["", "null"])
def test_end_without_a_body_of_a_response_that_brought_nothing(body: str) -> None:
    """It is no end: the request is sent again."""
    state = ResponseState()
    fields = {"response": None} if body else {}
    assert state.feed(wire.parsed({"type": "response.completed", **fields})) == []
    assert state.ending is None


@pytest.mark.parametrize(
    ("names", "is_ours"),
    [
        (None, True),
        (("x_keyword_search",), True),
        (("X.Keyword.Search",), True),
        (("get_weather",), False),
        ((), False),
    ],
)
def test_custom_call_of_a_declared_tool_is_ours(
    names: tuple[str, ...] | None, is_ours: bool
) -> None:
    """Also if its name is spelled in another way, or the tools are unknown."""
    state = ResponseState(tool_names=names)
    for event in EventStreamDecoder().feed(stream_of("server-run-custom-call")):
        state.feed(parse_event(event))
    assert any(is_call(item) for item in state.output) == is_ours


def test_parts_of_a_message_are_sound() -> None:
    """A text without a part around it gets one, also next to one of SGLang's router."""
    content = ["Hello ", "", {"type": "text", "text": "world"}]
    state = ResponseState()
    state.feed(wire.parsed(wire.done({**wire.message_item(), "content": content})))
    [message] = state.output
    assert [(part["type"], part["text"]) for part in message["content"]] == [
        ("output_text", "Hello "),
        ("output_text", "world"),
    ]


ONE = wire.message("One.", at=0, phase="final_answer")
TWICE = wire.message("O", "ne.", at=1, phase="final_answer")


def shown_of(*events: wire.Event) -> list[str]:
    """What is reported of these events."""
    state = ResponseState()
    return log_of(e for event in events for e in state.feed(wire.parsed(event)))


def test_repeated_message_is_hidden() -> None:
    """However often a server repeats it, it is shown once."""
    third = wire.message("One.", at=2, phase="final_answer")
    lines = shown_of(*ONE, *TWICE, *third)
    assert lines == [
        "0 started message",
        "0 text 0: One.",
        "0 ended message",
        "1 hidden message",
        "2 hidden message",
    ]


@pytest.mark.parametrize(
    ("second", "texts"),
    [
        (wire.message("O", "n", at=1, phase="final_answer"), ["O", "n"]),
        (wire.message("One.", " Two", at=1, phase="final_answer"), ["One.", " Two"]),
        (wire.message("Once", at=1, phase="final_answer"), ["Once"]),
        (wire.message("One.", at=1, phase="commentary"), ["One."]),
        (wire.message("One.", at=1), ["One."]),
        (wire.message(at=1, phase="final_answer"), []),
    ],
    ids=["shorter", "longer", "another", "another phase", "no phase", "empty"],
)
def test_message_that_only_begins_like_the_last_one(
    second: wire.Events, texts: list[str]
) -> None:
    """It is shown whole, as soon as it says something else."""
    assert shown_of(*ONE, *second)[3:] == [
        "1 started message",
        *(f"1 text 0: {text}" for text in texts),
        "1 ended message",
    ]


def test_same_words_with_something_between_are_said_twice() -> None:
    """The model may well say the same after a search or a call."""
    between = wire.function_call("look", "{}", at=1)
    again = wire.message("One.", at=2, phase="final_answer")
    assert shown_of(*ONE, *between, *again)[-1] == "2 ended message"


@pytest.mark.parametrize("count", range(1, 5))
def test_repetition_that_another_item_interrupts(count: int) -> None:
    """What was held back is shown, in its order."""
    call, *_ = wire.function_call("look", "{}", at=2)
    lines = shown_of(*ONE, *TWICE[:count], call)
    held = ["1 started message"] + ["1 text 0: O"] * (count > 2)
    held += ["1 text 0: ne."] * (count > 3)
    assert lines[3:] == [*held, "2 started function_call"]


def test_repetition_that_a_failure_ends() -> None:
    """Each item that ends has begun."""
    failed = wire.ended("failed", error=None, output=[TWICE[-1]["item"]])
    lines = shown_of(*ONE, *TWICE[:3], wire.error_flat("server_error"), failed)
    assert lines[3:] == ["1 hidden message", "turn failed"]


def test_short_ends_of_a_long_item_join_nothing() -> None:
    """Else a server could make the work grow with the square of its stream."""

    def joins(count: int) -> int:
        state = ResponseState()
        state.feed(ItemDone(0, wire.message_item("x" * 1000)))
        short = ItemDone(0, wire.message_item("x"))
        ended = TextDone(0, "text", 0, "", "msg_0")

        def work() -> None:
            for _ in range(count):
                state.feed(TextDelta(0, "text", 0, "x", "msg_0"))
                state.feed(ended)
                state.feed(short)

        return count_joins(work)

    assert joins(200) == joins(100)


def test_thought_that_a_snapshot_repeats_as_another_text() -> None:
    """LiteLLM gives the summary once more as content; it is one thought."""
    text = [{"type": "reasoning_text", "text": "hm"}]
    item = wire.reasoning_item("hm")
    state = ResponseState()
    for event in (wire.done(item), wire.completed({**item, "content": text})):
        state.feed(wire.parsed(event))
    assert state.output == [item]


def test_thought_that_ends_as_another_text_than_it_grew() -> None:
    """The deltas of the one are the text of the other."""
    [*grown, _] = wire.reasoning_text("hm")
    item = wire.reasoning_item("hm")
    state = ResponseState()
    for event in (*grown, wire.done(item)):
        state.feed(wire.parsed(event))
    assert state.output == [item]


def test_thought_that_grows_after_its_end_and_ends_as_a_summary() -> None:
    """The end that comes again need not have the text that came meanwhile."""
    thought: Item = {"type": "reasoning", "id": "rs_1", "summary": []}
    state = ResponseState()
    state.feed(ItemDone(0, thought))
    state.feed(TextDelta(0, "reasoning", 0, "Hm."))

    summary = [{"type": "summary_text", "text": "I thought about it."}]
    [end] = state.feed(ItemDone(0, {**thought, "summary": summary}))[-1:]

    assert isinstance(end, ItemDone)
    assert end.item["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert end.item["summary"] == summary


def test_last_of_two_parts_that_ends_too_early() -> None:
    """What is kept is the whole text, under the number of the item's part."""
    numbered = [{**wire.text_delta(text), "content_index": n} for n, text in PARTS]
    state = ResponseState()
    for event in (wire.added(wire.message_item()), *numbered):
        state.feed(wire.parsed(event))
    [end] = state.feed(wire.parsed(wire.done(wire.message_item("One tw"))))
    assert isinstance(end, ItemDone)
    assert state.output == [wire.message_item("One two")]


PARTS = ((0, "One "), (1, "two"))


def test_text_that_an_empty_end_precedes_is_shown() -> None:
    """The first end says nothing, also not that the text is another one."""
    lines = shown_of(
        wire.added(wire.message_item()),
        wire.text_done(""),
        wire.done(wire.message_item("Hello")),
    )
    assert lines[1:] == ["0 text 0: Hello", "0 ended message"]


def test_call_that_was_cut_off_has_no_arguments_yet() -> None:
    call = {**wire.call_item("look", ""), "status": "incomplete"}
    state = ResponseState()
    for event in (wire.done(call), wire.ended("incomplete")):
        state.feed(wire.parsed(event))
    assert state.output == [call]


def test_output_without_repetitions() -> None:
    """Each message that repeats the one directly before it is left out."""
    one = wire.message_item("One.", phase="commentary")
    other = {**one, "phase": "final_answer"}
    call = wire.call_item("look", "{}")
    empty = wire.message_item()
    assert without_repetitions([one, one, one, other]) == [one, other]
    assert without_repetitions([one, call, one, call, call]) == [
        *(one, call, one, call, call)
    ]
    assert without_repetitions([empty, empty]) == [empty, empty]


def test_message_without_a_role_is_the_models() -> None:
    """Bifrost's is sent back, and a message without one is refused (its issue 5149)."""
    message = wire.message_item("Hi")
    del message["role"]

    [item] = open_items_of(wire.done(message))

    assert item["role"] == "assistant"


VLLM_END: Item = {
    "type": "function_call",
    "id": None,
    "call_id": "fc_2",
    "name": "look",
    "arguments": '{"a":1}',
    "item_id": "fc_1",
    "output_index": 0,
    "sequence_number": -1,
}


@pytest.mark.parametrize(
    ("end", "call_ids"),
    [
        (VLLM_END, ["call_1"]),
        ({**VLLM_END, "id": "fc_1"}, ["call_1"]),
        ({**VLLM_END, "call_id": None}, ["call_1"]),
        ({**VLLM_END, "name": "find"}, ["call_1", "fc_2"]),
        ({**VLLM_END, "arguments": '{"b":1}'}, ["call_1", "fc_2"]),
        ({**VLLM_END, "id": "fc_3"}, ["call_1", "fc_2"]),
    ],
)
def test_call_that_ends_under_another_call_id_is_one(
    end: Item, call_ids: list[str]
) -> None:
    """As vLLM's gpt-oss ends it: with the first id, and without fields of the event."""
    call = {**wire.call_item("look", ""), "id": "fc_1", "call_id": "call_1"}
    kind = "response.function_call_arguments.delta"
    delta = {"type": kind, "item_id": "fc_1", "output_index": 0, "delta": '{"a"'}
    again = {**end, "id": "fc_9", "call_id": "call_9"}
    last = {"id": "r", "output": [again] if len(call_ids) == 1 else []}
    state = ResponseState()
    for event in (wire.added(call), delta, wire.done(end)):
        state.feed(wire.parsed(event))
    state.feed(FinalResponse("completed", last))
    assert [item["call_id"] for item in state.output] == call_ids
    assert "item_id" not in state.output[-1]


@pytest.mark.parametrize(
    ("came", "read"),
    [
        ('{}{"a": 1}', '{"a": 1}'),
        ('{"a": 1} {"a":1}', '{"a":1}'),
        ('{"a": 1}{"a": 2}', '{"a": 1}{"a": 2}'),
        ('{"a": "}{"}', '{"a": "}{"}'),
        ('{}{"a"', '{}{"a"'),
        ("[" * 5000 + "}{", "[" * 5000 + "}{"),
    ],
)
def test_arguments_with_an_empty_beginning_or_twice_are_one_object(
    came: str, read: str
) -> None:
    """Gateways repeat what Anthropic begins with; two that differ are none."""
    state = ResponseState()
    for event in wire.function_call("look", came):
        state.feed(wire.parsed(event))
    [call] = state.output
    assert call["arguments"] == read
