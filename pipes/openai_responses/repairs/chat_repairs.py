"""Repairs of one chat: which of its items are left out, or sent as plain text.

A chat stores them, so that its later turns do not meet the refusal again and begin with
the same bytes. An item is named by a digest, because its place changes. What users and
administrators wrote always stays.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from openai_responses.items import (
    Item,
    content_parts,
    drop_orphans,
    has_plain_reasoning,
    inner_parts,
    is_call,
    is_encrypted,
    is_paired,
    is_reasoning,
    item_type,
    json_digest,
    message_text,
    part_text,
    text_message,
)
from openai_responses.repairs.refusal import NamedItem, SentRequest

MAX_CHAT_REPAIRS = 100
"""A chat remembers no more of them; of a longer list the newest count."""

_MAX_ROWS_READ = 1000
_NAME_FORM = re.compile(r"[0-9a-f]{32}(\.\d{1,6})?")
_TYPE_FORM = re.compile(r"[a-z_]{1,64}")
_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "\n[An image or file was here. It could not be sent.]\n"
"""On a line of its own: some servers join the parts of a message without a space."""
_MAX_WORDS_OF_PAIR = 20_000
"""Characters of a call or an output that is sent as words of the model."""
_PLAIN_FIELDS_OF_PAIR = ("type", "call_id", "name", "arguments", "input", "output")
"""What is left of a call or an output in its plainest form."""

ItemChange = Literal["none", "plain", "leave_out"]
"""What a repair does to an item: only its words are sent, or nothing of it."""


@dataclass(frozen=True, slots=True)
class ChatRepair(ABC):
    """One change of the items of a chat."""

    name: str
    """That of the last item that it is about; empty for all items. What comes later may
    be accepted."""

    is_about_chat: ClassVar = True
    """Whether a chat remembers it, and not the account."""
    word: ClassVar = ""
    """What its stored form begins with. A blind step has none, because it is not
    remembered."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the user who waits."""

    def stored(self) -> list[str]:
        """Return the form that a chat stores; `read_chat_repairs` reads it."""
        return [self.word, self.name] if self.word else []

    @abstractmethod
    def change_of(self, row: NamedItem) -> ItemChange:
        """Return what becomes of an item; of calls and outputs words always stay."""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent, beyond the repairs that it had."""
        items = sent.asked["input"]
        sent_before = name_items(items, sent.repairs)
        sent_with_this = name_items(items, [*sent.repairs, self])
        return sent_with_this != sent_before


@dataclass(frozen=True, slots=True)
class LeaveOutItem(ChatRepair):
    """One item is left out, with the reasoning in front of it.

    A call and its output become words: without them the model would call again.
    """

    word: ClassVar = "item"
    noun: str = field(default="item", compare=False)
    keeps_words: bool = field(default=False, compare=False)
    """Whether it is a call or an output."""

    @property
    def message(self) -> str:
        if self.keeps_words:
            return f"One earlier {self.noun} was sent as plain text."
        return f"One earlier {self.noun} could not be sent again and was left out."

    def change_of(self, row: NamedItem) -> ItemChange:
        return "leave_out" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class SendAsText(ChatRepair):
    """The words of one item stay; images and files become a line of text."""

    word: ClassVar = "text"
    noun: str = field(default="item", compare=False)
    had_media: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        if self.had_media:
            return "An image or file could not be sent to the model and was left out."
        return f"One earlier {self.noun} was sent as plain text."

    def change_of(self, row: NamedItem) -> ItemChange:
        return "plain" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class LeaveOutKind(ChatRepair):
    """All items of a type are left out."""

    kind: str

    @property
    def message(self) -> str:
        if self.kind == "code_interpreter_call":
            return "Earlier code runs are no longer available: answering without them."
        noun = self.kind.replace("_", " ")
        return f"Earlier items of the type {noun} were left out."

    def stored(self) -> list[str]:
        return ["kind", self.kind, self.name]

    def change_of(self, row: NamedItem) -> ItemChange:
        return "leave_out" if item_type(row.item) == self.kind else "none"


class LeaveOutReasoning(ChatRepair):
    """Encrypted items are left out: the error does not say which cannot be read."""

    word: ClassVar = "reasoning"
    message = (
        "The model's server could not read earlier reasoning in this chat: answering "
        "without it."
    )

    def change_of(self, row: NamedItem) -> ItemChange:
        return "leave_out" if is_encrypted(row.item) else "none"


class CallsAsWords(ChatRepair):
    """Calls and outputs become words.

    DeepSeek takes a call only with the thought before it, in all later turns as well, and
    plain thoughts are kept for one turn. Others take none without tools in the request.
    """

    word: ClassVar = "calls"
    message = (
        "The model's server does not take earlier tool calls as they were: sending "
        "them as plain text."
    )

    def change_of(self, row: NamedItem) -> ItemChange:
        return "leave_out" if is_paired(row.item) else "none"


@dataclass(frozen=True, slots=True)
class PlainItems(ChatRepair):
    """Only texts, calls and outputs stay, in their plainest form."""

    had_media: bool = field(default=False, compare=False)
    """Whether images or files were sent until now."""

    @property
    def message(self) -> str:
        refused = "with its images and files" if self.had_media else "as it was"
        return (
            f"The model's server rejected this chat {refused}: only its texts and tool "
            "results were sent."
        )

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that has no words."""
        has_words = is_paired(row.item) or _is_message_with_text(row.item)
        return "plain" if has_words or is_from_user(row.item) else "leave_out"


