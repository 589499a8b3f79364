"""The same chat at both doors: with the pipe, and with the agents' pipeline.

Each door is the driver of the golden run, with the modules of the sources instead of the
built files. A page runs Open WebUI's tools as that door has it: the pipe calls them
itself, the Pipelines server leaves them to Open WebUI, which asks again.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpt5_agent.pipeline
import owui_manifold.pipe
from golden_run.agent_chats import AGENT_READERS, AgentChat
from golden_run.built_files import Settings, ValveReader
from golden_run.pipe_chats import PIPE_READERS, ChatPlan, PipeChat, Question
from golden_run.running import RecordingSimulator
from hosts.servers.functions import HostFunctions
from openai_responses.items import message_text
from owui_chat.storage.markers import strip_markers
from simulator import Simulator

Json = dict[str, Any]

AGENT = "gpt5_function_calling"
_VALVES_OF_PARAMETERS = {"guide": "PRESET"}
"""The pipeline's valves that have another name than the parameter."""


@dataclass(frozen=True)
class Turn:
    """One question and all that came of it: what was sent, shown and stored."""

    requests: Sequence[Json]
    """The bodies that arrived at the server, those that it refused among them."""
    answers: Sequence[Any]
    """What each call of the door gave: the chunks of a stream, or a whole result."""
    stored: Sequence[Json]
    """The items that Open WebUI stores and its page draws; none for a plain client."""
    emitted: Sequence[Json] = ()
    """The status lines that a page was told beside an answer in one piece."""

    @property
    def chunks(self) -> list[Json]:
        """All chunks of all answers, the end of a stream left out."""
        found: list[Json] = []
        for answer in self.answers:
            pieces = answer if isinstance(answer, list) else [answer]
            found += [piece for piece in pieces if isinstance(piece, dict)]
        return found

    @property
    def text(self) -> str:
        """The text of the answer: what a page stores, or what a plain client gets."""
        texts = [message_text(i) for i in self.stored if i["type"] == "message"]
        if texts:
            return strip_markers("\n".join(texts)).strip()
        said = ""
        for chunk in self.chunks:
            if chunk.get("choices"):
                choice = chunk["choices"][0]
                told = choice.get("message") or choice.get("delta") or {}
                said += told.get("content") or ""
        return said.strip()

    @property
    def thoughts(self) -> list[str]:
        """The reasoning that a page shows."""
        reasoning = [item for item in self.stored if item["type"] == "reasoning"]
        parts = [item.get("summary", ()) for item in reasoning]
        texts = ["".join(part["text"] for part in summary) for summary in parts]
        return [text for text in texts if text]

    @property
    def drawn(self) -> str:
        """All that somebody reads, also what is there only for a while."""
        items = [chunk["item"] for chunk in self.chunks if "item" in chunk]
        passing = [message_text(i) for i in items if i["type"].endswith(":remark")]
        lines = [str(line.get("description")) for line in self.lines]
        return "\n".join([self.text, *self.thoughts, *passing, *lines, self.error])

    @property
    def lines(self) -> list[Json]:
        return self.events("status")

    def events(self, kind: str) -> list[Json]:
        events = [chunk["event"] for chunk in self.chunks if "event" in chunk]
        return [event["data"] for event in events if event["type"] == kind]

    @property
    def error(self) -> str:
        """The message that marks the answer as failed; empty if it is none."""
        errors = [
            chunk["error"]["message"] for chunk in self.chunks if "error" in chunk
        ]
        return errors[-1] if errors else ""

    @property
    def metadata(self) -> list[Json]:
        """What the agent reports of its work: to the page, or to a plain client."""
        places = [*self.chunks, *self.lines]
        key = "execution_metadata"
        return [place[key] for place in places if key in place]

    @property
    def sent(self) -> Json:
        body: Json = self.requests[-1]
        return body

    @property
    def rules(self) -> str:
        """The instructions of the last request, wherever the door puts them."""
        if "instructions" in self.sent:
            return str(self.sent["instructions"])
        developers = [i for i in self.sent["input"] if i.get("role") == "developer"]
        return "\n\n".join(message_text(item) for item in developers)

    @property
    def outputs(self) -> list[str]:
        """What the tools gave the model, as it read it last."""
        found: list[str] = []
        for item in self.sent["input"]:
            if item.get("type") == "function_call_output":
                output = item["output"]
                parts = output if isinstance(output, list) else [{"text": output}]
                found.append("".join(part["text"] for part in parts))
        return found


