"""Questions of one stored chat, as the host passes them, one after the other."""

from typing import Any

from calls.sample import call_of, host_context, valves_for
from openai_responses.transport.connections import Connections
from owui_manifold.call.context import Caller, CheckedCall
from owui_manifold.prepare.chat import build_chat_request
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


def asked_as(
    sim: Simulator, *texts: str, model: str = MODEL, **given: Any
) -> CheckedCall:
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


async def answered(call: CheckedCall, connections: Connections) -> None:
    """Ask, and let the answer end."""
    async for _ in answer_events(await build_chat_request(call), connections):
        pass
