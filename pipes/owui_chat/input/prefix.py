"""Everything that was sent before and around earlier messages, sent again unchanged.

The host puts retrieved text, search results and notes about files around the user's
words: first around the current message, later around another one
(docs/reference/open-webui.md, "Around the user's message"). It also makes instructions
and messages anew for each request. What a run sent that is not in its chat is stored
with it, so later requests begin with the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses.items import Item, content_parts
from owui_chat.messages import ChatPart, Paired, UserMessage
from owui_chat.storage.records import message_key, text_digest

_MOST_CHARACTERS = 200_000
"""The most that is stored of one message; a chat's row is read and written whole."""

_Text = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class InjectedContext:
    """The texts of a message as it was sent; the user's words are cut out of one of
    them.

    `words` is the digest of the user's words. If they were edited, the message is sent
    as the host has it.
    """

    words: str
    texts: tuple[_Text, ...]

    def wire(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"words": self.words, "texts": list(self.texts)}


def find_injected_context(said: UserMessage, words: str) -> InjectedContext | None:
    """Return the text around `words`; None if none, too much, or other words."""
    texts: list[_Text] = [
        part["text"] for part in _said_parts(said) if _is_input_text(part)
    ]
    size = sum(map(len, texts)) - len(words)
    for place, text in enumerate(texts):
        if isinstance(text, str) and words in text:
            before, _, after = text.rpartition(words) if words else (text, "", "")
            texts[place] = (before, after)
            return (
                InjectedContext(text_digest(words), tuple(texts))
                if _fits(size)
                else None
            )
    return None


def apply_injected_context(
    said: UserMessage, words: str, kept: InjectedContext | None
) -> UserMessage:
    """Return a message as it was sent, unless its words have changed."""
    if kept is None or kept.words != text_digest(words):
        return said
    parts = _said_parts(said)
    if not any(_is_input_text(part) and words in part["text"] for part in parts):
        return said
    whole = [t if isinstance(t, str) else f"{t[0]}{words}{t[1]}" for t in kept.texts]
    texts = [{"type": "input_text", "text": text} for text in whole]
    others = [part for part in parts if not _is_input_text(part)]
    return UserMessage({**said.item, "content": [*texts, *others]})


def read_injected_context(wire: object) -> InjectedContext | None:
    """Return the content of `wire`; None if it cannot be read."""
    rows = wire.get("texts") if isinstance(wire, Mapping) else None
    if not isinstance(wire, Mapping) or not isinstance(rows, list):
        return None
    texts = tuple(_read_text(row) for row in rows)
    return InjectedContext(str(wire.get("words")), texts)


def _read_text(row: object) -> _Text:
    if isinstance(row, list | tuple) and len(row) == 2:
        return str(row[0]), str(row[1])
    return str(row)


def _fits(size: int) -> bool:
    """Say whether there is any text, and not too much."""
    return 0 < size <= _MOST_CHARACTERS


def _said_parts(said: UserMessage) -> list[Item]:
    return content_parts(said.item.get("content"))


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"


_SENT_KEY = "sent"


@dataclass(frozen=True, slots=True)
class SentContext:
    """What one run sent in addition to the chat.

    `instructions` belong to the first run that stored some. Later runs store the lines
    that were `new` compared with the earlier ones, and those that were `gone`.
    """

    injected: InjectedContext | None = None
    instructions: str | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """Return the stored form, without empty fields."""
        found = {
            "injected": self.injected and self.injected.wire(),
            "instructions": self.instructions,
            "new": list(self.new) or None,
            "gone": list(self.gone) or None,
        }
        return {key: value for key, value in found.items() if value is not None}


_NOTHING = SentContext()


def add_sent_context(
    value: Mapping[str, Any], sent: SentContext | None
) -> dict[str, Any]:
    """Return the value of a message's key, with what its run sent."""
    wire = sent.wire() if sent else None
    return {**value, _SENT_KEY: wire} if wire else dict(value)


