"""Items and responses that end in odd ways, and deltas that are joined."""

import json
from collections.abc import Callable

import pytest

from measures.work_count import count_joins, count_work
from openai_responses.items import Item, is_call, item_texts, message_text
from openai_responses.loop.events import ResponseDone, RunEvent
from openai_responses.loop.repeated_messages import without_repetitions
from openai_responses.loop.response import ResponseState
from openai_responses.requests.replay import replay_output
from openai_responses.transport.stream import (
    NO_INDEX,
    EndMark,
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ResponseOpened,
    ServerSentEvent,
    StreamEvent,
    TextDelta,
    TextDone,
    join_deltas,
    parse_event,
)
from runs.joining import grown_texts
from runs.log import log_of
from runs.responses import EMPTY_END, fed, output_of
from runs.sample import without
from runs.transcripts import transcript
from upstream import wire
from upstream.odd_streams import stream_of


def shown_of(*events: wire.Event) -> list[str]:
    return log_of(fed(*events)[1])


HELLO = wire.message("Hello")
LOOK = wire.call_item("look", '{"a":1}')
UNSAID = {**wire.call_item("look", ""), "status": "in_progress"}
CUT_CALL = {**wire.call_item("look", ""), "status": "incomplete"}
LONGER = wire.message_item("Two and more", at=1)
LONE = {"type": "function_call_output", "call_id": "call_9", "output": "rain"}
SUMMARY = wire.reasoning_item("hm")
CONTENT = [{"type": "reasoning_text", "text": "hm"}]
AGAIN_SAID = [{"type": "reasoning_text", "text": "Other words."}]
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "content": CONTENT}
CITED = wire.message_item("Hello world")
CITED["content"][0]["annotations"] = [{"type": "url_citation", "url": "u"}]
FINAL = {**wire.message_item("Hello"), "phase": "final_answer"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
CODE = {"type": "code_interpreter_call", "id": "ci_1", "code": "1"}
NAMELESS = {**wire.call_item("", '{"a":1}'), "id": "fc_9"}
PARTS = [{**wire.text_delta("One ")}, {**wire.text_delta("two"), "content_index": 1}]


ENDS: dict[str, tuple[wire.Events, list[Item]]] = {
    # Without its name no tool would run.
    **{
        f"a call keeps the name that its end lacks ({name!r})": (
            [
                *wire.function_call("look", "{}")[:-1],
                wire.done({**wire.call_item("look", "{}"), "name": name}),
                EMPTY_END,
            ],
            [wire.call_item("look", "{}")],
        )
        for name in (None, "")
    },
    "a snapshot that says something else changes nothing": (
        [*HELLO, wire.completed(wire.message_item("Help me"))],
        [wire.message_item("Hello")],
    ),
    "an unknown item of a snapshot is none that another one is": (
        [
            *(*HELLO, *wire.message("Two", at=1)),
            wire.completed({**LONGER, "id": "x"}, wire.message_item("Hello")),
        ],
        [wire.message_item("Hello"), LONGER],
    ),
    # The citations come with the text, other fields from the item's own end.
    "a longer snapshot keeps the rest of the item": (
        [wire.done(FINAL), wire.completed(CITED)],
        [{**CITED, "phase": "final_answer"}],
    ),
    # LiteLLM gives the summary once more as content.
    "a snapshot repeats a thought as another text": (
        [wire.done(SUMMARY), wire.completed({**SUMMARY, "content": CONTENT})],
        [SUMMARY],
    ),
    "a message ends again in its place as another text": (
        [wire.done(wire.message_item("Hi")), wire.done(wire.message_item("Lo"))],
        [wire.message_item("Hi")],
    ),
    "a message that went on ends elsewhere as another text": (
        [
            *(*HELLO, wire.text_delta("!")),
            *(wire.done(wire.message_item("Lo"), at=5), EMPTY_END),
        ],
        [wire.message_item("Hello!")],
    ),
    "a thought ends again elsewhere as another text": (
        [wire.done(THOUGHT), wire.done({**THOUGHT, "content": AGAIN_SAID}, at=5)],
        [THOUGHT],
    ),
    "a thought ends as another text than it grew": (
        [*wire.reasoning_text("hm")[:-1], wire.done(SUMMARY)],
        [SUMMARY],
    ),
    # The whole text is kept, under the number of the item's part.
    "the last of two parts ends too early": (
        [
            wire.added(wire.message_item()),
            *PARTS,
            wire.done(wire.message_item("One tw")),
        ],
        [wire.message_item("One two")],
    ),
    # No card could show it.
    "an output without a call": (
        [wire.done(LONE), *wire.message("Rain.", at=1), wire.completed(LONE)],
        [wire.message_item("Rain.", at=1)],
    ),
    "a call whose arguments are blank": (
        [wire.done({**UNSAID, "arguments": " \n"}), EMPTY_END],
        [{**UNSAID, "arguments": "{}"}],
    ),
    "a message that has an id from its end on, which comes twice": (
        [
            wire.added({**wire.message_item(), "id": None}),
            *[wire.done(wire.message_item("Hi"), at=at) for at in (0, 5)],
            EMPTY_END,
        ],
        [wire.message_item("Hi")],
    ),
    "a call that was cut off has no arguments yet": (
        [wire.done(CUT_CALL), wire.ended("incomplete")],
        [CUT_CALL],
    ),
    "an empty text for a custom tool is no object": (
        [*wire.custom_call("note"), EMPTY_END],
        wire.items_of(wire.custom_call("note")),
    ),
    **{
        f"nothing came of a {kind}": ([wire.added(item), EMPTY_END], [])
        for kind, item in {
            "message": wire.message_item(),
            "search": SEARCH,
            "code run": CODE,
            "call without a name": NAMELESS,
        }.items()
    },
    "a message that was announced whole": (
        [wire.added(wire.message_item("Hi")), EMPTY_END],
        [wire.message_item("Hi")],
    ),
    "a call with arguments counts next to a snapshot without it": (
        [wire.added(LOOK), wire.completed(wire.message_item("Hi", at=1))],
        [LOOK, wire.message_item("Hi", at=1)],
    ),
    # Without arguments it counts where no snapshot says what the response has.
    "a call of which nothing more came": (
        [wire.added(UNSAID), EMPTY_END],
        [{**UNSAID, "status": "incomplete"}],
    ),
    "a call without arguments that was announced as a whole one": (
        [wire.added({**UNSAID, "status": "completed"}), EMPTY_END],
        [{**UNSAID, "arguments": "{}", "status": "completed"}],
    ),
    "a text that names no item is the newest one's": (
        [
            *(wire.added(wire.message_item(at=at), at=at) for at in range(2)),
            without(wire.text_delta("Hi"), "item_id", "output_index"),
            EMPTY_END,
        ],
        [wire.message_item("Hi", at=1)],
    ),
    "a call without arguments next to a snapshot without it": (
        [wire.added(UNSAID), wire.completed(wire.message_item("Hi", at=1))],
        [wire.message_item("Hi", at=1)],
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_what_a_response_is_in_the_end(case: str) -> None:
    events, output = ENDS[case]
    assert output_of(*events) == output


@pytest.mark.parametrize(
    ("status", "kept"),
    [("completed", True), ("incomplete", True), ("cancelled", True), ("failed", False)],
)
@pytest.mark.parametrize("response", [{"id": "resp_1", "output": []}, {}])
def test_items_that_only_deltas_brought_end_with_the_response(
    response: Item, status: str, kept: bool
) -> None:
    """A response that failed may be asked for once more, so nothing of it ends."""
    state, _ = fed(*HELLO[:3])
    state.feed(FinalResponse(status, response))
    assert [message_text(item) for item in state.output] == ["Hello"] * kept


@pytest.mark.parametrize(
    ("status", "response", "ending"),
    [
        ("completed", {}, None),
        ("completed", {"id": "resp_1"}, "completed"),
        ("failed", {}, "failed"),
        # A word of a server's own is an end if there is something.
        ("finished", {"output": [FINAL]}, "completed"),
        ("finished", {"id": "resp_1"}, "incomplete"),
    ],
)
def test_end_that_says_nothing_of_nothing_is_none(
    status: str, response: Item, ending: str | None
) -> None:
    """Another event may still come, as long as the server does not say that it failed."""
    state = ResponseState()

    events = state.feed(FinalResponse(status, response))

    assert [type(event) for event in events][-1:] == [ResponseDone] * bool(ending)
    assert (state.ending and state.ending.kind) == ending


@pytest.mark.parametrize(
    ("items", "reason", "kind"),
    [
        ([LOOK], None, "completed"),
        ([wire.message_item("Hi"), {**LOOK, "id": "fc_1"}], None, "completed"),
        ([LOOK], "max_output_tokens", "incomplete"),
        ([CUT_CALL], None, "incomplete"),
        ([LOOK, wire.message_item("Hi", at=1)], None, "incomplete"),
        ([], None, "incomplete"),
        ([FINAL], None, "completed"),
        ([FINAL], "max_output_tokens", "incomplete"),
        ([{**FINAL, "status": "incomplete"}], None, "incomplete"),
    ],
)
def test_incomplete_without_a_reason_after_a_whole_end_is_complete(
    items: list[Item], reason: str | None, kind: str
) -> None:
    """Bridges to Chat Completions say so for each reason to end that is not `stop`.

    Azure says it of final answers that have ended.
    """
    response = {"output": items, "incomplete_details": reason and {"reason": reason}}
    grown = [wire.added({**item, "status": "in_progress"}) for item in items[:1]]
    state, _ = fed(*grown, wire.ended("incomplete", **response))
    assert state.ending is not None
    assert state.ending.kind == kind


@pytest.mark.parametrize(
    ("arguments", "reason", "status"),
    [
        ('{"a": 1}', None, "completed"),
        ('{"a": 1}', "max_output_tokens", "incomplete"),
        ('{"a": ', None, "incomplete"),
        ("", None, "incomplete"),
    ],
)
def test_whole_call_that_nothing_ends_was_not_cut_off(
    arguments: str, reason: str | None, status: str
) -> None:
    """rosetta-llm ends no call, and says that each answer with one is incomplete."""
    details = {"reason": reason} if reason else None
    begun = wire.function_call("look", arguments)[:2]
    state, _ = fed(*begun, wire.ended("incomplete", incomplete_details=details))
    [call] = state.output
    kind = state.ending and state.ending.kind
    assert (call["arguments"], call["status"], kind) == (arguments, status, status)


def test_items_of_two_types_may_have_one_id() -> None:
    """A gateway numbers both from the beginning; the first may not have ended."""
    thought, answer = {**SUMMARY, "id": "1"}, {**wire.message_item("Hi"), "id": "1"}
    events = [wire.added(thought), wire.done(thought)]
    events += [wire.added(answer, 1), wire.done(answer, 1)]
    assert output_of(*events) == [thought, answer]
    assert output_of(wire.added(thought), wire.done(answer, 1)) == [answer]


def test_items_without_ids_are_told_apart_by_their_indexes() -> None:
    """An empty id names none of them."""
    events: wire.Events = []
    for at, text in enumerate(("One", "Two")):
        item = {**wire.message_item(text), "id": ""}
        events += [wire.added(item, at), wire.done(item, at)]
    assert [message_text(item) for item in output_of(*events)] == ["One", "Two"]


def test_sealed_reasoning_that_nothing_ends_does_not_go_back() -> None:
    """What was announced of its content is no whole, and its words would be refused."""
    *grown, _ = wire.reasoning(["hm"])

    [thought] = output_of(*grown, EMPTY_END)

    assert "encrypted_content" not in thought
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert replay_output([thought], with_reasoning=True) == []


def test_plain_reasoning_that_nothing_ends_goes_back() -> None:
    """A server that never encrypts sends its thought in no other form."""
    begun, *grown, _ = wire.reasoning(["hm"])
    begun = {**begun, "item": {**begun["item"], "encrypted_content": None}}

    [again] = replay_output(output_of(begun, *grown, EMPTY_END), with_reasoning=True)

    assert again["summary"] == [{"type": "summary_text", "text": "hm"}]


def groups_of(stream: str, state: ResponseState) -> list[list[RunEvent]]:
    """What each event of a recorded stream reports."""
    wire_events = EventStreamDecoder().feed(stream_of(stream))
    return [state.feed(parse_event(event)) for event in wire_events]


def test_summary_that_only_deltas_brought_stays_with_the_sealed_reasoning() -> None:
    state = ResponseState()
    groups_of("summary-only-in-deltas", state)
    thought = state.output[0]
    assert thought["encrypted_content"] == "gAAAAB-sealed"
    assert thought["summary"] == [
        {"type": "summary_text", "text": "The user asks for weather."}
    ]


def test_item_that_goes_on_after_its_end_is_shown_at_once() -> None:
    events = groups_of("item-ends-early", ResponseState())
    ended = [n for n, group in enumerate(events) for e in group if type(e) is ItemDone]
    grown = [n for n, group in enumerate(events) for e in group if type(e) is TextDelta]
    assert len(ended) == 2
    assert len(grown) == 4
    assert [n for n in grown if ended[0] < n < ended[1]] == grown[1:]


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
    """Also if its name is spelled in another way, or the tools are unknown.

    A name that is no text is that of no tool.
    """
    state = ResponseState(tool_names=names)
    odd = {"type": "custom_tool_call", "call_id": "c", "name": ["odd"], "input": ""}
    state.feed(ItemDone(0, odd))
    groups_of("server-run-custom-call", state)
    assert any(is_call(item) for item in state.output) == is_ours


ONE = wire.message("One.", at=0, phase="final_answer")
TWICE = wire.message("O", "ne.", at=1, phase="final_answer")


def test_repeated_message_is_hidden() -> None:
    third = wire.message("One.", at=2, phase="final_answer")
    assert shown_of(*ONE, *TWICE, *third) == [
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
    call, *_ = wire.function_call("look", "{}", at=2)
    lines = shown_of(*ONE, *TWICE[:count], call)
    held = ["1 started message"] + ["1 text 0: O"] * (count > 2)
    held += ["1 text 0: ne."] * (count > 3)
    assert lines[3:] == [*held, "2 started function_call"]


def test_repetition_that_a_failure_ends() -> None:
    """Each item that ends has begun."""
    failed = wire.ended("failed", error=None, output=[TWICE[-1]["item"]])
    lines = shown_of(*ONE, *TWICE[:3], wire.error_flat("server_error"), failed)
    assert lines[3:] == ["1 hidden message", "turn ended"]


def test_output_without_repetitions() -> None:
    one = wire.message_item("One.", phase="commentary")
    other = {**one, "phase": "final_answer"}
    empty = wire.message_item()
    interrupted = [one, LOOK, one, LOOK, LOOK]
    assert without_repetitions([one, one, one, other]) == [one, other]
    assert without_repetitions(interrupted) == interrupted
    assert without_repetitions([empty, empty]) == [empty, empty]


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


SAID_AS_SUMMARY = {"type": "response.reasoning_summary_text.delta", "delta": "hm"}
SAID_AS_TEXT = {"type": "response.reasoning_text.delta", "delta": "hm"}


@pytest.mark.parametrize(
    ("deltas", "end", "shown"),
    [
        *(
            (deltas, "hm", ["hm"])
            for deltas in (
                [SAID_AS_SUMMARY, SAID_AS_TEXT],
                [SAID_AS_TEXT, SAID_AS_SUMMARY],
                [SAID_AS_SUMMARY],
                [SAID_AS_TEXT],
                [],
            )
        ),
        # In pieces of other lengths, each directly after those that it repeats.
        (
            [
                {**SAID_AS_TEXT, "delta": "h"},
                {**SAID_AS_TEXT, "delta": "m, o"},
                {**SAID_AS_SUMMARY, "delta": "hm"},
                {**SAID_AS_TEXT, "delta": "k"},
                {**SAID_AS_SUMMARY, "delta": ", ok"},
            ],
            "hm, ok",
            ["hm, ok"],
        ),
        ([SAID_AS_SUMMARY, SAID_AS_TEXT], "hm, ok", ["hm", "hm, ok"]),
        ([SAID_AS_SUMMARY, {**SAID_AS_TEXT, "delta": "ha"}], "ha", ["hm", "ha"]),
    ],
)
def test_thought_that_comes_as_two_kinds_of_text_is_shown_once(
    deltas: list[Item], end: str, shown: list[str]
) -> None:
    """Both go back as they came."""
    begun = wire.added({**SUMMARY, "summary": []})
    summary = [{"type": "summary_text", "text": shown[0]}]
    content = [{"type": "reasoning_text", "text": end}]
    both = {**SUMMARY, "summary": summary, "content": content}
    state, reported = fed(begun, *deltas, wire.done(both), EMPTY_END)
    assert list(grown_texts(reported).values()) == shown
    assert state.output == [both]


def test_thought_that_goes_on_as_another_kind_of_text_is_shown_once() -> None:
    """Its end as the first kind may come before the second one begins."""
    thought = wire.done({**SUMMARY, "summary": [], "content": CONTENT})
    later = {**SAID_AS_SUMMARY, "item_id": SUMMARY["id"], "output_index": 0}
    state, told = fed(thought, later, EMPTY_END)
    assert [*grown_texts(told).values()] == ["hm"]
    assert state.output == [thought["item"]]


def test_text_that_an_empty_end_precedes_is_shown() -> None:
    """The first end says nothing, also not that the text is another one."""
    begun = [wire.added(wire.message_item()), wire.text_done("")]
    lines = shown_of(*begun, wire.done(wire.message_item("Hello")))
    assert lines[1:] == ["0 text 0: Hello", "0 ended message"]


def test_removed_items_and_cache_misses_are_in_the_trace() -> None:
    """gpt-6.2-sol, whose effort at request level changed in the middle of a chat."""
    state = ResponseState()
    for event in EventStreamDecoder().feed(transcript("cache-miss")):
        state.feed(parse_event(event))
    assert state.trace.removed == {"prefix_mismatch": 1}
    assert state.trace.cache["reason"] == "reasoning_effort_changed"
    assert state.trace.cache["cache_missed_tokens"] > 1024
    assert state.trace.response_id.startswith("resp_")


ADDED = ItemAdded(0, {"type": "message", "id": "m0"})


def delta(text: str, index: int = 0, kind: str = "text", part: int = 0) -> TextDelta:
    return TextDelta(index, kind, part, text)


def test_neighboring_deltas_are_joined() -> None:
    """Those of one part; an end of a text, which brings all of it, is none."""
    others = [delta("d", 1), delta("e", 1, "refusal"), delta("f", 1, "refusal", 1)]
    others.append(others[-1]._replace(item_id="m1"))
    rest: list[StreamEvent] = [None, delta("c"), TextDone(0, "text", 0, "c"), *others]

    joined = join_deltas([ADDED, delta("a"), delta("b"), *rest])

    assert joined == [ADDED, delta("ab"), *rest]


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
    last = wire.completed(*[again] * (len(call_ids) == 1))
    output = output_of(wire.added(call), delta, wire.done(end), last)
    assert [item["call_id"] for item in output] == call_ids
    fields = {"item_id", "output_index", "sequence_number"}
    assert not fields & output[-1].keys()


def test_name_of_a_call_may_come_with_its_end() -> None:
    begun = wire.added({**wire.call_item("look", ""), "name": ""})
    [call] = output_of(begun, wire.done(wire.call_item("look", "{}")))
    assert call["name"] == "look"


A = '{"a": 1}'
B = '{"b": 2}'


@pytest.mark.parametrize(
    ("pieces", "end", "read"),
    [
        ([[A], [B]], A + B, [A, B]),
        ([[A], [B, B]], A + B, [A, B]),
        ([[A], [A, A]], A + A, [A, A]),
        ([[A], [B], [A, B + A]], A + B + A, [A, B, A]),
        # Whose they are is not known.
        ([[A], [B, B]], B + A, [A, B + A]),
        ([[B], [A], [B]], A + B, [B, A, A + B]),
        ([[A], [B, B]], A + B + B[1:], [A, A + B + B[1:]]),
    ],
)
@pytest.mark.parametrize("has_end_of_text", [True, False])
def test_last_of_parallel_calls_may_end_with_the_arguments_of_all(
    pieces: list[list[str]], end: str, read: list[str], *, has_end_of_text: bool
) -> None:
    """LiteLLM in front of Ollama; it announces each call, and ends the last one alone."""
    *begun, last = [
        wire.function_call("look", *own, at=at) for at, own in enumerate(pieces)
    ]
    glued = {**last[-1]["item"], "arguments": end}
    came = [event for call in begun for event in call[:-2]] + last[:-2]
    if has_end_of_text:
        came.append({**last[-2], "arguments": end})
    output = output_of(*came, wire.done(glued, at=len(begun)), wire.completed(glued))
    assert [call["arguments"] for call in output] == read


BEGUN = wire.added(wire.message_item())
THINKING = wire.added({"type": "reasoning", "id": "rs_1", "summary": []}, at=1)
WHOLE_PART: Item = {
    "type": "response.content_part.done",
    "item_id": "msg_0",
    "output_index": 0,
    "part": {"type": "output_text", "text": "Hello"},
}
WHOLE_THOUGHT: Item = {
    "type": "response.reasoning_summary_part.done",
    "item_id": "rs_1",
    "part": {"type": "summary_text", "text": "Hm"},
}
NAMES = ("item_id", "output_index")
DELTAS = [wire.text_delta("Hel"), wire.text_delta("lo")]
CALLED = wire.added(UNSAID, at=1)
GROWN = {"type": "response.function_call_arguments.delta", "delta": '{"a":1}'}


TEXTS_SHOWN: dict[str, tuple[wire.Events, dict[str, str]]] = {
    "the end of a part": ([BEGUN, WHOLE_PART], {"text": "Hello"}),
    "and nothing announces it": ([WHOLE_PART], {"text": "Hello"}),
    "a part ends under another name than it grew": (
        [*DELTAS, {**WHOLE_PART, "item_id": "msg_9", "content_index": 3}],
        {"text": "Hello"},
    ),
    "the end of a part of a thought": (
        [THINKING, WHOLE_THOUGHT, *HELLO],
        {"summary": "Hm", "text": "Hello"},
    ),
    "a part of another kind": (
        [{**WHOLE_PART, "part": {"type": "output_audio", "transcript": "Hi"}}],
        {},
    ),
    "deltas that are parts": (
        [{**event, "delta": {"text": event["delta"]}} for event in DELTAS],
        {"text": "Hello"},
    ),
    "deltas that name nothing": (
        [THINKING, BEGUN, *(without(event, *NAMES) for event in DELTAS), HELLO[-1]],
        {"text": "Hello"},
    ),
    "an item that names nothing": (
        [without(BEGUN, *NAMES), *(without(event, "item_id") for event in DELTAS)],
        {"text": "Hello"},
    ),
    "arguments as well": ([CALLED, BEGUN, GROWN], {"arguments": '{"a":1}'}),
    "arguments under the id of their call": (
        [
            *(CALLED, wire.added(wire.call_item("find", "", at=2), at=2)),
            *({**GROWN, "call_id": f"call_{at}"} for at in (0, 2)),
        ],
        {"arguments": '{"a":1}{"a":1}'},
    ),
    "arguments that only the end of their call has": (
        [
            *(CALLED, wire.added(wire.call_item("find", "", at=2), at=2)),
            wire.done(wire.call_item("find", '{"a":1}', at=2), at=2),
        ],
        {"arguments": '{"a":1}'},
    ),
}


@pytest.mark.parametrize("case", TEXTS_SHOWN)
def test_texts_that_come_in_other_ways_are_shown_once(case: str) -> None:
    """As gateways send them; each is also in the item that is sent again."""
    events, texts = TEXTS_SHOWN[case]
    state, reported = fed(*events, EMPTY_END)
    shown: dict[str, str] = {}
    for (_, kind, _), text in grown_texts(reported).items():
        shown[kind] = shown.get(kind, "") + text
    assert shown == texts
    ended = [text for item in state.output for _, text in item_texts(item)]
    assert sorted(filter(None, ended)) == sorted(grown_texts(reported).values())


def _said(text: str, *, is_whole: bool = False) -> TextDelta:
    return (TextDone if is_whole else TextDelta)(0, "text", 0, text)


@pytest.mark.parametrize("join", [join_deltas, list])
@pytest.mark.parametrize(
    ("came", "shown"),
    [
        ([_said("Hi \ud83d"), _said("\ude00!")], "Hi \U0001f600!"),
        (
            [_said("\ud83d"), _said("\ude00\ud83d"), _said("\ude01")],
            "\U0001f600\U0001f601",
        ),
        ([_said("Hi \ud83d"), _said("!")], "Hi \ud83d!"),
        ([_said("Hi \ud83d")], "Hi "),
        (
            [_said("\ud83d"), _said("\U0001f600", is_whole=True), _said("!")],
            "\U0001f600!",
        ),
    ],
)
def test_halves_of_a_character_in_two_deltas_are_one(
    came: list[StreamEvent],
    shown: str,
    join: Callable[[list[StreamEvent]], list[StreamEvent]],
) -> None:
    """Gateways in JavaScript cut a text anywhere; UTF-8 has no halves."""
    state = ResponseState()
    reported = [event for each in join(came) for event in state.feed(each)]
    assert list(grown_texts(reported).values()) == [shown]
    state.feed(FinalResponse("completed", {"id": "resp_1"}))
    assert list(map(message_text, state.output)) == [shown]


def test_thought_under_the_id_of_a_message_leaves_it_its_text() -> None:
    """Gateways that know no items name all texts after their only message."""
    thinking = {**SAID_AS_TEXT, **{name: DELTAS[0][name] for name in NAMES}}
    state, reported = fed(BEGUN, thinking, thinking, *DELTAS, HELLO[-1], EMPTY_END)
    texts = [text for item in state.output for _, text in item_texts(item)]
    assert texts == ["Hello", "hmhm"]
    added = [event for event in reported if isinstance(event, ItemAdded)]
    assert len(added) == len(texts)


@pytest.mark.parametrize(
    ("output", "said"),
    [([], ["Hello"]), ([SUMMARY], ["", "Hello"]), ([FINAL], ["Hello"]), ([LOOK], [""])],
)
def test_text_without_an_item_is_an_answer(output: list[Item], said: list[str]) -> None:
    """OpenAI's packages join the texts of the items in `output_text`."""
    end = wire.ended("completed", *output, output_text="Hello")
    assert list(map(message_text, output_of(end))) == said


AGAIN = {**wire.created(), "response": wire.response("in_progress", id="resp_2")}
TEXT = wire.message("Hel", "lo")
CALL = wire.function_call("look", '{"a":', "1}")
SECOND_CALL = {**CALL[-1]["item"], "call_id": "call_0_2"}
RAIN: Item = {**LONE, "call_id": "call_0"}
CUT_TEXT = {**wire.message_item("Hel"), "status": "incomplete"}
BARE_THOUGHT = {"type": "response.reasoning_text.delta", "delta": "hm"}


REPLACED: dict[str, tuple[wire.Events, wire.Events, list[Item]]] = {
    "a message": (TEXT[:3], TEXT, [CUT_TEXT, wire.message_item("Hello")]),
    "a message under another id": (
        TEXT[:3],
        wire.message("Hello", at=7),
        [CUT_TEXT, wire.message_item("Hello", at=7)],
    ),
    # The page has shown the first one under its id.
    "a call that was cut off": (CALL[:2], CALL, [SECOND_CALL]),
    "a whole call is not made twice": (CALL, CALL, [SECOND_CALL]),
    "a call that the server has made": (
        [*CALL, wire.done(RAIN, at=1)],
        HELLO,
        [CALL[-1]["item"], RAIN, wire.message_item("Hello")],
    ),
    "a thought": (
        wire.reasoning(["Hm"])[:3],
        wire.reasoning(["Hm", "m"]),
        [wire.reasoning_item("Hmm")],
    ),
    "nothing": ([], HELLO, [wire.message_item("Hello")]),
    "a message before one that only the end of a part brings": (
        TEXT[:3],
        [WHOLE_PART],
        [CUT_TEXT, wire.message_item("Hello")],
    ),
    "a thought that names nothing": (
        [BARE_THOUGHT],
        [BARE_THOUGHT],
        [{**THOUGHT, "id": "item_1", "status": "completed"}],
    ),
    "arguments before their call": (
        [{**GROWN, "item_id": "fc_0", "delta": "["}],
        CALL[:3],
        [CALL[-1]["item"]],
    ),
}


@pytest.mark.parametrize("case", REPLACED)
def test_response_that_a_second_one_replaces(case: str) -> None:
    """A gateway lost its server, and asked again in the same stream."""
    given_up, follows, output = REPLACED[case]
    begun = [wire.created(), *given_up, AGAIN, *follows]
    last = follows[-1].get("item")
    assert output_of(*begun, wire.completed(*filter(None, [last]))) == output
    assert output_of(*begun, EMPTY_END) == output


def test_what_a_response_left_open_does_not_cut_the_next() -> None:
    state, _ = fed(wire.created(), wire.added(SEARCH), AGAIN, *HELLO)
    state.feed(EndMark())
    assert state.close() == [ResponseDone()]


def test_answer_that_ends_with_an_image_is_whole_at_the_mark_of_the_end() -> None:
    """Of a gateway to a model that draws: the image was a part of the message."""
    drawn = wire.message_item("There.")
    drawn["content"].append({"type": "output_image", "result": "AAAA"})
    state, _ = fed(wire.done(drawn))
    state.feed(EndMark())
    assert state.close() == [ResponseDone()]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Hello", ["1 hidden message"]),
        ("Hel", ["1 started message", "1 text 0: Hel", "1 ended message"]),
    ],
)
def test_message_that_may_repeat_another_is_known_at_the_mark_of_the_end(
    said: str, shown: list[str]
) -> None:
    """Its text has ended, but it has not."""
    state, _ = fed(*HELLO, *wire.message(said, at=1)[:4])
    state.feed(EndMark())
    assert log_of(state.close()) == [*shown, "turn ended"]


@pytest.mark.parametrize(
    "came",
    [
        pytest.param(CALL, id="a call of a response that was given up"),
        pytest.param(
            [*CALL, wire.completed(CALL[-1]["item"])], id="a call that nobody made"
        ),
        pytest.param([*TEXT, {"type": "[DONE]"}], id="a message, and the end's mark"),
    ],
)
def test_second_response_that_brings_nothing_has_not_ended(came: wire.Events) -> None:
    """What the first one brought is no end of it."""
    state = ResponseState(tool_names=())
    for event in (wire.created(), *came, AGAIN):
        is_mark = event["type"] == "[DONE]"
        state.feed(EndMark() if is_mark else wire.parsed(event))

    assert (state.close(), state.ending) == ([], None)


GOES_ON = [wire.created(), *CALL, wire.completed(CALL[-1]["item"])]
"""A gateway makes the call, whose tool the request does not have."""


def test_answer_that_goes_on_after_an_end_is_not_over_before_the_next() -> None:
    """A text that only the page had would be missing in the next turn."""
    state = ResponseState(tool_names=())
    for event in (*GOES_ON, *wire.message("Hel", "lo", at=1)[:3]):
        state.feed(wire.parsed(event))
    assert (state.ending, state.is_over, state.close()) == (None, False, [])
    state.feed(wire.parsed(wire.message("Hel", "lo", at=1)[-1]))
    assert state.close() == [ResponseDone()]  # the server has said so before


def test_answer_that_may_go_on_is_over_at_the_mark_of_the_end() -> None:
    """No client of OpenAI reads on after it; some servers keep the connection open."""
    state = ResponseState(tool_names=())
    for event in GOES_ON:
        state.feed(wire.parsed(event))
    assert not state.is_over

    state.feed(EndMark())

    assert state.is_over


def test_failure_after_an_end_is_the_end() -> None:
    """Nothing more is waited for."""
    state = ResponseState(tool_names=())
    for event in (*GOES_ON, wire.error_flat("odd")):
        state.feed(wire.parsed(event))
    assert (state.ending and state.ending.kind, state.is_over) == ("error", True)


def test_response_that_ends_again_and_again_takes_linear_work() -> None:
    """Each end looks through all items."""

    def work_of(many: int) -> int:
        state = ResponseState(tool_names=())
        for at in range(many):
            state.feed(ItemDone(at, wire.call_item("look", f"[{at}]", at=at)))

        def end_again() -> None:
            for _ in range(many):
                state.feed(FinalResponse("completed", {"id": "resp_1"}))

        return count_work(end_again)

    assert work_of(400) < 2.5 * work_of(200)


def test_response_that_is_announced_twice_goes_on() -> None:
    begun = [wire.created(), *HELLO[:2], wire.created(), *HELLO[2:], EMPTY_END]
    assert output_of(*begun) == [wire.message_item("Hello")]


def test_delta_with_a_control_character_is_read() -> None:
    """Codex's own server passes on what the output of a tool had."""
    event = {**wire.text_delta("Hel"), "delta": "He\x1b[0m\tl"}
    text = json.dumps(event).replace("\\u001b", "\x1b").replace("\\t", "\t")
    parsed = parse_event(ServerSentEvent("", text))
    assert parsed == TextDelta(0, "text", 0, "He\x1b[0m\tl", "msg_0")


@pytest.mark.parametrize(
    "fields",
    [
        {"incomplete_details": {"reason": "content_filter"}},
        {"content_filters": [{"blocked": False}, {"blocked": True}]},
    ],
)
def test_failure_whose_reason_is_a_filter_of_azure(fields: wire.Event) -> None:
    """Its error is null there."""
    state, _ = fed(wire.ended("failed", error=None, **fields))
    assert state.trace.error.code == "content_filter"


@pytest.mark.parametrize(
    ("came", "is_refused"),
    [
        ([], True),
        (wire.message("Hello")[:2], True),
        (wire.reasoning(("I think.",))[:-1], True),
        (wire.reasoning(("I think.",)), True),
        (wire.message("Hello")[:3], False),
        (wire.message("Hello"), False),
    ],
)
def test_answer_that_has_words_was_not_refused(
    came: wire.Events, *, is_refused: bool
) -> None:
    """LiteLLM calls what breaks a stream of Bedrock a bad request."""
    words = "BedrockException - modelStreamErrorException. Try your request again."
    error = {"code": "invalid_request_error", "message": words}
    state, _ = fed(*came, wire.ended("failed", error=error))
    assert state.ending is not None
    assert ("rejected the request" in state.ending.message) == is_refused
    assert state.trace.error.code == "invalid_request_error"


def test_citations_of_an_item_are_all_that_there_are() -> None:
    """Those that events brought count where it has none of its own."""
    *begun, end = wire.message("Hello")
    note = {"type": "url_citation", "url": "https://a.example"}
    kind = "response.output_text.annotation.added"
    told = {"type": kind, "item_id": "msg_0", "output_index": 0, "annotation": note}
    own = [{"type": "url_citation", "url": "u"}]
    end["item"]["content"][0]["annotations"] = own
    [item] = output_of(*begun, told, end)
    assert item["content"][0]["annotations"] == own


def test_response_that_begins_again_and_again_takes_linear_work() -> None:
    """What it gave up before is not looked at once more."""

    def work_of(many: int) -> int:
        state = ResponseState()
        for at in range(many):
            state.feed(ItemDone(at, wire.message_item("Hi", at=at)))

        def begin_again() -> None:
            for number in range(many):
                state.feed(ResponseOpened(f"resp_{number}"))

        return count_work(begin_again)

    assert work_of(200) < 2.5 * work_of(100)


def test_message_that_ends_again_and_again_takes_linear_work() -> None:
    """Its whole text is not joined for each short end without a place."""

    def work_of(many: int) -> int:
        state = ResponseState()
        state.feed(ItemDone(0, wire.message_item(*["Hello "] * many)))

        def end_again() -> None:
            for _ in range(many):
                state.feed(ItemDone(NO_INDEX, wire.message_item("Hello")))

        return count_work(end_again)

    assert work_of(200) < 2.5 * work_of(100)


def test_calls_whose_ends_are_no_objects_take_linear_work() -> None:
    """Each of them may have the arguments of all others in front of its own."""

    def work_of(many: int) -> int:
        state = ResponseState()
        calls = [wire.call_item("look", "", at=at) for at in range(many)]
        for at, call in enumerate(calls):
            state.feed(ItemAdded(at, call))

        def end_all() -> None:
            for at, call in enumerate(calls):
                state.feed(ItemDone(at, {**call, "arguments": "x"}))

        return count_work(end_all)

    assert work_of(400) < 2.5 * work_of(200)


def test_end_of_a_call_joins_nothing_of_another() -> None:
    """The other may be long, and the call may end again and again."""
    state = ResponseState()
    for at in range(2):
        state.feed(ItemAdded(at, wire.call_item("look", "", at=at)))
    state.feed(TextDelta(0, "arguments", 0, "{", "fc_0"))
    ended = ItemDone(1, wire.call_item("look", "x", at=1))
    state.feed(ended)
    assert count_joins(lambda: state.feed(ended)) == 0


def test_message_that_grows_with_each_end_is_shown_a_few_times() -> None:
    """Each time it is whole, with all that is stored in front of it."""
    growing = [wire.message_item("", "Hello"[:length]) for length in range(6)] + [
        wire.message_item("", "Hello" + "!" * more) for more in range(300)
    ]
    for output in ([growing[-1]], []):
        state, told = fed(*map(wire.done, growing), wire.completed(*output))
        assert sum(isinstance(event, ItemDone) for event in told) < 20
        whole = message_text(growing[-1])
        assert message_text(state.output[0]) == whole
        assert [*grown_texts(told).values()] == [whole]


@pytest.mark.parametrize("name", [0, "new"])
@pytest.mark.parametrize("is_thought", [False, True])
def test_snapshot_that_joins_what_came_apart_repeats_nothing(
    name: int | str, *, is_thought: bool
) -> None:
    """It may name the joined item as it named the first piece (LiteLLM)."""
    call = wire.call_item("look", "{}", at=1)
    if is_thought:
        first, last = (wire.reasoning((t,), at=at, sealed="") for at, t in PIECES)
        joined_item = wire.reasoning_item("Hello world", at=name, sealed="")
        sealed = wire.reasoning_item("Hello world", at=name, sealed="x")
        kept = output_of(*first[:-1], *last[:-1], wire.completed(sealed))
        assert "x" in [item.get("encrypted_content") for item in kept]
    else:
        first, last = (wire.message(t, at=at) for at, t in PIECES)
        joined_item = wire.message_item("Hello world", at=name)
    came = [*first, wire.done(call, at=1), *last]
    state, told = fed(*came, wire.completed(joined_item, call))
    apart = fed(*came, wire.completed(first[-1]["item"], call, last[-1]["item"]))
    assert (state.output, told) == (apart[0].output, apart[1])
    cut = output_of(*came[:-1], wire.completed(joined_item, call))
    texts = [dict(item_texts(item)) for item in state.output]
    assert [dict(item_texts(item)) for item in cut] == texts


PIECES = ((0, "Hello"), (2, " world"))


def test_snapshot_seals_a_thought_that_had_ended() -> None:
    """LiteLLM has the signature of Claude's thought there alone; twice is once."""
    thought = wire.reasoning(("I look.",), sealed="")
    call = wire.call_item("look", "{}", at=1)
    repeated = {"content": [{"type": "output_text", "text": "I look."}], "role": "x"}
    sealed = {**wire.reasoning_item("I look.", sealed="signed"), **repeated}

    state, told = fed(*thought, wire.done(call, at=1), wire.completed(sealed, call))

    whole = {**thought[-1]["item"], "encrypted_content": "signed"}
    assert state.output == [whole, call]
    assert [event.item for event in told if isinstance(event, ItemDone)][2:] == [whole]


@pytest.mark.parametrize("at", [None, 1])
def test_two_messages_of_one_id_that_come_without_deltas(at: int | None) -> None:
    """MLflow has one id for all of a response; the same words are the same message."""
    texts = ("One.", " One. ", "On", "One. And", "Two.")
    events = [wire.done(wire.message_item(text)) for text in texts]
    for event in events[1:] if at else events:
        event["output_index"] = at

    shown = output_of(*events, EMPTY_END)

    assert [message_text(item) for item in shown] == ["One. And", "Two."]


@pytest.mark.parametrize("key", ["finish_reason", "stop_reason"])
@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("length", "max_output_tokens"),
        ("max_output_tokens", "max_output_tokens"),
        ("content_filter", "content_filter"),
        ("stop", None),
        ("completed", None),
    ],
)
def test_complete_response_that_names_why_it_was_cut_is_not(
    key: str, reason: str, code: str | None
) -> None:
    """Bridges keep the word of Chat Completions next to the status."""
    state, _ = fed(*HELLO, wire.ended("completed", **{key: reason}))
    assert state.ending
    assert (state.ending.kind, state.ending.code) == (
        ("incomplete", code) if code else ("completed", None)
    )
