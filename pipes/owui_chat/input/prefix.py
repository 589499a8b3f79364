"""Everything that was sent before and around earlier messages, sent again unchanged.

The host makes instructions and messages anew for each request. It puts retrieved text,
results of a search and notes about files around the words that are asked
(utils/middleware.py:645, 1444), and later around others. What a run sent that its chat
does not hold is stored with it, so that later requests begin with the same bytes. It is
encrypted: the instructions are the administrator's, and whoever reads the chat's row
must read neither them nor the memories of its owner.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from openai_responses.items import Item, text_message
from openai_responses.json_input import JsonObject, as_mapping
from openai_responses.requests.turns import Turn, read_turn
from owui_chat.messages import ChatPart, UserMessage, stored_messages
from owui_chat.storage.records import message_key, text_digest

_MOST_CHARACTERS = 200_000
"""Of one message: a chat's row is read and written whole."""
_Text = str | tuple[str, str]


class _InjectedContext(NamedTuple):
    """The texts of a message as it was sent; the one with the words, cut around them.

    `words` is the digest of the user's words. If they were edited, the message is sent
    as the host has it.
    """

    words: str
    texts: Sequence[_Text]


def _find_injected_context(message: UserMessage) -> _InjectedContext | None:
    """Return what stands around the words; None: nothing, too much, or other words."""
    words = message.stored.words if message.stored else ""
    texts: list[str] = [p["text"] for p in message.content if _is_input_text(p)]
    place = next((n for n, text in enumerate(texts) if words in text), None)
    size = sum(map(len, texts)) - len(words)
    if place is None or not 0 < size <= _MOST_CHARACTERS:
        return None
    whole = texts[place]
    before, _, after = whole.rpartition(words) if words else (whole, "", "")
    around: Sequence[_Text] = (*texts[:place], (before, after), *texts[place + 1 :])
    return _InjectedContext(text_digest(words), around)


def _apply_injected_context(
    message: UserMessage, words: str, injected: _InjectedContext | None
) -> UserMessage:
    """Return a message as it was sent, unless its words are no longer those."""
    if injected is None or injected.words != text_digest(words):
        return message
    parts = message.content
    if not any(_is_input_text(part) and words in part["text"] for part in parts):
        return message
    whole = (t if isinstance(t, str) else words.join(t) for t in injected.texts)
    texts = [{"type": "input_text", "text": text} for text in whole]
    others = [part for part in parts if not _is_input_text(part)]
    return message.with_content([*texts, *others])


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"


_SENT_KEY = "sent"

_Unseal = Callable[[str, str], object]
"""Returns the JSON value that was encrypted for a message's id, or None."""


class SentContext(NamedTuple):
    """What one run sent beside the chat.

    `instructions` belong to the first run that stored some. Later runs store the lines
    that were `new` compared with the earlier ones, and those that were `gone`. `turn`
    is what the model was asked for.
    """

    injected: _InjectedContext | None = None
    instructions: str | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    turn: Turn | None = None

    def wire(self) -> dict[str, Any]:
        """Return the form that is encrypted, without empty fields."""
        found = self._asdict() | {
            "injected": self.injected and self.injected._asdict(),
            "turn": self.turn and self.turn.wire(),
        }
        return {key: value for key, value in found.items() if value not in (None, ())}


_NOTHING = SentContext()


def add_sent_context(value: JsonObject, sealed: str) -> dict[str, Any]:
    """Return the value of a message's key, with what its run sent, encrypted."""
    return {**value, _SENT_KEY: sealed} if sealed else dict(value)


def read_sent_context(chat: JsonObject, unseal: _Unseal) -> dict[str, SentContext]:
    """Return what a chat's JSON holds of this, by the ids of the answers.

    What was not encrypted here for its message is ignored: the owner of a chat can
    write its row, but must not write instructions.
    """
    prefix = message_key("")
    found: dict[str, SentContext] = {}
    for key, value in chat.items():
        sealed = as_mapping(value).get(_SENT_KEY)
        if key.startswith(prefix) and isinstance(sealed, str):
            # In an answer's own output the key is not the key of the message.
            owner = str(value.get("message_id") or key.removeprefix(prefix))
            wire = unseal(sealed, owner)
            with suppress(Exception):  # another version may have written it
                if isinstance(wire, Mapping):
                    found[owner] = _read_context(wire)
    return found


def capture_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    instructions: str | None,
) -> SentContext:
    """Return what is sent with the message that is asked, the last one that is stored.

    `instructions` are None if they may change from turn to turn.
    """
    messages = (part for part in reversed(parts) if isinstance(part, UserMessage))
    injected = next((_find_injected_context(m) for m in messages if m.stored), None)
    if instructions is None or (first := first_instructions(parts, sent)) is None:
        return SentContext(injected, instructions)
    told, given = _lines(first), _lines(instructions)
    for one in _in_order(parts, sent):
        for line in one.gone:
            told.pop(line, None)
        told |= dict.fromkeys(one.new)
    new = tuple(line for line in given if line not in told)
    gone = tuple(line for line in told if line not in given)
    return SentContext(injected, new=new, gone=gone)


def first_instructions(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext]
) -> str | None:
    """Return the instructions as first given in this branch of the chat."""
    found = (one.instructions for one in _in_order(parts, sent))
    return next((one for one in found if one is not None), None)


def model_turns(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext], model: str
) -> dict[str, Turn]:
    """Return what `model` was asked for in this branch, from where that began."""
    turns: dict[str, Turn] = {}
    for stored in stored_messages(parts):
        turn = sent.get(stored.answer_id, _NOTHING).turn
        if turn and turn.model == model and (turns or turn.base):
            turns = {} if turn.base else turns
            turns[stored.answer_id] = turn
    return turns


def apply_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    items: Mapping[str, Sequence[Item]] = MappingProxyType({}),
) -> list[ChatPart]:
    """Return a chat with what was around the messages when they were sent.

    `items` stand in front of messages, by the ids of the answers.
    """
    return [again for part in parts for again in _as_sent(part, sent, items)]


def _as_sent(
    part: ChatPart,
    sent: Mapping[str, SentContext],
    items: Mapping[str, Sequence[Item]],
) -> list[ChatPart]:
    if not isinstance(part, UserMessage) or part.stored is None:
        return [part]
    name, words = part.stored.answer_id, part.stored.words
    context = sent.get(name, _NOTHING)
    message = _apply_injected_context(part, words, context.injected)
    return [*_news(context), *map(UserMessage, items.get(name, ())), message]


def _news(sent: SentContext) -> list[ChatPart]:
    """Return the message that announces changed instructions, if they changed."""
    lines = ["The instructions have changed."]
    if sent.new:
        lines += ["New lines:", *sent.new]
    if sent.gone:
        lines += ["Lines that no longer hold:", *sent.gone]
    if len(lines) == 1:
        return []
    return [UserMessage(text_message("developer", "\n".join(lines)))]


def _in_order(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext]
) -> list[SentContext]:
    return [sent.get(one.answer_id, _NOTHING) for one in stored_messages(parts)]


def _lines(text: str) -> dict[str, None]:
    """Return the lines in their order, each once."""
    return dict.fromkeys(line for line in text.splitlines() if line.strip())


def _read_context(wire: JsonObject) -> SentContext:
    """Return what `wire`, which was encrypted here, says."""
    injected, turn = wire.get("injected"), str(wire.get("turn") or "")
    return SentContext(
        _InjectedContext(**injected) if injected else None,
        wire.get("instructions"),
        tuple(wire.get("new", ())),
        tuple(wire.get("gone", ())),
        read_turn(turn) if turn else None,
    )
