"""One response: a request that is sent, then sent again, resumed or polled if that helps.

A request is sent again only before something of its answer was shown: repaired, if the
cause of the refusal is found, or unchanged, if waiting may help.

A background response continues at the server when a connection breaks, so its stream is
resumed behind the last event (OpenAI's guide "Background mode"). The response itself is
requested if a stream brought nothing new, because there is no event for a cancelled
response, and if the API refuses to resume, five minutes after the beginning.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Any, NamedTuple

from openai_responses.callbacks import ignore_report
from openai_responses.clock import random_fraction
from openai_responses.endings import (
    COMPLETED,
    CUT,
    FLEX_UNAVAILABLE,
    QUEUED,
    UNREADABLE,
    Ending,
    ending_of_exception,
    ending_of_incomplete,
    failure_status,
    is_final,
    notice_text,
)
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    ConnectionFailed,
    Failure,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    TimedOut,
    UnreadableAnswer,
)
from openai_responses.items import (
    Item,
    find_call_ids,
    has_text,
    is_call,
    is_reasoning,
    item_type,
)
from openai_responses.json_input import JsonObject, as_mapping, as_text, json_weight
from openai_responses.loop.events import (
    NO_THOUGHT,
    ModelAnswer,
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
from openai_responses.repairs.finding import Trial, blind_repair, find_repair
from openai_responses.repairs.refusal import SentRequest, named_subject
from openai_responses.requests.build import ResponsesRequest, strict_payload
from openai_responses.requests.replay import is_approval_request
from openai_responses.requests.tools import added_tool_names
from openai_responses.retries import RetryPolicy, loading_wait, retry_wait
from openai_responses.transport.connections import (
    MAX_ANSWER_BYTES,
    Connections,
    Deadlines,
    HttpResponse,
    Timeouts,
)
from openai_responses.transport.stream import (
    END_OF_STREAM,
    EventStreamDecoder,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ServerSentEvent,
    StreamEvent,
    TextDelta,
    describe_unreadable,
    join_deltas,
    parse_event,
)

_THOUGHT_SHARE = 0.02
"""The part of `Limits.join_seconds` for which deltas of reasoning are joined: the answer
behind them must not wait."""


def _never_spent(_usages: Sequence[Usage], _output: Sequence[Item]) -> str:
    """Return no reason to end a run: without a budget nothing is used up."""
    return ""


class Limits(NamedTuple):
    """How a run behaves towards viewers and towards the server."""

    join_seconds: float = 0.05
    """The shortest time between two events that show more of an answer."""
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
    spent: Callable[[Sequence[Usage], Sequence[Item]], str] = _never_spent
    """Takes the usages of the run so far and the output of each response; returns why
    the run ends although tools are called, or nothing."""
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


class Attempts:
    """The attempts at each response of a run.

    This is the provider of the Responses API (`loop/run.py`).
    """

    def __init__(
        self, endpoint: Endpoint, connections: Connections, limits: Limits
    ) -> None:
        """Start the total limit of the run."""
        self.endpoint = endpoint
        self.connections = connections
        self.limits = limits
        self.deadlines = Deadlines(limits.timeouts, limits.set_waiting)
        self.usages: list[Usage] = []
        """Those of all attempts of the run."""
        self.skipped = Counter[str]()
        """The events of the run that cannot be read, by what they are."""
        self._call_ids: set[str] = set()
        """Those of all calls of the run."""

    async def generate(
        self, request: ResponsesRequest, first_index: int = 0
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send `request` and yield its events, until there is nothing more to try.

        The items of the response are numbered from `first_index`.
        """
        earlier_usages = len(self.usages)
        self.request = request
        self._call_ids |= find_call_ids(request.input)
        tool_names = added_tool_names(request.input)
        tool_names.update(as_text(tool.get("name")) for tool in request.tools or ())
        self._retries = 0
        self._repaired = 0
        self._loading = 0.0
        """Seconds for which the server's model has been waited for."""
        self._thought: ItemAdded | None = None
        """The thought that is on the page before anything else of the response."""
        self._thought_parts = 0
        """How many parts of it are on the page."""
        while True:
            self.response = ResponseState(first_index, self._call_ids, tool_names)
            async with aclosing(self._attempt(first_index)) as events:
                async for event in events:
                    yield event
            status, wait = self._prepare_next_attempt()
            if status is None or not self.deadlines.allow(wait):
                break
            if status != _MODEL_IS_LOADED or self._loading <= wait:  # once
                yield status
            self.limits.set_waiting(False)
            await asyncio.sleep(wait)
        if not self.has_shown:
            for event in (*self._end_thought(), *self._held):
                yield event
        self._end_if_cut_off()
        self._end_if_used_up()
        yield ModelAnswer(
            ending=self.ending,
            request=self.request,
            items=tuple(self._items()),
            usages=tuple(self.usages[earlier_usages:]),
            last_usage=self.response.usage,
            trace=self.trace,
            has_shown=self.has_shown,
        )

    async def _attempt(self, first_index: int) -> RunEvents:
        """Send the request once; yield what is shown of its answer.

        `error` then says why there is no answer, or only a part of it.
        """
        self.error: ResponsesError | None = None
        self.has_shown = False
        """Whether the attempt has shown more than a thought."""
        self._thinks = False
        """Whether the thought on the page is also that of this attempt."""
        self._earlier_parts = self._thought_parts
        """How many parts of that thought came from earlier attempts."""
        self._held: list[RunEvent] = []
        """The events of the attempt that are not shown yet."""
        self._tagged: TaggedThoughts | None = None
        """What makes reasoning of tags; None at OpenAI and Azure."""
        try:
            tags = self.limits.thought_tags
            if tags and not self.endpoint.serves_openai:
                keeps_thoughts = self.limits.keeps_tagged_thoughts
                self._tagged = TaggedThoughts(
                    first_index, tags, keeps_thoughts=keeps_thoughts
                )
            async with aclosing(self._send(self.request)) as events:
                async for event in events:
                    split = self._tagged.feed(event) if self._tagged else [event]
                    for each in split:
                        for shown in self._show_or_hold(each):
                            yield shown
        except ResponsesError as caught:
            if self.response.ending is None:  # what follows the end is not missed
                self.error = caught
        if self.response.usage:
            self.usages.append(self.response.usage)

    def _items(self) -> list[tuple[int, Item]]:
        """Return the finished items of the response with their indexes."""
        items = self.response.items
        return self._tagged.items(items) if self._tagged else items

    def paused(self) -> AbstractContextManager[None]:
        """Stop the total limit while tools run or people decide."""
        return self.deadlines.paused()

    def _end_if_cut_off(self) -> None:
        """Name the limit of an answer that ended there.

        llama.cpp calls every answer complete (recorded); OpenAI says so itself. In a full
        context input and output are exactly the window. With `--context-shift` they can
        be more, and the answer is complete (measured, b10434).
        """
        most = self.request.max_output_tokens
        used = self.response.usage
        if self.response.ending != COMPLETED or self.endpoint.serves_openai or not used:
            return
        if most and used.output >= most:
            self.response.ending = ending_of_incomplete("max_output_tokens")
        elif used.total == self.limits.context_window:
            self.response.ending = ending_of_incomplete("context_length_exceeded")

    def _end_if_used_up(self) -> None:
        """End a run that wants to continue but has used up what `limits.spent` counts.

        Every response counts, also one that calls nothing.
        """
        output = self.response.output
        used_up = self.limits.spent(self.usages, output)
        wants_to_continue = any(
            is_call(item) or is_approval_request(item) for item in output
        )
        if used_up and wants_to_continue:
            self.response.ending = Ending("incomplete", sentence=used_up)

    def _show_or_hold(self, event: RunEvent) -> list[RunEvent]:
        """Return what is shown now; the rest waits for the first visible event.

        What waits leaves no trace if the request is sent again. Only the first thought is
        shown at once, up to its end: people see that the model is at work. Thinking takes
        longest, so most connections break there; another attempt then thinks on in the
        same place.
        """
        if self.has_shown or isinstance(event, Status):
            return [event]
        if not self._held:
            if isinstance(event, ItemAdded) and is_reasoning(event.item):
                if self._thought is None:
                    self._thought = event
                    self._thinks = True
                    return [event]
                if self._thought.output_index == event.output_index:
                    self._thinks = True
                    return []
            if self._is_of_thought(event) and isinstance(event, TextDelta):
                part = self._earlier_parts + event.part
                self._thought_parts = max(self._thought_parts, part + 1)
                return [event._replace(part=part)]
        self._held.append(event)
        # The end of the thought waits for what follows: it would be stored, and an
        # attempt that thinks again brings another one.
        if self._is_of_thought(event) or not _is_visible(event):
            return []
        self.has_shown = True
        shown = [*self._end_thought(), *self._held]
        self._held = []
        return shown

    def _is_of_thought(self, event: RunEvent) -> bool:
        """Say whether an event grows or ends the thought on the page."""
        if not self._thinks or not isinstance(event, TextDelta | ItemDone):
            return False
        return self._thought is not None and (
            event.output_index == self._thought.output_index
        )

    def _end_thought(self) -> list[RunEvent]:
        """Return the end of a thought that only an earlier attempt began."""
        if self._thought is None or self._thinks:
            return []
        return [ItemDone(self._thought.output_index, NO_THOUGHT)]

    def count_bytes(self, chunk: bytes) -> None:
        """Count what arrived of this response; raises AnswerTooLarge."""
        self.response.byte_count += json_weight(chunk)
        if self.response.byte_count > self.limits.most_bytes:
            raise AnswerTooLarge

    @property
    def ending(self) -> Ending:
        """How the response ended."""
        ending = self.response.ending or self._ending_without_event()
        sentence = self.endpoint.name_server(ending.sentence)
        sentence = name_asked_model(sentence, self.request.model)
        notice = notice_text(self._api_error.notice, self.endpoint.secrets)
        return ending._replace(sentence=f"{sentence} {notice}".strip())

    def _ending_without_event(self) -> Ending:
        """Return the ending of a response whose stream did not say how it ends."""
        has_begun = self.response.event_count > 0
        if self.error:
            return ending_of_exception(self.error, has_begun)
        return CUT if has_begun else UNREADABLE

    @property
    def _api_error(self) -> ApiError:
        """What the API said last: as the status of its answer, or in the stream."""
        if isinstance(self.error, ApiRefused):
            return self.error.error
        return self.response.trace.error

    @property
    def trace(self) -> Trace:
        """What the log needs to know about the last answer."""
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
        trace = trace._replace(skipped=dict(self.skipped))
        if not trace.error.names_a_place:  # most runs, and a request may be large
            return trace
        subject = named_subject(self.request.sent(), trace.error)
        return trace._replace(subject=subject)

    def _send(self, request: ResponsesRequest) -> RunEvents:
        """Return the events of one attempt, which begins when they are read."""
        payload = request.payload()
        if self.endpoint.is_strict:
            payload = strict_payload(payload)
        if request.background:
            return _Background(self).events(payload)
        return _stream_response("/responses", payload, self)

    def _prepare_next_attempt(self) -> tuple[Status | None, float]:
        """Change the request if that may help.

        Returns the status to show before the next attempt, None if there is none, and
        the seconds to wait.
        """
        failure = _retriable_failure(self.error, self.response)
        if failure is None or self.has_shown:
            return None, 0.0
        is_unrefused_background = self.request.background and not self.response.refusal
        if is_unrefused_background and _may_run_on_server(self.error):
            return None, 0.0
        if self._may_leave_flex(failure.error):
            update = {"service_tier": "default"}
            self.request = self.request.model_copy(update=update)
            return Status(_STANDARD_TIER, subject="costs twice as much"), 0.0
        if is_final(failure.error):
            return None, 0.0
        # What the refusal names is changed at once. Else the same bytes are sent again,
        # and only if that did not help less of the chat: a step that coincides with a
        # server's recovery must not look like a cure.
        sent = self.request.sent()
        trial = find_repair(sent, failure, self._repaired)
        if trial is not None:
            return self._repair(sent, trial), 0.0
        limits = self.limits.retries
        wait = loading_wait(limits, self._loading, failure)
        if wait is not None:
            self._loading += wait
            return _MODEL_IS_LOADED, wait
        wait = retry_wait(limits, self._retries, failure, random_fraction())
        if wait is None:
            if not self._thinks:  # else the request was accepted
                trial = blind_repair(sent, failure)
            return (self._repair(sent, trial) if trial else None), 0.0
        self._retries += 1
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        sentence = f"{failure_status(failure)} Trying again in {seconds}."
        return Status(sentence, is_retry=True), wait

    def _may_leave_flex(self, error: ApiError) -> bool:
        """Say whether the standard tier may answer what the flex tier cannot."""
        is_flex = self.request.service_tier == "flex"
        allowed = self.limits.flex_falls_back
        return is_flex and allowed and error.code == FLEX_UNAVAILABLE

    def _repair(self, sent: SentRequest, trial: Trial) -> Status:
        """Change the request; return the status that tells it."""
        subject = named_subject(sent, trial.error)
        self._repaired += 1
        repairs = (*self.request.repairs, trial.repair)
        self.request = self.request.model_copy(update={"repairs": repairs})
        reason = f"{subject} {trial.error.message}".strip()
        return Status(trial.repair.message, trial, reason)


