"""Streams that end in odd ways: nothing that arrived is lost, and no call runs twice."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from openai_responses.endpoint import Compatibility
from openai_responses.items import Item, is_call, message_text
from openai_responses.loop.events import HiddenMessage, RunEvent, Status, ToolOutput
from openai_responses.loop.run import run
from openai_responses.loop.tools import Toolset
from openai_responses.models.usage import Usage
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
)
from runs.against_server import asking, end_of, limits, notes_of, report
from runs.disturbed import NOTHING_READABLE, STREAMS
from runs.joining import grown_texts
from runs.log import answer_text
from runs.tools import MemoryTools
from upstream import wire
from upstream.odd_streams import (
    ANSWER,
    CALLS,
    CITY,
    FOLDER,
    LATE_ENDS,
    OTHERS,
    SERVER_RUN,
    WHOLE_ANSWERS,
    sending,
    stream_of,
)
from upstream.server import (
    Answerer,
    Upstream,
    breaking,
    in_turn,
    replying,
    stalling,
    streaming,
)

pytestmark = pytest.mark.asyncio

LAST = "vllm.2"
"""The answer after a call."""
EMPTY = wire.on_the_wire(wire.created(), wire.completed())
TOOLS: list[Item] = [
    {"type": "function", "name": name, "parameters": {}, "strict": False}
    for name in ("get_weather", "list_ships")
]


async def list_ships(_: Any) -> str:
    """A tool that takes no arguments."""
    return "Two."


async def events_of(
    connections: Connections, answer: Answerer, request: ResponsesRequest | None = None
) -> tuple[list[RunEvent], MemoryTools, list[Any]]:
    """What a run reports, which tools it called, and what it sent."""
    tools = MemoryTools(list_ships=list_ships)
    tools.schemas["list_ships"] = {"type": "object", "properties": {}}
    asked = request or asking().model_copy(update={"tools": TOOLS})
    async with Upstream(answer) as upstream:
        sent = run(asked, upstream.endpoint, connections, limits(2), Toolset(tools))
        return [event async for event in sent], tools, upstream.bodies


def shown_answer(events: list[RunEvent]) -> str:
    """The text that grew in front of a person."""
    texts = grown_texts(events).items()
    return "".join(text for place, text in texts if place[1] == "text")


def last_ends(events: list[RunEvent]) -> dict[int, Item]:
    """The items as they ended last, by their indexes."""
    ends = [e for e in events if isinstance(e, ItemDone | HiddenMessage)]
    return {event.output_index: event.item for event in ends}


async def test_every_transcript_of_one_response_is_read_here() -> None:
    """Those of whole servers have a number."""
    names = {path.stem for path in FOLDER.glob("*.sse")}
    pairs = {name for name in names if name.endswith((".1", ".2"))}
    assert names - pairs == {
        *WHOLE_ANSWERS,
        *CALLS,
        *OTHERS,
        *STREAMS,
        NOTHING_READABLE,
    }


@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_told_as_what_it_is(
    name: str, connections: Connections
) -> None:
    """Only an error without a code, which may pass, is asked for again."""
    expected = STREAMS[name]
    answer = streaming(stream_of(name))
    events, _, bodies = await events_of(connections, answer)

    assert len(bodies) == expected.requests
    end = end_of(events)
    assert end.ending.kind == expected.kind
    assert expected.words in end.ending.message
    assert answer_text(events) == expected.shown
    assert expected.cause in end.trace.error.message
    assert end.trace.skipped == expected.skipped
    assert len(notes_of(events)) == expected.requests - 1


async def test_stream_in_which_nothing_can_be_read(connections: Connections) -> None:
    answer = streaming(stream_of(NOTHING_READABLE))
    events, _, bodies = await events_of(connections, answer)
    assert len(bodies) == 3
    end = end_of(events)
    assert end.ending.kind == "malformed"
    assert "cannot be read" in end.ending.message
    assert end.trace.skipped == {"empty": 3, "no JSON": 6, "no object": 3}


async def test_all_that_a_run_skipped_is_counted(connections: Connections) -> None:
    broken = stream_of("empty-data-between").partition(b"data: {")[0]
    answer = in_turn(streaming(broken), sending("unreadable-lines-between"))
    events, _, _ = await events_of(connections, answer)
    assert end_of(events).ending.kind == "completed"
    assert end_of(events).trace.skipped == {
        "empty": 1,
        "no JSON": 2,
        "no object": 2,
        "with odd fields": 1,
    }


async def test_completion_in_one_piece(connections: Connections) -> None:
    """The address answers Chat Completions: an administrator has to correct it."""
    body = '{"object": "chat.completion", "choices": [], "usage": {}}'
    events, _, bodies = await events_of(connections, replying(body))
    assert len(bodies) == 1
    ending = end_of(events).ending
    assert ending.kind == "unreadable"
    assert "Chat Completions" in ending.message
    assert ending.fault.settings == ("base_url",)


@pytest.mark.parametrize("name", WHOLE_ANSWERS)
async def test_answer_that_arrived_is_shown_and_kept(
    name: str, connections: Connections
) -> None:
    """It is asked for once, and the item that goes back to the API has its text."""
    events, tools, bodies = await events_of(connections, sending(name))

    end = end_of(events)
    assert (end.ending.kind, len(bodies)) == ("completed", 1)
    assert shown_answer(events) == ANSWER
    messages = [item for item in end.output if item["type"] == "message"]
    assert [message_text(item) for item in messages] == [ANSWER]
    [part] = messages[0]["content"]
    assert part == {"type": "output_text", "text": ANSWER, "annotations": []}
    assert messages[0]["role"] == "assistant"
    assert messages[0]["status"] == "completed"
    begun = [event.output_index for event in events if isinstance(event, ItemAdded)]
    assert len(begun) == len({*begun})
    assert not any(is_call(item) for item in end.output)
    assert tools.called == []


@pytest.mark.parametrize("name", CALLS)
async def test_call_runs_once_with_the_arguments_that_came(
    name: str, connections: Connections
) -> None:
    answer = sending(name, LAST)

    events, tools, bodies = await events_of(connections, answer)

    assert tools.called == [("get_weather", json.loads(CITY))]
    assert shown_answer(events) == ANSWER
    assert end_of(events).ending.kind == "completed"
    assert len(bodies) == 2
    call, output = bodies[1]["input"][-2:]
    assert json.loads(call["arguments"]) == json.loads(CITY)
    assert (call["name"], call["call_id"]) == ("get_weather", output["call_id"])
    ended = last_ends(events)
    [index] = [index for index, item in ended.items() if is_call(item)]
    assert ended[index]["arguments"] == call["arguments"]
    assert ended[index]["name"] == "get_weather"


async def test_null_is_no_argument(connections: Connections) -> None:
    """A tool without parameters gets an empty object, and so does the API."""
    answer = sending("call-with-null-arguments", LAST)

    events, tools, bodies = await events_of(connections, answer)

    assert tools.called == [("list_ships", {})]
    assert bodies[1]["input"][-2]["arguments"] == "{}"
    assert grown_texts(events)[0, "arguments", 0] == "{}"


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
    name: str, text: str, status: str, connections: Connections
) -> None:
    end = end_of((await events_of(connections, sending(name)))[0])
    assert (end.ending.kind, end.ending.code) == ("incomplete", "max_output_tokens")
    [message] = end.output
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
    stream: bytes, seconds: float, text: str, connections: Connections
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()

    events, _, bodies = await events_of(connections, stalling(stream))

    assert loop.time() - began < seconds
    assert (end_of(events).ending.kind, len(bodies)) == ("completed", 1)
    assert answer_text(events) == text


async def test_azure_says_why_in_the_details_of_the_status(
    connections: Connections,
) -> None:
    """A limit of the rate is waited for."""
    answer = sending(*["azure-status-details"] * 2, LAST)

    events, _, bodies = await events_of(connections, answer)

    assert [e.is_retry for e in events if isinstance(e, Status)] == [True, True]
    assert (end_of(events).ending.kind, len(bodies)) == ("completed", 3)


@pytest.mark.parametrize("name", ["numbers-with-fraction", "texts"])
async def test_tokens_are_counted_however_they_are_written(
    name: str, connections: Connections
) -> None:
    answer = sending(f"token-counts-as-{name}")
    events, _, _ = await events_of(connections, answer)
    assert end_of(events).usage == Usage(61, 17, 78)


async def test_message_that_comes_twice_is_shown_once_and_sent_again(
    connections: Connections,
) -> None:
    """The second one is hidden; with a call after it, both go back to the API."""
    doubled = wire.whole_stream(
        wire.message("One.", at=0, phase="commentary"),
        wire.message("One.", at=1, phase="commentary"),
        wire.function_call("get_weather", CITY, at=2),
    )
    events, tools, bodies = await events_of(
        connections, in_turn(streaming(wire.on_the_wire(*doubled)), sending(LAST))
    )

    assert shown_answer(events) == f"One.{ANSWER}"
    assert len([e for e in events if isinstance(e, HiddenMessage)]) == 1
    assert len(tools.called) == 1
    sent = [item for item in bodies[1]["input"] if item.get("role") == "assistant"]
    assert sent[0] == sent[1]
    assert [message_text(item) for item in sent] == ["One.", "One."]
    kept = [message_text(i) for i in end_of(events).output if i["type"] == "message"]
    assert kept == ["One.", ANSWER]


async def test_items_that_all_end_at_the_end_of_the_stream_are_whole(
    connections: Connections,
) -> None:
    """So does llama.cpp: the thought grows, then the answer, then both end."""
    events, _, bodies = await events_of(connections, sending(LATE_ENDS))

    end = end_of(events)
    assert (end.ending.kind, len(bodies)) == ("completed", 1)
    assert [item["type"] for item in end.output] == ["reasoning", "message"]
    assert shown_answer(events) == message_text(end.output[1])
    places = [e.output_index for e in events if isinstance(e, ItemAdded | ItemDone)]
    assert places == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("most", "compatibility", "code"),
    [
        (160, "auto", "max_output_tokens"),
        (161, "auto", None),
        (None, "auto", None),
        (160, "openai", None),
    ],
)
async def test_answer_that_used_all_its_tokens_reached_its_limit(
    most: int | None, compatibility: Any, code: str | None, connections: Connections
) -> None:
    """llama.cpp calls it complete (recorded, 160 tokens); OpenAI's own word counts."""
    request = asking().model_copy(update={"max_output_tokens": most})
    async with Upstream(sending(LATE_ENDS)) as upstream:
        endpoint = replace(upstream.endpoint, compatibility=compatibility)
        ending = end_of(await report(connections, endpoint, request)).ending
    assert (ending.kind, ending.code) == ("incomplete" if code else "completed", code)


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
    arguments: str, response: Item, connections: Connections
) -> None:
    [*begun, _] = wire.function_call("get_weather", arguments)
    stream = [*begun, {"type": "response.completed", "response": response}]
    request = asking().model_copy(update={"max_output_tokens": 20, "tools": TOOLS})

    events, tools, bodies = await events_of(
        connections, streaming(wire.on_the_wire(*stream)), request
    )

    assert end_of(events).ending.code == "max_output_tokens"
    assert (tools.called, len(bodies)) == ([], 1)
    assert end_of(events).output[-1]["type"] == "function_call_output"


