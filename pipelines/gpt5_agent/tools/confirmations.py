"""The user's approval of a call: requested through Open WebUI, and read back.

The pipeline ends its stream with a call of the host's `ask_user`. The host waits for
the user and calls the pipeline again. An answer is bound to a call by id, name and
arguments, so that no other call can use it. It counts only if this pipeline asked: the
id of the question's call is its signature, because a model's server can call `ask_user`
as well, with any words on the card. Without an explicit approval the call is denied. An
approval for the chat covers the tool, with the targets that the call names.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from gpt5_agent.events import ToolCallRequested
from gpt5_agent.tools.approval_cards import (
    ALLOW_CHAT_LABEL,
    ALLOW_LABEL,
    build_card_question,
    one_line_json,
)
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping, parse_json_object
from owui_chat.wording import with_escapes
from strategies.guard import parse_arguments
from strategies.memory import Message

_HARMFUL_WORDS: Mapping[str, str] = {
    "It can delete things.": "delete remove drop",
    "It can change things.": "write update move create",
    "It can send things to others.": "send post publish",
    "It can spend money.": "pay buy order",
    "It runs code.": "execute exec run shell",
}
"""What to warn of, and the words in a tool's name that say so."""


def find_security_warning(name: str) -> Mapping[str, str] | None:
    """Return the warning for a tool whose name contains a word that means harm."""
    for word in _split_name(name):
        for reason, words in _HARMFUL_WORDS.items():
            if word in words.split():
                return {"level": "high", "reason": reason}
    return None


def _split_name(name: str) -> list[str]:
    """Return the words of a name, in small letters.

    `deleteFile`, `DELETE_FILE` and `HTTPDelete2` have two, `chatIDs` ends with `ids`.
    """
    words: list[str] = []
    start = 0
    for index, character in enumerate(name):
        if not character.isalpha():
            words.append(name[start:index])
            start = index + 1
        elif character.isupper():
            # One in a row of capitals goes on with it, unless it begins the next word.
            is_in_row = index > start and name[index - 1].isupper()
            if not (is_in_row and _ROW_GOES_ON.match(name, index + 1)):
                words.append(name[start:index])
                start = index
    words.append(name[start:])
    return [word.lower() for word in words if word]


_ROW_GOES_ON = re.compile("s?(?![a-z])")
"""What follows a capital that begins no word; an `s` is that of a plural."""

_TARGET_WORD = re.compile(
    "(?:(?:account|address|b?cc|beneficiary|branch|bucket|calendar|channel|collection|"
    "contact|customer|database|dest|destination|device|directory|domain|email|endpoint|"
    "file|folder|group|hook|host|iban|id|index|issue|key|link|member|mobile|name|number|"
    "org|organization|path|payee|phone|project|queue|receiver|recipient|repo|repository|"
    "room|schema|server|sheet|site|table|target|team|tenant|ticket|title|topic|uri|url|"
    "user|wallet|web|workspace)(?:e?s)?)+|"
    "to|addressees?|beneficiaries|directories|indices|repositories"
)
"""Words in the name of an argument that says what a tool works on, or who gets it; some
write them as one, like `emailaddress`."""


