"""A marker is shown where its items were; the host stores them next to the text."""

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from calls.outcomes import NATIVE, chunks_of, errors, stored
from calls.sample import IDS, MODEL, call_of, chat, host_context, valves_for
from calls.turns import asked_as, row_of
from calls.valves import expert
from openai_responses.loop.events import RunDone
from openai_responses.requests.replay import strip_for_replay
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone, TextDelta
from owui_chat.events import AnswerEvent, Marker, SourceCited, StoredRecord, TurnDetails
from owui_chat.storage.markers import split_at_markers
from owui_chat.storage.records import Record, message_key, read_records
from owui_manifold.call.context import Call, Caller
from owui_manifold.pipe import Pipe
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run.answer import answer_events
from simulator import Simulator
from stand_in.host import StandInHost
from stand_in.signing import SIGN
from upstream.server import (
    Answerer,
    Upstream,
    in_one_piece,
    in_turn,
    replying,
    started,
    until,
)

pytestmark = pytest.mark.asyncio


Pair = tuple[AnswerEvent, str]
TEMPORARY = Caller(MODEL, "user-1", "temporary:1", "m-1", streams=True)


@dataclass(eq=False)
class Desk:
    """Answers of a chat that is stored, and what the host has of them."""

    sim: Simulator
    host: StandInHost
    connections: Connections

    @property
    def kept(self) -> list[Record]:
        return [*read_records(self.host.kept, SIGN).values()]

    async def answer(self, call: Call) -> list[Pair]:
        """A whole answer, each event with the marker before it."""
        prepared = await build_chat_request(call)
        pairs: list[Pair] = []
        line = ""
        async for event in answer_events(prepared, self.connections):
            if isinstance(event, Marker):
                line = event.text
            else:
                pairs.append((event, line))
                line = ""
        return pairs

    async def ask(
        self, text: str, caller: Caller | None = None, **valves: Any
    ) -> list[Pair]:
        return await self.answer(
            call_of(chat(text), valves_for(self.sim, **valves), caller)
        )


@pytest.fixture
def desk(sim: Simulator, host: StandInHost, connections: Connections) -> Desk:
    return Desk(sim, host, connections)


def markers_of(pairs: list[Pair]) -> list[str]:
    return [line for _, line in pairs if line]


def is_text(event: AnswerEvent) -> bool:
    return isinstance(event, TextDelta) and event.kind == "text"


async def test_marker_stands_before_the_first_text(desk: Desk) -> None:
    pairs = await desk.ask("Hi")

    [line] = markers_of(pairs)
    [first] = [event for event, markers in pairs if markers]
    assert first == next(event for event, _ in pairs if is_text(event))
    [named] = split_at_markers(line)
    [record] = desk.kept
    assert named.ulid == record.ulid
    ended = [e.item for e, _ in pairs if isinstance(e, ItemDone)]
    assert record.payload[0] == strip_for_replay(ended[0])
    assert record.origin.family == "gpt-5.6-sol"
    assert record.origin.endpoint == "127.0.0.1"
    assert len(record.origin.account) == 16


async def test_text_does_not_wait_for_the_host_to_store_what_its_marker_names(
    desk: Desk,
) -> None:
    """The end waits, and tries again what was refused."""
    desk.host.chats.refusing = 2
    desk.host.chats.unlocked = asyncio.Event()
    shown: list[AnswerEvent] = []

    async with asyncio.timeout(60):
        prepared = await build_chat_request(call_of(chat("Hi"), valves_for(desk.sim)))
        async for event in answer_events(prepared, desk.connections):
            shown.append(event)
            if is_text(event) and not desk.host.chats.unlocked.is_set():
                assert desk.host.chats.writes == []
                desk.host.chats.unlocked.set()

    [marker] = [event for event in shown if isinstance(event, Marker)]
    [named] = split_at_markers(marker.text)
    assert named.ulid in read_records(desk.host.kept, SIGN)


async def test_stop_right_after_the_first_text_loses_no_record(desk: Desk) -> None:
    """Neither one that is being written, nor the marker's that was shown."""
    desk.host.chats.unlocked = asyncio.Event()
    prepared = await build_chat_request(call_of(chat("Hi"), valves_for(desk.sim)))

    async with asyncio.timeout(60):
        async with aclosing(answer_events(prepared, desk.connections)) as events:
            async for event in events:
                if is_text(event):
                    break
        desk.host.chats.unlocked.set()
        await until(lambda: bool(desk.host.kept))

    [record] = desk.kept
    assert record.payload[0]["type"] == "reasoning"


