"""One message of the model, as the pieces in which it is shown: answers, thoughts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpt5_agent.thinking import Span, ThinkReader, think_spans
from openai_responses.items import Item, message_text
from openai_responses.loop.events import Grew, ItemEnded, ItemStarted, RunEvent


@dataclass(slots=True)
class _Piece:
    """A piece with a place of its own; `name` is its id."""

    index: int
    name: str
    is_thought: bool
    text: str = ""

    def started(self) -> ItemStarted:
        """Return the event of its beginning."""
        return ItemStarted(self.index, self._item("in_progress", ""))

    def grown(self, text: str) -> Grew:
        """Add text; return the event of it."""
        self.text += text
        return Grew(self.index, "summary" if self.is_thought else "text", 0, text)

    def ended(self) -> ItemEnded:
        """Return the event of its end, which says again what it is."""
        return ItemEnded(self.index, self._item("completed", self.text.rstrip()))

    def _item(self, status: str, text: str) -> Item:
        if self.is_thought:
            summary = [{"type": "summary_text", "text": text}] if text else []
            return thought_item(self.name, summary, status)
        part = {"type": "output_text", "text": text, "annotations": []}
        head = {"id": self.name, "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": [part]}


class ShownMessage:
    """Shows a message; `emits` says whether thoughts are shown.

    What is held back waits for `release` or `become_thought`.
    """

    def __init__(
        self,
        item: Item,
        new_index: Callable[[], int],
        *,
        emits: bool,
        is_thought: bool,
        is_held: bool,
    ) -> None:
        """Take the message as it begins."""
        self.is_thought = is_thought
        self.is_held = is_held
        self.is_commentary = item.get("phase") == "commentary"
        self._item = item
        self._new_index = new_index
        self._emits = emits
        self._reader = ThinkReader()
        self._held: list[Span] = []
        self._pieces: list[_Piece] = []
        self._is_whole = False

    @property
    def text(self) -> str:
        """What is shown as an answer; the host joins such pieces so (misc.py:407)."""
        return "\n".join(one.text for one in self._pieces if not one.is_thought)

    @property
    def is_heard(self) -> bool:
        """Whether anything of it is shown."""
        return bool(self._pieces)

    def grow(self, text: str) -> Iterator[RunEvent]:
        """Yield what more text shows."""
        yield from self._take(self._reader.feed(text))

    def end(self, item: Item) -> Iterator[RunEvent]:
        """Yield the end of the message; `item` is all of it."""
        self._item, self._is_whole = item, True
        yield from self._take(self._reader.close())
        yield from self._end_last()

    def become_thought(self) -> Iterator[RunEvent]:
        """Yield what the message becomes once its round calls a tool."""
        self.is_thought, self._held = True, []
        for piece in self._pieces if self._emits else ():
            if not piece.is_thought:
                piece.is_thought = True
                yield piece.ended()

    def release(self) -> Iterator[RunEvent]:
        """Yield what was held back."""
        self.is_held, held, self._held = False, self._held, []
        yield from self._take(held)
        yield from self.close()
        if self._is_whole:
            yield from self._end_last()

    def conclude(self) -> Iterator[RunEvent]:
        """Yield a message that was shown as a thought once more, as the answer."""
        spans = think_spans(message_text(self._item))
        text = "".join(span.text for span in spans if not span.is_thought).strip()
        if text and not self.text:
            piece = self._begun(is_thought=False)
            yield piece.started()
            yield piece.grown(text)
            yield piece.ended()

    def close(self) -> Iterator[RunEvent]:
        """Yield what still waited for the rest of a tag."""
        yield from self._take(self._reader.close())

    def _take(self, spans: list[Span]) -> Iterator[RunEvent]:
        for span in spans:
            is_thought = span.is_thought or self.is_thought
            if self.is_held:
                self._held.append(span)
            elif self._emits or not is_thought:
                yield from self._show(span.text, is_thought)

    def _show(self, text: str, is_thought: bool) -> Iterator[RunEvent]:
        last = self._pieces[-1] if self._pieces else None
        if last is None or last.is_thought is not is_thought:
            text = text.lstrip()  # blank lines between a thought and an answer
            if not text:
                return
            if last:
                yield last.ended()
            last = self._begun(is_thought)
            yield last.started()
        yield last.grown(text)

    def _begun(self, is_thought: bool) -> _Piece:
        index, own = self._new_index(), str(self._item.get("id") or "")
        name = own if own and not self._pieces else f"{own or 'msg'}_{index}"
        piece = _Piece(index, name, is_thought)
        self._pieces.append(piece)
        return piece

    def _end_last(self) -> Iterator[RunEvent]:
        """Yield the end of the last piece; of a message in one piece its own bytes."""
        if not self._pieces:
            return
        last, own = self._pieces[-1], message_text(self._item)
        if not last.is_thought and think_spans(own) == [Span(False, own)]:
            last.text = own
            yield ItemEnded(last.index, self._item)
        else:
            yield last.ended()


def thought_item(name: str, summary: list[Item], status: str = "completed") -> Item:
    """Return a reasoning item that shows a thought."""
    return {
        "id": f"rs_{name}",
        "type": "reasoning",
        "summary": summary,
        "status": status,
    }
