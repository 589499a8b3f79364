"""Repairs of one chat: which of its items are left out, or sent as plain text.

A chat stores them, so that its later turns do not meet the refusal again and begin with
the same bytes. An item is named by a digest, because its place changes. What people and
administrators wrote always stays.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from openai_responses.items import (
    Item,
    content_parts,
    drop_orphans,
    has_plain_reasoning,
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
from openai_responses.json_input import as_list
from openai_responses.repairs.refusal import NamedItem, SentRequest

MAX_CHAT_REPAIRS = 100
"""A chat remembers no more of them; of a longer list the newest count."""

_MAX_ROWS_READ = 1000
_NAME_FORM = re.compile(r"[0-9a-f]{32}(\.\d{1,6})?")
_TYPE_FORM = re.compile(r"[a-z_]{1,64}")
_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "[An image or file was here. It could not be sent.]"
_MAX_TOLD = 20_000
"""Characters of a call or an output that is sent as words of the model."""


class ChatItems:
    """The items of a request before repairs, with their names."""

    def __init__(self, items: Sequence[Item]) -> None:
        """Name the items."""
        names = item_names(items)
        self.rows = [NamedItem(*row) for row in zip(names, items, strict=True)]
        self._places = {name: place for place, name in enumerate(names)}

    def up_to(self, name: str) -> list[NamedItem]:
        """Return what stands up to the item `name`, itself included; nothing without."""
        end = self._places.get(name, -1) + 1
        return self.rows[:end]


class ChatRepair(ABC):
    """One change of the items of a chat."""

    __slots__ = ()

    is_about_chat: ClassVar = True
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """What the person is told who waits."""

    @abstractmethod
    def stored(self) -> list[str]:
        """Return the form that a chat stores; `read_chat_repairs` reads it."""

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of what is left out; of calls and outputs words stay."""
        del items
        return frozenset()

    def as_text(self, items: ChatItems) -> Set[str]:
        """Return the names of what is sent with its words alone."""
        del items
        return frozenset()

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent, beside the repairs that it had."""
        items = sent.asked["input"]
        with_it = name_items(items, [*sent.repairs, self])
        return with_it != name_items(items, sent.repairs)


@dataclass(frozen=True, slots=True)
class LeaveOutItem(ChatRepair):
    """One item is left out, with the reasoning in front of it.

    A call and its output become words: without them the model would call again.
    """

    name: str
    noun: str = field(default="item", compare=False)
    is_told: bool = field(default=False, compare=False)
    """Whether it is a call or an output."""

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        if self.is_told:
            return f"One earlier {self.noun} was sent as plain text."
        return f"One earlier {self.noun} could not be sent again and was left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["item", self.name]

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return its one name."""
        del items
        return {self.name}


@dataclass(frozen=True, slots=True)
class SendAsText(ChatRepair):
    """The words of one item stay; pictures and files become a line of text."""

    name: str
    noun: str = field(default="item", compare=False)
    had_media: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        if self.had_media:
            return "An image or file could not be sent to the model and was left out."
        return f"One earlier {self.noun} was sent as plain text."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["text", self.name]

    def as_text(self, items: ChatItems) -> Set[str]:
        """Return its one name."""
        del items
        return {self.name}


@dataclass(frozen=True, slots=True)
class LeaveOutKind(ChatRepair):
    """All items of a type are left out, up to one: what comes later may be taken."""

    kind: str
    until: str

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        if self.kind == "code_interpreter_call":
            return "Earlier code runs are no longer available: answering without them."
        noun = self.kind.replace("_", " ")
        return f"Earlier items of the type {noun} were left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["kind", self.kind, self.until]

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of its type."""
        rows = items.up_to(self.until)
        return {row.name for row in rows if item_type(row.item) == self.kind}


@dataclass(frozen=True, slots=True)
class LeaveOutReasoning(ChatRepair):
    """Encrypted items are left out, up to one: the error does not say which it was."""

    until: str

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        return (
            "The server could not read earlier reasoning in this chat: answering "
            "without it."
        )

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["reasoning", self.until]

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of what is encrypted."""
        return {row.name for row in items.up_to(self.until) if is_encrypted(row.item)}


@dataclass(frozen=True, slots=True)
class PlainItems(ChatRepair):
    """Only texts, calls and outputs stay, in their plainest form, up to one item."""

    until: str

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        return (
            "The server rejected this chat as it was: only its texts and tool results "
            "were sent."
        )

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["plain", self.until]

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of what has no words."""
        rows = items.up_to(self.until)
        return {row.name for row in rows if not _has_words(row.item)}

    def as_text(self, items: ChatItems) -> Set[str]:
        """Return all names."""
        return {row.name for row in items.up_to(self.until)}


@dataclass(frozen=True, slots=True)
class WordsAlone(ChatRepair):
    """Only messages stay, up to one item; of calls and outputs words stay."""

    until: str

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        return "The server rejected this chat again: only its text was sent."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["words", self.until]

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of what is no message with words."""
        rows = items.up_to(self.until)
        return {
            row.name for row in rows if is_paired(row.item) or not _has_words(row.item)
        }

    def as_text(self, items: ChatItems) -> Set[str]:
        """Return all names."""
        return {row.name for row in items.up_to(self.until)}


