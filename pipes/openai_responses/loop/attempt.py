"""One attempt: a request that is sent once, and its answer as far as it came.

    bytes of a stream   _StreamReader    run events
    run events          Attempt          what is shown now; the rest is held

Nothing is shown that another attempt would say again: a request can be sent again only
while no part of its answer is visible.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from openai_responses.callbacks import ignore_report
from openai_responses.endings import (
    CHECK_TOKEN,
    COMPLETED,
    CUT,
    QUEUED,
    UNREADABLE,
    Ending,
    ending_of_exception,
    ending_of_incomplete,
    ending_of_refusal,
    notice_text,
    unreadable_answer,
)
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    NO_FAULT,
    AnswerTooLarge,
    ApiRefused,
    MalformedEvent,
    ResponsesError,
    UnreadableAnswer,
)
from openai_responses.items import Item, has_text, is_reasoning, item_type
from openai_responses.json_input import JsonObject, as_text, json_weight
from openai_responses.loop.events import (
    GIVEN_UP,
    ResponseDone,
    RunEvent,
    RunEvents,
    Status,
    Trace,
)
from openai_responses.loop.response import ResponseState
from openai_responses.loop.tagged_thoughts import (
    THOUGHT_TAGS,
    TaggedThoughts,
    ThoughtTags,
)
from openai_responses.models.choice import name_asked_model
from openai_responses.models.usage import Usage
from openai_responses.repairs.refusal import Refusal
from openai_responses.repairs.request_repairs import GUARDS
from openai_responses.requests.build import (
    ResponsesRequest,
    strict_payload,
    with_json_arguments,
)
from openai_responses.requests.tools import added_tool_names
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import (
    MAX_ANSWER_BYTES,
    Connections,
    HttpResponse,
)
from openai_responses.transport.deadlines import Deadlines, Timeouts
from openai_responses.transport.stream import (
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ServerSentEvent,
    StreamEvent,
    TextDelta,
    describe_unreadable,
    is_opening,
    join_deltas,
    parse_event,
    read_opening,
)


class Limits(NamedTuple):
    """How a run behaves towards viewers and towards the server."""

    join_seconds: float = 0.05
    """The shortest time between two events that show more of an answer; in a crowd of
    answers up to three times as long."""
    timeouts: Timeouts = Timeouts()
    retries: RetryPolicy = RetryPolicy()
    resuming: RetryPolicy = RetryPolicy(max_retries=12)
    """Of the requests in a row for the rest of a background response."""
    poll_seconds: float = 5.0
    """The wait while the server is still working on a background response."""
    most_bytes: int = MAX_ANSWER_BYTES
    """Of one response, counted by `json_weight`."""
    set_waiting: Callable[[bool], object] = ignore_report
    """Called with true when the server is waited for or speaks, else with false."""
    count_response: Callable[[Sequence[Usage], Sequence[Item]], str] = lambda *_: ""
    """Counts the usages of the run so far and the output of each response, none of one
    that is sent again; returns why the run ends although tools are called, or nothing."""
    flex_falls_back: bool = False
    """Whether the standard tier, which costs twice as much, may answer where the flex
    tier has no capacity."""
    thought_tags: ThoughtTags = THOUGHT_TAGS
    """What makes a thought of the beginning of a text; not at OpenAI and Azure, where
    it is the model's own text."""
    keeps_tagged_thoughts: bool = True
    """Whether such a thought is shown, and sent again."""
    context_window: int | None = None
    """The tokens that the model can take and write together, where they are known."""


class Server(NamedTuple):
    """The model's server, as all attempts of a run reach it."""

    endpoint: Endpoint
    connections: Connections
    limits: Limits
    deadlines: Deadlines


class PageThought:
    """The thought on the page before anything else of a response.

    The attempts at the response continue it in turn.
    """

    def __init__(self) -> None:
        self.output_index: int | None = None
        """None until it begins."""
        self.part_count = 0


