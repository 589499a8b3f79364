r"""The state machine of one response.

Events in, run events out, no side effects. An item is *unknown* until its
`output_item.added`, then *open*, and *ended* from its `output_item.done` on:

    event \ state    unknown            open              ended
    delta            kept for later     shown             ignored
    whole text       kept for later     the rest shown    ignored
    added            opened             ignored           ignored
    done             opened and ended   ended             ignored
    final snapshot   opened and ended   ended             ignored
    citation, sketch ignored            shown             ignored

"Kept for later" is shown when the item is known: only the item has the name of a call
(docs/reference/responses-api.md, "Stream events"). Events after the end of the response
are ignored. A text that has ended is authoritative: the part that was not shown yet is
shown, and the final item is the wire's own dict.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from openai_responses.endings import (
    COMPLETED,
    Ending,
    api_word,
    ending_of_failure,
    ending_of_incomplete,
)
from openai_responses.errors import ApiError, read_api_error
from openai_responses.items import Item, TextPlace, content_parts, item_texts
from openai_responses.json_input import as_list, as_mapping, as_text
from openai_responses.loop.events import ResponseDone, RunEvent, Trace
from openai_responses.models.usage import Usage, read_usage
from openai_responses.transport.stream import (
    AnnotationAdded,
    FinalResponse,
    ItemAdded,
    ItemDone,
    ItemEvent,
    PartialImage,
    StreamError,
    StreamEvent,
    TextDelta,
    TextDone,
)


class ResponseState:
    """One response, from its first event to its last."""

    def __init__(self, first_index: int = 0) -> None:
        """Number items from `first_index` on."""
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        self._early: dict[int, list[TextDelta | TextDone]] = {}
        self._open: dict[int, dict[TextPlace, list[str]]] = {}
        self._ended: dict[int, Item] = {}

    @property
    def output(self) -> list[Item]:
        """The finished items, in the order of the API."""
        return [self._ended[index] for index in sorted(self._ended)]

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event and return the run events that it causes."""
        self.event_count += 1
        return [] if self.ending else self._take(event)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta() if event.output_index in self._open:
                return self._grow(event)
            case TextDone() if event.output_index in self._open:
                place = event.kind, event.part
                return self._show_rest(event.output_index, place, event.text)
            case TextDelta() | TextDone() if event.output_index not in self._ended:
                self._early.setdefault(event.output_index, []).append(event)
            case AnnotationAdded() | PartialImage() if event.output_index in self._open:
                return [self._renumber(event)]
            case ItemAdded():
                return self._start(event)
            case ItemDone():
                return self._end(event)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self.trace = self.trace._replace(error=event.error)
                self.ending = ending_of_failure("error", event.error)
                self.refusal = event.error
        return []

    def _renumber(self, event: ItemEvent) -> ItemEvent:
        """Return an event with its place among all items of the run."""
        if not self._first:
            return event
        return event._replace(output_index=self._first + event.output_index)

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        if not event.text:
            return []
        texts = self._open[event.output_index]
        texts.setdefault((event.kind, event.part), []).append(event.text)
        return [self._renumber(event)]

    def _start(self, event: ItemAdded) -> list[RunEvent]:
        place = event.output_index
        if place in self._open or place in self._ended:
            return []
        self._open[place] = {}
        events: list[RunEvent] = [self._renumber(event)]
        for early in self._early.pop(place, ()):
            events += self._take(early)
        return events

    def _end(self, event: ItemDone) -> list[RunEvent]:
        place, item = event.output_index, event.item
        if place in self._ended:
            return []
        events = self._start(ItemAdded(place, item))
        for text_place, text in item_texts(item):
            events += self._show_rest(place, text_place, text)
        del self._open[place]
        self._ended[place] = item
        return [*events, self._renumber(event)]

    def _show_rest(
        self, output_index: int, place: TextPlace, text: str
    ) -> list[RunEvent]:
        """Show the part of `text` that its deltas did not bring.

        A text that contradicts its deltas is corrected by the final item alone.
        """
        texts = self._open[output_index]
        shown = "".join(texts.get(place, ()))
        texts[place] = [text]
        if len(text) <= len(shown) or not text.startswith(shown):
            return []
        return [self._renumber(TextDelta(output_index, *place, text[len(shown) :]))]

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        response = event.response
        self.usage = read_usage(response.get("usage"))
        self.ending = _ending_of(event.status, response)
        error = read_api_error(response.get("error"))
        self.refusal = error if event.status == "failed" else None
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            error=error,
            removed=_removals(response.get("input_transformations")),
        )
        events: list[RunEvent] = []
        for output_index, item in enumerate(as_list(response.get("output"))):
            if isinstance(item, dict):
                events += self._end(ItemDone(output_index, item))
        events += self.close()
        response_id = str(response.get("id") or "")
        return [*events, ResponseDone(response_id, event.status, self.usage)]

    def close(self) -> list[RunEvent]:
        """Show texts of messages that were never announced; no more events follow."""
        events: list[RunEvent] = []
        for output_index in sorted(self._early):
            kinds = {early.kind for early in self._early[output_index]}
            if kinds & {"text", "refusal"}:
                message = {"type": "message", "role": "assistant", "content": []}
                events += self._start(ItemAdded(output_index, message))
        return events


def _removals(transformations: object) -> Mapping[str, int]:
    return Counter(
        api_word(str(row.get("reason"))) or "unknown"
        for row in content_parts(transformations)
        if row.get("action") == "removed"
    )


def _ending_of(status: str, response: Mapping[str, Any]) -> Ending:
    if status == "incomplete":
        details = as_mapping(response.get("incomplete_details"))
        return ending_of_incomplete(as_text(details.get("reason")) or None)
    if status == "cancelled":  # by another client: after our own we read no answer
        return ending_of_incomplete(status)
    if status == "failed":
        return ending_of_failure("failed", read_api_error(response.get("error")))
    return COMPLETED
