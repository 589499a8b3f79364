"""Everything that was sent before and around earlier messages, sent again unchanged.

The host makes instructions and messages anew for each request. It puts retrieved text,
results of a search and notes about files around the words that are asked
(utils/middleware.py:645, 1444), and later around others. What a run sent that its chat
does not hold is stored with it, so that later requests begin with the same bytes. It is
encrypted: the instructions are the administrator's, and whoever reads the chat's row
must read neither them nor the memories of its owner.

Stored instructions never take the place of the present ones. They hold for the model of
the host that they were given to, because a user writes the instructions of a base
model, and an administrator those of a model of the workspace. In each request, also in
one that continues an answer, the present instructions are compared with those that the
chat has sent to this model, and the difference is sent after them.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, NamedTuple

from openai_responses.items import Item, text_message
from openai_responses.json_input import JsonBudget, JsonObject, JsonTooLarge, as_mapping
from openai_responses.requests.turns import Turn, read_turn
from owui_chat.messages import ChatPart, StoredMessage, UserMessage, stored_messages
from owui_chat.storage.records import message_key, text_digest

_MAX_CHARACTERS = 200_000
"""Of one message: a chat's row is read and written whole."""
SAME_CONTEXT = (
    "(The context is one that was given earlier in this chat, unchanged.)\n\n"
)
"""What is in the place of text that the request has already."""
_MIN_REPEATED = 500
"""Characters from which on repeated text is replaced."""


_SENT_KEY = "sent"

_Unseal = Callable[[str, str], tuple[object, bytes]]
"""Returns the JSON value that was encrypted for a message's id, or None, and the bytes
that were encrypted after it."""


class SentContext(NamedTuple):
    """What one run sent in addition to the chat.

    `instructions` and their changes belong to `model`, the host's id of the model. The
    first run of a branch stores its instructions whole, and so does a run whose change
    cannot be stated in lines. The others store the lines that were `new` compared with
    what the branch had sent, each with its index among all lines, and those that were
    `gone`. `turn` is what the API's model was asked for.
    """

    injected: JsonObject | None = None
    model: str = ""
    instructions: str | None = None
    new: tuple[tuple[int, str], ...] = ()
    gone: tuple[str, ...] = ()
    turn: Turn | None = None

    def wire(self) -> dict[str, Any]:
        """Return what is encrypted, without what there is not, and without the turn.

        That follows in its own form: as a text in JSON it would be a third longer.
        """
        fields = self._asdict()
        fields["model"] = self.model or None
        del fields["turn"]
        return {name: fields[name] for name in fields if fields[name] not in (None, ())}

    def packed_turn(self) -> bytes:
        """Return the turn as it follows; empty if there is none."""
        return self.turn.packed() if self.turn else b""


_NOTHING = SentContext()


def add_sent_context(value: JsonObject, sealed: str) -> dict[str, Any]:
    """Return the value of a message's key, with what its run sent, encrypted."""
    if not sealed:
        return dict(value)
    return {**value, _SENT_KEY: sealed}


MAX_UNPACKED_TURNS = 2_000_000
"""Bytes of all turns of a chat, which are stored compressed: a chat of any size in the
row would unpack to a thousand times as much."""


def read_sent_context(
    chat: JsonObject, unseal: _Unseal, unpacked_left: JsonBudget
) -> dict[str, SentContext]:
    """Return what a chat's JSON holds of this, by the ids of the answers.

    What was not encrypted here for its chat and message is ignored: the owner of a chat
    can write its row, but must not write instructions. Of turns that are too much
    together the newest are read; a chat without its first one resets.
    """
    prefix = message_key("")
    contexts: dict[str, SentContext] = {}
    # The keys of a row are in the order in which they were written.
    for key, value in reversed(list(chat.items())):
        sealed = as_mapping(value).get(_SENT_KEY)
        if key.startswith(prefix) and isinstance(sealed, str):
            # In an answer's own output the key is not the key of the message.
            message_id = str(value.get("message_id") or key.removeprefix(prefix))
            with suppress(Exception):  # another version may have written it
                wire, packed = unseal(sealed, message_id)
                contexts[message_id] = _read_context(wire, packed, unpacked_left)
    return contexts