class Door(ABC):
    """A server that people and programs come to."""

    name: str
    noun: str
    """What its messages call what it answers for."""

    def __init__(self, simulator: Simulator, functions: HostFunctions) -> None:
        self._server = RecordingSimulator(simulator)
        self._functions = functions
        self._valves = ValveReader()
        self._given: Settings = {
            "API_KEY": simulator.api_key,
            "COMPATIBILITY": "openai",
            "MAX_RETRIES": 0,
        }

    async def talk(
        self,
        *questions: str | Question,
        reader: str = "page",
        parameters: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
    ) -> list[Turn]:
        """Return the turns of a chat with an agent.

        `reader` is `page`, `page-whole`, `plain` or `plain-whole`; `parameters` are
        those of the agent, `settings` are valves that both doors have.
        """
        planned = [q if isinstance(q, Question) else Question(q) for q in questions]
        valves = {
            **self._given,
            **self._valves_of(parameters or {}),
            **(settings or {}),
        }
        plan = ChatPlan(tuple(planned), AGENT, valves)
        outcome = await self._open_chat(reader, plan).run()
        assert not self._valves.dropped, self._valves.dropped
        turns: list[Turn] = []
        for turn in outcome["turns"]:
            answer = turn["answer"] or []
            items = answer.get("output", []) if isinstance(answer, dict) else answer
            drawn = [item for item in items if not item["type"].endswith(":kept")]
            bodies = [request["body"] for request in turn["requests"]]
            shown = [
                told["shown"] for told in turn.get("page events", ()) if "shown" in told
            ]
            lines = [event["data"] for event in shown if event["type"] == "status"]
            turns.append(Turn(bodies, turn["yielded"], drawn, lines))
        return turns

    @abstractmethod
    def _valves_of(self, parameters: Mapping[str, Any]) -> Settings:
        """Return the valves that give an agent its parameters."""

    @abstractmethod
    def _open_chat(self, reader: str, plan: ChatPlan) -> PipeChat | AgentChat:
        """Return the chat that a reader has by a plan."""


class OpenWebUIDoor(Door):
    """The pipe in the stand-in of Open WebUI; AGENT_JSON has the parameters."""

    name = "Open WebUI"
    noun = "pipe"

    def _valves_of(self, parameters: Mapping[str, Any]) -> Settings:
        return {"AGENT_JSON": json.dumps(dict(parameters))}

    def _open_chat(self, reader: str, plan: ChatPlan) -> PipeChat:
        [chosen] = [each for each in PIPE_READERS if each.name == reader]
        place = self._server, self._functions, chosen
        return PipeChat(owui_manifold.pipe, *place, plan, self._valves)


class PipelinesDoor(Door):
    """The pipeline, called from threads; Open WebUI makes the calls of its own tools."""

    name = "Pipelines server"
    noun = "pipeline"

    def _valves_of(self, parameters: Mapping[str, Any]) -> Settings:
        """Each parameter is a valve; none of these is an object or a list."""
        return {
            _VALVES_OF_PARAMETERS.get(name, name.upper()): (
                json.dumps(value) if isinstance(value, dict | list) else value
            )
            for name, value in parameters.items()
        }

    def _open_chat(self, reader: str, plan: ChatPlan) -> AgentChat:
        [chosen] = [each for each in AGENT_READERS if each.name == reader]
        place = self._server, self._functions, chosen
        return AgentChat(gpt5_agent.pipeline, *place, plan, self._valves)
