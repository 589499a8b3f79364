"""Streams that end in odd ways: nothing that arrived is lost, and no call runs twice."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from openai_responses.items import Item, is_call, message_text
from openai_responses.loop.events import HiddenMessage, Status, ToolOutput
from openai_responses.loop.tools import Toolset
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import ItemAdded, ItemDone
from runs.against_server import AT_ONCE, Runs, Told, asking, limits
from runs.disturbed import NOTHING_READABLE, STREAMS
from runs.joining import grown_texts
from runs.tools import MemoryTools
from upstream import wire
from upstream.odd_streams import (
    ANSWER,
    CALLS,
    CITY,
    FOLDER,
    GATEWAY_RUN,
    LATE_ENDS,
    OTHERS,
    SERVER_RUN,
    WHOLE_ANSWERS,
    sending,
    stream_of,
)
from upstream.server import Answerer, breaking, replying, stalling, streaming

pytestmark = pytest.mark.asyncio

LAST = streaming(stream_of("vllm.2"))
"""The answer after a call."""
EMPTY = wire.on_the_wire(wire.created(), wire.completed())
TOOLS: list[Item] = [
    {"type": "function", "name": name, "parameters": {}, "strict": False}
    for name in ("get_weather", "list_ships")
]


async def list_ships(_: Any) -> str:
    return "Two."


async def told_by(
    runs: Runs, *answers: Answerer, request: ResponsesRequest | None = None, **more: Any
) -> Told:
    """What a run with two tools tells, which asks again at most twice."""
    tools = MemoryTools(list_ships=list_ships)
    tools.schemas["list_ships"] = {"type": "object", "properties": {}}
    asked = request or asking().model_copy(update={"tools": TOOLS})
    toolset, within = Toolset(tools), limits(2)
    return await runs.against(
        *answers, request=asked, within=within, toolset=toolset, **more
    )


async def test_every_transcript_of_one_response_is_read_here() -> None:
    """Those of whole servers have a number."""
    names = {path.stem for path in FOLDER.glob("*.sse")}
    pairs = {name for name in names if name.endswith((".1", ".2"))}
    alone = {*WHOLE_ANSWERS, *CALLS, *OTHERS, *STREAMS, NOTHING_READABLE}
    assert names - pairs == alone


@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_told_as_what_it_is(name: str, runs: Runs) -> None:
    """Only an error without a code, which may pass, is asked for again."""
    expected = STREAMS[name]
    told = await told_by(runs, streaming(stream_of(name)))

    assert len(told.sent) == expected.requests
    assert told.kind == expected.kind
    assert expected.words in told.ending.message
    assert told.text == expected.shown
    assert expected.cause in told.end.trace.error.message
    assert told.end.trace.skipped == expected.skipped
    assert len(told.notes) == expected.requests - 1


async def test_stream_in_which_nothing_can_be_read(runs: Runs) -> None:
    told = await told_by(runs, streaming(stream_of(NOTHING_READABLE)))
    assert (told.kind, len(told.sent)) == ("malformed", 3)
    assert "cannot be read" in told.ending.message
    assert told.end.trace.skipped == {"empty": 3, "no JSON": 6, "no object": 3}


async def test_all_that_a_run_skipped_is_counted(runs: Runs) -> None:
    broken = stream_of("empty-data-between").partition(b"data: {")[0]
    rest = stream_of("unreadable-lines-between")
    told = await told_by(runs, streaming(broken), streaming(rest))
    assert told.kind == "completed"
    lines = {"empty": 1, "no JSON": 2, "no object": 2, "with odd fields": 1}
    assert told.end.trace.skipped == lines


async def test_completion_in_one_piece(runs: Runs) -> None:
    """The address answers Chat Completions: an administrator has to correct it."""
    body = '{"object": "chat.completion", "choices": [], "usage": {}}'
    told = await told_by(runs, replying(body))
    assert (told.kind, len(told.sent)) == ("unreadable", 1)
    assert "Chat Completions" in told.ending.message
    assert told.ending.fault.settings == ("base_url",)


@pytest.mark.parametrize("name", WHOLE_ANSWERS)
async def test_answer_that_arrived_is_shown_and_kept(name: str, runs: Runs) -> None:
    """It is asked for once, and the item that goes back to the API has its text."""
    told = await told_by(runs, sending(name))

    assert (told.kind, len(told.sent), told.text) == ("completed", 1, ANSWER)
    [message] = [item for item in told.output if item["type"] == "message"]
    [part] = message["content"]
    assert part == {"type": "output_text", "text": ANSWER, "annotations": []}
    assert (message["role"], message["status"]) == ("assistant", "completed")
    begun = [event.output_index for event in told.of(ItemAdded)]
    assert len(begun) == len({*begun})
    assert not any(is_call(item) for item in told.output)
    assert told.called == []


@pytest.mark.parametrize("name", CALLS)
async def test_call_runs_once_with_the_arguments_that_came(
    name: str, runs: Runs
) -> None:
    told = await told_by(runs, sending(name), LAST)

    assert told.called == [("get_weather", json.loads(CITY))]
    assert (told.kind, len(told.sent), told.text) == ("completed", 2, ANSWER)
    call, output = told.sent[1]["input"][-2:]
    assert json.loads(call["arguments"]) == json.loads(CITY)
    assert (call["name"], call["call_id"]) == ("get_weather", output["call_id"])
    ends = [event for event in told.of(ItemDone) if is_call(event.item)]
    assert len({event.output_index for event in ends}) == 1
    assert ends[-1].item["arguments"] == call["arguments"]
    assert ends[-1].item["name"] == "get_weather"


async def test_null_is_no_argument(runs: Runs) -> None:
    """A tool without parameters gets an empty object, and so does the API."""
    told = await told_by(runs, sending("call-with-null-arguments"), LAST)

    assert told.called == [("list_ships", {})]
    assert told.sent[1]["input"][-2]["arguments"] == "{}"
    assert grown_texts(told.events)[0, "arguments", 0] == "{}"


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        # The item that nothing ended is incomplete as well.
        ("no-item-done-incomplete", ANSWER, "incomplete"),
        # vLLM ends each stream with `response.completed`; the response knows better.
        ("completed-that-is-incomplete", "It rains ", "completed"),
    ],
)
async def test_text_of_an_incomplete_response(
    name: str, text: str, status: str, runs: Runs
) -> None:
    told = await told_by(runs, sending(name))
    assert (told.kind, told.ending.code) == ("incomplete", "max_output_tokens")
    [message] = told.output
    assert (message_text(message), message["status"]) == (text, status)


@pytest.mark.parametrize(
    ("stream", "seconds", "text"),
    [
        # A server that keeps the connection open is waited for some seconds.
        (EMPTY, 30, ""),
        # After a whole response, nothing more is waited for.
        (wire.on_the_wire(*wire.whole_stream(wire.message("Rain."))), 5, "Rain."),
    ],
)
async def test_silence_after_a_response(
    stream: bytes, seconds: float, text: str, runs: Runs
) -> None:
    now = asyncio.get_running_loop().time
    began = now()

    told = await told_by(runs, stalling(stream))

    assert now() - began < seconds
    assert (told.kind, len(told.sent), told.text) == ("completed", 1, text)


async def test_azure_says_why_in_the_details_of_the_status(runs: Runs) -> None:
    """A limit of the rate is waited for."""
    busy = streaming(stream_of("azure-status-details"))
    told = await told_by(runs, busy, busy, LAST)
    assert [event.is_retry for event in told.of(Status)] == [True, True]
    assert (told.kind, len(told.sent)) == ("completed", 3)


async def test_message_that_comes_twice_is_shown_once_and_sent_again(
    runs: Runs,
) -> None:
    """The second one is hidden; with a call after it, both go back to the API."""
    doubled = wire.whole_stream(
        wire.message("One.", at=0, phase="commentary"),
        wire.message("One.", at=1, phase="commentary"),
        wire.function_call("get_weather", CITY, at=2),
    )
    told = await told_by(runs, streaming(wire.on_the_wire(*doubled)), LAST)

    assert told.text == f"One.{ANSWER}"
    assert len(told.of(HiddenMessage)) == len(told.called) == 1
    sent = [item for item in told.sent[1]["input"] if item.get("role") == "assistant"]
    assert sent[0] == sent[1]
    assert [message_text(item) for item in sent] == ["One.", "One."]
    kept = [message_text(item) for item in told.output if item["type"] == "message"]
    assert kept == ["One.", ANSWER]


async def test_items_that_all_end_at_the_end_of_the_stream_are_whole(
    runs: Runs,
) -> None:
    """So does llama.cpp: the thought grows, then the answer, then both end."""
    told = await told_by(runs, sending(LATE_ENDS))

    assert (told.kind, len(told.sent)) == ("completed", 1)
    assert [item["type"] for item in told.output] == ["reasoning", "message"]
    assert told.text == message_text(told.output[1])
    told_items = [e for e in told.events if isinstance(e, ItemAdded | ItemDone)]
    assert [event.output_index for event in told_items] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("most", "window", "compatibility", "code"),
    [
        (160, None, "auto", "max_output_tokens"),
        (161, None, "auto", None),
        (160, None, "openai", None),
        (None, 183, "auto", "context_length_exceeded"),
        pytest.param(None, 182, "auto", None, id="a context that shifts"),
    ],
)
async def test_answer_that_used_all_its_tokens_reached_its_limit(
    most: int | None,
    window: int | None,
    compatibility: Any,
    code: str | None,
    runs: Runs,
) -> None:
    """llama.cpp calls it complete (recorded, 160 of 183 tokens); OpenAI's word counts."""
    told = await runs.against(
        sending(LATE_ENDS),
        request=asking().model_copy(update={"max_output_tokens": most}),
        within=AT_ONCE._replace(context_window=window),
        compatibility=compatibility,
    )
    assert (told.kind, told.ending.code) == (
        "incomplete" if code else "completed",
        code,
    )