@dataclass(eq=False)
class Attempt:
    """One request and one answer.

    The items of the response are numbered from `first_index`; its calls get none of
    the `call_ids`.
    """

    server: Server
    request: ResponsesRequest
    page_thought: PageThought
    first_index: int = 0
    call_ids: Collection[str] = ()

    def __post_init__(self) -> None:
        tool_names = added_tool_names(self.request.input)
        tools = self.request.tools or ()
        tool_names.update(as_text(tool.get("name")) for tool in tools)
        self.response = ResponseState(self.first_index, self.call_ids, tool_names)
        self.error: ResponsesError | None = None
        """Why there is no answer, or only a part of it."""
        self.skipped = Counter[str]()
        """The events that cannot be read, by what they are."""
        self.has_shown = False
        """Whether more than a thought is on the page."""
        self.thinks = False
        """Whether the thought on the page is also that of this attempt."""
        self._earlier_parts = self.page_thought.part_count
        """How many parts of it earlier attempts have shown."""
        self._held: list[RunEvent] = []
        """The events that are not shown yet."""
        self._tagged: TaggedThoughts | None = None
        """What makes reasoning of tags; None at OpenAI and Azure."""

    async def events(self) -> RunEvents:
        """Send the request; yield what is shown of its answer.

        A failure is not raised: `error` has it.
        """
        limits = self.server.limits
        try:
            payload = self.request.payload()
            # Raises InvalidSetting if the endpoint has no address that can be used.
            if not self.server.endpoint.serves_openai:
                payload = with_json_arguments(payload)
                if limits.thought_tags:
                    self._tagged = TaggedThoughts(
                        self.first_index,
                        limits.thought_tags,
                        keeps_thoughts=limits.keeps_tagged_thoughts,
                    )
            if self.server.endpoint.is_strict:
                payload = strict_payload(payload)
            async with aclosing(self._answer(payload)) as events:
                async for event in events:
                    split = self._tagged.feed(event) if self._tagged else [event]
                    for each in split:
                        for shown in self._show_or_hold(each):
                            yield shown
        except ResponsesError as caught:
            if self.response.ending is None:  # what follows the end is not missed
                self.error = caught

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The finished items of the response with their indexes."""
        items = self.response.items
        return self._tagged.items(items) if self._tagged else items

    def _answer(self, payload: dict[str, Any]) -> RunEvents:
        return self._exchange("/responses", payload)

    async def _exchange(
        self,
        path: str,
        payload: dict[str, Any] | None,
        is_new: Callable[[ServerSentEvent], bool] | None = None,
    ) -> RunEvents:
        """Send a request, feed the answer to the response, and yield its run events.

        Without a `payload` it requests a response, or the rest of its stream. `is_new`
        is given for a background response, whose stream may come in several answers: it
        says which events to read. A response that is still in progress yields nothing.
        Raises what `Connections.request` raises, AnswerTooLarge, and MalformedEvent if
        nothing of a stream can be read. Cancelling or closing it closes the connection.
        """
        server = self.server
        response = self.response
        response.has_end_mark = False  # it was that of an earlier stream
        server.deadlines.start_attempt()
        async with server.connections.request(
            server.endpoint, path, payload, server.deadlines
        ) as answer:
            response.trace = Trace(answer.request_id, status=200)
            if not await answer.is_stream():
                for event in self._feed_whole(await answer.response_object()):
                    yield event
                return
            reader = _StreamReader(self, answer, is_new)
            earlier_events = response.event_count
            while not (answer.is_read or response.is_over or response.has_end_mark):
                ends = response.ending is not None
                limit = asyncio.timeout(_SECOND_ANSWER) if ends else nullcontext()
                try:
                    async with limit:
                        events = await reader.read_batch()
                except TimeoutError:
                    break
                for event in events:
                    yield event
                if reader.unreadable:
                    raise reader.unreadable
                await reader.gather_deltas(events)
            if reader.has_skipped and response.event_count == earlier_events:
                raise MalformedEvent
            reason = await reader.read_reason()
            if is_new is None:  # else the response may go on after the stream
                reason += response.close()
            for event in reason:
                yield event

    def _feed_whole(self, response: JsonObject) -> list[RunEvent]:
        """Feed an answer in one piece to the response; return its run events."""
        status = str(response.get("status") or "completed")
        if status in IN_PROGRESS:
            # Sent again, it would be paid twice; without a background request, the
            # server need not keep the response.
            raise unreadable_answer(QUEUED)
        return self.response.feed(FinalResponse(status, response))

    def _show_or_hold(self, event: RunEvent) -> list[RunEvent]:
        """Return what is shown now; the rest waits for the first visible event.

        What waits leaves no trace if the request is sent again. Only the first thought is
        shown at once, up to its end: users see that the model is at work. Thinking takes
        longest, so most connections break there; another attempt then thinks on in the
        same place.
        """
        if isinstance(event, ResponseDone) and self.response.refusal:
            self._held.append(event)  # it may be requested again
            return []
        if self.has_shown or isinstance(event, Status):
            return [event]
        thought = self.page_thought
        if not self._held:
            if isinstance(event, ItemAdded) and is_reasoning(event.item):
                if thought.output_index is None:
                    thought.output_index = event.output_index
                    self.thinks = True
                    return [event]
                if thought.output_index == event.output_index:
                    self.thinks = True
                    return []
            if self._is_of_thought(event) and isinstance(event, TextDelta):
                part = self._earlier_parts + event.part
                thought.part_count = max(thought.part_count, part + 1)
                return [event._replace(part=part)]
        self._held.append(event)
        # The end of the thought waits for what follows: it would be stored, and an
        # attempt that thinks again brings another one.
        if self._is_of_thought(event) or not _is_visible(event):
            return []
        released = self.release()
        self.has_shown = True
        return released

    def _is_of_thought(self, event: RunEvent) -> bool:
        """Say whether an event grows or ends the thought on the page."""
        if not self.thinks or not isinstance(event, TextDelta | ItemDone):
            return False
        return event.output_index == self.page_thought.output_index

    def release(self) -> list[RunEvent]:
        """Return the events that are held, after the end of an earlier thought."""
        events = self._held
        self._held = []
        thought_index = self.page_thought.output_index
        if not self.has_shown and thought_index is not None and not self.thinks:
            events = [ItemDone(thought_index, GIVEN_UP), *events]
        return events

    @property
    def ending(self) -> Ending:
        """How the response ended."""
        endpoint = self.server.endpoint
        used = self.response.usage
        ending = self.response.ending
        if ending is None:
            has_begun = self.response.event_count > 0
            ending = CUT if has_begun else UNREADABLE
            if self.error:
                ending = ending_of_exception(self.error, has_begun)
            if isinstance(self.error, ApiRefused) and self.error.status >= 400:
                # Gateways name a safeguard in words alone, which the request could not
                # have said: an administrator can leave it out of all requests. Others
                # add one themselves (NousResearch/hermes-agent 90257).
                refused = self.error.error
                sent = self.request.sent()
                named = refused.param or Refusal(refused, sent).parameter
                if named in GUARDS:
                    param = named if named in sent.payload else None
                    refused = refused._replace(param=param)
                    ending = ending_of_refusal(self.error.status, refused)
        elif ending == COMPLETED and used and not endpoint.serves_openai:
            # llama.cpp calls every answer complete, also one that a limit has cut off
            # (recorded); OpenAI says so itself. In a full context input and output are
            # exactly the window. With `--context-shift` they can be more, and the
            # answer is complete (measured, b10434).
            most = self.request.max_output_tokens
            if most and used.output >= most:
                ending = ending_of_incomplete("max_output_tokens")
            elif used.total == self.server.limits.context_window:
                ending = ending_of_incomplete("context_length_exceeded")
        message = endpoint.name_server(ending.message)
        if endpoint.sends_token_alone and ending.fault.settings == ("api_key",):
            message = f"{message.replace('API key', 'token')} {CHECK_TOKEN}"
            ending = ending._replace(fault=NO_FAULT)
        message = name_asked_model(message, self.request.model)
        error = self.response.trace.error
        if isinstance(self.error, ApiRefused):
            error = self.error.error
        notice = notice_text(error.notice, endpoint.secrets)
        return ending._replace(message=f"{message} {notice}".strip())

    @property
    def trace(self) -> Trace:
        """What the log needs to know about the answer."""
        error = self.error
        trace = self.response.trace
        if isinstance(error, ApiRefused):
            failure = error.failure
            trace = Trace(
                request_id=error.request_id,
                status=failure.status,
                error=error.error,
                retry_after=failure.retry_after,
            )
        if not trace.error.names_a_place:  # most runs, and a request may be large
            return trace
        subject = Refusal(trace.error, self.request.sent()).subject
        return trace._replace(subject=subject)


IN_PROGRESS = frozenset({"queued", "in_progress"})
"""The statuses of a response on which the server is working."""
_SECOND_ANSWER = 10.0
"""Seconds that a stream may be silent after the end of a response that may go on."""
_ENDLESS = float("inf")
_LATE = 0.8
"""A delta is slow if it comes later than this part of a wait after the wait. With a
smaller part, a busy process would take all deltas for slow ones."""
_SHORT_SHARE = 0.02
"""The part of `Limits.join_seconds` for which deltas of reasoning are joined, because the
answer after them must not wait, and that after the first delta of a text: an answer that
comes at once is over by then."""
_THOUGHT_SHARE_OF_CROWD = 0.5
"""The part of it for reasoning in a crowd, where an answer begins later because of what
all deltas cost."""

_FEW_ANSWERS = 8
"""Of more at once, each is shown less often, so that all together are shown as often as
these. What a host does with a delta costs most, and a process that cannot keep up shows
all of them late."""
_MOST_LONGER = 8.0


def _is_visible(event: RunEvent) -> bool:
    """Say whether the page draws something for an event."""
    if isinstance(event, ResponseDone):
        return False
    if not isinstance(event, ItemAdded | ItemDone):
        return True
    is_text = item_type(event.item) in ("message", "reasoning")
    return not is_text or has_text(event.item)


class _StreamReader:
    """Reads one streamed answer, batch by batch, and feeds it to its response.

    A batch is what has arrived meanwhile. Reading less often makes long answers cheap:
    one pass handles all its deltas. No bytes of the wire are held between two batches.
    """

    def __init__(
        self,
        attempt: Attempt,
        answer: HttpResponse,
        is_new: Callable[[ServerSentEvent], bool] | None,
    ) -> None:
        self._server = attempt.server
        self._response = attempt.response
        self._skipped = attempt.skipped
        self._answer = answer
        self._is_new = is_new
        # A stream is resumed after the number of its last event.
        self._decoder = EventStreamDecoder(joins_deltas=is_new is None)
        self.has_skipped = False
        """Whether an event was left out that cannot be read."""
        self.unreadable: UnreadableAnswer | AnswerTooLarge | None = None
        """Why the rest of the last batch was not read."""
        self._now = asyncio.get_running_loop().time
        self._read_at = self._now()
        self._waited = 0.0
        """For how many seconds the last bytes were waited for."""
        self._patience = _ENDLESS
        """After how many seconds the next delta is a slow one."""
        self._has_text = False
        """Whether a delta of a text has come."""

    async def read_batch(self) -> list[RunEvent]:
        """Wait for bytes; return their run events, up to what is not read."""
        began = self._now()
        chunk = await self._answer.read_any()
        response = self._response
        response.byte_count += json_weight(chunk)
        if response.byte_count > self._server.limits.most_bytes:
            raise AnswerTooLarge
        self._read_at = self._now()
        self._waited = self._read_at - began
        batch = self._decoder.feed(chunk) if chunk else self._decoder.close()
        earlier_events = response.event_count
        events = self._feed(batch)
        if response.event_count > earlier_events:
            self._server.deadlines.event_arrived()
        return events

    async def gather_deltas(self, events: Sequence[RunEvent]) -> None:
        """Wait for a moment if the last event is a delta: more of them will follow.

        The first delta after a pause is never delayed. Where deltas come more slowly, a
        wait joins none, and its timer costs half as much again as all else that is done
        for a delta.
        """
        last = events[-1] if events else None
        patience = self._patience
        self._patience = _ENDLESS
        if not isinstance(last, TextDelta):
            return
        server = self._server
        crowd = server.connections.open_requests / _FEW_ANSWERS
        is_text = last.kind in ("text", "refusal")
        longest = server.limits.join_seconds * min(max(crowd, 1.0), _MOST_LONGER)
        if not is_text:
            longest *= _SHORT_SHARE if crowd <= 1 else _THOUGHT_SHARE_OF_CROWD
        if self._waited > patience:
            self._patience = longest
            return
        self._patience = longest * _LATE
        if is_text and not self._has_text and crowd <= 1:
            longest *= _SHORT_SHARE
        self._has_text = self._has_text or is_text
        spent = self._now() - self._read_at
        seconds = longest - spent
        with self._answer.paused():
            await asyncio.sleep(max(0.0, seconds))

    async def read_reason(self) -> list[RunEvent]:
        """Return the run events after the last event of a refused stream: its reason.

        Nothing else of an answer that has ended is read.
        """
        rest = await self._answer.drain()
        if self._response.refusal is None:
            return []
        return self._feed([*self._decoder.feed(rest), *self._decoder.close()])

    def _feed(self, batch: Sequence[ServerSentEvent]) -> list[RunEvent]:
        """Return the run events of `batch`, up to the first that is not read.

        That is one of another API, or one with more items than an answer may have.
        """
        self.unreadable = None
        run_events: list[RunEvent] = []
        for event in join_deltas(self._parse(batch)):
            try:
                run_events += self._response.feed(event)
            except AnswerTooLarge as error:
                self.unreadable = error
                break
        return run_events

    def _parse(self, batch: Iterable[ServerSentEvent]) -> Iterator[StreamEvent]:
        """Yield the new events of `batch`; `unreadable` says why it ends early.

        An event that cannot be read is left out: proxies keep a connection alive with
        an empty `data:` or a word, and the last snapshot repeats what one lost line had.
        """
        for wire_event in batch:
            if self._is_new is None and is_opening(wire_event):
                yield read_opening(wire_event)
                continue
            try:
                parsed = parse_event(wire_event)
            except MalformedEvent:
                self.has_skipped = True
                self._skipped[describe_unreadable(wire_event)] += 1
                continue
            except UnreadableAnswer as error:
                self.unreadable = error
                return
            if self._is_new is None or self._is_new(wire_event):
                yield parsed
