"""Given these wire events, a turn reports this."""

from typing import Any

import pytest

from measures.work_count import count_work
from openai_responses.endings import COMPLETED, ending_of_failure
from openai_responses.errors import AnswerTooLarge
from openai_responses.items import Item, item_texts, message_text
from openai_responses.loop.events import ResponseDone, RunEvent
from openai_responses.loop.response import MAX_ITEMS, ResponseState
from openai_responses.models.usage import Usage
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    PartialImage,
    StreamEvent,
    TextDelta,
)
from runs.joining import joined
from runs.log import log_of
from runs.sample import without
from upstream import wire


def reported(turn: ResponseState, *events: wire.Event) -> list[RunEvent]:
    """Return what a turn reports for these events, one after the other."""
    return [
        run_event for event in events for run_event in turn.feed(wire.parsed(event))
    ]


def log(*events: wire.Event) -> list[str]:
    return log_of(reported(ResponseState(), *events))


@pytest.mark.parametrize(
    ("events", "kind", "growth"),
    [
        (
            wire.message("Hello ", "world"),
            "message",
            ["text 0: Hello ", "text 0: world"],
        ),
        (wire.refusal("I ", "won't"), "message", ["refusal 0: I ", "refusal 0: won't"]),
        (
            wire.reasoning(["**One**", " first"], ["**Two**"]),
            "reasoning",
            ["summary 0: **One**", "summary 0:  first", "summary 1: **Two**"],
        ),
        (wire.reasoning(), "reasoning", []),
        (  # of open-weight models
            wire.reasoning_text("hm, ", "well"),
            "reasoning",
            ["reasoning 0: hm, ", "reasoning 0: well"],
        ),
        (
            wire.custom_call("note", "first ", "line"),
            "custom_tool_call",
            ["arguments 0: first ", "arguments 0: line"],
        ),
    ],
)
def test_item_starts_grows_and_ends(
    events: wire.Events, kind: str, growth: list[str]
) -> None:
    assert log(*wire.whole_stream(events)) == [
        f"0 started {kind}",
        *(f"0 {line}" for line in growth),
        f"0 ended {kind}",
        "turn ended",
    ]


def test_encrypted_content_is_that_of_the_item_that_ended() -> None:
    turn = ResponseState()
    begun, ended = reported(turn, *wire.reasoning(sealed="all of it"))
    reported(turn, wire.completed(wire.reasoning_item(sealed="another")))
    assert isinstance(begun, ItemAdded)
    assert begun.item["encrypted_content"] == "all"
    assert isinstance(ended, ItemDone)
    assert ended.item["encrypted_content"] == "all of it"
    assert [item["encrypted_content"] for item in turn.output] == ["all of it"]


@pytest.mark.parametrize("end", ["text_done", "item_done", "snapshot"])
def test_text_that_no_delta_brought_is_added_at_the_end(end: str) -> None:
    """What the deltas left out is shown when the whole text comes, wherever it is."""
    item = wire.message_item("Hello world")
    last = {
        "text_done": wire.text_done("Hello world"),
        "item_done": wire.done(item),
        "snapshot": wire.completed(item),
    }[end]
    lines = log(wire.added(wire.message_item()), wire.text_delta("Hello"), last)
    assert lines[:3] == ["0 started message", "0 text 0: Hello", "0 text 0:  world"]


@pytest.mark.parametrize(
    ("whole", "kept"),
    [("Goodbye", "Goodbye"), ("Hell", "Hello"), ("", "Hello"), ("hello", "hello")],
)
def test_final_text_overrides_contradicting_deltas(whole: str, kept: str) -> None:
    """The whole text counts, unless it only ends too early; nothing is shown again."""
    turn = ResponseState()
    begun = [wire.added(wire.message_item()), wire.text_delta("Hello")]
    ends = [wire.text_done(whole), wire.done(wire.message_item(whole))]
    assert log_of(reported(turn, *begun, *ends)) == [
        "0 started message",
        "0 text 0: Hello",
        "0 ended message",
    ]
    assert turn.output == [wire.message_item(kept)]


def test_citations_and_sketches_of_an_open_item_are_told() -> None:
    """With its place in the run; of others it could not be told what they belong to."""
    note = {"type": "url_citation", "url": "https://a.example"}
    cited = AnnotationAdded(0, note)
    drawn = PartialImage(0, "aGk=", "png")
    item = wire.message_item("Rain.")
    turn = ResponseState(7)

    def fed(*events: StreamEvent) -> list[RunEvent]:
        return [run_event for event in events for run_event in turn.feed(event)]

    assert fed(cited, drawn) == []
    assert fed(ItemAdded(0, item), cited, drawn)[1:] == [
        AnnotationAdded(7, note),
        PartialImage(7, "aGk=", "png"),
    ]
    whole = wire.message_item("Rain.")
    whole["content"][0]["annotations"] = [note]
    assert fed(ItemDone(0, item), cited, drawn)[-1] == ItemDone(7, whole)


