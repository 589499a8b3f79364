"""One test for each stream: read, run, shown, kept, given back; whole and in pieces.

A failure names the invariant that does not hold: it is the name of a function here. To
cut the streams at other places: `CUTS_SEED=7 scripts/test tests/owui_chat/test_streams.py`.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat import ChatCompletionMessageCustomToolCall as CustomCall
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from chats.round_trip import expected, sent_next
from hosts.servers.functions import HostFunctions
from openai_responses.endings import COMPLETED
from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    content_parts,
    has_encrypted_reasoning,
    has_plain_reasoning,
    is_call,
    is_commentary,
    item_texts,
    item_type,
    message_text,
    open_calls,
)
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
    ToolOutput,
)
from openai_responses.loop.response import ResponseState
from openai_responses.requests.replay import (
    replay_items,
    replay_output,
    strip_for_replay,
)
from openai_responses.transport.stream import (
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    StreamError,
    TextDelta,
    parse_event,
)
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.citations import Citations, strip_tracking
from owui_chat.events import AnswerReport
from owui_chat.render.chunks import error_chunk, status_chunk
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.storage.records import message_key, read_records, write_records
from runs.joining import grown_texts, joined
from runs.sample import (
    AUTHOR,
    Told,
    ended_items,
    has_marker,
    natives,
    run_of_chunks,
    tell,
    texts_of,
    without,
    without_addresses,
)
from runs.streams import Stream, each_stream
from stand_in.signing import SIGN

Json = dict[str, Any]
Place = tuple[int, str]
"""Of a text: the index of its item, and its kind."""
CUTS_SEED = int(os.environ.get("CUTS_SEED", "1"))
HEAD = ("chatcmpl-1", 1_795_262_400, "openai_responses.gpt-5.2")
ANNOTATED = ("file-search", "recorded-responses-965")
"""Only the end of their texts knows the numbers of the sources."""


PLAIN = ("message", "reasoning", *CALL_OUTPUTS)
PREAMBLE = "hugging-face"
"""White space around a text before a call is the model's, and stays."""


class Response:
    """One response of a stream, and what each layer makes of it."""

    def __init__(self, stream: Stream, wire: bytes) -> None:
        self.stream = stream
        self.wire = wire
        self.events = self.run([wire])

    def run(self, pieces: Iterable[bytes]) -> list[RunEvent]:
        return run_of_chunks(pieces, self.stream.tools)

    @property
    def done(self) -> RunDone:
        done = self.events[-1]
        assert isinstance(done, RunDone)
        return done

    @cached_property
    def bytewise(self) -> list[RunEvent]:
        """The events of the run if each byte comes alone."""
        wire = self.wire
        return self.run(wire[at : at + 1] for at in range(len(wire)))

    @cached_property
    def told(self) -> Told:
        return tell(self.events)

    @cached_property
    def answer(self) -> list[Json]:
        view = ChunkRenderer(*HEAD)
        return [chunk for event in self.events for chunk in view.render(event)]


def bytes_one_by_one_make_the_same_run(response: Response) -> None:
    assert joined(response.bytewise) == joined(response.events)


def any_pieces_make_the_same_run(response: Response) -> None:
    wire = response.wire
    places = st.integers(0, len(wire))

    @seed(CUTS_SEED)
    @settings(max_examples=8, database=None, print_blob=False)
    @given(cuts=st.lists(places, max_size=60))
    def cut(cuts: list[int]) -> None:
        ends = sorted([0, *cuts, len(wire)])
        pieces = [wire[begin:end] for begin, end in pairwise(ends)]
        assert joined(response.run(pieces)) == joined(response.events)

    cut()


def grown_texts_are_the_final_texts(response: Response) -> None:
    """Bedrock's parts begin at 1 in the deltas, at 0 in the item (recorded)."""
    events = response.events
    ended = {e.output_index for e in events if isinstance(e, ItemDone)}
    shown, final = dict[Place, str](), dict[Place, str]()
    for (index, kind, _), text in sorted(grown_texts(events).items()):
        if index in ended:
            shown[index, kind] = shown.get((index, kind), "") + text
    for index, item in enumerate(response.done.output):
        for (kind, _), text in item_texts(item) if index in ended else ():
            if text:
                final[index, kind] = final.get((index, kind), "") + text
    assert shown == final
    hidden = [event for event in events if isinstance(event, HiddenMessage)]
    assert {message_text(event.item) for event in hidden} <= {*final.values()}


