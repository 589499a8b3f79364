"""The `/check` command: tests an administrator's set-up and says what works.

An administrator sends `/check` to any model of the pipe. The answer is made here, from
small requests like those of a chat.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from openai_responses.endings import COMPLETED, CUT
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.items import Item
from openai_responses.loop.attempts import Limits
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.run import run
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.events import AnswerEvent
from owui_manifold.config import run_limits, usable
from owui_manifold.context import PipeCall
from owui_manifold.hosted_tools import hosted_tools
from owui_manifold.models import configured_models, fetch_models

_CHECK_COMMAND = "/check"
_FEWEST_TOKENS = 16
_PING: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "ping"}],
}
_WORKS, _FAILS, _OPEN = "✅", "❌", "⚠️"


class Diagnostics:
    """One model of the pipe at its server, tried out piece by piece."""

    def __init__(
        self,
        model: ResolvedModel,
        endpoint: Endpoint,
        connections: Connections,
        limits: Limits,
    ) -> None:
        """Nothing is sent twice: a failure is what is looked for."""
        self._model = model
        self._endpoint = endpoint
        self._connections = connections
        self._limits = limits._replace(retries=RetryPolicy(0))

    async def events(
        self, listed: Sequence[ResolvedModel], hosted: Sequence[Item]
    ) -> AsyncGenerator[RunEvent, None]:
        """Tell the findings as an answer, a line at a time.

        `listed` are the models that the pipe offers, `hosted` the tools that are on.
        """
        message: Item = {"type": "message", "role": "assistant", "content": []}
        yield ItemAdded(0, message)
        text = ""
        async with aclosing(self._lines(listed, hosted)) as lines:
            async for line in lines:
                text += line + "\n"
                yield TextDelta(0, "text", 0, line + "\n")
        content = [{"type": "output_text", "text": text, "annotations": []}]
        whole = {**message, "content": content}
        yield ItemDone(0, whole, shown=text)
        yield RunDone(COMPLETED, output=(whole,))

    async def _lines(
        self, listed: Sequence[ResolvedModel], hosted: Sequence[Item]
    ) -> AsyncGenerator[str, None]:
        yield f"The set-up of this pipe, tried with {self._model.name}:\n"
        yield await self._models_line(listed)
        complaint = await self._complaint()
        if complaint:
            yield _finding(_FAILS, "A small request", complaint)
            return
        yield _finding(_WORKS, "A small request", "The model answers.")
        yield await self._line_of("Streaming", "Answers can be streamed.", stream=True)
        if self._model.facts.summary:
            works = "Summaries of the reasoning can be shown."
            reasoning = {"summary": "auto"}
            yield await self._line_of("Summaries", works, reasoning=reasoning)
        for tool in hosted:
            name = str(tool.get("server_label") or tool.get("type"))
            works = "The model can be given this tool."
            asked_tool = {"tools": [tool], "tool_choice": "none"}
            yield await self._line_of(name, works, **asked_tool)

    async def _models_line(self, listed: Sequence[ResolvedModel]) -> str:
        try:
            usable = await fetch_models(self._endpoint, self._connections)
        except ResponsesError as error:
            return _finding(_OPEN, "The list of models", str(error))
        missing = [model.id for model in listed if model.id not in usable]
        if not missing:
            return _finding(_WORKS, "The key", "It is accepted, for all models listed.")
        names = ", ".join(missing)
        return _finding(_OPEN, "The key", f"It is accepted, but not listed: {names}.")

    async def _line_of(self, what: str, works: str, **more: Any) -> str:
        complaint = await self._complaint(**more)
        return (
            _finding(_FAILS, what, complaint)
            if complaint
            else _finding(_WORKS, what, works)
        )

    async def _complaint(self, **more: Any) -> str:
        """Return what stands against a small request; nothing when it is answered.

        An answer that ends for want of tokens is one; a remedy that a chat would use
        in silence (`healing`) is what is looked for.
        """
        small = {"max_output_tokens": _FEWEST_TOKENS, "stream": False, **more}
        request = ResponsesRequest(model=self._model.id, input=[_PING], **small)
        remedy, ended = "", RunDone(CUT)
        events = run(request, self._endpoint, self._connections, self._limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Status) and event.cause:
                    remedy = event.sentence
                ended = event if isinstance(event, RunDone) else ended
        answered = ended.ending.kind in ("completed", "incomplete")
        return remedy if answered else ended.ending.sentence


def _finding(sign: str, what: str, sentence: str) -> str:
    return f"- {sign} **{what}**: {sentence}"


def is_check_command(call: PipeCall) -> bool:
    """Say whether an administrator asks for a check; others talk to the model."""
    messages = call.messages
    last: Mapping[str, Any] = messages[-1] if messages else {}
    said = last.get("content")
    is_command = isinstance(said, str) and said.strip() == _CHECK_COMMAND
    return is_command and last.get("role") == "user" and call.caller.is_admin


async def run_diagnostics(
    call: PipeCall, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the events of a check; raises InvalidRequest for unusable settings."""
    config, model = call.config, call.model
    hosted = hosted_tools(config, model)
    limits = run_limits(config.valves, tools_ran=False)
    checkup = Diagnostics(model, usable(config.endpoint), connections, limits)
    listed = configured_models(config.valves, usable(config.overrides))
    async with aclosing(checkup.events(listed, hosted.items)) as events:
        async for event in events:
            yield event
