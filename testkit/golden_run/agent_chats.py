"""Chats of two questions with a built pipeline, as Open WebUI leads them.

Open WebUI runs its own tools between two calls of the pipeline, and answers `ask_user`
(docs/reference/open-webui.md, "Rounds of tools").
"""

import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from golden_run.normal_form import is_beat, join_deltas
from golden_run.pipe_chats import (
    CHAT_ID,
    MAX_ROUNDS,
    GoldenChat,
    Question,
    ask_as_client,
    shown_items,
    what_response_says,
)
from golden_run.tools import function_tools, output_of

Json = dict[str, Any]

CONSENT = "Allow"
"""The label of the option that lets a tool run."""
_CALL_TYPES = ("function_call", "custom_tool_call")
_OUTPUT_TYPES = ("function_call_output", "custom_tool_call_output")


@dataclass(frozen=True)
class AgentReader:
    """Who reads an answer of which agent."""

    name: str
    agent: str
    is_page: bool
    streams: bool


AGENT_READERS = (
    AgentReader("page", "gpt5_function_calling", True, True),
    AgentReader("page-whole", "gpt5_function_calling", True, False),
    AgentReader("plain", "gpt5_function_calling", False, True),
    AgentReader("plain-whole", "gpt5_function_calling", False, False),
    AgentReader("react-page", "gpt5_react", True, True),
)


@dataclass
class AgentChat(GoldenChat):
    """One chat with a pipeline of its own, which remembers nothing of other chats."""

    def __post_init__(self) -> None:
        self.pipeline: Any = self.module.Pipeline()

    async def run(self) -> Json:
        """Ask all questions; return the turns with their stored answers."""
        turns = []
        with (
            tempfile.TemporaryDirectory() as folder,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("PIPELINES_DIR", folder)
            patch.delenv("OPENAI_API_KEY", raising=False)
            patch.setenv("GPT5_AGENT_ALLOW", "url:http://127.0.0.1:*")
            # Secrets are sealed with a key of that folder as soon as they are set.
            settings = {"BASE_URL": self.server.base_url, **self.plan.settings}
            valves_class = self.pipeline.Valves
            self.pipeline.valves = self.valves.read(valves_class, settings)
            try:
                for number, question in enumerate(self.plan.questions):
                    turns.append(await self._turn(number, question))
            finally:
                await self.pipeline.on_shutdown()
        return {"turns": turns}

    async def _turn(self, number: int, question: Question) -> Json:
        sent_before = len(self.server.requests)
        content = question.content or question.text
        self.messages.append({"role": "user", "content": content})
        output: list[Json] = []
        if self.reader.is_page:
            yielded, output = await self._ask_as_page(number, question)
        else:

            async def ask() -> Any:
                return await self._ask(number, question, [])

            yielded = await ask_as_client(ask, self.messages)
        return {
            "requests": list(self.server.requests[sent_before:]),
            "yielded": yielded,
            "answer": output,
        }

    async def _ask_as_page(
        self, number: int, question: Question
    ) -> tuple[list[Any], list[Json]]:
        """Run Open WebUI's tools until the agent calls none; keep the output."""
        yielded: list[Any] = []
        output: list[Json] = []
        for _ in range(MAX_ROUNDS):
            answer = await self._ask(number, question, self.functions.convert(output))
            yielded.append(answer)
            output += shown_items(answer, self.functions)
            done = {i.get("call_id") for i in output if i["type"] in _OUTPUT_TYPES}
            calls = [item for item in output if item["type"] in _CALL_TYPES]
            calls = [call for call in calls if call["call_id"] not in done]
            if not calls:
                break
            output += [_answer_call(call, is_alone=len(calls) == 1) for call in calls]
        self.messages += self.functions.convert(output)
        return yielded, output

    async def _ask(self, number: int, question: Question, rounds: list[Json]) -> Any:
        """Return the joined chunks of a stream, or the one result."""
        messages = json.loads(json.dumps([*self.messages, *rounds]))
        body: Json = {
            "model": f"golden.{self.reader.agent}",
            "messages": messages,
            "stream": self.reader.streams,
            "tools": function_tools(),
            **question.body,
        }
        if self.reader.is_page:
            body = await self._passed_through_inlet(body, number, question)
        answer = await asyncio.to_thread(
            self.pipeline.pipe,
            user_message=question.text,
            model_id=self.reader.agent,
            messages=body["messages"],
            body=body,
        )
        if isinstance(answer, dict):
            return dict(answer)
        if isinstance(answer, BaseModel):
            return what_response_says(answer.model_dump())
        pieces = await asyncio.to_thread(list, answer)
        return join_deltas([piece for piece in pieces if not is_beat(piece)])

    async def _passed_through_inlet(
        self, body: Json, number: int, question: Question
    ) -> Json:
        """Return the body with what the inlet adds; Open WebUI removes the metadata."""
        ids = {"chat_id": CHAT_ID, "message_id": f"a{number}", "user_id": "user-1"}
        metadata = {**ids, **question.metadata}
        user = {"id": "user-1", "name": "Ada", "role": "user", **question.user}
        passed = await self.pipeline.inlet({**body, "metadata": metadata}, user)
        return {name: passed[name] for name in passed if name != "metadata"}


def _answer_call(call: Json, *, is_alone: bool) -> Json:
    """Run a tool; consent to each question."""
    name = str(call["name"])
    arguments = str(call.get("arguments") or "{}")
    text = output_of(name, arguments)
    if name == "ask_user":
        text = "Error: not alone"
        if is_alone:
            text = answer_questions(json.loads(arguments)["questions"], _consent)
    return stored_output(call, text)


def _consent(question: Json) -> str:
    labels = [str(option["label"]) for option in question["options"]]
    return CONSENT if CONSENT in labels else labels[0]


def answer_questions(questions: Sequence[Json], choose: Callable[[Json], str]) -> str:
    """Return the options that somebody chose by their labels (utils/ask_user.py).

    A label that no option has was made up by a client.
    """
    answers = {}
    for question in questions:
        labels = [option["label"] for option in question["options"]]
        chosen = choose(question)
        index = labels.index(chosen) if chosen in labels else 0
        option = {**question["options"][index], "label": chosen}
        answers[question["id"]] = {"type": "option", "option_index": index, **option}
    return json.dumps({"status": "answered", "answers": answers})


def stored_output(call: Json, text: str) -> Json:
    """Return the output of a call, as Open WebUI stores it."""
    return {
        "type": "function_call_output",
        "id": f"fco_{call['call_id']}",
        "call_id": call["call_id"],
        "output": [{"type": "input_text", "text": text}],
        "status": "completed",
    }
