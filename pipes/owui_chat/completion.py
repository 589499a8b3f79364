"""Run events -> one complete result, for callers that asked for no stream."""

from typing import Any

from openai_responses.items import (
    is_call_output,
    is_reasoning,
    item_type,
    message_text,
)
from openai_responses.run_events import RunEnded
from openai_responses.turn import item_texts
from owui_chat.chunks import chat_tool_call, finish_reason
from owui_chat.host_chunks import (
    error_chunk,
    host_usage,
)


def completion(
    ended: RunEnded, completion_id: str, created: int, model: str
) -> dict[str, Any]:
    """Return the `chat.completion` of a run, with the error if it failed.

    What arrived before a failure is in it; when nothing did, the error stands alone.
    """
    failed = ended.ending.is_failure and ended.ending.kind != "incomplete"
    error = error_chunk(ended.ending.sentence) if failed else {}
    if failed and not ended.output:
        return error
    message = _message(ended)
    finish = finish_reason(ended.ending, "tool_calls" in message)
    usage = host_usage(ended.usage, ended.last_usage) if ended.usage else None
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **({"usage": usage} if usage else {}),
        **error,
    }


def completion_text(ended: RunEnded) -> str:
    """Return the text of an answer, its messages apart by a blank line."""
    texts = [message_text(i) for i in ended.output if item_type(i) == "message"]
    return "\n\n".join(texts)


def _message(ended: RunEnded) -> dict[str, Any]:
    thoughts = [
        text for i in ended.output if is_reasoning(i) for _, text in item_texts(i)
    ]
    answered = {i["call_id"] for i in ended.output if is_call_output(i)}
    calls = [
        chat_tool_call(i)
        for i in ended.output
        if item_type(i) == "function_call" and i.get("call_id") not in answered
    ]
    message: dict[str, Any] = {"role": "assistant", "content": completion_text(ended)}
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(t for t in thoughts if t)
    if calls:
        message["tool_calls"] = calls
    return message