async def test_exception_of_the_database_ends_no_answer_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    write = desk.host.chats.update_chat_by_id
    failures = [OSError("canary")]

    async def fail_once(*given: Any, **named: Any) -> Any:
        if failures:
            raise failures.pop()
        return await write(*given, **named)

    monkeypatch.setattr(desk.host.chats, "update_chat_by_id", fail_once)

    pairs = await desk.ask("Hi")

    assert isinstance(pairs[-1][0], RunDone)
    assert len(read_records(desk.host.kept, SIGN)) == 1


async def test_amended_record_is_written_without_a_second_marker(desk: Desk) -> None:
    """A refusal is known as one only at its end."""
    pairs = await desk.ask("sim:refusal")

    assert len(markers_of(pairs)) == 1
    first, second = desk.host.chats.writes
    assert list(first) == list(second) == [message_key("m-1")]
    [record] = desk.kept
    assert record.payload[-1]["content"][0]["type"] == "refusal"


async def test_answer_holds_its_own_items_where_the_valve_says_so(desk: Desk) -> None:
    """Right after the first text that they belong to, and again as it ended."""
    pairs = await desk.ask("sim:refusal", HISTORY_CARRIER="output")

    events = [event for event, _ in pairs]
    first, again = [event for event in events if isinstance(event, StoredRecord)]
    text = events[events.index(first) - 1]
    assert isinstance(text, TextDelta)
    assert first.output_index == text.output_index == again.output_index
    assert first.item["id"] == again.item["id"]
    assert first.item["kept"] != again.item["kept"]
    assert markers_of(pairs) == []
    assert desk.host.chats.writes == []


@pytest.mark.parametrize(
    ("caller", "persist", "carried"),
    [
        (TEMPORARY, "conversation", 1),
        (TEMPORARY._replace(task="title_generation"), "conversation", 0),
        (TEMPORARY, "response", 0),
        (TEMPORARY._replace(chat_id=""), "conversation", 0),
        (TEMPORARY._replace(chat_id="chat-1"), "conversation", 0),
    ],
)
async def test_turns_are_carried_where_nothing_else_keeps_them(
    caller: Caller, persist: str, carried: int, desk: Desk
) -> None:
    """As long as the host reads the answer, and reasoning may be remembered."""
    pairs = await desk.ask("Hi", caller, PERSIST_REASONING_TOKENS=persist)

    assert [isinstance(event, TurnDetails) for event, _ in pairs].count(True) == carried


async def test_reasoning_that_is_not_kept_is_in_no_row(desk: Desk) -> None:
    """No write has it, not even one that a later write replaces."""
    await desk.ask("sim:commentary", PERSIST_REASONING_TOKENS="response")

    assert "encrypted_content" not in str(desk.host.chats.writes)


@pytest.mark.parametrize(
    ("sources", "number"),
    [([{"document": ["x"], "metadata": [{"source": "kept.pdf"}]}], 2), (None, 1)],
    ids=["retrieved", "none"],
)
async def test_sources_that_the_host_retrieved_are_counted(
    sources: object, number: int, desk: Desk
) -> None:
    """The page has numbered them already; for none the host has a null."""
    metadata = {"user_id": "user-1", **IDS, "sources": sources}
    call = call_of(
        chat("sim:web-search"),
        valves_for(desk.sim, ENABLE_WEB_SEARCH=True),
        host=host_context(metadata=metadata),
    )

    pairs = await desk.answer(call)

    text = "".join(e.text for e, _ in pairs if isinstance(e, TextDelta) and is_text(e))
    assert re.findall(r"\[(\d+)\]", text)[0] == str(number)