def items_begin_once_and_grow_and_end_after_it(response: Response) -> None:
    begun = list[int]()
    for event in response.events:
        if isinstance(event, ResponseDone):
            break
        if isinstance(event, ItemAdded | ToolOutput):  # an output comes at once
            begun.append(event.output_index)
    assert begun == list(range(len(begun)))
    open_items = set[int]()
    last = dict[int, RunEvent]()
    for event in response.events:
        match event:
            case ItemAdded(index, _):
                open_items.add(index)
            case TextDelta(index, _, _, text):
                assert index in open_items
                assert text
                last[index] = event
            case ItemDone(index, _):
                assert index in open_items
                last[index] = event
    # An item may end a second time, longer; what came after its end belongs to that.
    ended = {e.output_index for e in response.events if isinstance(e, ItemDone)}
    assert all(isinstance(last[index], ItemDone) for index in ended)


def an_item_ends_as_the_run_returns_it(response: Response) -> None:
    ends = {e.output_index: e for e in response.events if isinstance(e, ItemDone)}
    for index, event in ends.items():
        assert response.done.output[index] == event.item


def the_last_snapshot_alone_makes_the_same_run(response: Response) -> None:
    """As a JSON answer is one; the simulator's says all, as OpenAI's does."""
    snapshot = last_snapshot(response.wire) if response.stream.is_simulated else None
    if snapshot is None:
        return
    state = ResponseState()
    events = state.feed(snapshot)
    streamed = [i for i in response.done.output if not i["type"].endswith("_output")]
    assert without_moment(state.output) == without_moment(streamed)
    assert (state.ending, state.usage) == (response.done.ending, response.done.usage)
    ended = {e.output_index for e in events if isinstance(e, ItemDone)}
    streamed_texts = grown_texts(response.events)
    assert grown_texts(events) == {
        place: text for place, text in streamed_texts.items() if place[0] in ended
    }


def last_snapshot(wire: bytes) -> FinalResponse | None:
    """Return the event that ends a response, if it has one."""
    decoder = EventStreamDecoder()
    for event in reversed([*decoder.feed(wire), *decoder.close()]):
        if event.data.startswith("{") and event.data.endswith("}"):
            parsed = parse_event(event)
            if isinstance(parsed, StreamError):
                return None  # Azure's filter has the reason in a second event
            if isinstance(parsed, FinalResponse):
                return parsed
    return None


def without_moment(items: list[Item]) -> list[Item]:
    """Return `items` without what differs from the finished item to the last snapshot.

    That is the state, and how the encrypted content is written (recorded: 15 of 15).
    """
    return [without(item, "status", "encrypted_content") for item in items]


@cache
def input_item() -> TypeAdapter[Any]:
    """The type of the API, which takes long to make."""
    return TypeAdapter(ResponseInputItemParam)


def items_sent_again_have_the_types_of_the_api(response: Response) -> None:
    for item in replay_output(ended_items(response.events), with_reasoning=True):
        free = {"id": "rs_1"} if item["type"] == "reasoning" else {}
        free |= {"id": "msg_1", "status": "completed"} if "role" in item else {}
        input_item().validate_python({**free, **item})


def host_and_filters_can_read_every_chunk(response: Response) -> None:
    chunks = response.told.chunks
    for chunk in chunks:
        assert {"type", "usage", "error", "event"} & chunk.keys()
    for chunk in natives(chunks):
        assert chunk["type"].startswith("response.")
        assert chunk["type"] != "response.completed"  # it would replace all items
        [choice] = chunk["choices"]
        assert choice.keys() == {"index", "delta"}
    places = dict.fromkeys(c["output_index"] for c in chunks if "output_index" in c)
    assert list(places) == list(range(len(places)))


def page_is_the_same_byte_by_byte(response: Response) -> None:
    bytewise = tell(response.bytewise)
    assert bytewise.view.output.items == response.told.view.output.items
    assert bytewise.records == response.told.records


def sealed_reasoning_is_nowhere_to_read(response: Response) -> None:
    shown = [response.told.chunks, response.told.view.output.items, response.answer]
    assert "encrypted_content" not in json.dumps(shown)
    assert "encrypted_content" not in str(
        completion(response.done, *HEAD, AnswerReport())
    )


