"""Runs a prepared request and yields its events, with the markers of stored items."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any

from manifold.learning import RepairLearning, repair_scope
from manifold.views import context_sources, log_status
from openai_responses.items import open_calls
from openai_responses.json_input import as_list, value_at
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.spending import Spending
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from openai_responses.ulid import new_ulid
from owui_chat.citations import Citations, source_keys
from owui_chat.events import AnswerEvent, CitedEvent, SourceCited, StoredRecord
from owui_chat.storage.recorder import DetailsRecorder, NewRecord, Recorder
from owui_manifold.prepare.request import Prepared, is_as_configured
from owui_manifold.present.notices import notices_of, refusal_notice
from owui_manifold.present.report import report_end, report_request
from owui_manifold.run.silence import WaitingLines
from owui_manifold.run.spending import (
    CallerPresence,
    begin_spending,
    check_limits,
    counted_run,
)
from owui_manifold.run.uploads import ChatUploads
from owui_manifold.store.artifacts import ArtifactStore
from owui_manifold.store.writers import OutputWriter, RecordWriter, RowWriter
from shells.audit_log import AuditLog
from strategies.thoughts import ShownThoughts


async def answer_events(
    prepared: Prepared, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run a request and yield its events.

    For Open WebUI they have the shown texts, with their markers and records; other
    clients get the model's texts. What a marker names is stored next to the text,
    and at the latest before the end. Repairs are remembered when it is known that
    they helped; their reason is for the log alone.
    """
    check_limits(prepared)
    uploads = ChatUploads(prepared, connections)
    copying = uploads.status_line()
    if copying:
        yield Status(copying, is_note=False)
    prepared = await uploads.request_with_files()
    call = prepared.call
    answer = _Answer(prepared, connections)
    report_request(prepared)
    audit = AuditLog(call.config.expert, call.log, call.endpoint.host)
    audit.note_request(prepared.request)
    if prepared.beginning:
        yield Status(prepared.beginning)
    lines = WaitingLines(call.page_emitter(), connections)
    presence = CallerPresence(call.caller.user_id)
    limits = prepared.limits._replace(
        set_waiting=lines.set_waiting, count_response=presence.spent
    )
    spending = begin_spending(prepared)
    # Many answers may have come this far since, while files were uploaded.
    check_limits(prepared)
    events = counted_run(prepared, limits, connections, spending)
    async with aclosing(events), aclosing(lines):
        async for event in events:
            if presence.is_due(event):
                await presence.look()
            for line in lines.note(event):
                yield line
            for shown in await answer.show(event):
                yield shown
            if isinstance(event, RunDone):
                audit.note_end(event)
                ended = answer.with_whole_output(event)
                last = await _last_events(prepared, ended, uploads, spending)
                for last_event in last:
                    yield last_event


async def _last_events(
    prepared: Prepared, ended: RunDone, uploads: ChatUploads, spending: Spending
) -> list[AnswerEvent]:
    """Return the end of a run with its report, and the notices about it.

    An answer with calls that the host makes goes on: its notices come at its end.
    """
    if ended.ending.is_failure:
        uploads.forget()
    elif open_calls(ended.output):
        return [*report_end(prepared, ended, spending)]
    events = list[AnswerEvent]()
    refusal = refusal_notice(prepared.call)
    if refusal:
        events.append(Status(refusal, subject="a setting has no effect"))
    report, ended = report_end(prepared, ended, spending)
    has_failed = ended.ending.is_failure
    notices = await notices_of(prepared)
    lines = [Status(notice, is_note=not has_failed) for notice in notices]
    if has_failed:  # how it ended may be the last line, the only one that is seen
        return [*events, *lines, report, ended]
    return [*events, report, ended, *lines]