class WordsAlone(ChatRepair):
    """Only messages stay; of calls and outputs words stay."""

    message = "The model's server rejected this chat again: only its text was sent."

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that is no message with words."""
        has_words = _is_message_with_text(row.item)
        return "plain" if has_words or is_from_user(row.item) else "leave_out"


@dataclass(frozen=True, slots=True)
class RepairForAll(ChatRepair):
    """It is the way of a server or a model, not of a chat."""

    name: str = ""
    is_about_chat: ClassVar = False


class LeaveOutPlainReasoning(RepairForAll):
    """Reasoning of which only the words came is not sent again."""

    message = (
        "The model's server does not accept its own reasoning: answering without it."
    )

    def change_of(self, row: NamedItem) -> ItemChange:
        return "leave_out" if has_plain_reasoning(row.item) else "none"


class LeaveOutImages(RepairForAll):
    """Of messages and outputs with images the words stay."""

    message = "This model cannot see images: answering without them."

    def change_of(self, row: NamedItem) -> ItemChange:
        return "plain" if has_media(row.item, ["input_image"]) else "none"


def _is_message_with_text(item: Item) -> bool:
    return item_type(item) == "message" and bool(message_text(item))


_BY_WORD: Mapping[str, type[ChatRepair]] = {
    kind.word: kind
    for kind in (LeaveOutItem, SendAsText, LeaveOutReasoning, CallsAsWords)
}
"""The repairs whose stored form is a word and the name of an item.

