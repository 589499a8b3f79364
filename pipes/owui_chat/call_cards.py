"""Calls that the page shows before they have an output.

A call that never gets one the host would run, whatever there is of its arguments
(middleware.py:5539).
"""

from collections.abc import Iterator

from openai_responses.items import Item
from openai_responses.run_events import CallAnswered
from owui_chat.cards import broken_off_card, output_card
from owui_chat.host_chunks import Chunk
from owui_chat.shown import ShownItems


class OpenCalls:
    """Closes the cards of one run's calls."""

    def __init__(self, shown: ShownItems) -> None:
        """Take the items that the cards are among."""
        self._shown = shown
        self._places: dict[object, int] = {}

    def note(self, call: Item, place: int) -> None:
        """Note a call that begins at a place."""
        self._places[call.get("call_id")] = place

    def answer(self, event: CallAnswered) -> Iterator[Chunk]:
        """Yield the output of a call, as the host would store it (middleware.py:5837)."""
        place = self._places.pop(event.item["call_id"], None)
        if place is not None and event.failed:
            yield self._closed(place, "failed")
        yield from self._shown.add(output_card(event))

    def break_off(self) -> Iterator[Chunk]:
        """Yield an end for the calls that a broken answer left open."""
        for call_id, place in self._places.items():
            yield self._closed(place, "incomplete")
            yield from self._shown.add(broken_off_card(call_id))
        self._places = {}

    def _closed(self, place: int, status: str) -> Chunk:
        return self._shown.end(place, {**self._shown.items[place], "status": status})
