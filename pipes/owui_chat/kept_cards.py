"""What a run keeps in the host's own stored output of its message.

The page draws nothing for an item of an unknown type that has no `content`, and the
host stores it as it is but gives it to no model (open-webui.md §0.4, §5):

    {"type": "openai_responses:kept", "id": "kept_{ulid}", "before": id of a message item,
     "kept": what a message key would hold}

Without an item for `before` it belongs to the end of its message.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses.items import Item, is_reasoning
from openai_responses.run_events import RunEvent
from owui_chat.host_chunks import Chunk
from owui_chat.shown import ShownItems

KEPT_TYPE = "openai_responses:kept"
KEPT_ID = "kept_"


@dataclass(frozen=True, slots=True)
class Kept:
    """A record to store, `value`, named by its id.

    `index` is the item of the run whose text it stands in front of, None the end.
    """

    ulid: str
    value: Mapping[str, Any]
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """The entries of a turn for the `reasoning_details` of its thought."""

    details: Sequence[Item]


ShownEvent = RunEvent | Kept | Carried
"""What a view is told: of the run, or of what is kept of it."""


class KeptCards:
    """Puts into one message's output what is kept of it."""

    def __init__(self, shown: ShownItems) -> None:
        """Add to `shown`."""
        self._shown = shown
        self._places: dict[str, int] = {}
        self._carried_to = 0

    def show(self, event: Kept | Carried, places: Mapping[int, int]) -> Iterator[Chunk]:
        """Yield the events that store it; `places` are those of the run's items."""
        if isinstance(event, Kept):
            yield from self._keep(event, places)
        else:
            yield from self._carry(event)

    def _keep(self, kept: Kept, places: Mapping[int, int]) -> Iterator[Chunk]:
        """Yield the events of a record, anew if it was stored before."""
        items = self._shown.items
        if kept.ulid in self._places:
            place = self._places[kept.ulid]
            yield self._shown.end(place, {**items[place], "kept": dict(kept.value)})
            return
        found = places.get(-1 if kept.index is None else kept.index)
        before = "" if found is None else items[found].get("id") or ""
        self._places[kept.ulid] = len(items)
        head = {"type": KEPT_TYPE, "id": f"{KEPT_ID}{kept.ulid}", "before": before}
        yield from self._shown.add({**head, "kept": dict(kept.value)})

    def _carry(self, carried: Carried) -> Iterator[Chunk]:
        """Yield the turn's thought again, now with its entries, if it has one."""
        items = self._shown.items
        new = range(self._carried_to, len(items))
        self._carried_to = len(items)
        place = next((at for at in new if is_reasoning(items[at])), None)
        if place is not None:
            details = [*carried.details]
            yield self._shown.end(place, {**items[place], "reasoning_details": details})