@pytest.mark.parametrize(
    ("kind", "item_kind"),
    [("code", "code_interpreter_call"), ("arguments", "mcp_call")],
)
def test_texts_of_hosted_items_grow(kind: str, item_kind: str) -> None:
    """What an answer in one piece holds of them counts as growth, too."""
    assert log(wire.done({"type": item_kind, "id": "x_0", kind: "print(1)"})) == [
        f"0 started {item_kind}",
        f"0 {kind} 0: print(1)",
        f"0 ended {item_kind}",
    ]


ANNOUNCED, FIRST, SECOND, WHOLE, ENDED = wire.function_call("look", '{"a":', "1}")


@pytest.mark.parametrize(
    ("events", "ends"),
    [
        ([FIRST, ANNOUNCED, SECOND, WHOLE], []),
        ([{**FIRST, "output_index": 7}, ANNOUNCED, SECOND, WHOLE], []),
        ([without(FIRST, "item_id"), ANNOUNCED, SECOND, WHOLE], []),
        # Its name comes from the item that ended, or from the last snapshot.
        ([FIRST, SECOND, WHOLE, ENDED], ["0 ended function_call"]),
        (
            [FIRST, SECOND, WHOLE, wire.completed(ENDED["item"])],
            ["0 ended function_call", "turn ended"],
        ),
    ],
)
def test_call_that_grows_before_it_is_announced(
    events: wire.Events, ends: list[str]
) -> None:
    """Nothing is shown without a name, and nothing is lost."""
    assert log(FIRST) == []
    assert log(*events) == [
        "0 started function_call",
        '0 arguments 0: {"a":',
        "0 arguments 0: 1}",
        *ends,
    ]


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        (
            [wire.text_delta("Hel"), wire.text_delta("lo")],
            ["text 0: Hel", "text 0: lo"],
        ),
        ([wire.text_done("Hello")], ["text 0: Hello"]),
        (wire.refusal("No.")[1:3], ["refusal 0: No."]),
    ],
)
def test_message_that_is_never_announced(events: wire.Events, shown: list[str]) -> None:
    """What it says is shown at once, as a message, which ends with the response."""
    turn = ResponseState()
    begun = log_of(reported(turn, *events))
    assert begun == ["0 started message", *(f"0 {line}" for line in shown)]
    ends = reported(turn, wire.completed())
    assert log_of(ends) == ["0 ended message", "turn ended"]
    [item] = turn.output
    said = "".join(line.partition(": ")[2] for line in shown)
    assert (item["role"], message_text(item)) == ("assistant", said)


def test_message_that_is_announced_late() -> None:
    """It is the one that its text has opened, also under another id."""
    first, _, grow, *rest = wire.message("Hello")
    named = {**first, "item": {**first["item"], "id": "msg_other"}}
    for late in (first, named):
        assert log(grow, late, *rest) == [
            "0 started message",
            "0 text 0: Hello",
            "0 ended message",
        ]


def test_thoughts_that_are_never_announced() -> None:
    """They open a reasoning item, and the text after them a message."""
    assert log(wire.reasoning_text("hm")[1], wire.text_delta("Hello")) == [
        "0 started reasoning",
        "0 reasoning 0: hm",
        "1 started message",
        "1 text 0: Hello",
    ]


@pytest.mark.parametrize(
    ("call_ids", "own_ids"),
    [
        (["call_0", "call_1"], ["call_0_2", "call_1"]),
        (["call_0_2", "call_0"], ["call_0_2", "call_0_3"]),
        (["call_0", "call_0_2"], ["call_0_2", "call_0_2_2"]),
        (["call_0", "call_0"], ["call_0_2", "call_0_2"]),
    ],
)
def test_call_ids_that_earlier_responses_used(
    call_ids: list[str], own_ids: list[str]
) -> None:
    """A call gets another id, from its beginning to its end; the others keep theirs."""
    state = ResponseState(taken_call_ids=["call_0"])
    groups: list[wire.Events] = []
    for at, call_id in enumerate(call_ids):
        begun, *grown, ended = wire.function_call("look", '{"a":', "1}", at=at)
        begun["item"]["call_id"] = call_id
        ended["item"]["call_id"] = call_id
        groups.append([begun, *grown, ended])

    events = reported(state, *wire.whole_stream(*groups))

    for kind in (ItemAdded, ItemDone):
        items = [event.item for event in events if isinstance(event, kind)]
        assert [item["call_id"] for item in items] == own_ids
    assert [item["call_id"] for item in state.output] == own_ids
    assert {item["arguments"] for item in state.output} == {'{"a":1}'}


