"""Chats of two questions with a built pipe, in the stand-in of Open WebUI."""

import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol

import pytest
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from golden_run.built_files import (
    BUILT_ADMINISTRATION,
    Settings,
    ValveReader,
    load_pipe,
)
from golden_run.normal_form import join_deltas
from golden_run.tools import function_tools, host_tools, output_of
from hosts.servers.functions import HostFunctions
from stand_in.host import StandInHost, close_connections, host_request
from stand_in.usage_database import UsageDatabase

Json = dict[str, Any]

CHAT_ID = "chat-1"
ADMINISTRATION = "openai_responses_administration"
SYSTEM = "Answer briefly."
_SAID_TO_CLIENTS = ("retry-after", "x-should-retry")
MAX_ROUNDS = 5
"""Of tools that a plain client runs; a transcript that asks again has more."""


class Server(Protocol):
    """What answers the pipe's requests; `requests` are all that came so far."""

    base_url: str

    @property
    def requests(self) -> list[Any]:
        """Return what came in."""


@dataclass(frozen=True)
class Reader:
    """Who reads an answer.

    A page has ids of a chat and its messages, a plain client has none.
    """

    name: str
    is_page: bool
    streams: bool
    settings: Settings = field(default_factory=dict)


PIPE_READERS = (
    Reader("page", True, True, {"HISTORY_CARRIER": "output"}),
    Reader("page-markers", True, True, {"HISTORY_CARRIER": "markers"}),
    Reader("page-whole", True, False, {"HISTORY_CARRIER": "output"}),
    Reader("plain", False, True),
    Reader("plain-whole", False, False),
)


@dataclass(frozen=True)
class Question:
    """What a person asks, and what else Open WebUI passes with it."""

    text: str
    content: Any = None
    """The content of the message, where it is more than a text."""
    body: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    user: Json = field(default_factory=dict)
    user_valves: Settings = field(default_factory=dict)
    task: str = ""


@dataclass(frozen=True)
class ChatPlan:
    """What a chat asks under which settings."""

    questions: tuple[Question, ...]
    model: str
    settings: Settings
    administration: Settings = field(default_factory=dict)
    """Valves of the filter for administrators, which is active if there are any."""
    tool_seconds: float = 0
    """How long each tool of the host takes."""


@dataclass
class GoldenChat:
    """What a chat with either of the built files is made of."""

    module: ModuleType
    server: Server
    functions: HostFunctions
    reader: Any
    plan: ChatPlan
    valves: ValveReader
    messages: list[Json] = field(
        default_factory=lambda: [{"role": "system", "content": SYSTEM}]
    )
    page_events: list[Any] = field(default_factory=list)


