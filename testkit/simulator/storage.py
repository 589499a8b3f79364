"""The stored responses: a client retrieves, streams or cancels them by their ids.

Sources: OpenAI's guide on background mode; reports of its users for the messages of the
refusals. Messages marked "assumed" are our own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.accounts import Account
from simulator.answers import PlannedAnswer
from simulator.fields import without_fields
from simulator.refusals import refuse

Event = dict[str, Any]
MAX_RESUMABLE_SECONDS = 300.0
QUERY_PARAMETERS = ("include", "include_obfuscation", "starting_after", "stream")


@dataclass
class StoredResponse:
    """One response, and how often it was retrieved."""

    answer: PlannedAnswer
    organization: str
    background: bool
    streamed: bool
    created_at: float
    retrievals: int = 0
    cancelled: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def opened(self) -> Event:
        """The response as its first event shows it."""
        response: Event = self.answer.events[0]["response"]
        return response

    @property
    def is_running(self) -> bool:
        """Whether the model still works on it.

        A background model works until ``asks`` retrievals or a cancellation, if the
        option ``halt`` stops its events.
        """
        if not self.background or self.cancelled:
            return False
        if not self.answer.options.has("halt"):
            return False
        retrievals_to_end = self.answer.options.number("asks")
        return retrievals_to_end is None or self.retrievals < retrievals_to_end

    @property
    def events_so_far(self) -> tuple[Event, ...]:
        """The events that the model has produced up to now."""
        if self.background and (self.is_running or self.cancelled):
            return self.answer.events[: self.answer.options.number("halt")]
        return self.answer.events

    def snapshot(self) -> Event:
        """Return the response as ``GET`` shows it.

        Its reasoning has no encrypted content: that comes with ``POST`` alone, and
        cannot be asked for here (docs/reference/responses-api.md, "Parameters").
        """
        final = self.answer.final or {}
        if self.is_running or self.cancelled:
            kinds = {event["type"] for event in self.events_so_far}
            status = "in_progress" if "response.in_progress" in kinds else "queued"
            response = {
                **self.opened,
                "status": "cancelled" if self.cancelled else status,
                "output": [
                    event["item"]
                    for event in self.events_so_far
                    if event["type"] == "response.output_item.done"
                ],
            }
        elif final.get("object") == "response":
            response = final
        else:
            failure = final.get("error") or final  # nested or flat
            error = {"code": failure["code"], "message": failure["message"]}
            response = {**self.opened, "status": "failed", "error": error}
        output = [
            without_fields(item, "encrypted_content") for item in response["output"]
        ]
        return {**response, "output": output}

    def cancel(self) -> Event:
        """Stop the model if it still works; return the response as it is now."""
        if not self.background:
            raise refuse("cancel_of_synchronous")
        if self.is_running:
            self.cancelled = True
            self.ended.set()
        return self.snapshot()

    async def events_from(self, start: int = 0) -> AsyncIterator[Event]:
        """Yield the events from ``start`` on, then wait until the model ends."""
        for event in self.events_so_far[start:]:
            yield event
        if self.is_running:
            await self.ended.wait()


class ResponseStore:
    """All stored responses, by their ids."""

    def __init__(self) -> None:
        self._stored: dict[str, StoredResponse] = {}

    def keep(
        self,
        answer: PlannedAnswer,
        body: Mapping[str, Any],
        account: Account,
        now: float,
    ) -> StoredResponse | None:
        """Return the response to ``body``; store it, unless the request forbids that.

        What runs in the background can be retrieved for ten minutes in any case.

        None is the answer of a request that made no response.
        """
        if not answer.events or "response" not in answer.events[0]:
            return None
        age = 2 * MAX_RESUMABLE_SECONDS if answer.options.has("aged") else 0
        response = StoredResponse(
            answer=answer,
            organization=account.organization,
            background=body.get("background") is True,
            streamed=body.get("stream") is True,
            created_at=now - age,
        )
        is_kept = body.get("store") is not False or response.background
        if is_kept and not answer.options.has("gone"):
            self._stored[response.opened["id"]] = response
        return response

    def find(self, id: str, account: Account) -> StoredResponse:
        """Return a response of this organization or raise the refusal."""
        response = self._stored.get(id)
        if response is None or response.organization != account.organization:
            raise refuse("unknown_response", id=id)
        return response

    def ids(self) -> list[str]:
        return list(self._stored)

    def forget(self) -> None:
        self.end()
        self._stored.clear()

    def end(self) -> None:
        """End every model, so that no stream waits for one."""
        for response in self._stored.values():
            response.ended.set()


def read_start_position(
    query: Mapping[str, str], stored: StoredResponse, now: float
) -> int | None:
    """Return the number of a stream's first event; None if no stream is requested."""
    for name in query:
        if name.removesuffix("[]") not in QUERY_PARAMETERS:
            raise refuse("unknown_parameter", path=name)
    if "reasoning.encrypted_content" in query.values():
        raise refuse("encrypted_retrieval")  # assumed
    after = query.get("starting_after")
    if query.get("stream", "false") != "true":
        if after is not None:
            raise refuse("start_without_stream")  # assumed
        return None
    if after is not None and not after.isdecimal():
        raise refuse("start_type", after=after)
    if not stored.background:
        raise refuse("unknown_response", id=stored.opened["id"])
    if not stored.streamed:
        raise refuse("not_streamed")  # assumed
    if now - stored.created_at > MAX_RESUMABLE_SECONDS:
        raise refuse("old_response")
    return 0 if after is None else int(after) + 1
