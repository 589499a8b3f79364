"""What Open WebUI offers a model, shows of an answer, and sends back of it."""

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def shown_text(chunks: Sequence[Json]) -> str:
    """Return the text of an answer, as the page shows it while it comes."""
    texts: list[str] = []
    for chunk in chunks:
        if chunk.get("type") == "response.output_text.delta":
            texts.append(chunk["delta"])
    return "".join(texts)


def error_messages(chunks: Sequence[Json]) -> list[str]:
    return [chunk["error"]["message"] for chunk in chunks if "error" in chunk]


def finished_items(chunks: Sequence[Json]) -> list[Json]:
    """Return the finished items of an answer, which Open WebUI stores."""
    items: list[Json] = []
    for chunk in chunks:
        if chunk.get("type") == "response.output_item.done":
            items.append(chunk["item"])
    return items


def describe_tool(name: str) -> Json:
    """Return a tool as Open WebUI gives it."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": name, "description": name, "parameters": schema}
    return {"type": "function", "function": function}


def convert_output(items: Sequence[Json]) -> list[Json]:
    """Return stored items as messages, as Open WebUI gives them back.

    Texts and calls up to the next output of a call are one message of the assistant.
    """
    messages: list[Json] = []
    assistant_items: list[Json] = []
    for item in items:
        if item["type"] == "function_call_output":
            messages += _assistant_messages(assistant_items)
            messages.append(_tool_message(item))
            assistant_items = []
        else:
            assistant_items.append(item)
    return messages + _assistant_messages(assistant_items)


def _assistant_messages(items: Sequence[Json]) -> list[Json]:
    """Return one message with the texts and calls of some items; none without them."""
    texts: list[str] = []
    calls: list[Json] = []
    for item in items:
        if item["type"] == "message":
            texts += [part.get("text", "") for part in item["content"]]
        elif item["type"] == "function_call":
            calls.append(_tool_call(item))
    if not texts and not calls:
        return []
    message: Json = {"role": "assistant", "content": "\n".join(texts)}
    if calls:
        message["tool_calls"] = calls
    return [message]


def _tool_call(item: Json) -> Json:
    """Return a call in the form of Chat Completions (the host's utils/misc.py:339)."""
    arguments = item.get("arguments", "{}")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    function = {"name": item["name"], "arguments": arguments}
    return {"id": item["call_id"], "type": "function", "function": function}


def _tool_message(item: Json) -> Json:
    """Return the output of a call as a message, with the text of its first part."""
    output = item["output"]
    text = output if isinstance(output, str) else output[0]["text"]
    return {"role": "tool", "tool_call_id": item["call_id"], "content": text}