@dataclass
class PipeChat(GoldenChat):
    """One chat with a pipe of its own, which remembers nothing of other chats."""

    def __post_init__(self) -> None:
        self.pipe: Any = self.module.Pipe()
        settings = {
            "BASE_URL": self.server.base_url,
            **self.plan.settings,
            **self.reader.settings,
            "FETCH_MODELS": False,
        }
        self.pipe.valves = self.valves.read(self.module.Pipe.Valves, settings)

    async def run(self) -> Json:
        """Ask all questions; return the turns with their stored answers."""
        turns = []
        with (
            tempfile.TemporaryDirectory() as folder,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.delenv("OPENAI_API_KEY", raising=False)
            patch.delenv("OPENAI_GPT5_AUDIT_LOG", raising=False)
            host = StandInHost(patch, Path(folder))
            if self.plan.administration:
                UsageDatabase(patch, host)
                administration = load_pipe(BUILT_ADMINISTRATION).Filter()
                host.filters.active = {ADMINISTRATION: administration}
                host.filters.valves = {ADMINISTRATION: dict(self.plan.administration)}
            history: Json = {}
            host.chats.rows[CHAT_ID].chat["history"] = {"messages": history}
            try:
                for number, question in enumerate(self.plan.questions):
                    turns.append(await self._turn(host, history, number, question))
            finally:
                # A host never does; here a later chat may have the same event loop.
                await close_connections(self.pipe)
        return {"turns": turns}

    async def _turn(
        self, host: StandInHost, history: Json, number: int, question: Question
    ) -> Json:
        sent_before = len(self.server.requests)
        self.page_events = []
        content = question.content or question.text
        self.messages.append({"role": "user", "content": content})
        if self.reader.is_page:
            self._store_question(history, number, question)
            yielded = [await self._ask(question, number)]
            # The next turn's messages are made of what Open WebUI stores.
            output = shown_items(yielded[0], self.functions)
            history[f"a{number}"]["output"] = output
            self.messages += self.functions.convert(output)
        else:

            async def ask() -> Any:
                return await self._ask(question, number)

            yielded = await ask_as_client(ask, self.messages)
        return {
            "requests": list(self.server.requests[sent_before:]),
            "yielded": yielded,
            "page events": self.page_events,
            "row": host.kept,
            "answer": history.get(f"a{number}"),
        }

    def _store_question(self, history: Json, number: int, question: Question) -> None:
        """Store the question and its empty answer, as the page does before it asks."""
        parent = f"a{number - 1}" if number else None
        stored = {"role": "user", "content": question.text, "parentId": parent}
        history[f"q{number}"] = stored
        history[f"a{number}"] = {"role": "assistant", "parentId": f"q{number}"}

    async def _ask(self, question: Question, number: int) -> Any:
        """Return the joined chunks of a stream, or the one result."""
        body: Json = {
            "model": f"golden.{self.plan.model}",
            "messages": [dict(message) for message in self.messages],
            "stream": self.reader.streams,
            "tools": function_tools(),
            **question.body,
        }
        given = self._given_by_host(question, number)
        answer = await self.pipe.pipe(body, **given)
        if isinstance(answer, dict):
            return answer
        if isinstance(answer, BaseModel):
            return what_response_says(answer.model_dump())
        if isinstance(answer, StreamingResponse):
            lines = [str(line) async for line in answer.body_iterator]
            assert lines.pop() == "data: [DONE]\n\n"
            chunks = [json.loads(line.removeprefix("data:")) for line in lines]
        else:
            chunks = [chunk async for chunk in answer]
        return join_deltas(chunks)

    def _given_by_host(self, question: Question, number: int) -> Json:
        request = host_request()
        request.state = SimpleNamespace()
        user = {"id": "user-1", "name": "Ada", "role": "user", **question.user}
        user["valves"] = self.valves.read(self.pipe.UserValves, question.user_valves)
        given = {"__user__": user, "__metadata__": {}, "__request__": request}
        if self.reader.is_page:
            ids = {
                "user_id": user["id"],
                "chat_id": CHAT_ID,
                "message_id": f"a{number}",
                "user_message_id": f"q{number}",
                "session_id": "session-1",
                "params": {"function_calling": "native"},
            }
            given["__metadata__"] = {**ids, **question.metadata}
            given["__tools__"] = host_tools(self.plan.tool_seconds)
            given["__event_call__"] = self._answer_dialog
            given["__event_emitter__"] = self._show_event
        if question.task:
            given["__task__"] = question.task
        return given

    async def _answer_dialog(self, event: Json) -> bool:
        """Consent to whatever the page is asked."""
        self.page_events.append({"asked": event})
        return True

    async def _show_event(self, event: Json) -> None:
        self.page_events.append({"shown": event})


async def ask_as_client(
    ask: Callable[[], Awaitable[Any]], messages: list[Json]
) -> list[Any]:
    """Ask as a plain client does, which runs the functions of its body itself.

    What comes of it is added to `messages`; the answers are returned.
    """
    answers: list[Any] = []
    for _ in range(MAX_ROUNDS):
        answer = await ask()
        answers.append(answer)
        message = _completion_message(answer)
        messages.append(message)
        if not message.get("tool_calls"):
            break
        messages += [_tool_message(call) for call in message["tool_calls"]]
    return answers


def what_response_says(response: Any) -> Json:
    """Return the status, the headers that clients obey, and the fields of the body."""
    headers = dict(response.headers)
    return {
        "status": response.status_code,
        "headers": {name: headers.get(name) for name in _SAID_TO_CLIENTS},
        **json.loads(response.body),
    }


def shown_items(answer: Any, functions: HostFunctions) -> list[Json]:
    """Return the output that Open WebUI stores of chunks, or of one result."""
    if isinstance(answer, dict):
        return list(answer.get("output") or [])
    chunks = [chunk for chunk in answer if isinstance(chunk, dict)]
    native = [c for c in chunks if str(c.get("type")).startswith("response.")]
    return functions.reduce(native)


def _completion_message(answer: Any) -> Json:
    """Return the assistant's message of chunks, or of one result."""
    if isinstance(answer, dict):
        choices = answer.get("choices") or [{}]
        message: Json = choices[0].get("message") or {}
        return message or {"role": "assistant", "content": ""}
    text = ""
    calls: dict[int, Json] = {}
    for chunk in answer:
        if not isinstance(chunk, dict) or not chunk.get("choices"):
            continue
        delta = chunk["choices"][0].get("delta") or {}
        text += delta.get("content") or ""
        for call in delta.get("tool_calls") or []:
            _add_call(calls, call)
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


def _add_call(calls: dict[int, Json], delta: Json) -> None:
    """Add a piece of a call; its arguments come in several."""
    function = delta.get("function") or {}
    index = delta.get("index", len(calls))
    if index not in calls:
        calls[index] = {
            "id": delta.get("id"),
            "type": "function",
            "function": {"name": function.get("name"), "arguments": ""},
        }
    calls[index]["function"]["arguments"] += function.get("arguments") or ""


def _tool_message(call: Json) -> Json:
    """Return the output of a call as a message; a custom tool gets a plain text."""
    if call["type"] == "custom":
        output = f"{call['custom']['name']} says rain."
    else:
        function = call["function"]
        output = output_of(function["name"], function["arguments"])
    return {"role": "tool", "tool_call_id": call["id"], "content": output}