def _find_target(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that say what a tool works on, or have such a part."""
    return {
        name: value
        for name, value in arguments.items()
        if value is not None and _names_target(name, value)
    }


def _names_target(name: str, value: Any) -> bool:
    """Say whether an argument, or a part of it, is named as a target.

    `{"title": "Hi", "message": {"to": "bo"}}` has two.
    """
    if any(_TARGET_WORD.fullmatch(word) for word in _split_name(name)):
        return True
    if isinstance(value, Mapping):
        return any(_names_target(part, inner) for part, inner in value.items())
    if isinstance(value, list):
        return any(_names_target("", inner) for inner in value)
    return False


MAX_QUESTIONS = 3
"""As many questions a call of `ask_user` may hold (0.12.4, utils/ask_user.py)."""

_ASK_USER = "ask_user"
_CONFIRMATION_PREFIX = "call_confirm_"
_SIGNATURE_DIGITS = 24
_SignIds = Callable[[object, bool], str]
"""What signs for a chat (`owui_chat/storage/signature.py`)."""
_ANSWER_MILLISECONDS = 240_000
"""The most that the host lets the user think in a temporary chat (0.12.4,
utils/ask_user.py)."""
_MAX_COVERAGE_CHARACTERS = 240
"""Of a longer description the host shows the beginning, as if it were all."""

Decision = Literal["once", "chat", "deny"]


def compute_confirmation_id(
    scope: str, name: str, arguments: Mapping[str, Any], sign: _SignIds | None = None
) -> str:
    """Return the id of an approval of a call; its scope is a call's id or a chat.

    A model's server that knew it could show another call under the same reference, in
    front of the one that needs the approval. With `sign` nobody can foresee it.
    """
    call = [scope, name, _without_nulls(arguments)]
    if sign:
        return sign(call, True)
    text = json.dumps(call, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compute_permission(chat: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of the approval for a chat that covers a call.

    One argument more may be another recipient, so where a call names a target, calls with
    the same arguments are covered. Of any other the card says that all are.
    """
    target = _find_target(arguments)
    named = dict.fromkeys(_without_nulls(arguments), "") if target else {}
    return compute_confirmation_id(chat, name, {**named, **target})


def build_confirmation_request(
    call: Item, *, chat: str = "", sign: _SignIds | None = None
) -> ToolCallRequested:
    """Return the question whether a call may be made, in this `chat` if there is one."""
    name = str(call["name"])
    arguments = parse_arguments(call)
    confirmation = compute_confirmation_id(str(call["call_id"]), name, arguments, sign)
    warning = find_security_warning(name)
    coverage = ""
    if chat:
        target = _find_target(arguments)
        condition = f"with {one_line_json(target)}" if target else "with any arguments"
        text = f"Make every call of {name} in this chat, {condition}."
        # The card has to show it as it is: it makes one space of several.
        is_shown = text == with_escapes(text) and "  " not in text
        if is_shown and len(text) <= _MAX_COVERAGE_CHARACTERS:
            coverage = text
    return ToolCallRequested(name, arguments, confirmation, warning, coverage)


def build_question_call(requests: Sequence[ToolCallRequested], sign: _SignIds) -> Item:
    """Return the call of `ask_user` that asks the user about each of the calls."""
    questions = [build_card_question(request) for request in requests]
    name = _sign_questions([request.confirmation_id for request in requests], sign)
    arguments = {
        "questions": questions,
        "allow_other": False,
        "timeout_ms": _ANSWER_MILLISECONDS,
    }
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"{_CONFIRMATION_PREFIX}{name}",
        "name": _ASK_USER,
        "arguments": json.dumps(arguments, ensure_ascii=False),
        "status": "completed",
    }


def _sign_questions(ids: Sequence[str], sign: _SignIds) -> str:
    """Return what only this pipeline can name a call that asks for these approvals."""
    return sign(ids, False)[:_SIGNATURE_DIGITS]


def read_confirmations(
    messages: Iterable[Message], sign: _SignIds
) -> dict[str, Decision]:
    """Return the decisions by confirmation id, of the questions that are ours.

    Anything but a clear yes is a no: another answer, a timeout, a rejection.
    """
    questions: dict[str, list[str]] = {}
    decisions: dict[str, Decision] = {}
    for message in messages:
        for call in read_tool_calls(message):
            text = as_mapping(call.get("function")).get("arguments")
            rows = as_list((parse_json_object(text) or {}).get("questions"))
            ids = [str(row.get("id")) for row in rows if isinstance(row, Mapping)]
            own_id = f"{_CONFIRMATION_PREFIX}{_sign_questions(ids, sign)}"
            if ids and call.get("id") == own_id:
                questions[own_id] = ids
        asked = questions.pop(str(message.get("tool_call_id")), None)
        if asked is None:
            continue
        output = parse_json_object(message.get("content")) or {}
        is_answered = output.get("status") == "answered"
        answers = as_mapping(output.get("answers")) if is_answered else {}
        for question in asked:
            answer = answers.get(question)  # an option, or its label
            label = answer.get("label") if isinstance(answer, Mapping) else answer
            if label == ALLOW_LABEL:
                decisions[question] = "once"
            elif label == ALLOW_CHAT_LABEL:
                decisions[question] = "chat"
            else:
                decisions[question] = "deny"
    return decisions


def drop_question_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without our questions and their answers."""
    kept: list[Message] = []
    for message in messages:
        if str(message.get("tool_call_id") or "").startswith(_CONFIRMATION_PREFIX):
            continue
        calls = read_tool_calls(message)
        others = [
            call
            for call in calls
            if not str(call.get("id") or "").startswith(_CONFIRMATION_PREFIX)
        ]
        if others == calls:
            kept.append(message)
        else:
            kept.append({**message, "tool_calls": others})
    return kept


def read_tool_calls(message: Message) -> list[Mapping[str, Any]]:
    """Return the tool calls of a message."""
    calls = as_list(message.get("tool_calls"))
    return [call for call in calls if isinstance(call, Mapping)]


def _without_nulls(value: Any) -> Any:
    """Return a value without its nulls: those are removed before a tool runs."""
    if isinstance(value, Mapping):
        return {
            key: _without_nulls(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
