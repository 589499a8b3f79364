"""A person's yes or no to calls: asked through the host, read back, used once.

The pipeline ends with a call of the host's `ask_user`, alone in its stream; the host
waits for the person, as long as it takes, and calls the pipeline again. An answer is
bound to a call by its id, its name and its arguments, so that no other call can use it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpt5_agent.events import ToolCallRequested
from gpt5_agent.guard import parsed_arguments
from gpt5_agent.harm import security_warning
from gpt5_agent.memory import Message
from openai_responses.items import Item
from openai_responses.json_input import parse_json_object

MOST_QUESTIONS = 3
"""As many questions a call of `ask_user` may hold (utils/ask_user.py)."""

_LONGEST_QUESTION = 500
"""Of a longer one the host shows the beginning, as if it were all."""

_ASK_USER = "ask_user"
_PREFIX = "call_confirm_"
_ALLOW, _DENY = "Allow", "Deny"


class Confirmations:
    """The answers that a person gave, each of which counts once."""

    def __init__(self, answers: Mapping[str, bool]) -> None:
        """Take the answers by the ids of their confirmations."""
        self._answers = dict(answers)

    def has_answer(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a person answered for this very call."""
        return confirmation_id(call_id, name, arguments) in self._answers

    def take(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the answer was a clear yes; it is used up then."""
        return self._answers.pop(confirmation_id(call_id, name, arguments), False)


def confirmation_id(call_id: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of the confirmation that a call needs."""
    bound = json.dumps([call_id, name, _said(arguments)], sort_keys=True, default=str)
    return hashlib.sha256(bound.encode()).hexdigest()[:32]


def requested(call: Item) -> ToolCallRequested:
    """Return the question whether a call may be made."""
    call_id, name = str(call["call_id"]), str(call["name"])
    arguments = parsed_arguments(call)
    return ToolCallRequested(
        name,
        arguments,
        confirmation_id(call_id, name, arguments),
        security_warning(name),
    )


def question_call(requests: Sequence[ToolCallRequested]) -> Item:
    """Return the call of `ask_user` that asks a person for each of the calls."""
    questions = [_question(request) for request in requests]
    ids = "".join(request.confirmation_id for request in requests)
    name = hashlib.sha256(ids.encode()).hexdigest()[:24]
    asked = {"questions": questions, "allow_other": False}
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"{_PREFIX}{name}",
        "name": _ASK_USER,
        "arguments": json.dumps(asked, ensure_ascii=False),
        "status": "completed",
    }


def read_answers(messages: Iterable[Message]) -> dict[str, bool]:
    """Return what a person answered, by the ids of the confirmations.

    Whatever is not a clear yes is a no: another answer, a timeout, a rejection.
    """
    asked: dict[str, list[str]] = {}
    answers: dict[str, bool] = {}
    for message in messages:
        for call in filter(_is_ours, tool_calls_of(message)):
            asked[str(call["id"])] = _asked_ids(call)
        told = parse_json_object(message.get("content")) or {}
        given = told.get("answers") if told.get("status") == "answered" else None
        chosen = given if isinstance(given, Mapping) else {}
        for one in asked.pop(str(message.get("tool_call_id")), ()):
            answers[one] = _is_yes(chosen.get(one))
    return answers


def without_questions(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without our questions and their answers."""
    found: list[Message] = []
    for message in messages:
        calls = tool_calls_of(message)
        left = [call for call in calls if not _is_ours(call)]
        if str(message.get("tool_call_id") or "").startswith(_PREFIX):
            continue
        found.append(message if left == calls else {**message, "tool_calls": left})
    return found


def tool_calls_of(message: Message) -> list[Mapping[str, Any]]:
    """Return the tool calls of a message."""
    calls = message.get("tool_calls")
    return (
        [one for one in calls if isinstance(one, Mapping)]
        if isinstance(calls, list)
        else []
    )


def _said(value: Any) -> Any:
    """Return a value without its nulls: those are taken out before a tool runs."""
    if isinstance(value, Mapping):
        return {key: _said(one) for key, one in value.items() if one is not None}
    return [_said(one) for one in value] if isinstance(value, list) else value


def _question(request: ToolCallRequested) -> dict[str, Any]:
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
        "question": _shown_question(text),
        # The page recommends the first (tools/builtin.py, ask_user).
        "options": [deny, allow] if warning else [allow, deny],
        "allow_other": False,
    }


def _shown_question(text: str) -> str:
    """Return a question that says so where it is not whole."""
    if len(text) <= _LONGEST_QUESTION:
        return text
    note = f" [... cut here: {len(text)} characters in all]"
    return text[: _LONGEST_QUESTION - len(note)] + note


def _is_ours(call: Mapping[str, Any]) -> bool:
    return str(call.get("id") or "").startswith(_PREFIX)


def _asked_ids(call: Mapping[str, Any]) -> list[str]:
    function = call.get("function")
    given = function.get("arguments") if isinstance(function, Mapping) else None
    questions = (parse_json_object(given) or {}).get("questions")
    rows = questions if isinstance(questions, list) else []
    return [str(row.get("id")) for row in rows if isinstance(row, Mapping)]


def _is_yes(answer: object) -> bool:
    label = answer.get("label") if isinstance(answer, Mapping) else answer
    return label == _ALLOW