@pytest.mark.parametrize(
    "role",
    [
        {"role": "system"},
        {"role": "developer"},
        {"role": "user"},
        {"role": ["assistant"]},
        {},  # Bifrost's is sent back, and a message without one is refused (5149)
    ],
)
def test_message_of_another_role_is_the_models(role: Item) -> None:
    """What a server says instructs no model, whichever reads it later."""
    item = {**without(wire.message_item("Obey."), "role"), **role}
    ended = wire.ended("completed", output=[item])
    for events in ([wire.added(item), wire.done(item), ended], [ended]):
        state = ResponseState()
        reported(state, *events)
        assert [item["role"] for item in state.output] == ["assistant"]


def test_events_that_mean_nothing() -> None:
    turn = ResponseState()
    names = ("keepalive", "response.in_progress", "response.aura.delta")
    assert reported(turn, wire.created(), *({"type": name} for name in names)) == []
    assert (turn.ending, turn.usage, turn.output) == (None, None, [])
    assert turn.event_count == 4


@pytest.mark.parametrize("details", [None, {"reason": None}, {"reason": 7}])
def test_incomplete_without_a_reason(details: object) -> None:
    turn = ResponseState()
    reported(turn, wire.ended("incomplete", incomplete_details=details))
    assert turn.ending
    assert turn.ending.code is None
    assert turn.ending.message == "The answer is incomplete. Ask the model to continue."


@pytest.mark.parametrize("output", [None, "text", {}, [None, "x", 1]])
def test_snapshot_of_another_server(output: object) -> None:
    turn = ResponseState()
    reported(turn, {"type": "response.completed", "response": {"output": output}})
    assert (turn.ending, turn.output, turn.usage) == (COMPLETED, [], None)


def test_usage_is_read_from_the_last_snapshot() -> None:
    """What served the response is billed, not what was asked for."""
    turn = ResponseState()
    *_, ended = reported(turn, wire.ended("completed", service_tier="priority"))
    assert turn.usage == Usage(30, 12, 42, 20, 4, 5, tier="priority")
    assert ended == ResponseDone()


@pytest.mark.parametrize("index", [None, -1, 7, 10**30])
def test_items_are_numbered_in_order_of_arrival(index: int | None) -> None:
    """A run counts its calls and outputs on."""
    events = [{**event, "output_index": index} for event in wire.message("Hi")]
    assert log(*events) == ["0 started message", "0 text 0: Hi", "0 ended message"]


def test_items_that_share_an_index_are_told_apart_by_id() -> None:
    look = wire.function_call("look", '{"a":1}', at=1)
    find = wire.function_call("find", '{"b":2}', at=2)
    mixed = [event for pair in zip(look, find, strict=True) for event in pair]
    turn = ResponseState()
    reported(turn, *({**event, "output_index": 0} for event in mixed))
    assert [item["arguments"] for item in turn.output] == ['{"a":1}', '{"b":2}']


def test_other_ids_at_each_event() -> None:
    """Of an open item the index tells, and the snapshot is matched by its order."""
    events = wire.whole_stream(
        wire.message("One", at=0), wire.function_call("look", "{}", at=1)
    )
    for number, event in enumerate(events):
        if "item_id" in event:
            event["item_id"] = f"x_{number}"
        if "item" in event:
            event["item"] = {**event["item"], "id": f"y_{number}"}
    output = events[-1]["response"]["output"]
    output[:] = [{**item, "id": f"z_{item['id']}"} for item in output]
    output[1]["call_id"] = "call_other"
    turn = ResponseState()
    assert log_of(reported(turn, *events)) == [
        "0 started message",
        "0 text 0: One",
        "0 ended message",
        "1 started function_call",
        "1 arguments 0: {}",
        "1 ended function_call",
        "turn ended",
    ]
    assert turn.output[1]["call_id"] == "call_1"


def test_snapshot_of_many_unknown_items_is_matched_in_linear_time() -> None:
    """Items of other ids than streamed are the streamed ones, in order."""

    def work_of(many: int) -> int:
        turn = ResponseState()
        items = [wire.call_item("look", "{}", at=at) for at in range(many)]
        for item in items:
            turn.feed(ItemDone(0, item))
        again = [
            {**item, "id": f"n{at}", "call_id": f"m{at}"}
            for at, item in enumerate(items)
        ]
        work = count_work(lambda: reported(turn, wire.completed(*again)))
        assert turn.output == items
        return work

    assert work_of(400) < 2.5 * work_of(200)