def every_record_has_its_marker_whole_in_one_event(response: Response) -> None:
    told = response.told
    deltas = [chunk["delta"] for chunk in told.chunks if "delta" in chunk]
    with_marker = [delta for delta in deltas if "[openai_r" in delta]
    for delta in with_marker:
        assert has_marker(delta)
        assert delta.startswith("\n\n[openai_responses:v2:")
        assert "]: #\n\n" in delta
    ids = [str(item.get("id")) for item in told.view.output.items]
    alone = [name for name in ids if name.startswith("msg_kept_")]
    assert len(with_marker) + len(alone) == len(told.records)


def other_functions_read_the_text_of_a_program(response: Response) -> None:
    """In the choices of the host's events, with the numbers of the page."""
    citations = Citations()
    shown = [each for event in response.events for each in citations.feed(event)]
    view = ChunkRenderer(*HEAD)
    answer = [chunk for event in shown for chunk in view.render(event)]
    assert said(response.told.chunks) == said(answer)


def said(chunks: list[Json]) -> str:
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get("content", "") for choice in choices)


def usage_is_sent_once(response: Response) -> None:
    used = [chunk for chunk in response.told.chunks if "usage" in chunk]
    assert len(used) == (1 if response.done.usage else 0)
    counted = [chunk for chunk in response.answer if "usage" in chunk]
    assert len(counted) == (1 if response.done.usage else 0)


def a_failure_is_told_once_and_without_choices(response: Response) -> None:
    """With them the host does not look at `error`.

    An answer that the model can continue gets a status line instead.
    """
    ending = response.done.ending
    chunks = response.told.chunks
    errors = [chunk for chunk in chunks if "error" in chunk]
    line = status_chunk(ending.message)["event"]
    told = [chunk for chunk in chunks if chunk.get("event") == line]
    begun = [event for event in response.events if isinstance(event, ItemAdded)]
    remarks = {e.output_index for e in begun if e.item.get("phase") == "commentary"}
    texts = texts_of(response.events)
    has_text = any(text for index, text in texts.items() if index not in remarks)
    is_continued = ending.can_continue and has_text
    assert bool(told) == is_continued
    is_error = ending.is_failure and not is_continued
    assert errors == ([error_chunk(ending.message)] if is_error else [])


def text_that_grew_on_the_page_is_what_is_stored(response: Response) -> None:
    """Numbers that only annotations know are put in at the end."""
    for before, item in ended_on_the_page(response.told.chunks):
        drawn = without_addresses(message_text(item))
        if response.stream.name in ANNOTATED:
            drawn = re.sub(r"\[\d\]", "", drawn)
        assert before == drawn


def ended_on_the_page(chunks: list[Json]) -> Iterator[tuple[str, Item]]:
    """Each item of text that ended, with the text that it had on the page before.

    A line that no one sees does not grow.
    """
    texts: dict[int, str] = {}
    ended = set[int]()
    for chunk in chunks:
        index = chunk.get("output_index", -1)
        item = chunk.get("item", {})
        if chunk.get("type") == "response.output_text.delta":
            texts[index] += chunk["delta"]
        if item.get("type") not in ("message", COMMENTARY_TYPE):
            continue
        if item["status"] != "in_progress" and index not in ended:
            ended.add(index)
            if not has_marker(message_text(item)) or texts[index]:
                yield texts[index], item
        texts[index] = message_text(item)


def thoughts_that_grew_are_what_is_stored(response: Response) -> None:
    told = response.told
    for index, item in enumerate(told.view.output.items):
        if item["type"] == "reasoning" and item["status"] == "completed":
            grown = [
                chunk["delta"]
                for chunk in told.chunks
                if "delta" in chunk and chunk["output_index"] == index
            ]
            parts = [*item.get("summary", []), *item.get("content", [])]
            assert "".join(grown) == "".join(part["text"] for part in parts)


def clients_can_read_every_chunk(response: Response) -> None:
    """By the types of the openai package, strictly; errors are apart.

    Of custom calls it has a type in whole answers alone.
    """
    for chunk in json.loads(json.dumps(response.answer)):
        if "error" in chunk:
            assert set(chunk) == {"error"}
            continue
        for custom in take_custom_calls(chunk):
            CustomCall.model_validate(custom, strict=True)
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert (chunk["id"], chunk["created"], chunk["model"]) == HEAD


