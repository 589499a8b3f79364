"""Messages that the API sends twice in one response, shown once.

OpenAI's models sometimes end a response with two messages of the same text and phase,
under two ids (pipecat-ai/pipecat 4852: gpt-4.1 to gpt-5.5). The second one grows unseen
for as long as it repeats the first. It stays in the output of the response and is sent
again, because the next request has to begin with the bytes of this one.
"""

from collections.abc import Iterable

from openai_responses.items import Item, item_type, message_text
from openai_responses.loop.events import HiddenMessage, RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent, TextDelta


class RepeatedMessages:
    """Hides the messages of one response that repeat the message before them."""

    def __init__(self) -> None:
        self._last: ItemDone | None = None
        """The end of the last message."""
        self.held: list[ItemEvent] = []
        """The events of the next item, a message that may repeat it."""
        self._text = ""
        """Its text."""
        self._length = 0
        """How much of that the next message has repeated."""

    def show(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return what is shown of some events."""
        shown: list[RunEvent] = []
        for event in events:
            if self.held:
                shown += self._hold(event)
            elif isinstance(event, ItemAdded) and self._may_repeat(event):
                self.held = [event]
                self._length = 0
            else:
                shown.append(event)
            if isinstance(event, ItemDone) and item_type(event.item) == "message":
                self._last = event
                self._text = message_text(event.item)
        return shown

    def _may_repeat(self, event: ItemAdded) -> bool:
        """Say whether a message directly follows another one of its phase, with a text."""
        last = self._last
        if last is None or event.output_index != last.output_index + 1:
            return False
        is_message = item_type(event.item) == "message"
        has_same_phase = event.item.get("phase") == last.item.get("phase")
        return is_message and has_same_phase and bool(self._text)

    def _hold(self, event: RunEvent) -> list[RunEvent]:
        """Return nothing of a message while it repeats the last one, else all of it."""
        index = self.held[0].output_index
        if isinstance(event, ItemEvent) and event.output_index == index:
            repeats = True
            if isinstance(event, TextDelta):
                repeats = self._text.startswith(event.text, self._length)
                self._length += len(event.text)
            elif isinstance(event, ItemDone):
                if message_text(event.item) == self._text:
                    self.held = []
                    return [HiddenMessage(index, event.item)]
                repeats = False
            if repeats:
                self.held.append(event)
                return []
        held = self.held
        self.held = []
        return [*held, event]


def without_repetitions(items: Iterable[Item]) -> list[Item]:
    """Return `items` without messages that repeat the message directly before them."""
    kept: list[Item] = []
    last: Item = {}
    for item in items:
        is_repeated = (
            item_type(last) == item_type(item) == "message"
            and message_text(item) == message_text(last) != ""
            and item.get("phase") == last.get("phase")
        )
        if not is_repeated:
            kept.append(item)
        last = item
    return kept