USED = {"input_tokens": 9, "output_tokens": 20, "total_tokens": 29}
REACHED = {"reason": "max_output_tokens"}


@pytest.mark.parametrize(
    ("arguments", "response"),
    [
        pytest.param(
            CITY,
            wire.response("completed", usage=USED),
            id="all tokens are used: it may be cut where it can still be read",
        ),
        pytest.param(
            '{"ci',
            wire.response("incomplete", incomplete_details=REACHED),
            id="vLLM's response says that the limit was reached, and its event does not",
        ),
    ],
)
async def test_call_of_a_cut_answer_that_is_called_complete_is_not_made(
    arguments: str, response: Item, runs: Runs
) -> None:
    [*begun, _] = wire.function_call("get_weather", arguments)
    stream = [*begun, {"type": "response.completed", "response": response}]
    request = asking().model_copy(update={"max_output_tokens": 20, "tools": TOOLS})

    told = await told_by(runs, streaming(wire.on_the_wire(*stream)), request=request)

    assert told.ending.code == "max_output_tokens"
    assert (told.called, len(told.sent)) == ([], 1)
    assert told.output[-1]["type"] == "function_call_output"


async def test_call_that_the_server_ran_is_not_answered(runs: Runs) -> None:
    """Nothing of it is shown or sent; the tool that was declared is called as ever."""
    begun, _, _ = stream_of("server-run-custom-call").rpartition(b"event: ")
    call = wire.function_call("get_weather", CITY, at=2)
    rest = wire.on_the_wire(*call, wire.completed())

    told = await told_by(runs, streaming(begun + rest), LAST)

    assert told.called == [("get_weather", json.loads(CITY))]
    types = [item["type"] for item in told.sent[1]["input"]]
    assert types.count("custom_tool_call") == 0
    assert types.count("function_call") == types.count("function_call_output") == 1
    assert len(told.of(ToolOutput)) == 1


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_function_that_the_server_ran_has_its_output_already(
    is_streamed: bool, runs: Runs
) -> None:
    """It is shown with what it returned; nobody is asked again."""
    last = json.loads(stream_of(SERVER_RUN).rpartition(b"data: ")[2])
    whole = replying(json.dumps(last["response"]))

    told = await told_by(runs, sending(SERVER_RUN) if is_streamed else whole)

    [output] = told.of(ToolOutput)
    assert output.item["output"] == [{"type": "input_text", "text": "rain"}]
    assert told.output[output.output_index] == output.item
    assert (told.called, len(told.sent), told.text) == ([], 1, ANSWER)


