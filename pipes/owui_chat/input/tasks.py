"""Small jobs that the host gives a model: titles, tags, follow-up questions.

The host names the job. Its prompt quotes the chat, markers included. The host would use
the text of an error as the title.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.json_input import JsonObject, as_mapping, value_at
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.build import ResponsesRequest, Settings, build_request
from owui_chat.input.history import build_input
from owui_chat.messages import parse_messages
from owui_chat.storage.markers import strip_markers

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_TASK_OBJECTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "title_generation": ("title", _TEXT),
    "tags_generation": ("tags", _TEXTS),
    "follow_up_generation": ("follow_ups", _TEXTS),
    "query_generation": ("queries", _TEXTS),
    "image_prompt_generation": ("prompt", _TEXT),
    "autocomplete_generation": ("text", _TEXT),
}
"""By task: the one key of the answer's JSON object that the host reads, and its schema
(docs/reference/open-webui.md, "Tasks")."""


_ANSWER_KEYS = (
    "tools tool_choice parallel_tool_calls reasoning reasoning_effort text verbosity "
    "response_format reasoning_summary json_schema"
)
"""What is chosen for answers, but not for tasks."""


def task_request(
    model: ResolvedModel, messages: Sequence[JsonObject], body: JsonObject, task: str
) -> ResponsesRequest:
    """Return the request for a task: short, without tools or stored reasoning.

    If the host reads the answer as JSON, the model is held to that form. Raises
    InvalidRequest.
    """
    messages = [
        {**as_mapping(m), "content": _clean(value_at(m, "content"))} for m in messages
    ]
    instructions, parts = parse_messages(messages)
    given = {k: v for k, v in body.items() if k not in _ANSWER_KEYS.split()}
    form = _task_format(task, messages)
    if form and model.facts.known_family:
        given["text"] = {"format": form}
    effort, plain = model.lowest_effort(), model._replace(pro=False)
    settings = Settings(effort=effort, stream=False, encrypted_reasoning=False)
    items = build_input(parts, {}, None)
    return build_request(plain, instructions, items, given, settings)


def _task_format(task: str, messages: Sequence[JsonObject]) -> dict[str, Any] | None:
    """Return the `text.format` of a task whose answer the host reads as JSON, or None.

    An administrator's own prompt may ask for something else, so the key must be in it.
    """
    key, value = _TASK_OBJECTS.get(task, ("", {}))
    if not key or not any(f'"{key}"' in str(m.get("content")) for m in messages):
        return None
    schema = {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "name": task, "schema": schema, "strict": True}


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; its text must be empty if the task failed."""
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    """Return a content without the markers of the quoted chat."""
    if isinstance(content, str):
        return strip_markers(content)
    return list(map(_clean_part, content)) if isinstance(content, list) else content


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": strip_markers(part["text"])}
    return part