async def test_call_that_the_server_ran_is_not_answered(
    connections: Connections,
) -> None:
    """Nothing of it is shown or sent; the tool that was declared is called as ever."""
    begun, _, _ = stream_of("server-run-custom-call").rpartition(b"event: ")
    call = wire.function_call("get_weather", CITY, at=2)
    rest = wire.on_the_wire(*call, wire.completed())
    answer = in_turn(streaming(begun + rest), sending(LAST))

    events, tools, bodies = await events_of(connections, answer)

    assert tools.called == [("get_weather", json.loads(CITY))]
    types = [item["type"] for item in bodies[1]["input"]]
    assert types.count("custom_tool_call") == 0
    assert types.count("function_call") == types.count("function_call_output") == 1
    assert len([event for event in events if isinstance(event, ToolOutput)]) == 1


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_function_that_the_server_ran_has_its_output_already(
    is_streamed: bool, connections: Connections
) -> None:
    """It is shown with what it returned; nobody is asked again."""
    last = json.loads(stream_of(SERVER_RUN).rpartition(b"data: ")[2])
    whole = replying(json.dumps(last["response"]))
    answer = sending(SERVER_RUN) if is_streamed else whole

    events, tools, bodies = await events_of(connections, answer)

    [output] = [event for event in events if isinstance(event, ToolOutput)]
    assert output.item["output"] == [{"type": "input_text", "text": "rain"}]
    assert end_of(events).output[output.output_index] == output.item
    assert (tools.called, len(bodies)) == ([], 1)
    assert shown_answer(events) == ANSWER