@dataclass(frozen=True, slots=True)
class LeaveOutPlainReasoning(ChatRepair):
    """Reasoning of which only the words came is not sent again.

    It is the way of a server, not of a chat.
    """

    is_about_chat: ClassVar = False

    @property
    def message(self) -> str:
        """What the person is told who waits."""
        return "The server does not accept its own reasoning: answering without it."

    def stored(self) -> list[str]:
        """Return nothing that a chat stores."""
        return []

    def left_out(self, items: ChatItems) -> Set[str]:
        """Return the names of such reasoning."""
        return {row.name for row in items.rows if has_plain_reasoning(row.item)}


def _has_words(item: Item) -> bool:
    if is_paired(item):
        return True
    return item_type(item) == "message" and bool(message_text(item))


def read_chat_repairs(rows: Sequence[object]) -> list[ChatRepair]:
    """Return the repairs of their stored form, each once; anything else is skipped.

    The owner of a chat can write anything there.
    """
    repairs: dict[ChatRepair, None] = {}
    for row in rows[-_MAX_ROWS_READ:]:
        repair = _read_chat_repair(as_list(row))
        if repair is not None:
            repairs[repair] = None
    return list(repairs)[-MAX_CHAT_REPAIRS:]


_BY_NAME = {
    "item": LeaveOutItem,
    "text": SendAsText,
    "reasoning": LeaveOutReasoning,
    "plain": PlainItems,
    "words": WordsAlone,
}
"""The repairs whose stored form is a word and the name of an item."""


def _read_chat_repair(row: list[Any]) -> ChatRepair | None:
    if not all(isinstance(word, str) for word in row):
        return None
    match row:
        case [action, name] if action in _BY_NAME and _NAME_FORM.fullmatch(name):
            repair: ChatRepair = _BY_NAME[action](name)
            return repair
        case ["kind", kind, name] if _TYPE_FORM.fullmatch(kind) and (
            _NAME_FORM.fullmatch(name)
        ):
            return LeaveOutKind(kind, name)
    return None


def item_names(items: Iterable[Item]) -> list[str]:
    """Return the names of items: a digest, and a number where the same item comes again.

    What is appended to a chat changes no name.
    """
    counts = Counter[str]()
    names: list[str] = []
    for item in items:
        digest = json_digest(item)
        number = counts[digest]
        names.append(f"{digest}.{number}" if number else digest)
        counts[digest] += 1
    return names


def name_items(items: Sequence[Item], repairs: Iterable[object]) -> list[NamedItem]:
    """Return the items that are sent, each with the name of what it was made of.

    Repairs of requests are not applied here. Calls and outputs stay in pairs.
    """
    chat = ChatItems(items)
    own = [repair for repair in repairs if isinstance(repair, ChatRepair)]
    if not own:
        return chat.rows
    out: set[str] = set()
    text: set[str] = set()
    for repair in own:
        out |= repair.left_out(chat)
        text |= repair.as_text(chat)
    rows: list[NamedItem] = []
    told_calls = _calls_left_out(chat.rows, out)
    for row in chat.rows:
        if is_paired(row.item) and row.item.get("call_id") in told_calls:
            _drop_last_reasoning_rows(rows)
            rows.append(row._replace(item=_words_of_pair(row.item)))
        elif row.name in out and not is_from_people(row.item):
            _drop_last_reasoning_rows(rows)
        elif row.name in text and _has_plain_form(row.item):
            rows.append(row._replace(item=plain_item(row.item)))
        else:
            rows.append(row)
    kept = {id(item) for item in drop_orphans([row.item for row in rows])}
    return [row for row in rows if id(row.item) in kept]


def _calls_left_out(rows: Iterable[NamedItem], out: Set[str]) -> Set[object]:
    """Return the ids of the calls of which a part is left out: words stay of both."""
    lost = [row.item for row in rows if row.name in out and is_paired(row.item)]
    return {item.get("call_id") for item in lost}


def _drop_last_reasoning_rows(rows: list[NamedItem]) -> None:
    while rows and is_reasoning(rows[-1].item):
        rows.pop()


def _has_plain_form(item: Item) -> bool:
    return is_paired(item) or item_type(item) == "message"


def is_from_people(item: Item) -> bool:
    """Say whether a person or the administrator wrote `item`, which always stays."""
    return bool(item.get("role", "assistant") != "assistant")


def _words_of_pair(item: Item) -> Item:
    """Return a call or an output as words of the model."""
    if is_call(item):
        given = item.get("arguments") or item.get("input")
        text = f"I called {item.get('name')}: {given}"
    else:
        text = f"I got this result: {plain_item(item).get('output')}"
    return text_message("assistant", text[:_MAX_TOLD])


def has_media(item: Item) -> bool:
    """Say whether `item` holds an image or a file."""
    return any(
        part.get("type") in _MEDIA
        for key in ("content", "output")
        for part in content_parts(item.get(key))
    )


def plain_item(item: Item) -> Item:
    """Return a message, a call or an output with its words alone."""
    if item_type(item) == "message":
        return text_message(item.get("role"), message_text(_without_media(item)))
    bare = _without_media(item)
    if isinstance(bare.get("output"), list):
        texts = [part_text(part) for part in content_parts(bare["output"])]
        bare["output"] = "\n".join(texts)
    names = ("type", "call_id", "name", "arguments", "input", "output")
    return {key: bare[key] for key in names if key in bare}


def _without_media(item: Item) -> Item:
    changed = dict(item)
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            changed[key] = [_part_without_media(part) for part in item[key]]
    return changed


def _part_without_media(part: Any) -> Any:
    is_media = isinstance(part, dict) and part.get("type") in _MEDIA
    return {"type": "input_text", "text": _MEDIA_GONE} if is_media else part