class _Answer:
    """What becomes of the events of one run, and what is stored of them.

    Without a writer the chat has no row: what is recorded travels in the events.
    Without a recorder nothing is.
    """

    def __init__(self, prepared: Prepared, connections: Connections) -> None:
        call = prepared.call
        self._prepared = prepared
        self._learning = RepairLearning(
            call.memory.repairs,
            repair_scope(call.endpoint, prepared.request.model, call.caller.user_id),
            partial(is_as_configured, prepared),
            has_row=prepared.row is not None,
        )
        # No one reads the stream while a file is fetched, so a fetch takes no longer
        # than half of the silence that the stream may have.
        longest = prepared.limits.timeouts.idle / 2
        fetch_timeouts = Timeouts(first_event=longest, total=longest)
        self._artifacts = ArtifactStore(call, connections, fetch_timeouts)
        sources: list[Any] = []
        row = prepared.row
        if row:  # of an answer that goes on the page has those of its first part
            message = row.chat.messages.get(row.message_id)
            sources += as_list(value_at(message, "sources"))
        sources += as_list(call.host.metadata.get("sources"))
        self._unshown_context: list[SourceCited] = []
        self._thoughts: ShownThoughts | None = None
        if call.agent:
            parameters = call.agent.parameters
            are_shown = parameters.emit_intermediate_thoughts
            self._thoughts = ShownThoughts(are_shown=are_shown, keeps_messages=True)
            cited = context_sources(parameters.context)
            sources += cited
            # The page has those of an answer that goes on.
            if call.caller.is_open_webui and not call.host.continues:
                self._unshown_context = [SourceCited(source) for source in cited]
        self._citations = Citations(
            source_keys(sources), shows_addresses=call.caller.is_in_channel
        )
        self._writer: RecordWriter | None = None
        scope = prepared.scope
        if row and scope and scope.carrier == "output":
            self._writer = OutputWriter(row)
        elif row:
            self._writer = RowWriter(row, call.log)
        self._recorder: Recorder | DetailsRecorder | None = None
        if scope:
            kind = DetailsRecorder if scope.carrier == "details" else Recorder
            self._recorder = kind(scope, new_ulid)

    async def show(self, event: RunEvent) -> list[AnswerEvent]:
        """Return what is shown for an event: the event too, but for the run's end."""
        call = self._prepared.call
        repairs = list[StoredRecord]()
        for repair in self._learning.note(event):
            if self._writer:
                repairs += await self._writer.add_repair(repair)
        if isinstance(event, Status):  # its reason is for the log alone
            event = log_status(call.log, event)
        with_card = await self._artifacts.add_card(event)
        if with_card is None:
            return list(repairs)
        shown = list[AnswerEvent]()
        # An answer that ends at once did not begin: another endpoint may be asked.
        if not isinstance(with_card, Status | RunDone):
            shown += self._unshown_context
            self._unshown_context = []
        cited: Iterable[CitedEvent] = (with_card,)
        if call.caller.is_open_webui:  # plain clients get the model's own texts
            cited = self._citations.feed(with_card)
        if self._thoughts:
            not_hidden: list[CitedEvent] = []
            for each in cited:
                not_hidden += self._thoughts.feed(each)
            cited = not_hidden
        for each in cited:
            shown += await self._record(each)
        if self._thoughts:
            shown = [self._thoughts.without_thoughts(each) for each in shown]
        return [*shown, *repairs]

    async def _record(self, event: CitedEvent) -> list[AnswerEvent]:
        """Return what is shown of an event and its records, which the writer stores.

        Records follow the text that they belong to: no one waits for them. At the end
        of the run all of them are stored, as far as the host allows it.
        """
        shown = list[AnswerEvent]()
        stored = list[StoredRecord]()
        recorded_events = self._recorder.feed(event) if self._recorder else (event,)
        for recorded in recorded_events:
            if not isinstance(recorded, NewRecord | RunDone):
                shown.append(recorded)
            elif isinstance(recorded, NewRecord) and self._writer:
                stored += self._writer.add(recorded)
        if isinstance(event, RunDone) and self._writer:
            stored += await self._writer.finish()
        return [*shown, *stored]

    def with_whole_output(self, ended: RunDone) -> RunDone:
        """Return the end of the run with its output as it is shown.

        A program runs its functions under the names that it gave them.
        """
        if self._thoughts:
            ended = self._thoughts.shown_end(ended)
        named = map(self._prepared.tool_names.with_own_name, ended.output)
        return ended._replace(output=tuple(named))
