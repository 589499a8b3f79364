"""The Responses API as the provider of a run: what is tried until a request is answered.

A request is sent again only before words of its answer were shown: repaired, if the
cause of the refusal is found, at the standard tier, if the flex tier has no capacity, or
unchanged, if waiting may help. Of the attempt before it, thoughts and calls leave the page
and the chat.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import Any

from openai_responses.causes import FLEX_UNAVAILABLE, is_final
from openai_responses.clock import random_fraction
from openai_responses.endings import Ending, failure_status
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ApiError, Failure, MalformedEvent
from openai_responses.items import is_call, json_digest, open_calls
from openai_responses.json_input import as_text
from openai_responses.loop.attempt import Attempt, Limits, PageThought, Server
from openai_responses.loop.background_attempt import BackgroundAttempt
from openai_responses.loop.events import ModelAnswer, RunEvent, Status
from openai_responses.models.usage import Usage
from openai_responses.repairs.finding import TriedRepair, blind_repair, find_repair
from openai_responses.repairs.refusal import Refusal, SentRequest
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import is_approval_request
from openai_responses.retries import CLOUDFLARE_STATUS, loading_wait, retry_wait
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines


class Attempts:
    """The attempts at each response of a run (`Provider` in `loop/run.py`)."""

    def __init__(
        self, endpoint: Endpoint, connections: Connections, limits: Limits
    ) -> None:
        """Start the total limit of the run."""
        deadlines = Deadlines(limits.timeouts, limits.set_waiting)
        self._server = Server(endpoint, connections, limits, deadlines)
        self._usages: list[Usage] = []
        """Those of all attempts of the run."""
        self._skipped = Counter[str]()
        """The events of the run that cannot be read, by what they are."""
        self._call_ids: set[str] = set()
        """Those of all calls of the run."""
        self._taken: list[Any] = []
        """What the last request that was answered asked for (`frame`)."""

    async def generate(
        self, request: ResponsesRequest, first_index: int = 0
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send `request` and yield its events, until there is nothing more to try.

        The items of the response are numbered from `first_index`.
        """
        limits = self._server.limits
        earlier_count = len(self._usages)
        # No call of the response leaves with the id of an earlier one, which the same
        # output would answer.
        calls = filter(is_call, request.input)
        self._call_ids.update(as_text(call.get("call_id")) for call in calls)
        next_attempt = _NextAttempt(request, limits)
        page_thought = PageThought()
        has_told_loading = False
        while True:
            sent = next_attempt.request
            kind = BackgroundAttempt if sent.runs_in_background else Attempt
            attempt = kind(
                self._server, sent, page_thought, first_index, self._call_ids
            )
            async with aclosing(attempt.events()) as events:
                async for event in events:
                    yield event
            self._usages += attempt.response.usages
            self._skipped.update(attempt.skipped)
            status, wait = next_attempt.prepare(attempt)
            if status is None or not self._server.deadlines.allow(wait):
                break
            # Its server bills what it wrote, and may report no usage of it.
            if attempt.response.event_count:
                limits.count_response(self._usages, ())
            if attempt.has_shown:
                for event in attempt.response.give_up():
                    yield event
                first_index = attempt.response.next_index
                self._call_ids.update(attempt.response.call_ids)
                page_thought = PageThought()
            limits.set_waiting(False)  # the pause is ours, not the server's time
            is_loading = status is _MODEL_IS_LOADING
            if not (is_loading and has_told_loading):
                yield status
            has_told_loading = has_told_loading or is_loading
            await asyncio.sleep(wait)
        for event in attempt.release():  # no other attempt follows that could show it
            yield event
        yield self._answer_of(attempt, self._usages[earlier_count:])

    def _answer_of(self, attempt: Attempt, usages: Sequence[Usage]) -> ModelAnswer:
        """Return the answer that the last attempt brought; `usages` are those of all."""
        server = self._server
        ending = attempt.ending
        if ending.kind == "completed" and not server.endpoint.serves_openai:
            # What a server took with one chat is hardly what it refuses in another: then
            # less of the chat is tried before fewer options (`blind_repair`).
            frame = attempt.request.frame()
            if frame != self._taken:  # most rounds ask for the same
                self._taken = frame
                server.connections.took.first_time(_frame_name(server, frame))
        output = attempt.response.output
        # Called for every response, because it counts them.
        used_up = server.limits.count_response(self._usages, output)
        is_open = bool(open_calls(output)) or any(map(is_approval_request, output))
        # A failure ends the run by itself, and its cause is what counts.
        if used_up and is_open and not ending.is_failure:
            ending = Ending("incomplete", message=used_up)
        return ModelAnswer(
            ending=ending,
            request=attempt.request,
            items=tuple(attempt.items),
            usages=tuple(usages),
            last_usage=attempt.response.usage,
            trace=attempt.trace._replace(skipped=dict(self._skipped)),
            has_shown=attempt.has_shown,
        )

    def paused(self) -> AbstractContextManager[None]:
        """Stop the total limit while tools run or users decide."""
        return self._server.deadlines.paused()


