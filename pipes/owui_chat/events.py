"""The events of an answer: those of its run, with what is shown and stored of it.

`citations` puts shown texts and sources into the events of a run, `storage.recorder`
adds markers and records, and `render.native` shows the result.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from openai_responses.items import Item
from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent
from openai_responses.models.usage import Cost


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


class AnswerReport(NamedTuple):
    """What is known of an answer besides its run; it comes in front of the end."""

    cost: Cost | None = None
    """None if it is unknown or not shown."""
    usage_note: str = ""
    """What explains a large number of tokens."""
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""
    rounds: int = 0
    """Of an agent."""
    tool_calls: int = 0
    """Of an agent."""
    metadata: JsonObject = MappingProxyType({})
    """What the host stores with the last line, of an agent."""


CitedEvent = RunEvent | SourceCited
AnswerEvent = CitedEvent | Marker | StoredRecord | TurnDetails | AnswerReport
