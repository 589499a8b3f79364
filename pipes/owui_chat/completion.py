"""Run events -> one complete result, for callers that asked for no stream."""

from typing import Any

from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_commentary,
    is_reasoning,
    item_type,
    message_text,
)
from openai_responses.pictures import has_picture
from openai_responses.run_events import RunEnded
from openai_responses.texts import item_texts
from owui_chat.annotations import chat_annotations
from owui_chat.chunks import chat_picture, chat_tool_call, finish_reason
from owui_chat.host_chunks import error_chunk, host_usage
from owui_chat.links import without_tracking
from owui_chat.remarks import closing_remark

_GAP = "\n\n"


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
    usage = (
        host_usage(ended.usage, ended.last_usage, ended.cost) if ended.usage else None
    )
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
    """Return the text of an answer, its messages apart by a blank line.

    Remarks in passing are no part of it, unless the run ends with one or nothing else
    is said.
    """
    return _GAP.join(map(_clean_text, _messages(ended)))


def _messages(ended: RunEnded) -> list[Item]:
    found = [item for item in ended.output if item_type(item) == "message"]
    closing = closing_remark(ended.output)
    told = [i for i in found if not is_commentary(i) or i == closing]
    return told or found


def _clean_text(message: Item) -> str:
    return without_tracking(message_text(message))


def _annotations(ended: RunEnded) -> list[Item]:
    annotations: list[Item] = []
    before = 0
    for message in _messages(ended):
        annotations += chat_annotations(message, before)
        before += len(_clean_text(message)) + len(_GAP)
    return annotations


def _message(ended: RunEnded) -> dict[str, Any]:
    further = {
        "reasoning_content": _progress(ended),
        "annotations": _annotations(ended),
        "images": [chat_picture(i) for i in ended.output if has_picture(i)],
        "tool_calls": _open_calls(ended),
    }
    said = {"role": "assistant", "content": completion_text(ended)}
    return said | {name: value for name, value in further.items() if value}


def _progress(ended: RunEnded) -> str:
    """Return what was thought and remarked on the way to the answer."""
    answer = _messages(ended)
    steps = [
        item
        for item in ended.output
        if is_reasoning(item) or (is_commentary(item) and item not in answer)
    ]
    texts = (text for item in steps for _, text in item_texts(item) if text)
    return without_tracking(_GAP.join(texts))


def _open_calls(ended: RunEnded) -> list[dict[str, Any]]:
    """Return the calls that were left to the caller."""
    answered = {i["call_id"] for i in ended.output if is_call_output(i)}
    calls = [item for item in ended.output if is_call(item)]
    return [chat_tool_call(i) for i in calls if i.get("call_id") not in answered]
