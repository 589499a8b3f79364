"""The older form of function calls in Chat Completions, which some programs still use.

    `functions`, `function_call`               `tools`, `tool_choice`
    an answer with one `function_call`         an answer with `tool_calls`
    a result with the role `function`          one with the role `tool`

Results and calls of a chat are read in `messages`.
"""

from typing import Any

from openai_responses.items import content_parts
from openai_responses.json_input import JsonObject, as_list, as_text, value_at


def with_todays_tools(body: JsonObject) -> dict[str, Any]:
    """Return a body in which the functions are tools."""
    changed = {**body, "parallel_tool_calls": False}  # an answer holds one call
    functions = as_list(changed.pop("functions", None))
    changed["tools"] = [{"type": "function", "function": own} for own in functions]
    choice = changed.pop("function_call", None)
    name = as_text(value_at(choice, "name"))
    if name:
        choice = {"type": "function", "function": {"name": name}}
    if choice is not None:
        changed.setdefault("tool_choice", choice)
    return changed


def in_older_form(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk, or a whole answer, for a program that reads the older form."""
    choices: list[dict[str, Any]] = []
    for choice in content_parts(answer.get("choices")):
        older = dict(choice)
        for key in ("delta", "message"):
            calls = content_parts(value_at(choice, key, "tool_calls"))
            if calls:
                older[key] = {**choice[key], "function_call": calls[0].get("function")}
                del older[key]["tool_calls"]
        if choice.get("finish_reason") == "tool_calls":
            older["finish_reason"] = "function_call"
        choices.append(older)
    return {**answer, "choices": choices} if choices else answer
