"""A job, run: each event of the answer, with the marker of what was kept for it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from openai_responses.clock import unix_seconds
from openai_responses.items import is_call
from openai_responses.run import Limits, run
from openai_responses.run_events import Grew, RunEnded, RunEvent
from openai_responses.transport import Connections
from openai_responses.ulids import new_ulid
from owui_chat.keeping import Author, Keeping
from owui_chat.markers import marker
from owui_chat.stored import Record
from owui_manifold.job import Job
from owui_manifold.rounds import Round, received_items, remember_round

Told = tuple[RunEvent, str]


async def told(job: Job, connections: Connections) -> AsyncGenerator[Told, None]:
    """Run `job` and yield its events.

    A marker comes with the first growth of a text, or with the end of the run, and
    only after the host has stored what it names.
    """
    keeping = Keeping(_author(job), _new_record, job.pending)
    events = run(job.request, job.endpoint, connections, Limits())
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                record = _end(job, keeping, event)
            else:
                record = keeping.feed(event)
            yield event, await _stored_marker(job, event, record)


def _author(job: Job) -> Author:
    caller = job.asked.caller
    remembers = job.asked.valves.PERSIST_REASONING_TOKENS == "conversation"
    return Author(caller.host_model, caller.message_id, job.origin, remembers)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


def _end(job: Job, keeping: Keeping, ended: RunEnded) -> Record | None:
    """Hand the round over to the host's tools, or return the record that is left."""
    caller = job.asked.caller
    if not (caller.host_reads and any(is_call(item) for item in ended.output)):
        return keeping.rest()
    within_run = job.asked.valves.PERSIST_REASONING_TOKENS != "disabled"
    received = received_items(ended.output, within_run)
    sent = tuple(job.request.input)
    handed_over = Round(sent, received, tuple(keeping.pending))
    remember_round(job.asked.state, caller.message_id, handed_over)
    return None


async def _stored_marker(job: Job, event: RunEvent, record: Record | None) -> str:
    """Store `record`; return its marker if one belongs in front of `event`."""
    if record is None or job.store is None or not await job.store.write(record):
        return ""
    begins = isinstance(event, Grew | RunEnded)
    return marker(record.kind, record.ulid) if begins else ""