@pytest.mark.parametrize("is_first", [True, False])
async def test_our_call_beside_one_that_the_server_ran(
    is_first: bool, connections: Connections
) -> None:
    """Ours is made, once; the next request has both with their outputs."""
    theirs = wire.call_item("terminal", "{}", at=0)
    output = {"type": "function_call_output", "call_id": "call_0", "output": None}
    pair = [wire.done(theirs), wire.done(output, at=1)]
    ours = wire.function_call("get_weather", CITY, at=2)
    groups = [*ours, *pair] if is_first else [*pair, *ours]
    first = streaming(wire.on_the_wire(*groups, wire.completed()))

    events, tools, bodies = await events_of(connections, in_turn(first, sending(LAST)))

    assert tools.called == [("get_weather", json.loads(CITY))]
    outputs = {
        item["call_id"]: item["output"]
        for item in bodies[1]["input"]
        if item["type"] == "function_call_output"
    }
    assert outputs.keys() == {"call_0", "call_2"}
    assert outputs["call_0"] == ""
    assert len([event for event in events if isinstance(event, ToolOutput)]) == 2


@pytest.mark.parametrize(
    ("compatibility", "arguments"),
    [("auto", '{"arguments": "{\\"ci"}'), ("strict", None), ("openai", '{"ci')],
)
async def test_call_whose_arguments_are_no_json(
    compatibility: Compatibility, arguments: str | None, connections: Connections
) -> None:
    """The model reads that it failed. llama.cpp would refuse the chat for good."""
    call = wire.function_call("get_weather", '{"ci')
    first = streaming(wire.on_the_wire(*wire.whole_stream(call)))
    async with Upstream(in_turn(first, sending(LAST))) as upstream:
        endpoint = replace(upstream.endpoint, compatibility=compatibility)
        toolset = Toolset(MemoryTools())
        events = await report(connections, endpoint, within=limits(), toolset=toolset)

    assert end_of(events).ending.kind == "completed"
    [sent] = [i for i in upstream.bodies[1]["input"] if i["type"] == "function_call"]
    assert sent["arguments"] == (arguments or '{"arguments": "{\\"ci"}')