_STANDARD_TIER = (
    "The model's server has no flex capacity: answering at the standard tier, which costs "
    "twice as much."
)
_MODEL_IS_LOADING = Status(
    "The model's server is loading the model. The answer begins when it is ready.",
    is_note=False,
)


class _NextAttempt:
    """What the next attempt at a response sends, and what was changed or waited for."""

    def __init__(self, request: ResponsesRequest, limits: Limits) -> None:
        self.request = request
        self._limits = limits
        self._retries = 0
        self._named = 0
        """How many repairs the refusals have named. Steps that were taken blindly do not
        count: less of the chat does not bring what a refusal names after them."""
        self._loading_seconds = 0.0
        """For which the server's model has been waited for."""

    def prepare(self, attempt: Attempt) -> tuple[Status | None, float]:
        """Change the request if that may help after `attempt`.

        Returns the status to show before the next attempt, None if there is none, and
        the seconds to wait.
        """
        failure = _retriable_failure(attempt)
        if failure is None or (attempt.has_shown and attempt.response.has_answered):
            return None, 0.0
        if self.request.runs_in_background and not attempt.response.refusal:
            # A response whose id is unknown continues at the server; sent again, it would
            # be billed twice. So it is sent again only if nothing arrived there, or the
            # API itself refused it: a gateway does not tell what happened behind it.
            error = attempt.error
            if error is None or error.was_sent:
                return None, 0.0
            is_asked_to_retry = error.failure and error.failure.should_retry
            if error.status in _GATEWAY_STATUS and not is_asked_to_retry:
                return None, 0.0
        may_leave_flex = self._limits.flex_falls_back
        is_flex = self.request.service_tier == "flex"
        if may_leave_flex and is_flex and failure.error.code == FLEX_UNAVAILABLE:
            update = {"service_tier": "default"}
            self.request = self.request.model_copy(update=update)
            return Status(_STANDARD_TIER, subject="costs twice as much"), 0.0
        if is_final(failure.error):
            return None, 0.0
        # What the refusal names is changed at once. Else the same bytes are sent again,
        # and only if that did not help less of the chat: a step that coincides with a
        # server's recovery must not look like a cure.
        sent = self.request.sent()
        tried = find_repair(sent, failure, self._named)
        if tried is not None:
            self._named += 1
            return self._repair(sent, tried), 0.0
        policy = self._limits.retries
        wait = loading_wait(policy, self._loading_seconds, failure)
        if wait is not None:
            self._loading_seconds += wait
            return _MODEL_IS_LOADING, wait
        unclear = failure
        if Refusal(failure.error, sent).blames_what_was_not_sent:
            unclear = failure._replace(error=ApiError())
        wait = retry_wait(policy, self._retries, unclear, random_fraction())
        if wait is None:
            # Else the request was accepted.
            if not (attempt.thinks or attempt.has_shown):
                server = attempt.server
                frame = _frame_name(server, self.request.frame())
                tried = blind_repair(
                    sent,
                    failure,
                    knows_options=server.endpoint.serves_openai,
                    took_options=frame in server.connections.took,
                )
            return (self._repair(sent, tried) if tried else None), 0.0
        self._retries += 1
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        # How long it takes comes first: a phone shows about 40 characters.
        message = f"Trying again in {seconds}. {failure_status(failure)}"
        return Status(message, is_retry=True), wait

    def _repair(self, sent: SentRequest, tried: TriedRepair) -> Status:
        """Change the request; return the status that tells it."""
        subject = Refusal(tried.error, sent).subject
        repairs = (*self.request.repairs, tried.repair)
        self.request = self.request.model_copy(update={"repairs": repairs})
        reason = f"{subject} {tried.error.message}".strip()
        return Status(tried.repair.message, tried, reason)


def _frame_name(server: Server, frame: list[Any]) -> str:
    """Return a name of what a server is asked for; of many tools it takes long."""
    return f"{server.endpoint.account()} {json_digest(frame)}"


def _retriable_failure(attempt: Attempt) -> Failure | None:
    """Return why a response that showed nothing may be requested again.

    A stream without any event is one that cannot be read.
    """
    response = attempt.response
    if response.refusal:
        return Failure(200, response.refusal)
    if attempt.error:
        return attempt.error.failure
    if response.ending:
        return None
    if response.event_count == 0:
        return MalformedEvent.failure
    return Failure()


_GATEWAY_STATUS = frozenset({408, 502, 504, *CLOUDFLARE_STATUS})
"""Statuses of a gateway in front of the API that got no answer in time."""
