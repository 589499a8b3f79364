"""The responses that the stand-in keeps, as later requests see them.

Sources: OpenAI's guide on background mode; the words of the refusals come from reports
of its users, those marked "ours" are not known.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.accounts import Account
from simulator.answers import PlannedAnswer
from simulator.refusals import Refusal, refuse_unknown_parameter

Event = dict[str, Any]
MAX_RESUMABLE_SECONDS = 300.0
QUERY_PARAMETERS = ("include", "include_obfuscation", "starting_after", "stream")


@dataclass
class StoredResponse:
    """One response, and how often it was requested."""

    answer: PlannedAnswer
    organization: str
    background: bool
    streamed: bool
    born: float
    looks: int = 0
    cancelled: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def opened(self) -> Event:
        """The response as its first event shows it."""
        response: Event = self.answer.events[0]["response"]
        return response

    @property
    def is_running(self) -> bool:
        """Whether the model is still working on it: ``halt`` and ``asks`` say so."""
        halts = self.answer.options.has("halt") and not self.cancelled
        asks = self.answer.options.number("asks")
        return self.background and halts and (asks is None or self.looks < asks)

    @property
    def so_far(self) -> tuple[Event, ...]:
        """The events so far."""
        halt = self.answer.options.number("halt")
        stopped = self.background and (self.is_running or self.cancelled)
        return self.answer.events[: halt if stopped else None]

    def snapshot(self) -> Event:
        """Return the response as ``GET`` shows it.

        Its reasoning is not encrypted: that comes with ``POST`` alone, and cannot be
        asked for here (docs/reference/responses-api.md, "Parameters").
        """
        is_unfinished = self.is_running or self.cancelled
        shown = self._unfinished() if is_unfinished else self._final()
        output = [_without_encrypted_content(item) for item in shown["output"]]
        return {**shown, "output": output}

    def _unfinished(self) -> Event:
        """Return the response with the items that ended so far."""
        kinds = [event["type"] for event in self.so_far]
        status = "in_progress" if "response.in_progress" in kinds else "queued"
        if self.cancelled:
            status = "cancelled"
        output = [event["item"] for event in self.so_far if _is_item_done(event)]
        return {**self.opened, "status": status, "output": output}

    def _final(self) -> Event:
        final = self.answer.final or {}
        if final.get("object") == "response":
            return final
        failure = (
            final.get("error") or final
        )  # an error event, in one of its two shapes
        error = {"code": failure["code"], "message": failure["message"]}
        return {**self.opened, "status": "failed", "error": error}

    def cancel(self) -> Event:
        """Stop the model if it still works; return the response so far."""
        if not self.background:
            raise Refusal("Cannot cancel a synchronous response.")
        if self.is_running:
            self.cancelled = True
            self.over.set()
        return self.snapshot()

    async def events_from(self, start: int = 0) -> AsyncIterator[Event]:
        """Yield the events from ``start`` on, then wait for the end of the model."""
        for event in self.so_far[start:]:
            yield event
        if self.is_running:
            await self.over.wait()


class ResponseStore:
    """All responses that are kept, by their ids."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: dict[str, StoredResponse] = {}

    def keep(
        self,
        answer: PlannedAnswer,
        body: Mapping[str, Any],
        account: Account,
        now: float,
    ) -> StoredResponse | None:
        """Keep the response to ``body``, unless `store` forbids it."""
        if not answer.events or "response" not in answer.events[0]:
            return None
        aged = 2 * MAX_RESUMABLE_SECONDS if answer.options.has("aged") else 0
        stored = StoredResponse(
            answer,
            account.organization,
            body.get("background") is True,
            body.get("stream") is True,
            now - aged,
        )
        if body.get("store") is not False and not answer.options.has("gone"):
            self._kept[stored.opened["id"]] = stored
        return stored

    def find(self, id: str, account: Account) -> StoredResponse:
        """Return a response of this organization or raise the refusal."""
        stored = self._kept.get(id)
        if stored is None or stored.organization != account.organization:
            raise _refuse_unknown(id)
        return stored

    def ids(self) -> list[str]:
        """Return the ids of the kept responses, oldest first."""
        return list(self._kept)

    def forget(self) -> None:
        """Throw everything away."""
        self.end()
        self._kept.clear()

    def end(self) -> None:
        """Release everybody who waits for a model."""
        for stored in self._kept.values():
            stored.over.set()


def read_start_position(
    query: Mapping[str, str], stored: StoredResponse, now: float
) -> int | None:
    """Return where a stream begins; None if one object is requested."""
    for name in query:
        if name.removesuffix("[]") not in QUERY_PARAMETERS:
            raise refuse_unknown_parameter(name)
    if "reasoning.encrypted_content" in query.values():
        raise Refusal("Encrypted content cannot be retrieved.", param="include")  # ours
    after = query.get("starting_after")
    if query.get("stream", "false") != "true":
        if after is not None:
            words = "'starting_after' is only allowed when 'stream' is true."  # ours
            raise Refusal(words, param="starting_after")
        return None
    if after is not None and not after.isdecimal():
        words = f"Invalid type for 'starting_after': expected an integer, got '{after}'"
        raise Refusal(words, code="invalid_type", param="starting_after")
    _refuse_stream(stored, now)
    return 0 if after is None else int(after) + 1


def _refuse_stream(stored: StoredResponse, now: float) -> None:
    if not stored.background:
        raise _refuse_unknown(stored.opened["id"])
    if not stored.streamed:
        words = "This response was not created with 'stream' set to true."  # ours
        raise Refusal(words, param="stream")
    if now - stored.born > MAX_RESUMABLE_SECONDS:
        raise Refusal(
            "This response can no longer be streamed because it is more than 5 minutes "
            "old."
        )


def _refuse_unknown(id: str) -> Refusal:
    return Refusal(f"Response with id '{id}' not found.", status=404)


def _without_encrypted_content(item: Event) -> Event:
    return {name: item[name] for name in item if name != "encrypted_content"}


def _is_item_done(event: Event) -> bool:
    return bool(event["type"] == "response.output_item.done")