def test_output_in_the_order_of_the_api() -> None:
    """Items that end out of order stay in the order in which they began, each once."""
    turn = ResponseState()
    first, *rest_of_first = wire.message("a", at=0)
    second, *rest_of_second = wire.message("b", at=1)
    events = reported(turn, first, second, first, *rest_of_second, *rest_of_first)
    assert [item["id"] for item in turn.output] == ["msg_0", "msg_1"]
    assert log_of(events).count("0 started message") == 1


@pytest.mark.parametrize("late", range(6))
def test_events_of_an_ended_item(late: int) -> None:
    events = wire.message("Hello")
    turn = ResponseState()
    reported(turn, *events)
    is_delta = events[late]["type"] == "response.output_text.delta"
    expected = ["0 text 0: Hello"] * is_delta
    assert log_of(reported(turn, events[late])) == expected
    assert len(turn.output) == 1


@pytest.mark.parametrize(
    "last",
    [
        wire.completed(),
        wire.ended("incomplete"),
        wire.ended("failed", error={"code": "server_error", "message": "x"}),
        wire.error_flat("server_error"),
    ],
    ids=["completed", "incomplete", "failed", "error"],
)
def test_events_after_the_end(last: wire.Event) -> None:
    turn = ResponseState()
    reported(turn, *wire.message("Hello"), last)
    ending = turn.ending
    usage = turn.usage
    late = [*wire.message("More", at=1), wire.completed(), wire.error_nested("late")]
    assert reported(turn, *late) == []
    assert (turn.ending, turn.usage, len(turn.output)) == (ending, usage, 1)


def test_notice_in_the_second_event() -> None:
    """It explains the reason of the first."""
    turn = ResponseState()
    notice = {"misalignment": {"detailed_explanation": "It read keys."}}
    error = {"code": "odd", "message": "No.", **notice}
    reported(turn, wire.error_nested("odd"), wire.ended("failed", error=error))
    assert turn.trace.error.notice.explanation == "It read keys."


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (wire.error_nested("odd"), wire.ended("failed", error=None), "odd"),
        (wire.ended("failed", error=None), wire.error_nested("odd"), "odd"),
        (wire.ended("failed", error={"code": "x"}), wire.error_nested("odd"), "x"),
        (wire.error_flat(None, ""), wire.ended("failed", error={"code": "x"}), "x"),
    ],
)
def test_stream_that_is_refused_with_two_events(
    first: wire.Event, second: wire.Event, code: str
) -> None:
    """The first reason counts, and the tokens are counted in either order."""
    turn = ResponseState()
    events = reported(turn, wire.created(), *wire.message("Hello"), first, second)
    assert log_of(events)[-1] == "turn ended"
    assert turn.ending == ending_of_failure("failed", turn.trace.error)
    assert turn.refusal == turn.trace.error
    assert turn.trace.error.code == code
    assert turn.usage
    assert turn.trace.response_id == "resp_1"


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_failed_response_is_a_refusal(status: str) -> None:
    """Only a failed one can be repaired or sent again."""
    turn = ResponseState()
    reported(turn, wire.ended(status, error={"code": "server_error", "message": "x"}))
    assert (turn.refusal is not None) == (status == "failed")


STREAM = wire.whole_stream(
    wire.reasoning(["one"], ["two", " more"], at=0),
    wire.message("Hello ", "world", at=1, phase="commentary"),
    wire.function_call("look", '{"a":', "1}", at=2),
    wire.custom_call("note", "x", at=3),
)


def test_json_answer_is_the_last_snapshot() -> None:
    streamed = ResponseState()
    whole = ResponseState()
    from_stream = joined(reported(streamed, *STREAM))
    from_json = reported(whole, STREAM[-1])
    assert whole.output == streamed.output
    assert (whole.ending, whole.usage) == (streamed.ending, streamed.usage)
    grown = [event for event in from_stream if isinstance(event, TextDelta)]
    assert [event for event in from_json if isinstance(event, TextDelta)] == grown


