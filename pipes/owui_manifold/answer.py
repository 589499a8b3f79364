"""Runs a prepared request and yields its events, with the markers of stored items."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from openai_responses.clock import new_ulid, unix_seconds
from openai_responses.items import is_encrypted, tool_kind
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.requests.replay import replay_output
from openai_responses.transport.connections import Connections
from owui_chat.citations import Citations
from owui_chat.events import AnswerEvent, CitedEvent
from owui_chat.storage.recorder import (
    Carrier,
    NewRecord,
    Recorder,
    RecordScope,
    leaves_calls,
)
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
from owui_manifold.rounds import DelegatedRound, known_sources, save_round


async def answer_events(
    prepared: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run a request and yield its events.

    For Open WebUI they have the shown texts, and the markers and records that precede
    them. A marker comes only after the host was asked to store what it names.
    """
    call, recorder = prepared.call, _recorder(prepared)
    known = known_sources(call.state, call.caller.message_id, call.host.metadata)
    citations = Citations(known)
    report_request(prepared)
    for notice in await notices_of(prepared):
        yield Status(notice)
    artifacts = ArtifactStore(prepared, connections)
    events = run(
        prepared.request,
        prepared.endpoint,
        connections,
        prepared.limits,
        prepared.toolset,
    )
    async with aclosing(events):
        async for arrived in events:
            event = await artifacts.stored(arrived)
            if isinstance(event, Status):
                prepared = await _apply_fallback(prepared, event)
            for cited in _cite(prepared, citations, event):
                for shown in await _write_records(prepared, recorder, cited):
                    yield shown
            if isinstance(event, RunDone):
                _hand_over(prepared, recorder, citations, event)
                yield add_cost(prepared, report_end(prepared, event))


def _cite(
    prepared: PreparedRequest, citations: Citations, event: RunEvent | None
) -> Iterable[CitedEvent]:
    """Return the event as Open WebUI shows it; other clients get the model's texts."""
    if event is None:
        return ()
    return citations.feed(event) if prepared.call.caller.host_reads else (event,)


async def _write_records(
    prepared: PreparedRequest, recorder: Recorder | None, event: CitedEvent
) -> list[AnswerEvent]:
    """Write the records of an event; return what is shown, but for the run's end."""
    store, shown = prepared.store, list[AnswerEvent]()
    for recorded in recorder.feed(event) if recorder else (event,):
        if not isinstance(recorded, NewRecord | RunDone):
            shown.append(recorded)
        elif isinstance(recorded, NewRecord) and store:
            await store.write(*recorded)
    if isinstance(event, RunDone) and store and not await store.flush():
        report_write_failure(prepared)
    return [*(store.take_unsent() if store else ()), *shown]


def _recorder(prepared: PreparedRequest) -> Recorder | None:
    """Return the recorder of a chat; None where nothing can be stored."""
    call, scope = prepared.call, _record_scope(prepared)
    if prepared.store:
        carrier: Carrier = "markers" if prepared.store.marks else "output"
        pending = prepared.round.pending if prepared.round else ()
        return Recorder(scope._replace(carrier=carrier), _new_record, pending)
    is_chat = call.caller.host_reads and not call.caller.task
    if is_chat and scope.keeps_reasoning:
        return Recorder(scope._replace(carrier="details"), _new_record)
    return None


def _record_scope(prepared: PreparedRequest) -> RecordScope:
    caller, remembers = (
        prepared.call.caller,
        prepared.call.valves.remembers_reasoning(),
    )
    return RecordScope(
        caller.host_model,
        caller.message_id,
        prepared.origin,
        remembers,
        cites=any(tool_kind(tool).is_cited for tool in prepared.request.tools or ()),
        delegates=_delegates(prepared),
    )


def _delegates(prepared: PreparedRequest) -> bool:
    """Say whether the host runs the tools and calls the pipe again."""
    call = prepared.call
    return bool(not prepared.runs_tools and call.caller.host_reads and call.state)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


async def _apply_fallback(prepared: PreparedRequest, note: Status) -> PreparedRequest:
    """Remember the cause of a refusal, so that later requests avoid it.

    Returns the request as it was changed, because the next round of tools begins
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


def _hand_over(
    prepared: PreparedRequest,
    recorder: Recorder | None,
    citations: Citations,
    ended: RunDone,
) -> None:
    """Leave the round for the call of the pipe that follows the host's tools."""
    if not (_delegates(prepared) and leaves_calls(ended)):
        return
    call = prepared.call
    within_run = call.valves.carries_reasoning()
    received = tuple(replay_output(ended.output, with_reasoning=within_run))
    pending = tuple(recorder.pending) if recorder else ()
    ended_round = DelegatedRound(
        *(tuple(prepared.request.input), received, pending, citations.keys),
        prepared.request.instructions or "",
    )
    save_round(call.state, call.caller.message_id, ended_round)
