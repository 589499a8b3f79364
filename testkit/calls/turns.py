"""Questions of one stored chat, as the host passes them, one after the other."""

from dataclasses import dataclass, field
from typing import Any

from calls.sample import call_of, host_context, valves_for
from openai_responses.transport.connections import Connections
from owui_manifold.call.context import Call, Caller
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import Prepared
from owui_manifold.run.answer import answer_events
from simulator import Simulator
from stand_in.host import StandInHost

Json = dict[str, Any]
MODEL = "f.gpt-6.2-sol"


def row_of(host: StandInHost, *words: str) -> None:
    """Let the chat hold these questions, each but the last with its answer."""
    messages: Json = {}
    parent = None
    for number, text in enumerate(words):
        call = f"q{number}"
        answer = f"a{number}"
        messages[call] = {"role": "user", "content": text, "parentId": parent}
        messages[answer] = {"role": "assistant", "parentId": call}
        parent = answer
    row = host.chats.rows["chat-1"]
    row.chat = {**row.chat, "history": {"messages": messages}}


def asked_as(sim: Simulator, *texts: str, model: str = MODEL, **given: Any) -> Call:
    """The next question of a chat: what the host gives, after a system message."""
    roles = ("system", "user", "assistant")
    order = [roles[0], *(roles[1 + index % 2] for index in range(len(texts) - 1))]
    messages = [
        {"role": role, "content": text} for role, text in zip(order, texts, strict=True)
    ]
    number = len(texts) // 2 - 1
    ids = {"user_message_id": f"q{number}", "message_id": f"a{number}"}
    metadata = {"user_id": "user-1", "chat_id": "chat-1", **ids}
    metadata |= given.pop("metadata", {})
    return call_of(
        {"messages": messages, "model": model, "stream": True, **given.pop("body", {})},
        valves_for(sim, **given),
        Caller(model, "user-1", "chat-1", f"a{number}", streams=True),
        host=host_context(metadata=metadata),
    )


async def answered(call: Call, connections: Connections) -> None:
    async for _ in answer_events(await build_chat_request(call), connections):
        pass


@dataclass(eq=False)
class StoredChat:
    """A chat in the host, whose questions the simulator answers.

    Its questions are `q0`, `q1` and so on, their answers `a0`, `a1`. The first text of
    those that are sent is the system message; `usual` are valves for all of them.
    """

    sim: Simulator
    host: StandInHost
    connections: Connections
    usual: Json = field(default_factory=dict)

    def hold(self, *questions: str) -> None:
        """Let the chat's row hold these questions, each but the last with its answer."""
        row_of(self.host, *questions)

    @property
    def messages(self) -> Json:
        held: Json = self.host.chats.rows["chat-1"].chat["history"]["messages"]
        return held

    def attach(self, question: int, *file_ids: str) -> None:
        """Let a question of the row come with these files of the host."""
        self.messages[f"q{question}"]["files"] = [
            {"type": "file", "id": id, "name": self.host.files.rows[id].filename}
            for id in file_ids
        ]

    def asked(self, *texts: str, **given: Any) -> Call:
        """The call for the last of these texts; nothing is done yet."""
        return asked_as(self.sim, *texts, **{**self.usual, **given})

    async def prepare(self, *texts: str, **given: Any) -> Prepared:
        """The request for the last of these texts; it is not sent."""
        return await build_chat_request(self.asked(*texts, **given))

    async def ask(self, *texts: str, **given: Any) -> None:
        """Ask the last of these texts, and let the answer end."""
        await answered(self.asked(*texts, **given), self.connections)

    async def finish(self, call: Call) -> None:
        await answered(call, self.connections)

    def uploads_of(self) -> Json:
        """The files in the container of the last request: contents by names."""
        [tool] = self.sim.requests[-1].body["tools"]
        ids = tool["container"].get("file_ids", [])
        files = [self.sim.uploads.files[file_id] for file_id in ids]
        return {file.name: file.content for file in files}
