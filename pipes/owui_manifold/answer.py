"""Runs a prepared request and yields its events, with the markers of stored items."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from openai_responses.clock import new_ulid, unix_seconds
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.requests.repairs import CHAT_ACTIONS
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded
from owui_chat.citations import Citations, source_keys
from owui_chat.events import AnswerEvent, CitedEvent
from owui_chat.storage.recorder import NewRecord, Recorder, RecordScope
from owui_manifold.artifacts import ArtifactStore
from owui_manifold.report import (
    compare_cache,
    notices_of,
    report_end,
    report_request,
    server_words,
)
from owui_manifold.request import PreparedRequest, is_as_configured
from owui_manifold.silence import WaitingLines
from owui_manifold.spending import check_limits, counted_run

_NOT_WRITTEN = (
    "Open WebUI refused to store the items that this chat does not show: later turns go "
    "on without them. Its database may be locked or full."
)


async def answer_events(
    prepared: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run a request and yield its events.

    For Open WebUI they have the shown texts, with their markers and records; other
    clients get the model's texts. What a marker names is stored beside the text, and at
    the latest before the end. Repairs are remembered when it is known that they helped;
    their reason is for the log alone.
    """
    check_limits(prepared)
    prepared = compare_cache(prepared)
    call, recorder = prepared.call, _recorder(prepared)
    citations = Citations(source_keys(call.host.metadata.get("sources")))
    report_request(prepared)
    if prepared.reason:
        yield Status(prepared.reason)
    artifacts = ArtifactStore(prepared, connections)
    repairs = _Repairs(prepared)
    lines = WaitingLines(call, connections)
    limits = prepared.limits._replace(heard=lines.heard)
    events = counted_run(prepared._replace(limits=limits), connections)
    async with aclosing(events), aclosing(lines):
        async for arrived in events:
            for line in lines.note(arrived):
                yield line
            event = await artifacts.stored(await repairs.follow(arrived))
            if event is None:
                continue
            for cited in citations.feed(event) if call.caller.host_reads else (event,):
                for shown in await _write_records(prepared, recorder, cited):
                    yield shown
            if isinstance(event, RunDone):
                yield report_end(prepared, event)
                for notice in await notices_of(prepared):
                    yield Status(notice)


async def _write_records(
    prepared: PreparedRequest, recorder: Recorder | None, event: CitedEvent
) -> list[AnswerEvent]:
    """Write the records of an event; return what is shown, but for the run's end.

    The answer's own records follow the text that they belong to: nobody waits for them.
    """
    store, shown = prepared.store, list[AnswerEvent]()
    for recorded in recorder.feed(event) if recorder else (event,):
        if not isinstance(recorded, NewRecord | RunDone):
            shown.append(recorded)
        elif isinstance(recorded, NewRecord) and store:
            store.write_beside(*recorded)
    if isinstance(event, RunDone) and store and not await store.flush():
        prepared.call.log.warn(_NOT_WRITTEN)
    return [*shown, *(store.take_unsent() if store else ())]


def _recorder(prepared: PreparedRequest) -> Recorder | None:
    """Return the recorder of a chat; None where nothing can be stored."""
    caller, store = prepared.call.caller, prepared.store
    remembers = prepared.call.valves.remembers_reasoning()
    if not store and not (remembers and caller.host_reads and not caller.task):
        return None
    scope = RecordScope(
        caller.host_model,
        caller.message_id,
        prepared.origin,
        remembers,
        cites=prepared.cites,
        carrier=store.carrier if store else "details",
        sign=prepared.sign,
    )
    return Recorder(scope, _new_record)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


class _Repairs:
    """What was changed after refusals of a run."""

    def __init__(self, prepared: PreparedRequest) -> None:
        self._prepared = prepared
        self._tried: list[Status] = []

    async def follow(self, event: RunEvent) -> RunEvent:
        """Log what happens before an answer; return the event as people see it."""
        call = self._prepared.call
        if isinstance(event, Status):
            reason = server_words(call, event.reason)
            call.log.warn(f"{event.sentence} {reason}".strip())
            self._tried += [event] if event.repair else []
            return Status(event.sentence)
        if self._tried and _has_answer(event):
            await _remember(self._prepared, self._tried)
            self._tried = []
        return event


def _has_answer(event: RunEvent) -> bool:
    """Say whether the server has accepted the request, for an event of its answer."""
    if isinstance(event, RunDone):
        return event.ending.kind in ("completed", "incomplete")
    return not isinstance(event, ItemAdded)


async def _remember(prepared: PreparedRequest, repairs: Iterable[Status]) -> None:
    """Remember what made a request acceptable: for the chat, or for its server.

    What may be about a user's own choice is remembered for that user alone.
    """
    call, store, model = prepared.call, prepared.store, prepared.request.model
    for found in repairs:
        repair, is_about_all = found.repair, found.is_named
        if repair and repair.action in CHAT_ACTIONS and store:
            await store.add_repair(repair)
        elif repair and found.is_lasting:
            if repair.action not in ("field", "lower"):
                is_about_all = is_about_all and is_as_configured(prepared)
            user = "" if is_about_all else call.caller.user_id
            call.capabilities.learn(prepared.endpoint, model, user, repair)