async def test_sources_of_the_first_part_of_an_answer_are_counted(desk: Desk) -> None:
    """An answer that goes on after an approval: the page still has them."""
    row_of(desk.host, "sim:web-search")
    messages = desk.host.chats.rows["chat-1"].chat["history"]["messages"]
    first = {"document": ["A", "B"], "metadata": [{"source": "a"}, {"source": "b"}]}
    messages["a0"]["sources"] = [first, first]
    call = asked_as(
        desk.sim,
        *("Be brief.", "sim:web-search"),
        ENABLE_WEB_SEARCH=True,
        metadata={"assistant_message_id": "a0"},
    )

    pairs = await desk.answer(call)

    text = "".join(e.text for e, _ in pairs if isinstance(e, TextDelta) and is_text(e))
    assert re.findall(r"\[(\d+)\]", text)[0] == "3"


@pytest.mark.parametrize("continued", [{}, {"assistant_message_id": "m-1"}])
async def test_sources_of_an_agents_context_are_shown_once(
    continued: dict[str, str], desk: Desk
) -> None:
    """The page has those of an answer that goes on."""
    model = "my_pipe.gpt5_function_calling"
    context = json.dumps({"context": [{"title": "Office", "content": "9 to 17"}]})
    call = call_of(
        chat("sim:short", model=model),
        valves_for(desk.sim, AGENT_JSON=context),
        Caller(model, "user-1", "chat-1", "m-1", streams=True),
        host=host_context(metadata={"user_id": "user-1", **IDS, **continued}),
    )

    events = [event for event, _ in await desk.answer(call)]

    assert "Office" in str(desk.sim.requests[-1].body)
    cited = [event for event in events if isinstance(event, SourceCited)]
    assert len(cited) == (0 if continued else 1)


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "gAAAAABo",
}


def response_of(text: str, **part: Any) -> Answerer:
    """A whole response: a thought, then a text."""
    content = {"type": "output_text", "text": text, "annotations": [], **part}
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    said = {**message, "status": "completed", "content": [content]}
    return in_one_piece(THOUGHT, said)


def refusing(message: str) -> Answerer:
    return replying(json.dumps({"error": {"message": message}}), status=400)


NOT_TAKEN = "Reasoning input items can only be provided to a reasoning model."


@pytest.mark.parametrize(
    ("quoted", "is_remembered"),
    [("", True), ("Reasoning input items can only be provided", False)],
)
async def test_chat_remembers_a_repair_unless_its_own_words_asked_for_it(
    quoted: str, is_remembered: bool, pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """A server that quotes the question says nothing about what comes later."""
    row_of(host, "Hi", "And?", "So?")
    answers = (response_of("One."), refusing(NOT_TAKEN), response_of("Two."))
    async with Upstream(in_turn(*answers)) as upstream:
        pipe.valves = valves_for(sim, BASE_URL=upstream.base_url, ENABLE_STREAM=False)
        texts = [f"Hi {quoted}"]
        for number in range(3):
            ids = {"user_message_id": f"q{number}", "message_id": f"a{number}"}
            given = {**NATIVE, "__metadata__": {**IDS, **ids}}
            chunks = await chunks_of(pipe, chat(*texts), **given)
            assert not errors(chunks)
            texts += [stored(chunks), "And?"]

    thoughts = [str(body["input"]).count("gAAAAABo") for body in upstream.bodies]
    assert thoughts == [0, 1, 0, 1 if is_remembered else 2]


async def test_files_are_fetched_in_half_of_the_silence_that_a_stream_may_have(
    desk: Desk,
) -> None:
    """No one reads the stream meanwhile, however many bytes of a file come."""
    cited = {
        "type": "container_file_citation",
        "container_id": "cntr_1",
        "file_id": "cfile_1",
        "filename": "a.csv",
        "start_index": 0,
        "end_index": 1,
    }
    said = response_of("Here.", annotations=[cited])

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            return await said(request)
        body = await started(request)
        while True:
            await asyncio.sleep(10)
            await body.write(b"x")

    async with Upstream(answer) as upstream:
        valves = valves_for(
            desk.sim,
            BASE_URL=upstream.base_url,
            ENABLE_STREAM=False,
            EXPERT_JSON=expert(idle_timeout_seconds=100),
        )
        began = asyncio.get_running_loop().time()
        pairs = await desk.answer(call_of(chat("Hi"), valves))
        await upstream.left.wait()

    assert 49 < asyncio.get_running_loop().time() - began < 52
    [card] = [e.card for e, _ in pairs if isinstance(e, ItemDone) and e.card]
    assert "could not be fetched" in str(card)
    assert desk.host.files.rows == {}
