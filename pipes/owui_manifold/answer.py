"""A job, run: each event of the answer, with the marker of what was kept for it."""

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
    job: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run `job` and yield its events.

    A marker comes with the first growth of a text, with the end of a remark, or with
    the end of the run, and only after the host was asked to store what it names; what
    the answer itself is to hold comes in front of the event.
    """
    async with aclosing(_events_with_markers(job, connections)) as events:
        carrying = _carrying(job)
        async for event, line in events:
            index = (
                event.output_index if isinstance(event, TextDelta | ItemDone) else None
            )
            for kept in job.store.take_unsent() if job.store else ():
                yield replace(kept, index=index), ""
            carried = carrying.feed(event) if carrying else None
            if carried:
                yield carried, ""
            yield event, line


def _carrying(job: PreparedRequest) -> Carrying | None:
    """Return what collects the turns, for a chat without a row that the host reads."""
    asked = job.call
    remembers = asked.valves.remembers_reasoning() and not asked.caller.task
    if job.store or not asked.caller.host_reads or not remembers:
        return None
    return Carrying(job.origin, new_ulid, asked.known_sources)


async def _events_with_markers(job: PreparedRequest, connections: Connections) -> _Run:
    """Run `job` and yield its events with their markers."""
    pending = job.round.pending if job.round else ()
    keeping = Keeping(_record_scope(job), _new_record, pending, job.call.known_sources)
    marked = set[str]()
    report_request(job)
    for notice in await notices_of(job):
        yield Status(notice), ""
    made = ArtifactStore(job, connections)
    events = run(job.request, job.endpoint, connections, job.limits, job.toolset)
    async with aclosing(events):
        async for arrived in events:
            match event := await made.stored(arrived):
                case None:
                    continue
                case Status():
                    job = await _apply_fallback(job, event)
                    yield event, ""
                case RunDone():
                    await _stored_marker(job, keeping.closing(event.output), marked)
                    record = _end(job, keeping, event)
                    line = await _stored_marker(job, record, marked)
                    if job.store and not await job.store.flush():
                        report_write_failure(job)
                    yield add_cost(job, report_end(job, event)), line
                case _:
                    record = keeping.feed(event)
                    yield event, await _stored_marker(job, record, marked)


def _record_scope(job: PreparedRequest) -> RecordScope:
    caller, remembers = job.call.caller, job.call.valves.remembers_reasoning()
    return RecordScope(
        caller.host_model,
        caller.message_id,
        job.origin,
        remembers,
        cites=bool(job.request.tools and any(map(is_search, job.request.tools))),
    )


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


async def _apply_fallback(job: PreparedRequest, note: Status) -> PreparedRequest:
    """Keep what a refusal taught, so that no later request runs into it.

    Returns the job as it goes on: the next round of tools begins with what is sent
    now.
    """
    report_note(job, note)
    job.call.capabilities.note(job.endpoint, note.cause)
    if note.cause != "reasoning":
        return job
    if job.store:
        await job.store.invalidate_reasoning()
    rest = [item for item in job.request.input if not is_encrypted(item)]
    return replace(job, request=job.request.model_copy(update={"input": rest}))


def _end(job: PreparedRequest, keeping: Keeping, ended: RunDone) -> Record | None:
    """Hand the round over to the host's tools, or return the record that is left."""
    asked = job.call
    delegates = not job.runs_tools and asked.caller.host_reads
    is_open = bool(open_calls(ended.output)) and not ended.ending.is_failure
    if not (delegates and asked.state and is_open):
        return keeping.rest()
    within_run = asked.valves.carries_reasoning()
    received = tuple(replay_output(ended.output, with_reasoning=within_run))
    sent = tuple(job.request.input)
    ended_round = DelegatedRound(
        *(sent, received, tuple(keeping.pending), keeping.cited),
        job.request.instructions or "",
    )
    save_round(asked.state, asked.caller.message_id, ended_round)
    return None


async def _stored_marker(
    job: PreparedRequest, record: Record | None, marked: set[str]
) -> str:
    """Store `record`; return its marker unless it is among the `marked` already."""
    if record is None or job.store is None:
        return ""
    await job.store.write(record)
    is_new = record.ulid not in marked
    marked.add(record.ulid)
    return format_marker(record.kind, record.ulid) if is_new and job.store.marks else ""
