"""The events of an answer: those of its run, with what is shown and stored of it.

`closing_line` has the figures of its last line, which come in front of its end.
`citations` puts shown texts and sources into the events of a run, `storage.recorder`
adds markers and records, and `render.native` shows the result.
"""

from collections.abc import Sequence
from typing import NamedTuple

from openai_responses.items import Item
from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent
from owui_chat.closing_line import AnswerFigures


class SourceCited(NamedTuple):
    """A source to list below the answer, in the host's form."""

    source: JsonObject


class Marker(NamedTuple):
    """Text that names a record; it belongs to the event that follows.

    It comes before the text of a delta, after commentary that ended, or alone at the
    end of the run.
    """

    text: str


class StoredRecord(NamedTuple):
    """A record to store in the answer's own output, as an item of it."""

    item: Item
    output_index: int | None = None
    """The item whose text follows the record, None for the end of the run."""


class TurnDetails(NamedTuple):
    """The entries of a response for the `reasoning_details` of its reasoning."""

    details: Sequence[Item]


CitedEvent = RunEvent | SourceCited
AnswerEvent = CitedEvent | Marker | StoredRecord | TurnDetails | AnswerFigures