def take_custom_calls(chunk: Json) -> list[Json]:
    """The custom calls of a chunk, taken out of it."""
    deltas = [choice["delta"] for choice in chunk["choices"]]
    taken = [c for d in deltas for c in d.get("tool_calls", []) if "custom" in c]
    for delta in deltas if taken else ():
        del delta["tool_calls"]  # each chunk has one
    return taken


def programs_get_all_texts_and_calls_once(response: Response) -> None:
    events = response.events
    hidden = {e.output_index for e in events if isinstance(e, HiddenMessage)}
    output = [
        item for index, item in enumerate(response.done.output) if index not in hidden
    ]
    deltas = [c["choices"][0]["delta"] for c in response.answer if c.get("choices")]
    text = "".join(delta.get("content", "") for delta in deltas)
    thoughts = "".join(delta.get("reasoning_content", "") for delta in deltas)
    messages = [item for item in output if item_type(item) == "message"]
    texts = [message_text(item) for item in messages if not is_commentary(item)]
    remarks = [message_text(item) for item in messages if is_commentary(item)]
    assert text.startswith("\n\n".join(map(strip_tracking, texts)))
    assert all(strip_tracking(remark) in thoughts for remark in remarks)
    assert "utm_source" not in str(response.answer)
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    made = [item["call_id"] for item in open_calls(output)]
    assert sorted(call["id"] for call in calls) == sorted(made)
    assert [call["index"] for call in calls] == list(range(len(calls)))


def programs_get_one_reason_or_one_error(response: Response) -> None:
    choices = [chunk["choices"][0] for chunk in response.answer if chunk.get("choices")]
    reasons = [c["finish_reason"] for c in choices if c["finish_reason"]]
    errors = [chunk["error"] for chunk in response.answer if "error" in chunk]
    assert len(reasons + errors) == 1


def an_answer_in_one_piece_is_the_streamed_one(response: Response) -> None:
    body = completion(response.done, *HEAD, AnswerReport())
    kind = response.done.ending.kind
    assert ("error" in body) == (kind not in ("completed", "incomplete"))
    if "choices" not in body:
        assert set(body) == {"error"}
        return
    ChatCompletion.model_validate(json.loads(json.dumps(body)), strict=True)
    if "error" in body:
        return
    [choice] = body["choices"]
    choices = [chunk["choices"][0] for chunk in response.answer if chunk.get("choices")]
    streamed = "".join(each["delta"].get("content", "") for each in choices)
    images = [image for each in choices for image in each["delta"].get("images", [])]
    assert choice["message"].get("images", []) == images
    is_doubled = any(isinstance(event, HiddenMessage) for event in response.events)
    # Without a text there was commentary before a call, which is reasoning there.
    if streamed and not is_doubled:
        assert choice["message"]["content"] == streamed
        thoughts = "".join(
            each["delta"].get("reasoning_content", "") for each in choices
        )
        # While it grows, the last remark may still be none of the answer.
        assert thoughts.startswith(choice["message"].get("reasoning_content", ""))
    assert choice["finish_reason"] == choices[-1]["finish_reason"]


def records_hold_clean_items_alone(response: Response) -> None:
    """No ids, no states, no picture, and no reasoning without its seal.

    But in front of a call that is left to the host: its server wants it as it was.
    """
    for record in response.told.written:
        assert record.payload
        assert "base64" not in str(record.payload)
        assert "iVBORw0KGgo" not in str(record.payload)
        for number, item in enumerate(record.payload):
            if has_plain_reasoning(item):
                assert [item] == replay_items(item)
                assert any(map(is_call, record.payload[number:]))
            else:  # of a call that was made, the card has what is null here
                stripped = strip_for_replay(item)
                assert {**item, **stripped} == item
                assert not any(item[key] for key in item.keys() - stripped.keys())
                assert item["type"] != "reasoning" or has_encrypted_reasoning(item)


def each_record_is_written_twice_at_most(response: Response) -> None:
    """A text grows in thousands of deltas; the chat is written a few times."""
    told = response.told
    begun = [e for e in response.events if isinstance(e, ItemAdded)]
    assert len(told.records) <= len(begun) + 1
    assert len(told.written) <= 2 * len(told.records)


def records_are_read_as_they_were_written(response: Response) -> None:
    records = response.told.records
    chat = {message_key("m-1"): write_records(records, SIGN)}
    assert read_records(json.loads(json.dumps(chat)), SIGN) == records


