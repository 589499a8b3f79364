"""Parts of a message, as they are shown: thoughts in the form of reasoning, and texts."""

from dataclasses import dataclass, field
from typing import Literal

from openai_responses.items import Item, text_part
from openai_responses.loop.events import RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta


@dataclass(slots=True)
class ShownPart:
    """A part of a message, with an index and an id of its own."""

    index: int
    id: str
    is_thought: bool
    texts: list[str] = field(default_factory=list)
    """In pieces: one text would be copied whole for each."""

    def start_event(self) -> ItemAdded:
        """Return the start event."""
        return ItemAdded(self.index, self._build_item("in_progress", ""))

    def add_text(self, text: str) -> TextDelta:
        """Add more text; return its event."""
        self.texts.append(text)
        kind: Literal["summary", "text"] = "summary" if self.is_thought else "text"
        return TextDelta(self.index, kind, 0, text)

    def end_event(self) -> ItemDone:
        """Return the end event, which contains the type and the whole text again."""
        text = "".join(self.texts).rstrip()
        return ItemDone(self.index, self._build_item("completed", text))

    def events(self, text: str) -> list[RunEvent]:
        """Return the whole part at once."""
        start = self.start_event()
        added = [self.add_text(text)] if text else []
        return [start, *added, self.end_event()]

    def _build_item(self, status: str, text: str) -> Item:
        """Return the reasoning or the message that the part is shown as."""
        if self.is_thought:
            return {
                "id": f"rs_{self.id}",
                "type": "reasoning",
                "summary": [text_part("summary", text)] if text else [],
                "status": status,
            }
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [text_part("text", text)],
        }


def announcement(call: Item) -> str:
    """Return the thought of a round that calls a tool without a word."""
    if call.get("name") == "ask_user":
        return "I have a question."
    return f"I am going to use {call.get('name')}."