_STANDARD_TIER = (
    "The model's server has no flex capacity: answering at the standard tier, which costs "
    "twice as much."
)
_MODEL_IS_LOADED = Status(
    "The model's server is loading the model. The answer begins when it is ready.",
    is_note=False,
)
_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
"""Ids that are safe in a path; other servers use base64 in their ids."""
_MAX_WAIT_FOR_ID = 60.0
"""Seconds that a response which nobody reads any more has to name its id."""
_FETCHING_REST = (
    "The connection to the model was lost: fetching the rest of the answer."
)


class _Background:
    """A background response, and how far it was read."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        loop = asyncio.get_running_loop()
        self._response_id: asyncio.Future[str] = loop.create_future()
        """Done as soon as the server has named the response."""
        self._last_sequence = -1
        """The number of the last event; -1 before the first."""
        self._last_seen_sequence = -1
        """What that was when the last request ended."""
        self._error: ResponsesError | None = None
        """That of the last request."""
        self._failures = 0
        """The requests in a row that brought nothing new."""
        self._resumable = True
        """Whether the API may still resume the stream."""
        self._is_polling = False
        """Whether the next request is for the response itself, not for its stream."""
        self._is_cancelled = False
        """Whether nothing is left to cancel, also of a response that is unknown now."""
        self._is_ignored = False
        """Whether the server answers as if it were asked for no background response."""

    def take(self, event: ServerSentEvent) -> bool:
        """Note an event that could be read; say whether it is new.

        The event is parsed twice; a background run has few events a second.
        """
        if event.data == END_OF_STREAM:
            return True
        wire = json.loads(event.data)
        self.note(wire.get("response"))
        # OpenAI and Azure repeat the parameter; vLLM answers with false.
        if as_mapping(wire.get("response")).get("background", True) is not True:
            self._is_ignored = True
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        if number <= self._last_sequence:
            return False
        self._last_sequence = number
        return True

    def note(self, response: object) -> None:
        """Remember the id of a response object, if it is a valid id."""
        response_id = as_text(as_mapping(response).get("id"))
        if _ID.fullmatch(response_id) and not self._response_id.done():
            self._response_id.set_result(response_id)

    async def events(self, payload: dict[str, Any] | None) -> RunEvents:
        """Send the request, feed its response to the state, and yield its run events.

        Once the response has an id, raises only ResponseLost, and TimedOut for the total
        limit. If the caller leaves before the end, the response is cancelled, because
        it would continue to cost money without a reader.
        """
        path = "/responses"
        try:
            while True:
                async with aclosing(self._request(path, payload)) as events:
                    async for event in events:
                        yield event
                if self._is_over(self._error):
                    break
                has_news = self._last_sequence != self._last_seen_sequence
                self._last_seen_sequence = self._last_sequence
                wait = self._wait_after(self._error, has_news)
                if not self._attempts.deadlines.allow(wait):
                    raise TimedOut("total_timeout")
                if has_news:
                    yield Status(_FETCHING_REST)
                await asyncio.sleep(wait)
                path = self._next_path()
                payload = None
        finally:
            self._abandon()

    async def _request(self, path: str, payload: dict[str, Any] | None) -> RunEvents:
        """Send one request and yield its run events; `_error` says why it failed."""
        self._error = None
        part = _stream_response(path, payload, self._attempts, self)
        try:
            first = await self._first_event(part)
            async with aclosing(part) as events:
                if first is not None:
                    yield first
                async for event in events:
                    yield event
        except ResponsesError as caught:
            self._error = caught

    def _is_over(self, error: ResponsesError | None) -> bool:
        """Say whether nothing more is requested; raises `error` if it is the reason."""
        if self._attempts.response.ending:
            return True
        if self._is_ignored:
            # The work ended with the connection, so it may be asked for again.
            error = error or ConnectionFailed(CUT.sentence)
            error.was_sent = False
            raise error
        if error is None:
            return not self._response_id.done()
        if error.is_final or not self._response_id.done():
            raise error
        return False

    def _next_path(self) -> str:
        """Return the path of the response, or of the rest of its stream."""
        path = f"/responses/{self._response_id.result()}"
        if self._is_polling:
            return path
        return f"{path}?stream=true&starting_after={self._last_sequence}"

    async def _first_event(self, part: RunEvents) -> RunEvent | None:
        """Return the first event of `part`, None if it has none.

        A response without an id could not be cancelled, so a `part` that is left before
        is read until there is one.
        """
        if self._response_id.done():
            return await anext(part, None)
        first = asyncio.ensure_future(anext(part, None))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self._attempts.connections.do_later(self._close(part, first))
            raise

    async def _close(self, part: RunEvents, first: asyncio.Future[Any]) -> None:
        """Wait until the response has an id, then close its stream and cancel it."""
        await asyncio.wait(
            {first, self._response_id},
            timeout=_MAX_WAIT_FOR_ID,
            return_when=asyncio.FIRST_COMPLETED,
        )
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await part.aclose()
        self._abandon()

    def _wait_after(self, error: ResponsesError | None, has_news: bool) -> float:
        """Return the seconds until the next request; raises ResponseLost.

        An answer without an end means that the server is still working on it. A stream
        that is too old to be resumed is followed by a request for the response itself.
        """
        was_polling = self._is_polling
        limits = self._attempts.limits
        if was_polling and error is None:
            self._failures = 0
            self._is_polling = not self._can_resume
            return limits.poll_seconds
        self._failures = 0 if has_news else self._failures + 1
        failure = Failure()
        if error and error.status and error.failure:
            failure = error.failure
        wait = retry_wait(limits.resuming, self._failures, failure, random_fraction())
        if wait is None and self._resumable and not was_polling:
            self._resumable = False
            wait = 0.0
        self._is_polling = not (has_news and self._can_resume)
        if wait is None:
            # The API does not know the response (any more): there is nothing to cancel.
            self._is_cancelled = error is not None and error.status == 404
            raise ResponseLost
        return wait

    @property
    def _can_resume(self) -> bool:
        """Whether the stream can be requested again behind its last event."""
        return self._resumable and self._last_sequence >= 0

    def _abandon(self) -> None:
        """Cancel the response once, unless it has ended or does not exist."""
        attempts = self._attempts
        if attempts.response.ending or self._is_cancelled or self._is_ignored:
            return
        if self._response_id.done():
            self._is_cancelled = True
            path = f"/responses/{self._response_id.result()}/cancel"
            connections = attempts.connections
            connections.do_later(connections.post_quietly(attempts.endpoint, path))


async def _stream_response(
    path: str,
    payload: dict[str, Any] | None,
    attempts: Attempts,
    background: _Background | None = None,
) -> RunEvents:
    """Send a request, feed the answer to its response, and yield its run events.

    Without a `payload` it requests a response, or the rest of its stream. A response
    that is still in progress yields nothing. Raises what `Connections.request` raises,
    AnswerTooLarge, and MalformedEvent if nothing of a stream can be read. Cancelling or
    closing it closes the connection.
    """
    state = attempts.response
    attempts.deadlines.start_attempt()
    async with attempts.connections.request(
        attempts.endpoint, path, payload, attempts.deadlines
    ) as answer:
        state.trace = Trace(answer.request_id, status=200)
        if not await answer.is_stream():
            response = await answer.response_object()
            for event in _feed_whole(response, state, background):
                yield event
            return
        reader = _StreamReader(answer, attempts, background)
        earlier_events = state.event_count
        while not (answer.is_read or state.is_over):
            try:
                async with asyncio.timeout(_SECOND_ANSWER if state.ending else None):
                    events, unreadable = await reader.read_batch()
            except TimeoutError:
                break
            for event in events:
                yield event
            if unreadable:
                raise unreadable
            await reader.gather_deltas(events)
        if reader.has_skipped and state.event_count == earlier_events:
            raise MalformedEvent
        for event in await reader.read_reason():
            yield event


_SECOND_ANSWER = 10.0
"""Seconds that a stream may be silent after the end of a response without any item."""


class _StreamReader:
    """Reads one streamed answer, batch by batch, and feeds it to its response.

    A batch is what has arrived meanwhile. Reading less often makes long answers cheap:
    one pass handles all its deltas. No bytes of the wire are held between two batches.
    """

    def __init__(
        self,
        answer: HttpResponse,
        attempts: Attempts,
        background: _Background | None,
    ) -> None:
        self._answer = answer
        self._attempts = attempts
        self._background = background
        # A background response is resumed behind the number of its last event.
        self._decoder = EventStreamDecoder(joins_deltas=background is None)
        self.has_skipped = False
        """Whether an event was left out that cannot be read."""
        self._unreadable: UnreadableAnswer | None = None
        self._now = asyncio.get_running_loop().time
        self._read_at = self._now()

    async def read_batch(self) -> tuple[list[RunEvent], UnreadableAnswer | None]:
        """Wait for bytes; return their run events, up to what is of another API."""
        chunk = await self._answer.read_any()
        self._attempts.count_bytes(chunk)
        self._read_at = self._now()
        batch = self._decoder.feed(chunk) if chunk else self._decoder.close()
        earlier_events = self._attempts.response.event_count
        fed = self._feed(batch)
        if self._attempts.response.event_count > earlier_events:
            self._attempts.deadlines.event_arrived()
        return fed

    async def gather_deltas(self, events: Sequence[RunEvent]) -> None:
        """Wait for a moment if the last event is a delta: more of them will follow.

        The first delta after a pause is never delayed.
        """
        last = events[-1] if events else None
        if not isinstance(last, TextDelta):
            return
        share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
        spent = self._now() - self._read_at
        seconds = self._attempts.limits.join_seconds * share - spent
        with self._answer.paused():
            await asyncio.sleep(max(0.0, seconds))

    async def read_reason(self) -> list[RunEvent]:
        """Return the run events behind the last event of a refused stream: its reason.

        Nothing else of an answer that has ended is read.
        """
        rest = await self._answer.drain()
        if self._attempts.response.refusal is None:
            return []
        batch = [*self._decoder.feed(rest), *self._decoder.close()]
        events, _ = self._feed(batch)
        return events

    def _feed(
        self, batch: Sequence[ServerSentEvent]
    ) -> tuple[list[RunEvent], UnreadableAnswer | None]:
        """Return the run events of `batch`, up to the first one of another API."""
        self._unreadable = None
        run_events: list[RunEvent] = []
        for event in join_deltas(self._parse(batch)):
            run_events += self._attempts.response.feed(event)
        return run_events, self._unreadable

    def _parse(self, batch: Iterable[ServerSentEvent]) -> Iterator[StreamEvent]:
        """Yield the new events of `batch`; `_unreadable` says why it ends early.

        An event that cannot be read is left out: proxies keep a connection alive with
        an empty `data:` or a word, and the last snapshot repeats what one lost line had.
        """
        for wire_event in batch:
            try:
                parsed = parse_event(wire_event)
            except MalformedEvent:
                self.has_skipped = True
                self._attempts.skipped[describe_unreadable(wire_event)] += 1
                continue
            except UnreadableAnswer as error:
                self._unreadable = error
                return
            if self._background is None or self._background.take(wire_event):
                yield parsed


def _feed_whole(
    response: JsonObject, state: ResponseState, background: _Background | None
) -> list[RunEvent]:
    """Feed an answer in one piece to its response; return its run events.

    While the server is working on it, there are none.
    """
    status = str(response.get("status") or "completed")
    is_in_progress = status in ("queued", "in_progress")
    if background is not None:
        background.note(response)
    elif is_in_progress:
        # Sent again, it would be paid twice; without a background request, the server
        # need not keep the response.
        raise UnreadableAnswer(QUEUED.sentence)
    if is_in_progress:
        return []
    return state.feed(FinalResponse(status, response))


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})
"""Statuses of a gateway in front of the API that got no answer in time.

520 to 524 are Cloudflare's own.
"""


def _retriable_failure(
    error: ResponsesError | None, state: ResponseState
) -> Failure | None:
    """Return why a response that showed nothing may be requested again.

    A stream without any event is one that cannot be read.
    """
    if state.refusal:
        return Failure(200, state.refusal)
    if error:
        return error.failure
    if state.ending:
        return None
    if state.event_count == 0:
        return MalformedEvent.failure
    return Failure()


def _is_visible(event: RunEvent) -> bool:
    """Say whether the page draws something for an event."""
    if isinstance(event, ResponseDone):
        return False
    if not isinstance(event, ItemAdded | ItemDone):
        return True
    is_text = item_type(event.item) in ("message", "reasoning")
    return not is_text or has_text(event.item)


def _may_run_on_server(error: ResponsesError | None) -> bool:
    """Say whether the server may be working on the request in spite of `error`.

    A background response whose id is unknown continues; sent again, it would be billed
    twice. So it is sent again only if nothing arrived at the server or the API itself
    refused it. The answer of a gateway does not tell what happened behind it.
    """
    if error is None or error.was_sent:
        return True
    is_asked_to_retry = error.failure and error.failure.should_retry
    return error.status in _GATEWAY_STATUS and not is_asked_to_retry