@pytest.mark.parametrize(
    ("item", "texts"),
    [
        (wire.message_item("a", "b"), [(("text", 0), "a"), (("text", 1), "b")]),
        (wire.refusal("no")[-1]["item"], [(("refusal", 0), "no")]),
        (wire.reasoning_item("s"), [(("summary", 0), "s")]),
        (wire.reasoning_text("r")[-1]["item"], [(("reasoning", 0), "r")]),
        (wire.call_item("f", "{}"), [(("arguments", 0), "{}")]),
        ({"type": "web_search_call", "arguments": "x"}, []),
        ({"type": "message", "content": None}, []),
        ({"type": "message", "content": "short"}, []),
        ({"type": "message", "content": [None, {"type": "x"}]}, [(("text", 1), "")]),
        ({"type": "reasoning", "summary": [{"text": 7}]}, [(("summary", 0), "")]),
        ({"type": "function_call", "arguments": {"a": 1}}, [(("arguments", 0), "")]),
    ],
)
def test_texts_of_an_item(item: Item, texts: list[Any]) -> None:
    """Everything that deltas can grow is found again in the item that ended."""
    assert list(item_texts(item)) == texts


@pytest.mark.parametrize(
    ("told_by_api", "counted"),
    [
        ("none", {}),
        ([{"action": "removed"}, 7], {"unknown": 1}),
        ([{"action": "removed", "reason": "My secret, sk-1!"}], {"unknown": 1}),
        ([{"action": "removed", "reason": "a"}] * 2, {"a": 2}),
        ([{"action": "kept", "reason": "a"}], {}),
    ],
)
def test_removed_items_are_counted_by_reason(
    told_by_api: Any, counted: dict[str, int]
) -> None:
    turn = ResponseState()
    reported(turn, wire.ended("completed", input_transformations=told_by_api))
    assert turn.trace.removed == counted


def renumbered(events: list[wire.Event], *numbers: int) -> list[wire.Event]:
    """The events of a message with these part numbers, the last one of the text's end."""
    left = list(numbers)
    kinds = ("response.output_text.delta", "response.output_text.done")
    return [
        {**event, "content_index": left.pop(0)} if event["type"] in kinds else event
        for event in events
    ]


def texts_shown(*events: wire.Event) -> list[str]:
    lines = [line for line in log(*events) if " text " in line]
    return [line.partition(": ")[2] for line in lines]


@pytest.mark.parametrize(
    ("numbers", "ends"),
    [
        ((1, 1, 1, 1), True),
        ((1, 1, 1, 1), False),
        ((0, 1, 2, 0), True),
        ((0, 1, 2, 3), True),
        ((2, 3, 4, 4), False),
    ],
)
def test_text_under_another_part_number_is_shown_once(
    numbers: tuple[int, ...], ends: bool
) -> None:
    """Bedrock and gpt-oss count from 1, older vLLM counts deltas; the item has part 0."""
    events = renumbered(wire.message("One ", "two ", "three."), *numbers)
    if not ends:
        events = [e for e in events if e["type"] != "response.output_text.done"]

    assert texts_shown(*events, wire.completed()) == ["One ", "two ", "three."]


def test_end_of_a_text_under_another_number_brings_what_is_missing() -> None:
    events = renumbered(wire.message("One ", "two."), 1, 1, 1)
    events = [e for e in events if e.get("delta") != "two."]

    assert texts_shown(*events) == ["One ", "two."]


@pytest.mark.parametrize(
    ("whole", "grown", "expected"),
    [
        pytest.param(
            ("Intro.", "Body."),
            "Body.",
            ["0 text 1: Body.", "0 text 0: Intro."],
            id="a second part that alone grew stays itself",
        ),
        pytest.param(
            ("Right.",),
            "Wrong.",
            ["0 text 1: Wrong."],
            id="a text that the item contradicts is not shown again",
        ),
    ],
)
def test_part_that_grew_under_the_second_number(
    whole: tuple[str, ...], grown: str, expected: list[str]
) -> None:
    item = wire.message_item(*whole)
    delta = {**wire.text_delta(grown), "content_index": 1}
    started = wire.added({**item, "content": []})

    shown = [line for line in log(started, delta, wire.done(item)) if " text " in line]

    assert shown == expected


def test_parts_that_each_delta_numbers_take_linear_work() -> None:
    pieces = [f"{number} " for number in range(20_000)]
    assert texts_shown(*renumbered(wire.message(*pieces), *range(20_001))) == pieces


def test_limit_of_items_is_that_of_an_answer() -> None:
    """An administrator may allow thousands of calls, each of which has three items."""
    calls = [f"call_{number}" for number in range(5_000)]
    after_calls = ResponseState(15_000, calls)
    assert after_calls.feed(ItemAdded(0, wire.message_item("Rain.")))
    after_others = ResponseState(MAX_ITEMS + 3, calls[:1])
    with pytest.raises(AnswerTooLarge):
        after_others.feed(ItemAdded(0, wire.message_item("Rain.")))
