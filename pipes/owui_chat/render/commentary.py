"""Commentary of the model, shown as progress in addition to the answer.

The page shows the text of an item of unknown type at its place between the cards, and
leaves it out of copies, exports, edits and reading aloud. The host sends it to no model
(docs/reference/open-webui.md, "Native events" and "The stored output and the next
turn"). So commentary is a quotation in an item of our own:

    {"type": "openai_responses:remark", "id": ..., "content": [{"text": "> ..."}]}

If a run ends with commentary, that is the answer, because there is no other.
"""

from openai_responses.items import Item
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent, TextDelta
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.render.chunks import Chunk, Chunks
from owui_chat.render.items import OutputItems, message_host_item


class Commentary:
    """Shows one message of commentary."""

    def __init__(self, output: OutputItems) -> None:
        self.host_index = len(output.items)
        """That of its item."""
        self._output = output
        self._quoted: list[str] = []
        """Its quotation, in pieces."""
        self._length = 0
        """How many characters that has."""
        self._stored_length = 0
        """How many of them the host has stored."""
        self._ended: ItemDone | None = None
        self._marker = ""
        self._marker_index = self.host_index

    def render(self, event: ItemEvent, marker: str) -> Chunks:
        """Yield the chunks for an event of the item; its marker comes at its end."""
        match event:
            case ItemAdded():
                yield self._output.begin(
                    _commentary_item(event.item, "", "in_progress")
                )
            case TextDelta() if event.text:
                quote = _continued_quotation if self._quoted else _quotation
                quoted = quote(event.text)
                self._quoted.append(quoted)
                self._length += len(quoted)
                # Deltas extend the text of an unknown item on the page only. The host
                # stores an item when it gets it whole, and that is what is left after
                # Stop: so the whole text comes each time it has doubled
                # (docs/reference/open-webui.md, "Native events").
                if self._length < 2 * self._stored_length:
                    yield self._output.grow(self.host_index, "text", quoted)
                else:
                    yield self._whole("in_progress")
            case ItemDone():
                self._ended = event
                quotation = _quotation(event.shown)
                card = _commentary_item(event.item, quotation, "completed")
                yield self._output.end(self.host_index, card)
                if marker:
                    self._marker = marker
                    self._marker_index = len(self._output.items)
                    yield from self._output.add_marker(marker)
                yield from self._output.add_files(event.card)

    def break_off(self) -> Chunks:
        """Yield the end of commentary that the run did not end."""
        if self._ended is None:
            yield self._whole("incomplete")

    def become_answer(self, closing: Item | None, gap: str) -> Chunks:
        """Yield the text as a message, after its marker, if this is `closing`.

        `gap` is between it and the text that other functions have read before.
        """
        if self._ended is None or self._ended.item != closing:
            return
        if self._marker:  # the message takes the marker's place, and this one is empty
            quotation = self._output.items[self.host_index]
            emptied = _commentary_item(quotation, "", "completed")
            yield self._output.end(self.host_index, emptied)
        head = {"id": self._output.items[self._marker_index].get("id")}
        text = self._ended.shown
        answer = message_host_item(head, self._marker + text)
        said = {"content": gap + text}
        yield self._output.end(self._marker_index, answer, said)

    def _whole(self, status: str) -> Chunk:
        """Return the event that gives the host the whole text so far."""
        self._stored_length = self._length
        item = self._output.items[self.host_index]
        whole = _commentary_item(item, "".join(self._quoted), status)
        return self._output.end(self.host_index, whole)


def _quotation(text: str) -> str:
    return "> " + _continued_quotation(text) if text else ""


def _continued_quotation(text: str) -> str:
    """Return more text of a quotation that has begun."""
    return text.replace("\n", "\n> ")


def _commentary_item(item: Item, text: str, status: str) -> Item:
    """Return the host's item of commentary; the page shows none without a text."""
    return {
        "type": COMMENTARY_TYPE,
        "id": item.get("id") or "",
        "status": status,
        "content": [{"type": "output_text", "text": text}] if text else [],
    }