async def test_tools_that_items_declare_are_ours(connections: Connections) -> None:
    """A custom tool that was added in the middle of a chat."""
    tool = {"type": "custom", "name": "x_keyword_search"}
    added = {"type": "additional_tools", "role": "developer", "tools": [tool]}
    request = asking()
    request = request.model_copy(update={"input": [*request.input, added]})
    answer = sending("server-run-custom-call", LAST)

    events, _, bodies = await events_of(connections, answer, request)

    assert len(bodies) == 2
    assert [e.failed for e in events if isinstance(e, ToolOutput)] == [True]


async def test_queued_answer_does_not_blame_the_stream(
    connections: Connections,
) -> None:
    """It is not asked for again: the server may be working on it."""
    body = json.dumps({"id": "resp_1", "status": "queued", "output": []})

    events, _, bodies = await events_of(connections, replying(body))

    ending = end_of(events).ending
    assert (ending.kind, len(bodies)) == ("unreadable", 1)
    assert "only queued the request" in ending.message
    assert len(events) == 1


MARK = b"data:  [DONE] \n\n"
"""With spaces, as some write it."""


@pytest.mark.parametrize(
    ("answer", "end", "kind", "tools_called"),
    [
        (wire.message("Rain."), streaming, "completed", 0),
        (wire.function_call("get_weather", CITY), streaming, "completed", 1),
        (wire.message("Rain.")[:4], streaming, "cut", 0),
        (wire.reasoning(["Hm."]), streaming, "cut", 0),
        ([], streaming, "cut", 0),
        # Only a server that ends its stream itself has sent all of it.
        (wire.message("Rain."), breaking, "cut", 0),
    ],
    ids=["message", "call", "open message", "thought", "nothing", "it breaks"],
)
async def test_mark_of_the_end_completes_what_has_ended(
    answer: wire.Events,
    end: Callable[[bytes], Answerer],
    kind: str,
    tools_called: int,
    connections: Connections,
) -> None:
    """Gateways leave the last event out; a message or a call that ended is whole."""
    marked = end(wire.on_the_wire(*answer) + MARK)

    after = sending(LAST) if tools_called else marked
    events, tools, _ = await events_of(connections, in_turn(marked, after))

    assert end_of(events).ending.kind == kind
    assert len(tools.called) == tools_called


@pytest.mark.parametrize("begun", [wire.message("Rain.")[:4], []])
async def test_message_outside_of_all_events_is_the_cause(
    begun: wire.Events, connections: Connections
) -> None:
    """Bedrock ends a stream so; the chat is too long for the model."""
    words = b'data: {"message": "Input is too long for requested model."}\n\n'
    answer = streaming(wire.on_the_wire(*begun) + words)

    events, _, _ = await events_of(connections, answer)

    assert end_of(events).ending.message.startswith("This chat is longer than")


@pytest.mark.parametrize(
    "answer",
    [
        wire.on_the_wire(*wire.whole_stream(wire.message("Rain."))),
        wire.on_the_wire(*wire.message("Rain.")) + MARK,
    ],
    ids=["before its last event", "before the mark that stands for it"],
)
async def test_message_outside_of_all_events_ends_no_response(
    answer: bytes, connections: Connections
) -> None:
    words = b'data: {"message": "Working."}\n\n'
    events, _, _ = await events_of(connections, streaming(words + answer))
    assert end_of(events).ending.kind == "completed"