def without_consent_no_reasoning_is_kept(response: Response) -> None:
    author = AUTHOR._replace(keeps_reasoning=False)
    assert "encrypted_content" not in str(tell(response.events, author).written)


INVARIANTS: tuple[Callable[[Response], None], ...] = (
    bytes_one_by_one_make_the_same_run,
    any_pieces_make_the_same_run,
    grown_texts_are_the_final_texts,
    items_begin_once_and_grow_and_end_after_it,
    an_item_ends_as_the_run_returns_it,
    the_last_snapshot_alone_makes_the_same_run,
    items_sent_again_have_the_types_of_the_api,
    host_and_filters_can_read_every_chunk,
    page_is_the_same_byte_by_byte,
    sealed_reasoning_is_nowhere_to_read,
    every_record_has_its_marker_whole_in_one_event,
    other_functions_read_the_text_of_a_program,
    usage_is_sent_once,
    a_failure_is_told_once_and_without_choices,
    text_that_grew_on_the_page_is_what_is_stored,
    thoughts_that_grew_are_what_is_stored,
    clients_can_read_every_chunk,
    programs_get_all_texts_and_calls_once,
    programs_get_one_reason_or_one_error,
    an_answer_in_one_piece_is_the_streamed_one,
    records_hold_clean_items_alone,
    each_record_is_written_twice_at_most,
    records_are_read_as_they_were_written,
    without_consent_no_reasoning_is_kept,
)


@each_stream
def test_stream(stream: Stream) -> None:
    for number, wire in enumerate(stream.rounds(), start=1):
        response = Response(stream, wire)
        for invariant in INVARIANTS:
            with naming(invariant.__name__, stream, number):
                invariant(response)


@contextmanager
def naming(invariant: str, stream: Stream, number: int) -> Iterator[None]:
    """Say which invariant does not hold for which response."""
    try:
        yield
    except Exception as error:
        place = f"{stream.name}, response {number} (CUTS_SEED={CUTS_SEED})"
        error.add_note(f"{invariant}: does not hold for {place}")
        raise


@each_stream
def test_stream_comes_back(stream: Stream, host_functions: HostFunctions) -> None:
    """The real host stores what the page holds; the next turn sends what came."""
    rounds: list[list[RunEvent]] = []
    for number, wire in enumerate(stream.rounds(), start=1):
        response = Response(stream, wire)
        rounds.append(response.events)
        with naming("host_stores_what_the_page_holds", stream, number):
            host_stores_what_the_page_holds(response, host_functions)
    carriers = ["markers", "output"] if stream.name != PREAMBLE else []
    if all(map(fits_details, rounds)):
        carriers.append("details")
    for carrier in carriers:
        with naming(f"next_turn_sends_what_came ({carrier})", stream, len(rounds)):
            sent = sent_next(host_functions, rounds, carrier)
            assert sent == expected(rounds, carrier)


def fits_details(events: list[RunEvent]) -> bool:
    """Whether a response is whole, of items of ours, with sealed reasoning."""
    items = ended_items(events)
    plain = all(item_type(item) in PLAIN and not cites(item) for item in items)
    done = events[-1]
    is_whole = isinstance(done, RunDone) and done.ending == COMPLETED
    return is_whole and plain and any(map(has_encrypted_reasoning, items))


def cites(item: Item) -> bool:
    """Whether the page shows another text, with numbers for what it refers to."""
    return any(part.get("annotations") for part in content_parts(item.get("content")))


def host_stores_what_the_page_holds(response: Response, host: HostFunctions) -> None:
    """Item by item; a text that was cut off is there as far as it grew."""
    reduced = host.reduce(natives(response.told.chunks))
    held_items = response.told.view.output.items
    assert len(reduced) == len(held_items)
    for item, held in zip(reduced, held_items, strict=True):
        if held.get("status") != "in_progress":
            assert item == held
        else:
            growing = ("content", "summary")
            assert without(item, *growing) == without(held, *growing)
    ended = {e.output_index for e in response.events if isinstance(e, ItemDone)}
    texts = texts_of(response.events)
    cut = [text for index, text in texts.items() if index not in ended]
    begun = [i for i in reduced if i.get("status") in ("in_progress", "incomplete")]
    shown = map(message_text, begun)  # a remark as a quotation
    unfinished = [text.removeprefix("> ").replace("\n> ", "\n") for text in shown]
    assert all(any(text in whole for whole in unfinished) for text in cut if text)
