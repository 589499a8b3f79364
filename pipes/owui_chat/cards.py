"""Items as the host stores them, for what its page draws of each."""

import json

from openai_responses.items import Item, content_parts, item_type, part_text
from openai_responses.run_events import CallAnswered


def call_card(item: Item) -> Item:
    """Return a call as the host's own; the text of a custom call is an argument.

    A call without a status the host would leave out of the next turn (misc.py:389).
    """
    shown = {"status": "completed", **_without_secrets(item)}
    if item_type(item) == "custom_tool_call":
        text = json.dumps({"input": shown.pop("input", "")}, ensure_ascii=False)
        shown |= {"type": "function_call", "arguments": text}
    return shown


def output_card(event: CallAnswered) -> Item:
    """Return a call's output with what its card shows; pictures by their address."""
    output = event.item["output"]
    parts = [{"type": "input_text", "text": output}]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    shown = _output_item(event.item["call_id"], parts, failed=event.failed)
    return shown | {k: event.card[k] for k in ("files", "embeds") if k in event.card}


def broken_off_card(call_id: object) -> Item:
    """Return the output of a call whose answer broke off before the call was whole."""
    text = "Error: this was not run, because the answer broke off."
    return _output_item(call_id, [{"type": "input_text", "text": text}], failed=True)


def begun_card(item: Item) -> Item:
    """Return an item as it begins: its texts come as growth."""
    begun = {**_without_secrets(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [_text_part("")]}
        case "reasoning":
            begun |= {"summary": []}
            begun.pop("content", None)
        case "function_call" | "custom_tool_call":
            begun = {**call_card(begun), "arguments": ""}
    return begun


def message_card(item: Item, text: str) -> Item:
    """Return a message with one text: refusals too are there to be read."""
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def reasoning_card(item: Item, seconds: int) -> Item:
    """Return a thought with its texts as one part each, and how long it took."""
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(map(part_text, parts))
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _without_secrets(item: Item) -> Item:
    """Leave out what no reader of the chat can use and nobody else should have."""
    hidden = ("encrypted_content",)
    return {k: v for k, v in item.items() if k not in hidden and v is not None}


def _output_item(call_id: object, parts: list[Item], *, failed: bool) -> Item:
    return {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if failed else "completed",
    }


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}
