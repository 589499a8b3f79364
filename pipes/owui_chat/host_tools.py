"""What Open WebUI's own texts and tools mean: images of tools, `call_tool`."""

from typing import Any, NamedTuple

from openai_responses.json_input import JsonObject, parse_json_object

CALL_TOOL = "call_tool"
"""The builtin tool that runs another one by its name."""

TOOL_IMAGES_PREFIX = "Here are the images from the tool results above."
"""The beginning of the user message that the host makes of the images of tools."""


class InnerCall(NamedTuple):
    """What a call of `call_tool` asks for."""

    name: Any
    """As the model wrote it: maybe not even a text."""
    arguments: dict[str, Any]


def read_call_tool(arguments: JsonObject) -> InnerCall | None:
    """Return the call inside of a call of `call_tool`, None if invalid."""
    params = parse_json_object(arguments.get("params"))
    if params is None:
        return None
    return InnerCall(arguments.get("tool_name"), params)