async def test_answer_goes_on_after_calls_that_a_gateway_made(runs: Runs) -> None:
    """LiteLLM says that it is complete before it says what they returned.

    Each of the two responses has a size and a limit of its own.
    """
    asked = asking().model_copy(update={"tools": TOOLS, "max_output_tokens": 10})
    told = await told_by(runs, sending(GATEWAY_RUN), request=asked)

    [output] = told.of(ToolOutput)
    assert output.item["output"] == "rain"
    assert (told.called, len(told.sent), told.text) == ([], 1, ANSWER)
    assert told.kind == "completed"
    assert [usage.total for usage in told.end.usages] == [25, 36]
    assert told.end.last_usage == told.end.usages[-1]


async def test_gateway_that_never_goes_on_has_broken(runs: Runs) -> None:
    begun = stream_of(GATEWAY_RUN).partition(b'data: {"type": "response.created"')
    came = begun[2].partition(b'data: {"type": "response.created"')[0]
    told = await told_by(runs, streaming(begun[1] + came))
    assert (told.kind, told.called, len(told.sent)) == ("cut", [], 1)


ECHO = [wire.call_item("echo", '{"n": 1}', at=at) for at in range(2)]
MADE = {"type": "mcp_call", "server_label": "demo", "name": "echo"}
MADE_ITEMS: list[Item] = [
    {**MADE, "id": "mcp_1", "arguments": '{"n":1}', "output": "one", "error": None},
    {**MADE, "id": "mcp_2", "arguments": '{"n":1}', "output": None, "error": "Late."},
]
RAIN = wire.message("Rain.", at=9)