def read_sent_context(chat: Mapping[str, Any]) -> dict[str, SentContext]:
    """Return what a chat's JSON holds of this, by the ids of the answers."""
    prefix = message_key("")
    found: dict[str, SentContext] = {}
    for key, value in chat.items():
        wire = value.get(_SENT_KEY) if isinstance(value, Mapping) else None
        if key.startswith(prefix) and isinstance(wire, Mapping):
            # In an answer's own output the key is not the key of the message.
            owner = str(value.get("message_id") or key.removeprefix(prefix))
            found[owner] = _read_context(wire)
    return found


def capture_sent_context(
    stretches: Sequence[ChatPart],
    pairs: Mapping[int, Paired],
    sent: Mapping[str, SentContext],
    instructions: str | None,
) -> SentContext:
    """Return what is sent with the current message, the last of `pairs`.

    `instructions` are None if they may change from turn to turn.
    """
    place = max(pairs)
    asked = stretches[place]
    words = pairs[place].words
    injected = (
        find_injected_context(asked, words) if isinstance(asked, UserMessage) else None
    )
    if instructions is None:
        return SentContext(injected)
    if first_instructions(pairs, sent) is None:
        return SentContext(injected, instructions)
    told, given = _told_lines(pairs, sent), _lines(instructions)
    new = tuple(line for line in given if line not in told)
    return SentContext(
        injected, new=new, gone=tuple(line for line in told if line not in given)
    )


def first_instructions(
    pairs: Mapping[int, Paired], sent: Mapping[str, SentContext]
) -> str | None:
    """Return the first instructions in this branch of the chat."""
    found = (one.instructions for one in _in_order(pairs, sent))
    return next((one for one in found if one is not None), None)


def apply_sent_context(
    stretches: Sequence[ChatPart],
    pairs: Mapping[int, Paired],
    sent: Mapping[str, SentContext],
) -> list[ChatPart]:
    """Return a chat with the texts around its messages as they were sent."""
    result: list[ChatPart] = []
    for place, stretch in enumerate(stretches):
        if place in pairs and isinstance(stretch, UserMessage):
            one = sent.get(pairs[place].answer_id, _NOTHING)
            words = pairs[place].words
            result += [
                *_news(one),
                apply_injected_context(stretch, words, one.injected),
            ]
        else:
            result.append(stretch)
    return result


def _news(sent: SentContext) -> list[ChatPart]:
    """Return the message that announces changed instructions, if they changed."""
    lines = ["The instructions have changed."]
    if sent.new:
        lines += ["New lines:", *sent.new]
    if sent.gone:
        lines += ["Lines that no longer hold:", *sent.gone]
    if len(lines) == 1:
        return []
    part = {"type": "input_text", "text": "\n".join(lines)}
    return [UserMessage({"type": "message", "role": "developer", "content": [part]})]


def _told_lines(
    pairs: Mapping[int, Paired], sent: Mapping[str, SentContext]
) -> list[str]:
    """Return the lines that are valid after all announced changes, in order."""
    told = _lines(first_instructions(pairs, sent) or "")
    for one in _in_order(pairs, sent):
        told = [line for line in told if line not in one.gone]
        told += one.new
    return told


def _in_order(
    pairs: Mapping[int, Paired], sent: Mapping[str, SentContext]
) -> list[SentContext]:
    return [sent.get(pairs[place].answer_id, _NOTHING) for place in sorted(pairs)]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _read_context(wire: Mapping[str, Any]) -> SentContext:
    given = wire.get("instructions")
    return SentContext(
        read_injected_context(wire.get("injected")),
        given if isinstance(given, str) else None,
        _read_lines(wire.get("new")),
        _read_lines(wire.get("gone")),
    )


def _read_lines(rows: object) -> tuple[str, ...]:
    return tuple(map(str, rows)) if isinstance(rows, list) else ()
