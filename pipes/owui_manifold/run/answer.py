"""Runs a prepared request and yields its events, with the markers of stored items."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial

from openai_responses.clock import unix_seconds
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.trials import RunTrials
from openai_responses.repairs.chat_repairs import ChatRepair
from openai_responses.repairs.finding import Trial
from openai_responses.transport.connections import Connections, Timeouts
from openai_responses.ulid import new_ulid
from owui_chat.citations import Citations, source_keys
from owui_chat.events import AnswerEvent, CitedEvent
from owui_chat.storage.recorder import NewRecord, Recorder, RecordScope
from owui_manifold.call.context import PipeCall
from owui_manifold.prepare.request import (
    PreparedRequest,
    is_as_configured,
    repair_scope,
)
from owui_manifold.present.report import (
    compare_cache,
    notices_of,
    report_end,
    report_request,
    server_message,
)
from owui_manifold.run.silence import WaitingLines
from owui_manifold.run.spending import check_limits, counted_run
from owui_manifold.store.artifacts import ArtifactStore

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
    call = prepared.call
    recorder = _recorder(prepared)
    citations = Citations(source_keys(call.host.metadata.get("sources")))
    report_request(prepared)
    if prepared.reason:
        yield Status(prepared.reason)
    # Nobody reads the stream while a file is fetched: it takes half of its patience.
    patience = Timeouts(first_event=prepared.limits.timeouts.idle / 2)
    artifacts = ArtifactStore(call, connections, patience)
    trials = RunTrials()
    lines = WaitingLines(call, connections)
    limits = prepared.limits._replace(set_waiting=lines.set_waiting)
    events = counted_run(prepared._replace(limits=limits), connections)
    async with aclosing(events), aclosing(lines):
        async for arrived in events:
            for line in lines.note(arrived):
                yield line
            await _remember(prepared, trials.note(arrived))
            event = await artifacts.stored(_without_reason(call, arrived))
            if event is None:
                continue
            cited_events: Iterable[CitedEvent] = (event,)
            if call.caller.host_reads:
                cited_events = citations.feed(event)
            for cited in cited_events:
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
    store = prepared.store
    shown = list[AnswerEvent]()
    recorded_events = recorder.feed(event) if recorder else (event,)
    for recorded in recorded_events:
        if not isinstance(recorded, NewRecord | RunDone):
            shown.append(recorded)
        elif isinstance(recorded, NewRecord) and store:
            store.write_beside(*recorded)
    if isinstance(event, RunDone) and store and not await store.flush():
        prepared.call.log.warn(_NOT_WRITTEN)
    if store:
        shown += store.take_unsent()
    return shown


def _recorder(prepared: PreparedRequest) -> Recorder | None:
    """Return the recorder of a chat; None where nothing can be stored."""
    caller = prepared.call.caller
    store = prepared.store
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
    """Return the id of a new record, and the time in Unix seconds."""
    return new_ulid(), unix_seconds()


def _without_reason(call: PipeCall, event: RunEvent) -> RunEvent:
    """Log what happens before an answer; return the event as people see it."""
    if not isinstance(event, Status):
        return event
    reason = server_message(call, event.reason)
    call.log.warn(f"{event.sentence} {reason}".strip())
    return Status(event.sentence)


async def _remember(prepared: PreparedRequest, confirmed: Sequence[Trial]) -> None:
    """Remember what made a request acceptable: for its chat, or for its server."""
    call = prepared.call
    store = prepared.store
    scope = repair_scope(call, prepared.request.model)
    for trial in confirmed:
        repair = trial.repair
        if store and isinstance(repair, ChatRepair) and repair.is_about_chat:
            if trial.is_lasting:
                await store.add_repair(repair)
            continue
        configured = partial(is_as_configured, prepared)
        call.capabilities.repairs.learn(scope, trial, configured)
