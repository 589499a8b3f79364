"""Questions to the agent, with a model that is written down, for tests."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from chats.pictures import PNG
from gpt5_agent.agent.answer import run_agent
from gpt5_agent.events import AgentEvent, ExecutionEnded, StateChanged
from gpt5_agent.request import AgentRequest, OwnToolSettings, PipelineCaller
from openai_responses.endings import Ending
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, ToolOutput
from openai_responses.loop.run import Provider
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.memory import RepairMemory
from owui_chat.render.chunks import METADATA_KEY
from runs.tools import calling
from shells.answer_log import AnswerLog, LogLevel
from strategies.metadata import RunMetadata
from strategies.parameters import StrategyParameters

Json = dict[str, Any]
CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
PICTURE: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
"""A part of a tool's result that the model and the person see."""
REPEATED = "tool invoke error: repeated failure detected; skipped duplicate call"
ENDPOINT = Endpoint("http://127.0.0.1:9/v1", "sk-agent-1")
SIMULATORS = "url:http://127.0.0.1:*"
"""An entry of the server's variable that allows the addresses of simulators."""


class KeptLog(AnswerLog):
    """A log that keeps its lines."""

    def __init__(self, *secrets: str) -> None:
        super().__init__("ID", secrets)
        self.lines: list[str] = []

    def _write(self, level: LogLevel, one_line: str) -> None:
        self.lines.append(one_line)

    @property
    def metadata(self) -> list[Json]:
        """What answers took, as the log has it."""
        told = [line.partition(f"{METADATA_KEY} ") for line in self.lines]
        return [json.loads(found[2]) for found in told if found[1]]


class WeatherTool:
    """A tool of the agent's own that notes what it was called with.

    It takes so many `seconds`, and then returns a `result`, or that it rains.
    """

    def __init__(
        self,
        name: str = "get_weather",
        *,
        failing: bool = False,
        seconds: float = 0,
        result: object = None,
    ) -> None:
        self.name = name
        self.description = "Say how the weather is."
        self.args: Mapping[str, Any] = CITY
        self.called: list[Json] = []
        self._failing = failing
        self._seconds = seconds
        self._result = result

    async def execute(self, args: Json) -> object:
        self.called.append(args)
        if self._failing:
            raise ValueError("the password is hunter2")
        await asyncio.sleep(self._seconds)
        return self._result or f"Rain in {args['city']}."


def host_tool(name: str = "host_weather") -> Json:
    """A tool that Open WebUI runs, as it is in a body."""
    function = {"name": name, "description": "Weather.", "parameters": CITY}
    return {"type": "function", "function": function}


def calls(name: str, number: int = 1, city: str = "Bern") -> Item:
    return calling(name, number, f'{{"city":"{city}"}}')


def called_by_the_host(
    item: Item, *, content: str | None = "", output: str | None
) -> list[Json]:
    """A call and its output, as messages of Open WebUI or another client."""
    function = {"name": item["name"], "arguments": item["arguments"]}
    asked = {"id": item["call_id"], "type": "function", "function": function}
    return [
        {"role": "assistant", "content": content, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": item["call_id"], "content": output},
    ]


PARAMETERS = list(StrategyParameters.model_fields)


def question(*tools: Any, text: str = "Weather?", **more: Any) -> AgentRequest:
    """A question with tools of the agent's own; `more` may hold parameters.

    A `chat` is that of a user of Open WebUI, as `user/chat`.
    """
    parameters = {key: more.pop(key) for key in PARAMETERS if key in more}
    own = more.pop("own", OwnToolSettings(tools=tools))
    if "chat" in more:
        user_id, chat_id = more.pop("chat").split("/")
        ids = {"user_id": user_id, "chat_id": chat_id, "message_id": "m-1"}
        more["caller"] = PipelineCaller(**ids)
    messages = more.pop("messages", [{"role": "user", "content": text}])
    endpoint = more.pop("endpoint", ENDPOINT)
    return AgentRequest(
        strategy="gpt5_function_calling",
        model=resolve_model(str(parameters.get("model", "gpt-5"))),
        parameters=StrategyParameters(**{"model": "gpt-5", **parameters}),
        messages=messages,
        body=more.pop("body", {}),
        endpoint=endpoint,
        log=more.pop("log", None) or KeptLog(),
        signing_secret=endpoint.api_key,
        repairs=more.pop("repairs", None) or RepairMemory(),
        own_tools=own,
        **more,
    )


async def events_of(asked: AgentRequest, provider: Provider) -> list[AgentEvent]:
    """All that the agent reports; its end is told once."""
    log = KeptLog()
    if isinstance(asked.log, KeptLog):
        log = asked.log
    told_before = len(log.metadata)
    asked = asked._replace(log=log)
    async with aclosing(run_agent(asked, lambda _asked: provider)) as events:
        reported = [event async for event in events]
    shown = [event.metadata for event in reported if isinstance(event, ExecutionEnded)]
    assert len([event for event in reported if isinstance(event, RunDone)]) == 1
    assert len(log.metadata) - told_before == len(shown) <= 1
    return reported


def answered(events: Sequence[AgentEvent]) -> list[object]:
    return [event.item["output"] for event in events if isinstance(event, ToolOutput)]


def states(events: Sequence[AgentEvent]) -> list[str]:
    return [event.state for event in events if isinstance(event, StateChanged)]


def ending_of(events: Sequence[AgentEvent]) -> Ending:
    [ended] = [event for event in events if isinstance(event, RunDone)]
    return ended.ending


def metadata_of(events: Sequence[AgentEvent]) -> RunMetadata:
    [ended] = [event for event in events if isinstance(event, ExecutionEnded)]
    return ended.metadata
