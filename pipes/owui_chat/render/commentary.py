"""Commentary of the model, shown as progress beside the answer.

The page draws the text of an item of unknown type at its place between the cards, and
leaves it out of copies, exports, edits and reading aloud. The host sends it to no model
(docs/reference/open-webui.md, "Native events" and "The stored output and the next
turn"). So commentary is a quotation in an item of our own:

    {"type": "openai_responses:remark", "id": ..., "content": [{"text": "> ..."}]}

If a run ends with commentary, that is the answer, because there is no other.
"""

from collections.abc import Iterator, Sequence

from openai_responses.items import Item
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent, TextDelta
from owui_chat.render.chunks import Chunk
from owui_chat.render.hosted import show_files
from owui_chat.render.items import OutputItems, message_host_item
from owui_chat.storage.output_carrier import COMMENTARY_TYPE, closing_commentary


class Commentary:
    """Shows the commentary of one run; `indexes` are those of its items."""

    def __init__(self, shown: OutputItems) -> None:
        """Take the list of items."""
        self.indexes: dict[int, int] = {}
        self._shown = shown
        self._quoted: dict[int, str] = {}
        self._stored: dict[int, int] = {}  # how much of it the host has
        self._ended: dict[int, tuple[Item, str]] = {}
        self._markers: dict[int, tuple[int, str]] = {}

    def begin(self, index: int) -> None:
        """Take a new item at the next place."""
        self.indexes[index] = len(self._shown.items)
        self._quoted[index] = ""

    def render(self, event: ItemEvent, marker: str) -> Iterator[Chunk]:
        """Yield the chunks for an event of commentary; its marker comes at its end."""
        match event:
            case ItemAdded():
                yield self._shown.begin(_commentary_item(event.item, "", "in_progress"))
            case TextDelta():
                yield from self._grow(event.output_index, event.text)
            case ItemDone():
                yield from self._end(event, marker)
                yield from show_files(self._shown, event.card)

    def end_run(self, output: Sequence[Item]) -> Iterator[Chunk]:
        """Yield the end of broken commentary, and commentary that is the answer."""
        for index in self.indexes.keys() - self._ended.keys():
            yield self._whole(index, "incomplete")
        closing = closing_commentary(output)
        for index, (item, text) in self._ended.items():
            if item == closing:
                yield from self._become_answer(index, text)

    def _grow(self, index: int, text: str) -> Iterator[Chunk]:
        """Yield the growth, and the whole text each time it has doubled.

        Deltas extend the text of an unknown item on the page only. The host stores an
        item when it gets it whole, and that is what is left after Stop
        (docs/reference/open-webui.md, "Native events").
        """
        if not text:
            return
        place, before = self.indexes[index], self._quoted[index]
        more = text.replace("\n", "\n> ") if before else _quotation(text)
        self._quoted[index] = before + more
        if len(before + more) < 2 * self._stored.get(index, 0):
            yield self._shown.grow(place, "text", more)
            return
        yield self._whole(index, "in_progress")

    def _whole(self, index: int, status: str) -> Chunk:
        """Return the event that gives the host the whole text so far."""
        place, quoted = self.indexes[index], self._quoted[index]
        self._stored[index] = len(quoted)
        return self._shown.end(
            place, _commentary_item(self._shown.items[place], quoted, status)
        )

    def _end(self, event: ItemDone, marker: str) -> Iterator[Chunk]:
        text = event.shown
        self._ended[event.output_index] = (event.item, text)
        card = _commentary_item(event.item, _quotation(text), "completed")
        yield self._shown.end(self.indexes[event.output_index], card)
        if marker:
            self._markers[event.output_index] = (len(self._shown.items), marker)
            yield from self._shown.add_marker(marker)

    def _become_answer(self, index: int, text: str) -> Iterator[Chunk]:
        """Yield the commentary as a message, behind its marker if it has one."""
        place = self.indexes[index]
        item = self._shown.items[place]
        if index in self._markers:
            yield self._shown.end(place, _commentary_item(item, "", "completed"))
            place, marker = self._markers[index]
            item, text = self._shown.items[place], marker + text
        yield self._shown.end(place, message_host_item({"id": item.get("id")}, text))


def _quotation(text: str) -> str:
    return "> " + text.replace("\n", "\n> ") if text else ""


def _commentary_item(item: Item, text: str, status: str) -> Item:
    content = [{"type": "output_text", "text": text}] if text else []
    head = {"type": COMMENTARY_TYPE, "id": item.get("id") or ""}
    return {**head, "status": status, "content": content}
