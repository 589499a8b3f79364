"""What Open WebUI's page sends when a person asks."""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from hosts.people.client import Json

_LAKE = {
    "id": "lake",
    "header": "Lake",
    "question": "Which lake?",
    "options": [
        {"label": "Zürich", "description": "The long one"},
        {"label": "Zug", "description": "The deep one"},
    ],
}
ASK_USER = json.dumps({"questions": [_LAKE]}, ensure_ascii=False)
"""Arguments with which a model asks the person something."""
ASKS: Json = {"params": {"model_controls": {}, "tool_approval_mode": "ask"}}
"""What a request has whose chat asks before a tool runs."""
SWITCHES = ("voice", "image_generation", "code_interpreter", "web_search")


def tool_choice(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


def calling(name: str, *tool_ids: str) -> Json:
    """The fields of a request that offers tools, of which one is called first."""
    return {"tool_ids": [*tool_ids], "tool_choice": tool_choice(name)}


@dataclass(frozen=True)
class Question:
    """One press of Enter: what is asked, of which model, in which chat."""

    model: str
    text: str = ""
    chat_id: str | None = None  # None: the server starts a chat
    parent_id: str | None = None  # None: the answer that the chat shows last
    regenerate: str | None = None  # the user message that gets another answer
    temporary: list[Json] | None = None  # the history of a chat without a row
    files: list[Json] = field(default_factory=list)
    background_tasks: Json = field(default_factory=dict)  # {"title_generation": True}
    body: Json = field(default_factory=dict)  # more fields of the request


@dataclass(frozen=True)
class Sender:
    """The tab that a question leaves from."""

    session_id: str
    user_id: str
    user_name: str


def user_message(
    question: Question, sender: Sender, answers: Mapping[str, str]
) -> Json:
    """The question as a message of the chat's tree.

    `answers` names the model of each answer by its id, in the order of the page.
    """
    message: Json = {
        "id": str(uuid.uuid4()),
        "parentId": question.parent_id,
        "childrenIds": list(answers),
        "role": "user",
        "content": question.text,
        "timestamp": int(time.time()),
        "models": list(answers.values()),
        "user_id": sender.user_id,
    }
    return message | ({"files": question.files} if question.files else {})


def request_body(
    question: Question,
    sender: Sender,
    message: Json,
    answers: Mapping[str, str],
    shown: Json | None,
) -> Json:
    """The body of `POST /api/chat/completions`; `shown` is the model in the menu."""
    variables = {"{{USER_NAME}}": sender.user_name, "{{USER_LANGUAGE}}": "en-US"}
    body: Json = {
        "stream": True,
        "model": question.model,
        "params": {"model_controls": {}},
        "tool_ids": [],
        "tool_servers": [],
        "features": dict.fromkeys(SWITCHES, False),
        "variables": variables,
        "model_item": shown or {},
        "session_id": sender.session_id,
        "id": next(iter(answers)),
        "message_ids": [
            {"model_id": model, "message_id": id, "modelIdx": number}
            for number, (id, model) in enumerate(answers.items())
        ],
        "parent_id": message.get("parentId"),
        "user_message": message,
        "background_tasks": question.background_tasks,
    }
    if question.chat_id:
        body["chat_id"] = question.chat_id
    if question.files:
        body["files"] = question.files
    if question.temporary is not None:
        asked = {"role": "user", "content": question.text}
        body["messages"] = [*question.temporary, asked]
    return body | question.body