Chats of 1.0.0 may also hold `plain` and `words`: blind steps, which are not read, so that
the chat gets its reasoning back.
"""


def read_chat_repairs(rows: Sequence[object]) -> list[ChatRepair]:
    """Return the repairs of their stored form, each once; anything else is skipped.

    The owner of a chat can write anything there.
    """
    repairs: dict[ChatRepair, None] = {}
    for row in rows[-_MAX_ROWS_READ:]:
        repair: ChatRepair
        match row:
            case [str(word), str(name)] if word in _BY_WORD:
                repair = _BY_WORD[word](name)
            case ["kind", str(kind), str(name)] if _TYPE_FORM.fullmatch(kind):
                repair = LeaveOutKind(name, kind)
            case _:
                continue
        if _NAME_FORM.fullmatch(name):
            repairs[repair] = None
    return list(repairs)[-MAX_CHAT_REPAIRS:]


def item_names(items: Iterable[Item]) -> list[str]:
    """Return the names of items: a digest, and a number where the same item comes again.

    What is appended to a chat changes no name.
    """
    counts = Counter[str]()
    names: list[str] = []
    for item in items:
        digest = json_digest(item)
        earlier = counts[digest]
        names.append(f"{digest}.{earlier}" if earlier else digest)
        counts[digest] += 1
    return names


def name_items(items: Sequence[Item], repairs: Iterable[object]) -> list[NamedItem]:
    """Return the items that are sent, each with the name of what it was made of.

    Repairs of requests are not applied here. Calls and outputs stay in pairs.
    """
    names = item_names(items)
    rows = [NamedItem(name, item) for name, item in zip(names, items, strict=True)]
    own = [repair for repair in repairs if isinstance(repair, ChatRepair)]
    if not own:
        return rows
    known_names = set(names)
    # Each repair counts up to the last item that it is about. Without that one in the
    # chat, it is over.
    changed = defaultdict[ItemChange, set[str]](set)
    for repair in own:
        if repair.name and repair.name not in known_names:
            continue
        for row in rows:
            changed[repair.change_of(row)].add(row.name)
            if row.name == repair.name:
                break
    left_out = changed["leave_out"]
    # If a part of a call is left out, words stay of both parts.
    gone = [row.item for row in rows if row.name in left_out and is_paired(row.item)]
    calls_as_words = {item.get("call_id") for item in gone}

    sent: list[NamedItem] = []
    for row in rows:
        item = row.item
        has_plain_form = is_paired(item) or item_type(item) == "message"
        as_words = is_paired(item) and item.get("call_id") in calls_as_words
        if as_words or (row.name in left_out and not is_from_user(item)):
            while sent and is_reasoning(sent[-1].item):  # it led to this item
                sent.pop()
            if as_words:
                sent.append(row._replace(item=_words_of_pair(item)))
        elif row.name in changed["plain"] and has_plain_form:
            sent.append(row._replace(item=plain_item(item)))
        else:
            sent.append(row)
    whole = {id(item) for item in drop_orphans([row.item for row in sent])}
    return [row for row in sent if id(row.item) in whole]


def is_from_user(item: Item) -> bool:
    """Say whether the user or the administrator wrote `item`, which always stays.

    Items without a role, such as calls, are the model's or its tools'.
    """
    return bool(item.get("role", "assistant") != "assistant")


def _words_of_pair(item: Item) -> Item:
    if is_call(item):
        arguments = item.get("arguments") or item.get("input")
        text = f"I called {item.get('name')}: {arguments}"
    else:
        text = f"I got this result: {plain_item(item).get('output')}"
    return text_message("assistant", text[:_MAX_WORDS_OF_PAIR])


def has_media(item: Item, types: Collection[str] = _MEDIA) -> bool:
    """Say whether `item` holds an image or a file."""
    return any(part.get("type") in types for part in inner_parts(item))


def without_media(item: Item, goes: Callable[[Item], bool]) -> Item:
    """Return an item with a line in the place of each part that `goes`.

    The parts are asked about in their order.
    """
    line = {"type": "input_text", "text": _MEDIA_GONE}
    return change_parts(item, lambda part: {**line} if goes(part) else part)


def change_parts(item: Item, change: Callable[[Item], Item]) -> Item:
    """Return an item with other parts in its content or output, asked in their order."""
    changed = dict(item)
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            changed[key] = [
                change(part) if isinstance(part, dict) else part for part in item[key]
            ]
    return changed


def plain_item(item: Item) -> Item:
    """Return a message, a call or an output with its words alone."""
    bare = without_media(item, lambda part: part.get("type") in _MEDIA)
    if item_type(item) == "message":
        return text_message(item.get("role"), message_text(bare))
    if isinstance(bare.get("output"), list):
        texts = [part_text(part) for part in content_parts(bare["output"])]
        bare["output"] = "\n".join(texts)
    return {key: bare[key] for key in _PLAIN_FIELDS_OF_PAIR if key in bare}