class SentInstructions(NamedTuple):
    """The instructions that one branch of a chat has sent to a model."""

    first: str
    """They are at the head of the chat."""
    lines: Sequence[str]
    """Those that hold after all changes."""
    changes: Mapping[str, Item]
    """The message in front of a question, by the id of its answer."""


def sent_instructions(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    model: str,
    compacted: Set[str] = frozenset(),
) -> SentInstructions | None:
    """Return what this branch has sent to `model`; None if it has sent nothing.

    Changes in front of the first instructions that are left belong to others, which are
    gone, and are not sent again. A compaction replaces the changes in front of it, so
    after the answers that are `compacted` the first instructions are what is left.
    """
    first: str | None = None
    lines: Sequence[str] = ()
    changes: dict[str, Item] = {}
    for stored in stored_messages(parts):
        answer_id = stored.answer_id
        context = sent.get(answer_id, _NOTHING)
        if context.model == model and first is None:
            first = context.instructions
            lines = _lines(first or "")
        elif context.model == model:
            message = change_message(context)
            if message:
                changes[answer_id] = message
                lines = _changed_lines(lines, context)
        if answer_id in compacted and first is not None:
            lines = _lines(first)
    if first is None:
        return None
    return SentInstructions(first, lines, changes)


def change_instructions(
    earlier: SentInstructions | None, instructions: str, model: str
) -> SentContext:
    """Return what tells `model` how its `instructions` differ from the earlier ones.

    Lines that only moved, or that occur more often than before, cannot be stated one by
    one: then the instructions are sent whole.
    """
    whole = SentContext(model=model, instructions=instructions)
    if earlier is None:
        return whole
    present = _lines(instructions)
    old_lines = set(earlier.lines)
    present_lines = set(present)
    new = [row for row in enumerate(present) if row[1] not in old_lines]
    gone = [line for line in earlier.lines if line not in present_lines]
    each_gone = tuple(dict.fromkeys(gone))
    change = SentContext(model=model, new=tuple(new), gone=each_gone)
    # The proof that the change says it all: applied to the old lines, it has to give the
    # present ones.
    if _changed_lines(earlier.lines, change) != present:
        return whole
    if not new and not gone:
        return SentContext()
    return change


def find_injected_context(parts: Sequence[ChatPart]) -> JsonObject | None:
    """Return what is around the message that is asked, the last one of the row.

    None: nothing, too much, or other words. `words` is the digest of the user's words,
    `texts` are those of the message, the one with the words cut around them.
    """
    questions = _stored_questions(parts)
    if not questions:
        return None
    asked, stored = questions[-1]
    words = stored.words
    texts: list[Any] = _input_texts(asked)
    size = sum(len(text) for text in texts) - len(words)
    if not 0 < size <= _MAX_CHARACTERS:
        return None
    for index, text in enumerate(texts):
        if words in text:
            around = [text, ""]
            if words:  # what is around their last place
                before, _, after = text.rpartition(words)
                around = [before, after]
            texts[index] = around
            return {"words": text_digest(words), "texts": texts}
    return None


def drop_repeated_context(
    injected: JsonObject,
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    compacted: Set[str],
) -> JsonObject:
    """Return what is around the message that is asked, without repeated text.

    The host puts the text of a chat's files in front of every question. Text that an
    earlier question has in front of it, as it was `sent`, is not sent a second time. A
    compaction, after the answers that are `compacted`, replaces the earlier text.
    """
    # The texts of earlier questions around which the host put something, as sent. The
    # last question of the row is the one that is asked. An answer to it that is replaced
    # may have compacted the chat: that compaction is gone.
    earlier_texts: list[str] = []
    for question, stored in _stored_questions(parts)[:-1]:
        before_it = sent.get(stored.answer_id, _NOTHING).injected
        if before_it:
            message = _apply_injected_context(question, stored.words, before_it)
            earlier_texts += _input_texts(message)
        if stored.answer_id in compacted:
            earlier_texts.clear()
    texts: list[Any] = []
    for text in injected["texts"]:
        if isinstance(text, list) and len(text[0]) >= _MIN_REPEATED:
            before, after = text
            if any(before in earlier for earlier in earlier_texts):
                texts.append([SAME_CONTEXT, after])
                continue
        texts.append(text)
    return {**injected, "texts": texts}


