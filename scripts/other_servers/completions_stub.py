"""A server of Chat Completions with a model of two rules, for LiteLLM to stand before."""

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
        words = ["It ", "said: ", text]
    elif "weather" in text and body.get("tools"):
        function = {"name": "get_weather", "arguments": ""}
        call = {"index": 0, "id": "call_stub", "type": "function", "function": function}
        parts = ('{"city": ', '"Zürich"}')
        grown = [{"index": 0, "function": {"arguments": part}} for part in parts]
        thought = {"role": "assistant", "reasoning_content": "I look it up."}
        return [thought, *({"tool_calls": [piece]} for piece in (call, *grown))]
    else:
        words = ["Two and two ", "are 4. 🌧", "\n"]
    thought = {"role": "assistant", "reasoning_content": "I think."}
    return [thought, *({"content": word} for word in words)]


def find_refusal(body: Json) -> Json | None:
    """Return what is wrong: no such model, or, as DeepSeek, a call without its thought."""
    if "missing" in body["model"]:
        return {"message": f"The model `{body['model']}` does not exist.", "code": 404}
    roles = enumerate(message["role"] for message in body["messages"])
    turns = [index for index, role in roles if role == "user"]
    for message in body["messages"][turns[-1] :]:
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
