"""Host tool specs -> Responses tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.items import Item


def responses_tools(specs: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Return the tools of a chat body in the API's form.

    Chat Completions nests a function under `function`; the API has it flat and wants
    `parameters` and `strict` said. Other tools are the API's own and stay verbatim.
    """
    return [_responses_tool(spec) for spec in specs]


def responses_tool_choice(choice: object) -> object:
    """Return `tool_choice` in the API's form: a named function is not nested there."""
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if isinstance(function, Mapping):
        return {"type": "function", "name": function.get("name")}
    return choice


def _responses_tool(spec: Mapping[str, Any]) -> Item:
    function = spec.get("function")
    if not isinstance(function, Mapping):
        return dict(spec)
    tool: Item = {"type": "function", "name": function.get("name")}
    if function.get("description"):
        tool["description"] = function["description"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return {**tool, "parameters": parameters, "strict": False}
