"""Thoughts in tags: what servers without a parser for reasoning send as text.

A reasoning model writes `<think>`, its thought, `</think>` and its answer. Most servers
make reasoning of it. Others (vLLM without `--reasoning-parser`, many gateways) send all
of it as the text of one message. Here that message becomes two items, reasoning and the
answer, which are shown, stored and sent again like those of any other server.

    text of the message           becomes
    <think>Hm.</think>It rains.   reasoning "Hm.", message "It rains."
    Hm.</think>It rains.          the same: some chat templates (DeepSeek-R1, Qwen3
                                  Thinking) write the opening tag themselves
    <think>Hm.                    reasoning "Hm.": the model was cut off
    <think></think>It rains.      message "It rains."
    A <think> tag opens it.       itself: a thought is at the beginning
    `</think>` closes it.         itself: this is code

While a message grows, the words before a closing tag that comes alone are shown as
text. The tag makes them a thought, under the same index.

Some servers look for the tags only at the end, and then send the thought once more, as
an item after the text (mudler/LocalAI 9658): it takes the place of the one that is shown.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from operator import itemgetter
from typing import Literal, NamedTuple

from openai_responses.items import (
    Item,
    content_parts,
    is_reasoning,
    item_texts,
    item_type,
    move_annotations,
    text_part,
)
from openai_responses.loop.events import (
    GIVEN_UP,
    HiddenMessage,
    ResponseDone,
    RunEvent,
    ToolOutput,
)
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent, TextDelta

ThoughtTags = Sequence[tuple[str, str]]
"""Pairs of an opening and a closing tag; only the first closing tag may come alone."""

THOUGHT_TAGS: ThoughtTags = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reason>", "</reason>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<Thought>", "</Thought>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought", "<channel|>"),
    (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
)
"""Those that a host knows (docs/reference/open-webui.md, "Tags in texts"), and those of
Mistral, Gemma 4 (text-generation-webui 7509) and gpt-oss (mlx-lm 1867)."""


_MOST_BLANK = 1_000
"""Blank characters in front of a thought; of more, each that comes would be looked at
again with all before it."""


class _TextPiece(NamedTuple):
    """What becomes of a piece of text: more of the thought, its end, or more `text`.

    `all before` is the whole text before a closing tag that came alone.
    """

    kind: Literal["thought", "end of thought", "all before", "text"]
    text: str = ""


class _TaggedText:
    """Reads one text, in pieces or whole."""

    def __init__(self, tags: ThoughtTags) -> None:
        self._pairs = dict(tags)
        self._lone_end = tags[0][1]
        self._tags = (*self._pairs, self._lone_end)
        """Those that a text is searched for."""
        self._first_letters = {tag[0] for tag in self._tags}
        self._place: Literal["start", "thought", "text", "after thought", "answer"]
        self._place = "start"
        """`text` may still turn out to be a thought, an `answer` may not."""
        self._end = ""
        """The tag that closes the thought."""
        self._is_blank = True
        """Whether the thought has no words so far."""
        self._held = ""
        """The end of what came, if it may be the beginning of a tag."""
        self._shown: list[str] = []
        """The `text` so far."""

    @property
    def is_unread(self) -> bool:
        """Whether no words have come, and more may follow."""
        return self._place == "start"

    def feed(self, text: str) -> list[_TextPiece]:
        """Return what is certain now."""
        text = self._held + text
        self._held = ""
        pieces: list[_TextPiece] = []
        if self._place == "start":
            text = self._read_start(text)
        if self._place == "text":
            text = self._read_text(text, pieces)
        if self._place == "thought":
            text = self._read_thought(text, pieces)
        if self._place == "after thought":
            text = text.lstrip()
            if text:
                self._place = "answer"
        if text:  # of the answer
            pieces.append(_TextPiece("text", text))
        return pieces

    def close(self) -> list[_TextPiece]:
        """Return the rest; whatever follows is the answer."""
        is_thought = self._place == "thought"
        pieces: list[_TextPiece] = []
        if self._held:  # the tag that it could have begun did not come
            pieces.append(_TextPiece("thought" if is_thought else "text", self._held))
        if is_thought:
            pieces.append(_TextPiece("end of thought"))
        self._held = ""
        self._place = "answer"
        return pieces

    def _read_start(self, text: str) -> str:
        """Look for an opening tag; return the text that is still to be read."""
        words = text.lstrip()
        if len(text) - len(words) > _MOST_BLANK:
            self._place = "text"
            return text
        for start, end in self._pairs.items():
            if words.startswith(start):
                self._place = "thought"
                self._end = end
                return words.removeprefix(start)
        if any(start.startswith(words) for start in self._pairs):
            self._held = text
            return ""
        self._place = "text"
        return text

    def _read_thought(self, text: str, pieces: list[_TextPiece]) -> str:
        """Add what belongs to the thought to `pieces`; return the text after it."""
        thought, end, rest = text.partition(self._end)
        if not end:
            thought = self._hold_back(text, [self._end])
        if self._is_blank:
            thought = thought.lstrip()
        if thought:
            self._is_blank = False
            pieces.append(_TextPiece("thought", thought))
        if end:
            self._place = "after thought"
            pieces.append(_TextPiece("end of thought"))
        return rest

    def _read_text(self, text: str, pieces: list[_TextPiece]) -> str:
        """Look for a closing tag that comes alone; return the text that follows it."""
        found: list[tuple[int, str]] = []
        may_have_tag = any(letter in text for letter in self._first_letters)
        if may_have_tag:  # few texts have one: each delta of an answer comes here
            found = [(text.index(tag), tag) for tag in self._tags if tag in text]
        if not found:
            if may_have_tag:
                text = self._hold_back(text, self._tags)
            if text:
                self._shown.append(text)
                pieces.append(_TextPiece("text", text))
            return ""
        start, tag = min(found)
        before = "".join(self._shown) + text[:start]
        self._shown = []
        # Whoever writes about tags opens them first, or writes them as code.
        line = before.rpartition("\n")[2]
        is_in_code = before.count("```") % 2 == 1 or line.count("`") % 2 == 1
        if tag != self._lone_end or is_in_code:
            self._place = "answer"
            return text
        self._place = "after thought"
        pieces.append(_TextPiece("all before", before))
        return text[start + len(tag) :]

    def _hold_back(self, text: str, tags: Iterable[str]) -> str:
        """Return `text` without an end that may be the beginning of a tag."""
        longest = 0
        for tag in tags:
            # Of most texts the last letters cannot begin the tag, which is quick to see.
            if tag[0] not in text[1 - len(tag) :]:
                continue
            for length in range(min(len(tag) - 1, len(text)), longest, -1):
                if text.endswith(tag[:length]):
                    longest = length
                    break
        end = len(text) - longest
        self._held = text[end:]
        return text[:end]


class _TaggedMessage:
    """A message, and what of it was shown: its thought and its text, with their indexes.

    A thought that is not kept is not shown.
    """

    def __init__(
        self, item: Item, tags: ThoughtTags, indexes: Iterator[int], *, keeps: bool
    ) -> None:
        self.item = item
        self.text = _TaggedText(tags)
        self.part = 0
        """That of the last delta."""
        self.text_index: int | None = None
        """None before the text begins."""
        self._indexes = indexes
        self._keeps_thought = keeps
        self._has_tags = False
        self.thought_index: int | None = None
        self._thought: list[str] = []
        """The words of the thought so far."""
        self.ended_thought: Item = {}
        """The thought as it ended last."""
        self.is_told_apart = False
        """Whether the server has made an item of the thought."""

    @property
    def may_be_told_apart(self) -> bool:
        """Whether an item of the server may be the thought."""
        return bool(self.ended_thought) and not self.is_told_apart

    def tell_apart(self, item: Item) -> bool:
        """Say whether an item of the server is the thought, which it then replaces."""
        shown, told = (
            "".join(text for _, text in item_texts(each)).strip()
            for each in (self.ended_thought, item)
        )
        self.is_told_apart = shown == told
        return self.is_told_apart

    def begin_text(self) -> list[RunEvent]:
        """Return the beginning of the text, once."""
        if self.text_index is not None:
            return []
        self.text_index = next(self._indexes)
        # A message of an answer in one piece has its text, with the tags, at once.
        item = {**self.item, "content": []} if self._has_tags else self.item
        return [ItemAdded(self.text_index, item)]

    def add_to_text(self, event: TextDelta | ItemDone) -> list[RunEvent]:
        """Return an event that is about the text, after its beginning."""
        begun = self.begin_text()
        return [*begun, event._replace(output_index=self.text_index or 0)]

    def feed(self, text: str) -> list[RunEvent]:
        """Return what is shown of more text."""
        return [event for piece in self.text.feed(text) for event in self._show(piece)]

    def read_rest(self) -> list[RunEvent]:
        """Return what was held back; whatever follows is the answer."""
        return [event for piece in self.text.close() for event in self._show(piece)]

    def _show(self, piece: _TextPiece) -> list[RunEvent]:
        if piece.kind == "text":
            return self.add_to_text(TextDelta(0, "text", self.part, piece.text))
        self._has_tags = True
        if piece.kind == "all before" and self.text_index is not None:
            self.thought_index = self.text_index
            self.text_index = None
            if self._keeps_thought:
                return self.end_thought(_reasoning(self.item, piece.text))
            return [ItemDone(self.thought_index, GIVEN_UP)]
        events: list[RunEvent] = []
        # A thought does not begin with blanks, but has blank lines inside.
        has_words = self.thought_index is not None or piece.text.strip()
        if piece.text and has_words and self._keeps_thought:
            if self.thought_index is None:
                self.thought_index = next(self._indexes)
                begun = ItemAdded(self.thought_index, _reasoning(self.item, ""))
                events.append(begun)
            self._thought.append(piece.text)
            events.append(TextDelta(self.thought_index, "reasoning", 0, piece.text))
        if piece.kind != "thought":
            thought = _reasoning(self.item, "".join(self._thought))
            events += self.end_thought(thought)
        return events

    def end_thought(self, thought: Item) -> list[RunEvent]:
        """Return the end of the thought, unless it has none or has ended like that."""
        if self.thought_index is None or self.is_told_apart:
            return []
        if thought == self.ended_thought:
            return []
        self.ended_thought = thought
        return [ItemDone(self.thought_index, thought)]


def _reasoning(message: Item, words: str) -> Item:
    """Return the thought of a message, in the form of servers that have a parser."""
    words = words.strip()
    return {
        "id": f"rs_{message.get('id') or 'msg'}",
        "type": "reasoning",
        "summary": [],
        "content": [text_part("reasoning", words)] if words else [],
        "status": "completed" if words else "in_progress",
    }


class TaggedThoughts:
    """Makes reasoning of the thoughts in tags of one response.

    One message may become two items, so items are numbered anew. Thoughts that are not
    kept are neither shown nor sent again.
    """

    def __init__(
        self, first_index: int, tags: ThoughtTags, *, keeps_thoughts: bool = True
    ) -> None:
        """Number items from `first_index` on."""
        self._tags = tags
        self._keeps_thoughts = keeps_thoughts
        self._free_indexes = count(first_index)
        self._indexes: dict[int, int] = {}
        """Those of items that are not messages, by the indexes that come."""
        self._messages: dict[int, _TaggedMessage] = {}
        """All messages of the response, by the indexes that come."""
        self._newest: list[_TaggedMessage] = []
        """Those since the last item that was none."""
        self._last: _TaggedMessage | None = None
        """The last message."""
        self._held: list[ItemEvent] = []
        """The events of a thought that may be the one of the last message."""

    def feed(self, event: RunEvent) -> list[RunEvent]:
        """Return the events that replace an event."""
        message = self._last
        held = self._held
        if held:
            index = held[0].output_index
            if isinstance(event, ItemEvent) and event.output_index == index:
                if not isinstance(event, ItemDone):
                    held.append(event)
                    return []
                if message and message.tell_apart(event.item):
                    self._held = []
                    self._indexes[index] = message.thought_index or 0
                    return self._feed(event)
            self._held = []
            return [shown for each in [*held, event] for shown in self._feed(each)]
        may_be_told = message is not None and message.may_be_told_apart
        if may_be_told and isinstance(event, ItemAdded) and is_reasoning(event.item):
            self._held = [event]
            return []
        return self._feed(event)

    def _feed(self, event: RunEvent) -> list[RunEvent]:
        """Return the events that replace an event, which does not wait."""
        if isinstance(event, ResponseDone):
            messages = self._messages.values()
            return [*chain.from_iterable(each.read_rest() for each in messages), event]
        if isinstance(event, HiddenMessage):
            # It repeats the message before it, whose thought is shown; its own is not.
            hidden = self._add_message(event)
            hidden.read_rest()
            _, answer = self._split(event.item)
            if answer is None:
                return []
            hidden.text_index = next(self._free_indexes)
            return [HiddenMessage(hidden.text_index, answer)]
        if isinstance(event, ToolOutput):  # of a tool of the server's own
            own_index = self._index_of(event.output_index)
            return [event._replace(output_index=own_index)]
        if not isinstance(event, ItemEvent):
            return [event]
        message = self._messages.get(event.output_index)
        match event:
            case ItemAdded() if item_type(event.item) == "message":
                # It begins with its first words: they may be a thought, which then
                # comes before it.
                self._add_message(event)
                return []
            case ItemAdded():
                begun: list[RunEvent] = []
                # Messages without words came before this item; but servers announce one
                # before they know that the model thinks.
                if not is_reasoning(event.item):
                    for earlier in self._newest:
                        if earlier.text.is_unread:
                            begun += earlier.begin_text()
                    self._newest = []
                own_index = self._index_of(event.output_index)
                return [*begun, event._replace(output_index=own_index)]
            case TextDelta(kind="text") if message:
                # Older vLLM gives each delta a part of its own (vllm 35184), so all parts
                # are one.
                message.part = event.part
                return message.feed(event.text)
            case TextDelta() if message:
                return [*message.read_rest(), *message.add_to_text(event)]
            case ItemDone() if message:
                return self._end(message, event)
        index = message.text_index if message else self._index_of(event.output_index)
        return [] if index is None else [event._replace(output_index=index)]

    def items(self, ended: Iterable[tuple[int, Item]]) -> list[tuple[int, Item]]:
        """Return the finished items of the response, with their indexes."""
        items: list[tuple[int, Item]] = []
        for index, item in ended:
            message = self._messages.get(index)
            if message is None:
                items.append((self._index_of(index), item))
                continue
            thought, answer = self._split(item)
            thought = thought or message.ended_thought
            if message.is_told_apart:  # it is an item of its own
                thought = None
            if thought and message.thought_index is not None:
                items.append((message.thought_index, thought))
            if answer and message.text_index is not None:
                items.append((message.text_index, answer))
        return sorted(items, key=itemgetter(0))

    def _add_message(self, event: ItemAdded | HiddenMessage) -> _TaggedMessage:
        message = _TaggedMessage(
            event.item, self._tags, self._free_indexes, keeps=self._keeps_thoughts
        )
        self._messages[event.output_index] = message
        self._last = message
        self._newest.append(message)
        return message

    def _index_of(self, index: int) -> int:
        """Return the index of an item that is not a message."""
        if index not in self._indexes:
            self._indexes[index] = next(self._free_indexes)
        return self._indexes[index]

    def _end(self, message: _TaggedMessage, event: ItemDone) -> list[RunEvent]:
        """Return the end of a message, which may be two items."""
        events = message.read_rest()
        thought, answer = self._split(event.item)
        if thought:
            events += message.end_thought(thought)
        if answer:
            events += message.add_to_text(event._replace(item=answer))
        return events

    def _split(self, message: Item) -> tuple[Item | None, Item | None]:
        """Return the thought and the answer of a whole message, as far as it has them."""
        content = message.get("content")
        parts = content_parts(content)
        if isinstance(content, str):
            parts = [{"type": "output_text", "text": content}]
        # A thought may end in another part than it began: their texts are one, as they
        # are while they grow. A part without a text ends them.
        texts: list[str] = []
        for part in parts:
            if not isinstance(part.get("text"), str):
                break
            texts.append(part["text"])
        text = "".join(texts)
        reader = _TaggedText(self._tags)
        pieces = [*reader.feed(text), *reader.close()]
        if all(piece.kind == "text" for piece in pieces):
            return None, message
        answer = "".join(piece.text for piece in pieces if piece.kind == "text")
        words = "".join(piece.text for piece in pieces if piece.kind != "text")
        thought = _reasoning(message, words) if words.strip() else None
        if not self._keeps_thoughts:
            thought = None
        if not answer and len(texts) == len(parts):
            return thought, None
        left: list[Item] = []
        surplus = len(text) - len(answer)  # the characters in front of the answer
        for part, own_text in zip(parts, texts, strict=False):
            before = min(surplus, len(own_text))
            surplus -= before
            left.append(_without_beginning(part, before) if before else part)
        return thought, {**message, "content": [*left, *parts[len(texts) :]]}


def _without_beginning(part: Item, before: int) -> Item:
    """Return a part without that many characters, which its annotations count."""
    shorter = {**part, "text": part["text"][before:]}
    return move_annotations(shorter, lambda place: max(0, place - before))