def _stored_questions(
    parts: Sequence[ChatPart],
) -> list[tuple[UserMessage, StoredMessage]]:
    """Return the messages of the user that the row has, with what it has of them."""
    questions: list[tuple[UserMessage, StoredMessage]] = []
    for part in parts:
        if isinstance(part, UserMessage) and part.stored:
            questions.append((part, part.stored))
    return questions


def model_turns(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext], model: str
) -> dict[str, Turn]:
    """Return what `model` was asked for in this branch, from where that began."""
    turns: dict[str, Turn] = {}
    for stored in stored_messages(parts):
        turn = sent.get(stored.answer_id, _NOTHING).turn
        if turn is None or turn.model != model:
            continue
        if turn.base:  # here it began anew
            turns.clear()
        if turn.base or turns:
            turns[stored.answer_id] = turn
    return turns


def apply_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    changes: Mapping[str, Item],
    items: Mapping[str, Sequence[Item]],
) -> list[ChatPart]:
    """Return a chat with what was around the messages when they were sent.

    `changes` of the instructions, and `items` after them, go in front of messages,
    by the ids of the answers.
    """
    applied: list[ChatPart] = []
    for part in parts:
        if not isinstance(part, UserMessage) or part.stored is None:
            applied.append(part)
            continue
        answer_id = part.stored.answer_id
        if answer_id in changes:
            applied.append(UserMessage(changes[answer_id]))
        applied += [UserMessage(item) for item in items.get(answer_id, ())]
        injected = sent.get(answer_id, _NOTHING).injected or {}
        applied.append(_apply_injected_context(part, part.stored.words, injected))
    return applied


def _apply_injected_context(
    message: UserMessage, words: str, injected: JsonObject
) -> UserMessage:
    """Return a message as it was sent, unless its words are no longer those."""
    has_words = any(words in text for text in _input_texts(message))
    if not has_words or injected.get("words") != text_digest(words):
        return message
    sent: list[Item] = []
    for text in injected["texts"]:
        whole = text if isinstance(text, str) else words.join(text)
        sent.append({"type": "input_text", "text": whole})
    others = [part for part in message.content if not _is_input_text(part)]
    return message.with_content([*sent, *others])


def _input_texts(message: UserMessage) -> list[str]:
    return [part["text"] for part in message.content if _is_input_text(part)]


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"


def change_message(change: SentContext) -> Item | None:
    """Return the message that tells changed instructions, or None for no change."""
    lines: list[str] = []
    if change.instructions is not None:
        lines += ["They are now:", change.instructions]
    if change.new:
        lines += ["New lines:", *(line for _, line in change.new)]
    if change.gone:
        lines += ["Lines that no longer hold:", *change.gone]
    if not lines:
        return None
    text = "\n".join(["The instructions have changed.", *lines])
    return text_message("developer", text)


def _changed_lines(lines: Sequence[str], change: SentContext) -> list[str]:
    """Return the lines of instructions after a change of them."""
    if change.instructions is not None:
        return _lines(change.instructions)
    # The old lines that still hold keep their order; each new one is put where it is
    # in the new text, with as many old ones in front as are missing there.
    gone = set(change.gone)
    kept = [line for line in lines if line not in gone]
    changed: list[str] = []
    used = 0
    for index, text in change.new:
        before = max(index - len(changed), 0)
        changed += kept[used : used + before]
        changed.append(text)
        used += before
    return changed + kept[used:]


def _lines(text: str) -> list[str]:
    """Return the lines that are not empty; others mean nothing."""
    return [line for line in text.splitlines() if line.strip()]


def _read_context(wire: Any, packed: bytes, unpacked_left: JsonBudget) -> SentContext:
    """Return what was encrypted here; versions up to 1.7.0 had the turn as Base64."""
    injected = wire.get("injected")
    if injected:
        injected = {"words": injected["words"], "texts": injected["texts"]}
    turn: Turn | None = None
    packed = packed or b64decode(wire.get("turn", ""))
    if packed:
        with suppress(JsonTooLarge):  # the rest of the answer counts all the same
            turn = read_turn(packed, unpacked_left)
    return SentContext(
        injected=injected or None,
        model=wire.get("model", ""),
        instructions=wire.get("instructions"),
        new=tuple((index, text) for index, text in wire.get("new", ())),
        gone=tuple(wire.get("gone", ())),
        turn=turn,
    )
