"""A person's approval of a call: requested through Open WebUI, read back, used once.

The pipeline ends its stream with a call of the host's `ask_user`. The host waits for
the person and calls the pipeline again. An answer is bound to a call by id, name and
arguments, so that no other call can use it. Without an explicit approval the call is
denied.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpt5_agent.events import ToolCallRequested
from gpt5_agent.request import Message
from gpt5_agent.tools.guard import parse_arguments
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping, parse_json_object

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
    spaced = (f" {one.lower()}" if one.isupper() else one for one in name)
    letters = (one if one.isalnum() else " " for one in "".join(spaced))
    for word in "".join(letters).split():
        for reason, words in _HARMFUL_WORDS.items():
            if word in words.split():
                return {"level": "high", "reason": reason}
    return None


MAX_QUESTIONS = 3
"""As many questions a call of `ask_user` may hold (utils/ask_user.py)."""

_MAX_QUESTION_CHARACTERS = 500
"""Of a longer one the host shows the beginning, as if it were all."""

_ASK_USER = "ask_user"
_CONFIRMATION_PREFIX = "call_confirm_"
_ALLOW, _DENY = "Allow", "Deny"


class Confirmations:
    """A person's answers, each of which counts once."""

    def __init__(self, answers: Mapping[str, bool]) -> None:
        """Take the answers by confirmation id."""
        self._answers = dict(answers)

    def has_answer(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a person answered for this very call."""
        return compute_confirmation_id(call_id, name, arguments) in self._answers

    def consume(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the answer was an approval; it is used up then."""
        return self._answers.pop(
            compute_confirmation_id(call_id, name, arguments), False
        )


def compute_confirmation_id(
    call_id: str, name: str, arguments: Mapping[str, Any]
) -> str:
    """Return the id of the confirmation that a call needs."""
    bound = json.dumps(
        [call_id, name, _without_nulls(arguments)], sort_keys=True, default=str
    )
    return hashlib.sha256(bound.encode()).hexdigest()[:32]


def build_confirmation_request(call: Item) -> ToolCallRequested:
    """Return the question whether a call may be made."""
    call_id, name = str(call["call_id"]), str(call["name"])
    arguments = parse_arguments(call)
    return ToolCallRequested(
        name,
        arguments,
        compute_confirmation_id(call_id, name, arguments),
        find_security_warning(name),
    )


def build_question_call(requests: Sequence[ToolCallRequested]) -> Item:
    """Return the call of `ask_user` that asks a person for each of the calls."""
    questions = [_build_question(request) for request in requests]
    ids = "".join(request.confirmation_id for request in requests)
    name = hashlib.sha256(ids.encode()).hexdigest()[:24]
    asked = {"questions": questions, "allow_other": False}
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"{_CONFIRMATION_PREFIX}{name}",
        "name": _ASK_USER,
        "arguments": json.dumps(asked, ensure_ascii=False),
        "status": "completed",
    }


def read_confirmations(messages: Iterable[Message]) -> dict[str, bool]:
    """Return the approvals by confirmation id.

    Anything but a clear yes is a no: another answer, a timeout, a rejection.
    """
    asked: dict[str, list[str]] = {}
    answers: dict[str, bool] = {}
    for message in messages:
        for call in filter(_is_confirmation_call, read_tool_calls(message)):
            asked[str(call["id"])] = _read_question_ids(call)
        told = parse_json_object(message.get("content")) or {}
        given = told.get("answers") if told.get("status") == "answered" else None
        chosen = as_mapping(given)
        for one in asked.pop(str(message.get("tool_call_id")), ()):
            answers[one] = _is_approval(chosen.get(one))
    return answers


def drop_question_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without our questions and their answers."""
    found: list[Message] = []
    for message in messages:
        calls = read_tool_calls(message)
        left = [call for call in calls if not _is_confirmation_call(call)]
        if str(message.get("tool_call_id") or "").startswith(_CONFIRMATION_PREFIX):
            continue
        found.append(message if left == calls else {**message, "tool_calls": left})
    return found


def read_tool_calls(message: Message) -> list[Mapping[str, Any]]:
    """Return the tool calls of a message."""
    calls = as_list(message.get("tool_calls"))
    return [one for one in calls if isinstance(one, Mapping)]


def _without_nulls(value: Any) -> Any:
    """Return a value without its nulls: those are removed before a tool runs."""
    if isinstance(value, Mapping):
        return {
            key: _without_nulls(one) for key, one in value.items() if one is not None
        }
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _build_question(request: ToolCallRequested) -> dict[str, Any]:
    arguments = json.dumps(request.args, ensure_ascii=False, default=str)
    warning = request.security_warning or {}
    text = " ".join(
        part
        for part in (
            f"May {request.tool_name} be called?",
            warning.get("reason", ""),
            f"With: {arguments}",
        )
        if part
    )
    allow = {"label": _ALLOW, "description": "Make this call, once."}
    deny = {"label": _DENY, "description": "Do not make this call."}
    return {
        "id": request.confirmation_id,
        "header": "Approve a tool",
        "question": _truncate_question(text),
        # The page recommends the first (tools/builtin.py, ask_user).
        "options": [deny, allow] if warning else [allow, deny],
        "allow_other": False,
    }


def _truncate_question(text: str) -> str:
    if len(text) <= _MAX_QUESTION_CHARACTERS:
        return text
    note = f" [... cut here: {len(text)} characters in all]"
    return text[: _MAX_QUESTION_CHARACTERS - len(note)] + note


def _is_confirmation_call(call: Mapping[str, Any]) -> bool:
    return str(call.get("id") or "").startswith(_CONFIRMATION_PREFIX)


def _read_question_ids(call: Mapping[str, Any]) -> list[str]:
    given = as_mapping(call.get("function")).get("arguments")
    rows = as_list((parse_json_object(given) or {}).get("questions"))
    return [str(row.get("id")) for row in rows if isinstance(row, Mapping)]


def _is_approval(answer: object) -> bool:
    label = answer.get("label") if isinstance(answer, Mapping) else answer
    return label == _ALLOW
