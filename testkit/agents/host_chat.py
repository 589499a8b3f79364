"""A chat of Open WebUI in which the agent answers, as far as its stored items go.

The real host's own functions make the items and convert them back. What the host does
in between is written here (docs/reference/open-webui.md, "Rounds of tools").
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents.sample import events_of
from event_loops.skipping_loop import run_skipping
from golden_run.agent_chats import answer_questions, stored_output
from gpt5_agent.events import AgentEvent
from gpt5_agent.request import AgentRequest
from gpt5_agent.shell.views import HostRenderer
from hosts.servers.functions import HostFunctions
from openai_responses.items import Item, open_calls
from runs.scripted import ScriptedProvider

Json = dict[str, Any]
Answerer = Callable[[str, Json], str]


def raining(name: str, arguments: Json) -> str:
    return f"{name} says rain in {arguments['city']}."


def allowing(_: Json) -> str:
    return "Allow"


@dataclass
class HostChat:
    """One chat; `output` are the items of the answer that grows.

    `asked` is what the agent is asked each time, but for the messages; `tool` runs the
    host's tools, `person` answers its questions.
    """

    host: HostFunctions
    asked: AgentRequest
    provider: ScriptedProvider
    tool: Answerer = raining
    person: Callable[[Json], str] = allowing
    emits_thoughts: bool = True
    messages: list[Json] = field(default_factory=list)
    output: list[Item] = field(default_factory=list)
    calls: list[list[AgentEvent]] = field(default_factory=list)
    chunks: list[Json] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    questions: list[Json] = field(default_factory=list)

    def talk(self, *texts: str) -> list[AgentEvent]:
        """Write one message after the other; return what was reported of the last."""

        async def work() -> list[AgentEvent]:
            reported: list[AgentEvent] = []
            for text in texts:
                reported = await self.say(text)
            return reported

        return run_skipping(work())

    async def say(self, text: str) -> list[AgentEvent]:
        """Write a message; return all that the agent reported until its answer."""
        self.messages += self.host.convert(self.output)
        self.messages.append({"role": "user", "content": text})
        self.output = []
        self.calls = []
        while True:
            await self._call()
            waiting = open_calls(self.output)
            if not waiting:
                return [event for call in self.calls for event in call]
            for call in waiting:
                self._answer(call, alone=len(waiting) == 1)

    async def _call(self) -> None:
        """Call the agent once, and store what it shows."""
        given = json.loads(json.dumps(self.host.convert(self.output)))
        asked = self.asked._replace(messages=[*self.messages, *given])
        events = await events_of(asked, self.provider)
        view = HostRenderer(self.emits_thoughts, self.asked.origin, self.asked.sign)
        chunks = [chunk for event in events for chunk in view.show(event)]
        shown = self.host.reduce([c for c in chunks if str(c.get("type")) > "response"])
        self.calls.append(events)
        self.chunks += chunks
        self.output += shown

    def _answer(self, call: Item, *, alone: bool) -> None:
        """Run a tool as the host does, or show its question (ask_user.py)."""
        arguments = json.loads(call["arguments"])
        call |= {"arguments": json.dumps(arguments, separators=(",", ":"))}
        call |= {"status": "completed"}
        if call["name"] != "ask_user":
            self.ran.append(call["name"])
            text = self.tool(call["name"], arguments)
        elif not alone:
            text = "Error: ask_user must be the only tool call"
        else:
            self.questions += arguments["questions"]
            text = answer_questions(arguments["questions"], self.person)
        self.output.append(stored_output(call, text))