@pytest.mark.parametrize("has_snapshot", [True, False])
async def test_remote_calls_that_stand_for_functions_are_their_outputs(
    has_snapshot: bool, runs: Runs
) -> None:
    """Each of one, also where the snapshot has them in place of the functions.

    None is of a response that the gateway gave up.
    """
    made = [
        event
        for at, item in enumerate(MADE_ITEMS, start=2)
        for event in (
            wire.added({**item, "output": None}, at=at),
            wire.done(item, at=at),
        )
    ]
    lost = wire.done(wire.call_item("echo", '{"n": 1}', at=7))
    again = {**wire.created(), "response": wire.response("in_progress", id="resp_2")}
    begun = [wire.done(item, at=at) for at, item in enumerate(ECHO)]
    snapshot = [*MADE_ITEMS, RAIN[-1]["item"]] if has_snapshot else []
    events = [*begun, *made, *RAIN, wire.completed(*snapshot)]
    stream = wire.on_the_wire(wire.created(), lost, again, *events)

    told = await told_by(runs, streaming(stream))

    outputs = told.of(ToolOutput)
    assert [(o.item["call_id"], o.item["output"], o.failed) for o in outputs] == [
        ("call_0", "one", False),
        ("call_1", "Error: Late.", True),
    ]
    assert [item["type"] for item in told.output].count("mcp_call") == 0
    assert (told.called, len(told.sent), told.text) == ([], 1, "Rain.")


async def test_tool_that_nobody_has_is_told_to_the_model(runs: Runs) -> None:
    """No more of the answer comes, so it was no gateway's."""
    unknown = wire.on_the_wire(wire.done(ECHO[0]), wire.completed(ECHO[0]))
    told = await told_by(runs, streaming(unknown), LAST)
    assert "no tool named echo" in told.sent[1]["input"][-1]["output"]


@pytest.mark.parametrize("is_first", [True, False])
async def test_our_call_beside_one_that_the_server_ran(
    is_first: bool, runs: Runs
) -> None:
    """Ours is made, once; the next request has both with their outputs."""
    theirs = wire.call_item("terminal", "{}", at=0)
    output = {"type": "function_call_output", "call_id": "call_0", "output": None}
    pair = [wire.done(theirs), wire.done(output, at=1)]
    ours = wire.function_call("get_weather", CITY, at=2)
    groups = [*ours, *pair] if is_first else [*pair, *ours]
    first = streaming(wire.on_the_wire(*groups, wire.completed()))

    told = await told_by(runs, first, LAST)

    assert told.called == [("get_weather", json.loads(CITY))]
    sent = [i for i in told.sent[1]["input"] if i["type"] == "function_call_output"]
    assert {item["call_id"] for item in sent} == {"call_0", "call_2"}
    assert [i["output"] for i in sent if i["call_id"] == "call_0"] == [""]
    assert len(told.of(ToolOutput)) == 2


@pytest.mark.parametrize(
    ("compatibility", "arguments"),
    [("auto", '{"arguments": "{\\"ci"}'), ("strict", None), ("openai", '{"ci')],
)
async def test_call_whose_arguments_are_no_json(
    compatibility: str, arguments: str | None, runs: Runs
) -> None:
    """The model reads that it failed. llama.cpp would refuse the chat for good."""
    call = wire.function_call("get_weather", '{"ci')
    first = streaming(wire.on_the_wire(*wire.whole_stream(call)))
    told = await told_by(runs, first, LAST, compatibility=compatibility)

    assert told.kind == "completed"
    [sent] = [i for i in told.sent[1]["input"] if i["type"] == "function_call"]
    assert sent["arguments"] == (arguments or '{"arguments": "{\\"ci"}')


async def test_tools_that_items_declare_are_ours(runs: Runs) -> None:
    """A custom tool that was added in the middle of a chat."""
    tool = {"type": "custom", "name": "x_keyword_search"}
    added = {"type": "additional_tools", "role": "developer", "tools": [tool]}
    request = asking()
    request = request.model_copy(update={"input": [*request.input, added]})

    told = await told_by(runs, sending("server-run-custom-call"), LAST, request=request)

    assert len(told.sent) == 2
    assert [event.failed for event in told.of(ToolOutput)] == [True]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
