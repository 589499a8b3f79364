"""The records of one answer: its events go in, what is shown comes out."""

from collections.abc import Sequence

from openai_responses.loop.events import RunDone
from openai_responses.repairs.chat_repairs import ChatRepair
from owui_chat.events import AnswerEvent, CitedEvent, StoredRecord
from owui_chat.storage.recorder import NewRecord, Recorder
from owui_manifold.store.writers import RecordWriter


class AnswerRecords:
    """Records one answer, and hands its records to a writer.

    Without a writer the chat has no row: what is recorded travels in the events.
    Without a recorder nothing is.
    """

    def __init__(self, recorder: Recorder | None, writer: RecordWriter | None) -> None:
        self._recorder = recorder
        self._writer = writer

    async def take(self, event: CitedEvent) -> list[AnswerEvent]:
        """Return what is shown for an event: the event too, but for the run's end.

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

    async def add_repair(self, repair: ChatRepair) -> Sequence[StoredRecord]:
        """Return what is shown for a repair that later turns of the chat need."""
        if self._writer is None:
            return ()
        return await self._writer.add_repair(repair)
