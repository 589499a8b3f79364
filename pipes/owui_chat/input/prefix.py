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
from typing import Any, NamedTuple

from openai_responses.items import Item, text_message
from openai_responses.json_input import JsonObject, as_mapping
from openai_responses.requests.turns import Turn, read_turn
from owui_chat.messages import ChatPart, UserMessage, stored_messages
from owui_chat.storage.records import message_key, text_digest

_MOST_CHARACTERS = 200_000
"""Of one message: a chat's row is read and written whole."""


def _find_injected_context(message: UserMessage) -> JsonObject | None:
    """Return what stands around the words; None: nothing, too much, or other words.

    `words` is the digest of the user's words, `texts` are those of the message, the one
    with the words cut around them.
    """
    words = message.stored.words if message.stored else ""
    texts: list[str] = [p["text"] for p in message.content if _is_input_text(p)]
    place = next((n for n, text in enumerate(texts) if words in text), None)
    size = sum(map(len, texts)) - len(words)
    if place is None or not 0 < size <= _MOST_CHARACTERS:
        return None
    whole = texts[place]
    before, _, after = whole.rpartition(words) if words else (whole, "", "")
    around = [*texts[:place], [before, after], *texts[place + 1 :]]
    return {"words": text_digest(words), "texts": around}


def _apply_injected_context(
    message: UserMessage, words: str, injected: JsonObject
) -> UserMessage:
    """Return a message as it was sent, unless its words are no longer those."""
    parts = message.content
    is_there = any(_is_input_text(part) and words in part["text"] for part in parts)
    if not is_there or injected.get("words") != text_digest(words):
        return message
    texts = (t if isinstance(t, str) else words.join(t) for t in injected["texts"])
    others = [part for part in parts if not _is_input_text(part)]
    sent = [{"type": "input_text", "text": text} for text in texts]
    return message.with_content([*sent, *others])


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

    injected: JsonObject | None = None
    instructions: str | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    turn: Turn | None = None

    def wire(self) -> dict[str, Any]:
        """Return the form that is encrypted, without empty fields."""
        found = {**self._asdict(), "turn": self.turn and self.turn.wire()}
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
            with suppress(Exception):  # another version may have written it
                found[owner] = _read_context(unseal(sealed, owner))
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
    items: Mapping[str, Sequence[Item]],
) -> list[ChatPart]:
    """Return a chat with what was around the messages when they were sent.

    `items` stand in front of messages, by the ids of the answers.
    """
    found: list[ChatPart] = []
    for part in parts:
        if isinstance(part, UserMessage) and (stored := part.stored):
            context = sent.get(stored.answer_id, _NOTHING)
            added = (*_news(context), *items.get(stored.answer_id, ()))
            found += map(UserMessage, added)
            injected = context.injected or {}
            found.append(_apply_injected_context(part, stored.words, injected))
        else:
            found.append(part)
    return found


def _news(sent: SentContext) -> list[Item]:
    """Return the message that announces changed instructions, if they changed."""
    lines = ["The instructions have changed."]
    if sent.new:
        lines += ["New lines:", *sent.new]
    if sent.gone:
        lines += ["Lines that no longer hold:", *sent.gone]
    changed = len(lines) > 1
    return [text_message("developer", "\n".join(lines))] if changed else []


def _in_order(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext]
) -> list[SentContext]:
    return [sent.get(one.answer_id, _NOTHING) for one in stored_messages(parts)]


def _lines(text: str) -> dict[str, None]:
    """Return the lines in their order, each once."""
    return dict.fromkeys(line for line in text.splitlines() if line.strip())


def _read_context(wire: Any) -> SentContext:
    """Return what `wire`, which was encrypted here, says."""
    injected, turn = wire.get("injected"), str(wire.get("turn") or "")
    return SentContext(
        {key: injected[key] for key in ("words", "texts")} if injected else None,
        wire.get("instructions"),
        tuple(wire.get("new", ())),
        tuple(wire.get("gone", ())),
        read_turn(turn) if turn else None,
    )