async def test_queued_answer_does_not_blame_the_stream(status: str, runs: Runs) -> None:
    """It is not asked for again: the server may be working on it."""
    body = json.dumps({"id": "resp_1", "status": status, "output": []})
    told = await told_by(runs, replying(body))
    assert (told.kind, len(told.sent)) == ("unreadable", 1)
    assert "only queued the request" in told.ending.message
    assert len(told.events) == 1


CUT_CALL = {**wire.call_item("get_weather", CITY), "status": "incomplete"}
CALL = wire.function_call("get_weather", CITY)
LATER_TEXT = {**wire.text_done("Snow."), "content_index": 1}
MARK = b"data:  [DONE] \n\n"
"""With spaces, as some write it."""


@pytest.mark.parametrize(
    ("answer", "end", "kind", "calls"),
    [
        (wire.message("Rain."), streaming, "completed", 0),
        (CALL, streaming, "completed", 1),
        # What becomes of the connection after it says nothing of the answer.
        (wire.message("Rain."), stalling, "completed", 0),
        (wire.message("Rain."), breaking, "completed", 0),
        (wire.message("Rain.")[:4], streaming, "completed", 0),
        (CALL[:-1], streaming, "completed", 1),
        (wire.message("Rain.")[:3], streaming, "cut", 0),
        ([*wire.message("R")[:4], wire.text_delta("ain")], streaming, "cut", 0),
        (CALL[:-2], streaming, "cut", 0),
        ([*CALL[:-2], *wire.message("Rain.", at=1)], streaming, "cut", 0),
        ([*wire.message("Rain.", at=1), *CALL[1:-1]], streaming, "cut", 0),
        ([*wire.message("R", "ain")[:3], LATER_TEXT], streaming, "cut", 0),
        (wire.reasoning(["Hm."]), streaming, "cut", 0),
        ([], streaming, "cut", 0),
    ],
    ids=[
        *("message", "call", "open connection", "it breaks"),
        *("ended text", "ended arguments", "open text", "text after its end"),
        *("open arguments", "open call before", "unknown call", "one of two texts"),
        *("thought", "nothing"),
    ],
)
async def test_mark_of_the_end_completes_what_has_ended(
    answer: wire.Events,
    end: Callable[[bytes], Answerer],
    kind: str,
    calls: int,
    runs: Runs,
) -> None:
    """Gateways leave the last event out; a text that ended is whole."""
    marked = end(wire.on_the_wire(*answer) + MARK)
    told = await told_by(runs, marked, LAST if calls else marked)
    assert (told.kind, len(told.called)) == (kind, calls)


@pytest.mark.parametrize(
    ("answer", "end", "kind"),
    [
        (CALL, streaming, "completed"),
        (CALL[:-1], streaming, "cut"),
        ([wire.done(CUT_CALL)], streaming, "cut"),
        (CALL, breaking, "cut"),
        # A call may have been to follow.
        (wire.message("Rain."), streaming, "cut"),
    ],
    ids=["call", "open call", "cut call", "it breaks", "message"],
)
async def test_call_that_has_ended_needs_no_mark(
    answer: wire.Events, end: Callable[[bytes], Answerer], kind: str, runs: Runs
) -> None:
    """OpenRouter may end a stream after the last item; nothing is lost by the call."""
    ended = end(wire.on_the_wire(*answer))
    told = await told_by(runs, ended, LAST if kind == "completed" else ended)
    assert (told.kind, len(told.called)) == (kind, kind == "completed")


@pytest.mark.parametrize("begun", [wire.message("Rain.")[:4], []])
async def test_message_outside_of_all_events_is_the_cause(
    begun: wire.Events, runs: Runs
) -> None:
    """Bedrock ends a stream so; the chat is too long for the model."""
    words = b'data: {"message": "Input is too long for requested model."}\n\n'
    told = await told_by(runs, streaming(wire.on_the_wire(*begun) + words))
    assert told.ending.message.startswith("This chat is longer than")


@pytest.mark.parametrize(
    "answer",
    [
        wire.on_the_wire(*wire.whole_stream(wire.message("Rain."))),
        wire.on_the_wire(*wire.message("Rain.")) + MARK,
    ],
    ids=["before its last event", "before the mark that stands for it"],
)
async def test_message_outside_of_all_events_ends_no_response(
    answer: bytes, runs: Runs
) -> None:
    words = b'data: {"message": "Working."}\n\n'
    assert (await told_by(runs, streaming(words + answer))).kind == "completed"
