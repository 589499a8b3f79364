"""The functions that a chat offers, with outputs that never change."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from stand_in.host import host_callable

Json = dict[str, Any]

_CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
_ANYTHING = {"type": "object", "properties": {}}
SPECS: tuple[Json, ...] = (
    {"name": "get_weather", "description": "The weather.", "parameters": _CITY},
    {"name": "apply_note", "description": "Keep a note.", "parameters": _ANYTHING},
    {
        "name": "harbour_list_ships",
        "description": "The ships in the harbour.",
        "parameters": _ANYTHING,
    },
)
"""The names are those that the transcripts call."""


def output_of(name: str, arguments: str) -> str:
    """Return the output of a tool for its arguments, which are JSON."""
    try:
        parsed = json.loads(arguments)
    except ValueError:
        return f"{name} was called with broken arguments."
    return f"{name} says rain for {json.dumps(parsed, sort_keys=True)}."


def function_tools() -> list[Json]:
    """Return the tools as the body of a chat completion has them."""
    return [{"type": "function", "function": spec} for spec in SPECS]


def host_tools(seconds: float = 0) -> Mapping[str, Json]:
    """Return the tools as Open WebUI passes them in `__tools__`, each so slow."""
    tools = {}
    for spec in SPECS:
        name = spec["name"]
        tools[name] = {
            "tool_id": "golden",
            "type": "function",
            "spec": spec,
            "callable": host_callable(_function(name, seconds)),
        }
    return tools


def _function(name: str, seconds: float) -> Callable[..., Any]:
    async def function(**arguments: Any) -> str:
        await asyncio.sleep(seconds)
        return output_of(name, json.dumps(arguments))

    function.__name__ = name
    return function
