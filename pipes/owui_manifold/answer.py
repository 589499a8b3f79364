"""Runs a prepared request and yields its events, with the markers of stored items."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from openai_responses.clock import new_ulid, unix_seconds
from openai_responses.items import is_encrypted, is_search, open_calls
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.requests.replay import replay_output
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone, TextDelta
from owui_chat.storage.markers import format_marker
from owui_chat.storage.output_carrier import AnswerEventItem
from owui_chat.storage.recorder import Carrying, Keeping, RecordScope
from owui_chat.storage.records import Record
from owui_manifold.artifacts import ArtifactStore
from owui_manifold.chat import PreparedRequest
from owui_manifold.report import (
    add_cost,
    notices_of,
    report_end,
    report_note,
    report_request,
    report_write_failure,
)
from owui_manifold.rounds import DelegatedRound, save_round

AnswerEvent = tuple[AnswerEventItem, str]
_Run = AsyncGenerator[tuple[RunEvent, str], None]


async def answer_events(
    prepared: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run `job` and yield its events.

    A marker comes with the first growth of a text, with the end of commentary, or with
    the end of the run, and only after the host was asked to store the items that it
    names. Records for the answer's own output come before the event.
    """
    async with aclosing(_events_with_markers(prepared, connections)) as events:
        carrying = _carrying(prepared)
        async for event, line in events:
            index = (
                event.output_index if isinstance(event, TextDelta | ItemDone) else None
            )
            for kept in prepared.store.take_unsent() if prepared.store else ():
                yield replace(kept, index=index), ""
            carried = carrying.feed(event) if carrying else None
            if carried:
                yield carried, ""
            yield event, line


def _carrying(prepared: PreparedRequest) -> Carrying | None:
    """Return the collector for a chat without a row that the host reads."""
    call = prepared.call
    remembers = call.config.valves.remembers_reasoning() and not call.caller.task
    if prepared.store or not call.caller.host_reads or not remembers:
        return None
    return Carrying(prepared.origin, new_ulid, call.known_sources)


async def _events_with_markers(
    prepared: PreparedRequest, connections: Connections
) -> _Run:
    """Run `job` and yield its events with their markers."""
    pending = prepared.round.pending if prepared.round else ()
    keeping = Keeping(
        _record_scope(prepared), _new_record, pending, prepared.call.known_sources
    )
    marked = set[str]()
    report_request(prepared)
    for notice in await notices_of(prepared):
        yield Status(notice), ""
    made = ArtifactStore(prepared, connections)
    events = run(
        prepared.request,
        prepared.endpoint,
        connections,
        prepared.limits,
        prepared.toolset,
    )
    async with aclosing(events):
        async for arrived in events:
            match event := await made.stored(arrived):
                case None:
                    continue
                case Status():
                    prepared = await _apply_fallback(prepared, event)
                    yield event, ""
                case RunDone():
                    await _stored_marker(
                        prepared, keeping.closing(event.output), marked
                    )
                    record = _end(prepared, keeping, event)
                    line = await _stored_marker(prepared, record, marked)
                    if prepared.store and not await prepared.store.flush():
                        report_write_failure(prepared)
                    yield add_cost(prepared, report_end(prepared, event)), line
                case _:
                    record = keeping.feed(event)
                    yield event, await _stored_marker(prepared, record, marked)


def _record_scope(prepared: PreparedRequest) -> RecordScope:
    caller, remembers = (
        prepared.call.caller,
        prepared.call.config.valves.remembers_reasoning(),
    )
    return RecordScope(
        caller.host_model,
        caller.message_id,
        prepared.origin,
        remembers,
        cites=bool(
            prepared.request.tools and any(map(is_search, prepared.request.tools))
        ),
    )


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


async def _apply_fallback(prepared: PreparedRequest, note: Status) -> PreparedRequest:
    """Remember the cause of a refusal, so that later requests avoid it.

    Returns the job with the changed request, because the next round of tools begins
    with what is sent now.
    """
    report_note(prepared, note)
    prepared.call.capabilities.note(prepared.endpoint, note.cause)
    if note.cause != "reasoning":
        return prepared
    if prepared.store:
        await prepared.store.invalidate_reasoning()
    rest = [item for item in prepared.request.input if not is_encrypted(item)]
    return prepared._replace(
        request=prepared.request.model_copy(update={"input": rest})
    )


def _end(prepared: PreparedRequest, keeping: Keeping, ended: RunDone) -> Record | None:
    """Hand the round over to the host's tools, or return the record that is left."""
    call = prepared.call
    delegates = not prepared.runs_tools and call.caller.host_reads
    is_open = bool(open_calls(ended.output)) and not ended.ending.is_failure
    if not (delegates and call.state and is_open):
        return keeping.rest()
    within_run = call.config.valves.carries_reasoning()
    received = tuple(replay_output(ended.output, with_reasoning=within_run))
    sent = tuple(prepared.request.input)
    ended_round = DelegatedRound(
        *(sent, received, tuple(keeping.pending), keeping.cited),
        prepared.request.instructions or "",
    )
    save_round(call.state, call.caller.message_id, ended_round)
    return None


async def _stored_marker(
    prepared: PreparedRequest, record: Record | None, marked: set[str]
) -> str:
    """Store `record`; return its marker unless it is among the `marked` already."""
    if record is None or prepared.store is None:
        return ""
    await prepared.store.write(record)
    is_new = record.ulid not in marked
    marked.add(record.ulid)
    return (
        format_marker(record.kind, record.ulid)
        if is_new and prepared.store.marks
        else ""
    )
