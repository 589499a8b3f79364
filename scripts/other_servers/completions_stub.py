"""A server of Chat Completions with a model of two rules, for use behind LiteLLM."""

import json
from typing import Any

from aiohttp import web

Json = dict[str, Any]


def write_answer(body: Json) -> list[Json]:
    """Return the deltas that answer a request: a thought, then a call or a text."""
    last = body["messages"][-1]
    text = last.get("content") or ""
    if not isinstance(text, str):
        text = " ".join(part.get("text", "") for part in text)
    if last["role"] == "tool":
        return _text_deltas("It ", "said: ", text)
    if "weather" in text and body.get("tools"):
        return _call_deltas()
    return _text_deltas("Two and two ", "are 4. 🌧", "\n")


def _text_deltas(*pieces: str) -> list[Json]:
    return [_thought("I think."), *[{"content": piece} for piece in pieces]]


def _call_deltas() -> list[Json]:
    """Return a call of `get_weather`, whose arguments come in two pieces."""
    call: Json = {
        "index": 0,
        "id": "call_stub",
        "type": "function",
        "function": {"name": "get_weather", "arguments": ""},
    }
    deltas = [_thought("I look it up."), {"tool_calls": [call]}]
    for arguments in ('{"city": ', '"Zürich"}'):
        piece = {"index": 0, "function": {"arguments": arguments}}
        deltas.append({"tool_calls": [piece]})
    return deltas


def _thought(text: str) -> Json:
    return {"role": "assistant", "reasoning_content": text}


def find_refusal(body: Json) -> Json | None:
    """Return what is wrong: no such model, or, as DeepSeek, a call without its thought."""
    if "missing" in body["model"]:
        return {"message": f"The model `{body['model']}` does not exist.", "code": 404}
    messages = body["messages"]
    question = 0
    for index, message in enumerate(messages):
        if message["role"] == "user":
            question = index
    for message in messages[question:]:
        if message.get("tool_calls") and not message.get("reasoning_content"):
            words = "Missing `reasoning_content` field in the assistant message."
            return {"message": words, "code": 400}
    return None


async def complete_chat(request: web.Request) -> web.StreamResponse:
    """Answer in one piece or as a stream."""
    body = await request.json()
    error = find_refusal(body)
    if error:
        return web.json_response({"error": error}, status=error["code"])
    head = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    deltas = write_answer(body)
    ended = "tool_calls" if "tool_calls" in deltas[-1] else "stop"
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    if not body.get("stream"):
        text = "".join(delta.get("content", "") for delta in deltas)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": ended}
        whole = {**head, "object": "chat.completion", "choices": [choice]}
        return web.json_response({**whole, "usage": usage})
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    head["object"] = "chat.completion.chunk"
    for delta in [*deltas, {}]:
        finish = None if delta else ended
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        await _send(stream, {**head, "choices": [choice]})
    await _send(stream, {**head, "choices": [], "usage": usage})
    await stream.write(b"data: [DONE]\n\n")
    return stream


async def _send(stream: web.StreamResponse, chunk: Json) -> None:
    await stream.write(f"data: {json.dumps(chunk)}\n\n".encode())
