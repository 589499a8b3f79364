"""The events of an answer go in, and what is shown comes out."""

from collections.abc import Sequence

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone
from openai_responses.repairs.chat_repairs import ChatRepair, LeaveOutReasoning
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import CitedEvent, StoredRecord
from owui_chat.storage.recorder import NewRecord, Recorder, RecordScope
from owui_manifold.store.answer_records import AnswerRecords
from runs.sample import AUTHOR, Ids, message, reasoning

pytestmark = pytest.mark.asyncio

TEXT = TextDelta(1, "text", 0, "Rain.")
EVENTS: Sequence[CitedEvent] = (
    ItemAdded(0, reasoning("1")),
    ItemDone(0, reasoning("1")),
    ItemAdded(1, message("1", "")),
    TEXT,
)


class Writer:
    """Gives an item for each record, one for the end and one for a repair."""

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Return an item with the record's id."""
        return [StoredRecord({"id": new.record.ulid}, new.output_index)]

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Return an item of its own."""
        return [StoredRecord({"id": "repair"})]

    async def finish(self) -> list[StoredRecord]:
        """Return an item of its own."""
        return [StoredRecord({"id": "end"})]


def recorder(scope: RecordScope) -> Recorder:
    """What records a run into the answer's output."""
    return Recorder(scope._replace(carrier="output"), Ids())


async def test_record_follows_the_text_that_it_belongs_to() -> None:
    """The page knows the text's item by then."""
    records = AnswerRecords(recorder(AUTHOR), Writer())

    shown = [shown for event in EVENTS for shown in await records.take(event)]

    assert shown[:-1] == list(EVENTS)
    assert isinstance(shown[-1], StoredRecord)
    assert shown[-1].output_index == TEXT.output_index


@pytest.mark.parametrize("has_writer", [True, False])
async def test_end_of_the_run_is_left_to_the_caller(has_writer: bool) -> None:
    """Whatever is stored last is in front of it."""
    records = AnswerRecords(recorder(AUTHOR), Writer() if has_writer else None)

    shown = await records.take(RunDone(COMPLETED))

    assert shown == ([StoredRecord({"id": "end"})] if has_writer else [])


async def test_repair_is_shown_where_the_chat_is_written() -> None:
    """A chat without a row has no place for it."""
    repair = LeaveOutReasoning("b" * 32)

    assert await AnswerRecords(None, Writer()).add_repair(repair)
    assert not await AnswerRecords(None, None).add_repair(repair)


async def test_nothing_is_recorded_without_a_recorder() -> None:
    """The events pass unchanged."""
    records = AnswerRecords(None, None)

    assert [await records.take(event) for event in EVENTS] == [[e] for e in EVENTS]
