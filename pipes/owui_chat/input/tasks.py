"""Jobs that the host gives a model: titles, tags, summaries, the merging of answers.

The host names the job. Its prompt quotes the chat, markers included. The host would use
the text of an error as the title.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.endings import Ending
from openai_responses.json_input import JsonObject, as_mapping, value_at
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.build import ResponsesRequest, Settings, build_request
from owui_chat.commands import without_quoted_commands
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


SMALL_TASKS = frozenset([*_TASK_OBJECTS, "emoji_generation"])
"""Tasks that a small model does as well; their texts are short."""

_JSON_TASKS = frozenset([*_TASK_OBJECTS, "function_calling", "memory_review"])


def is_usable_text(task: str, ending: Ending) -> bool:
    """Say whether the text of a task is of use: whole, or a text that was cut.

    Half of a JSON object is not.
    """
    if ending.kind == "incomplete":
        return task not in _JSON_TASKS
    return not ending.is_failure


_HOSTS_LIMITS = {
    "title_generation": 1000,
    "context_compaction": 1000,
    "emoji_generation": 4,
}
"""The `max_tokens` that the host sends if nobody has chosen any.

It means models that do not reason; the limit counts reasoning, too (routers/tasks.py:185,
utils/context_compaction.py:433 of 0.12.4).
"""


def without_hosts_limit(body: JsonObject, task: str) -> dict[str, Any]:
    """Return the body of a task without the limit of tokens that is the host's own."""
    kept = dict(body)
    if kept.get("max_tokens") == _HOSTS_LIMITS.get(task):
        kept.pop("max_tokens", None)
    return kept


_EFFORT_KEYS = frozenset({"reasoning", "reasoning_effort"})
_ANSWER_KEYS = frozenset(
    {
        "json_schema",
        "parallel_tool_calls",
        "reasoning_summary",
        "response_format",
        "text",
        "tool_choice",
        "tools",
        "verbosity",
    }
)
"""What is chosen for answers, but not for tasks."""


def task_request(
    model: ResolvedModel,
    messages: Sequence[JsonObject],
    body: JsonObject,
    task: str,
    *,
    at_own_effort: bool = False,
    stream: bool = False,
) -> ResponsesRequest:
    """Return the request for a task, without tools or stored reasoning.

    The model has its lowest effort, or its own one. If the host reads the answer as
    JSON, the model is held to that form. Raises InvalidRequest.
    """
    clean_messages = [
        {**as_mapping(message), "content": _clean(value_at(message, "content"))}
        for message in messages
    ]
    instructions, parts = parse_messages(clean_messages)
    ignored = _ANSWER_KEYS if at_own_effort else _ANSWER_KEYS | _EFFORT_KEYS
    parameters = {key: body[key] for key in body if key not in ignored}
    if task in _TASK_OBJECTS and model.facts.known_family:
        key, value_schema = _TASK_OBJECTS[task]
        schema = {
            "type": "object",
            "properties": {key: value_schema},
            "required": [key],
            "additionalProperties": False,
        }
        # An administrator's own prompt may ask for something else: then it lacks the key.
        if any(f'"{key}"' in str(message["content"]) for message in clean_messages):
            form = {
                "type": "json_schema",
                "name": task,
                "schema": schema,
                "strict": True,
            }
            parameters["text"] = {"format": form}
    effort = None
    if not at_own_effort:
        effort = model.lowest_effort()
        model = model._replace(pro=False)
    settings = Settings(effort=effort, stream=stream, encrypted_reasoning=False)
    items = build_input(parts, {}, None)
    return build_request(model, instructions, items, parameters, settings)


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; its text must be empty if the task failed."""
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    """Return a content without the markers and the commands of the quoted chat."""
    match content:
        case str():
            return without_quoted_commands(strip_markers(content))
        case list():
            return [
                (
                    {**part, "text": _clean(part["text"])}
                    if isinstance(part, Mapping) and isinstance(part.get("text"), str)
                    else part
                )
                for part in content
            ]
    return content
