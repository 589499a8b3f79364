"""Run events -> the same run with its thoughts shown as reasoning, or not at all.

What a model says in a round that calls tools is a thought, and so is what stands in
`<think>` tags. Whether a round calls tools is known only once a call comes:

    text of a round       thoughts are shown             thoughts are not shown
    before a call         grows; becomes a thought       held back; left out when a
                          when a call comes              call comes, else shown
    after a call          a thought                      left out
    phase commentary      a thought; the last also the   left out, unless it is all
                          answer, if it is all
    phase final_answer    as before a call               grows
    no tools offered      grows                          grows
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gpt5_agent.pieces import ShownMessage, thought_item
from gpt5_agent.thinking import think_spans
from openai_responses.items import Item, is_call, item_type, message_text
from openai_responses.loop.events import (
    Cited,
    Grew,
    ItemEnded,
    ItemStarted,
    Pictured,
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)


class Thoughts:
    """Shows one run, over all its rounds, under indexes of its own."""

    def __init__(self, *, emits: bool) -> None:
        """Show thoughts if `emits` says so."""
        self._emits = emits
        self._may_call = False
        self._called = False
        self._has_thought = False
        self._next = 0
        self._indexes: dict[int, int] = {}
        self._messages: dict[int, ShownMessage] = {}
        self._texts: dict[int, str] = {}

    def begin_round(self, *, may_call: bool) -> None:
        """Take note that the model answers anew."""
        self._may_call = may_call
        self._called = self._has_thought = False
        self._messages = {}

    def text_of(self, index: int) -> str:
        """Return what is shown as an answer of the run's message at `index`."""
        return self._texts.get(index, "")

    def show(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield what takes the place of an event."""
        match event:
            case ItemStarted() if item_type(event.item) == "message":
                self._messages[event.index] = self._begun(event.item)
            case Grew() if event.index in self._messages:
                yield from self._messages[event.index].grow(event.text)
            case ItemEnded() if event.index in self._messages:
                yield from self._messages[event.index].end(event.item)
            case Cited() if event.index in self._messages:
                pass  # the ended item has it again
            case Status():
                yield event
            case ResponseDone() | RunDone():
                yield from self._close()
                yield event
            case _:
                yield from self._show_other(event)

    def carrier(self) -> Iterator[RunEvent]:
        """Yield an empty thought, for what has to be carried where none is."""
        index = self._new_index()
        yield from _thought(index, f"carrier_{index}", "")

    def _begun(self, item: Item) -> ShownMessage:
        comments = item.get("phase") == "commentary"
        is_thought = self._called or (self._emits and comments)
        may_end_in_call = self._may_call and item.get("phase") != "final_answer"
        hides = not self._emits and (may_end_in_call or comments)
        return ShownMessage(
            item,
            self._new_index,
            emits=self._emits,
            is_thought=is_thought,
            is_held=hides and not is_thought,
        )

    def _show_other(
        self, event: ItemStarted | Grew | Pictured | Cited | ItemEnded | ToolOutput
    ) -> Iterator[RunEvent]:
        """Yield an event of anything but a message, at its place."""
        if isinstance(event, ItemStarted) and is_call(event.item):
            yield from self._call(event.item)
        if isinstance(event, Grew) and event.kind in ("summary", "reasoning"):
            self._has_thought = True
        if event.index not in self._indexes:
            self._indexes[event.index] = self._new_index()
        yield replace(event, index=self._indexes[event.index])

    def _call(self, call: Item) -> Iterator[RunEvent]:
        """Yield what the texts of this round become now that it calls a tool.

        A round that says nothing gets a thought of ours.
        """
        for message in self._messages.values():
            yield from message.become_thought()
        self._note_texts()
        heard = any(message.is_heard for message in self._messages.values())
        if self._emits and not (self._called or self._has_thought or heard):
            name = call.get("name")
            asks = name == "ask_user"
            sentence = "I have a question." if asks else f"I am going to use {name}."
            yield from _thought(self._new_index(), str(call.get("call_id")), sentence)
        self._called = True

    def _close(self) -> Iterator[RunEvent]:
        """Yield what was held back, at the end of a round that called no tool."""
        messages = list(self._messages.values())
        has_answer = any(not one.is_commentary for one in messages)
        for message in messages:
            if not message.is_held:
                yield from message.close()
            elif not (self._called or (message.is_commentary and has_answer)):
                yield from message.release()
        if self._emits and messages and not (self._called or has_answer):
            yield from messages[-1].conclude()
        self._note_texts()

    def _note_texts(self) -> None:
        self._texts |= {index: one.text for index, one in self._messages.items()}

    def _new_index(self) -> int:
        self._next += 1
        return self._next - 1


def answer_text(output: Iterable[Item]) -> str:
    """Return the answer that a round without calls gives: no thoughts, no comments."""
    messages = [item for item in output if item_type(item) == "message"]
    final = [item for item in messages if item.get("phase") != "commentary"]
    texts = [
        "".join(
            span.text for span in think_spans(message_text(item)) if not span.is_thought
        )
        for item in final or messages
    ]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _thought(index: int, name: str, text: str) -> Iterator[RunEvent]:
    """Yield the events of a whole thought."""
    yield ItemStarted(index, thought_item(name, [], "in_progress"))
    if text:
        yield Grew(index, "summary", 0, text)
    summary = [{"type": "summary_text", "text": text}] if text else []
    yield ItemEnded(index, thought_item(name, summary))
