"""What Open WebUI's own texts and tools mean, and which characters it does not store."""

import re
from typing import Any

from openai_responses.json_input import JsonObject, parse_json_object

CALL_TOOL = "call_tool"
"""The builtin tool that runs another one by its name."""

TOOL_IMAGES_PREFIX = "Here are the images from the tool results above."
"""The beginning of the user message that the host makes of the images of tools."""

UNSTORED = re.compile(r"[\x00\ud800-\udfff]")
"""Characters that the host leaves out of a chat (`sanitize_text_for_db`, utils/misc.py:919
of 0.12.4)."""


def read_call_tool(arguments: JsonObject) -> tuple[Any, dict[str, Any]] | None:
    """Return name and arguments of the call inside of a call of `call_tool`.

    The name is as the model wrote it, and may be no text. None if it is no such call.
    """
    params = parse_json_object(arguments.get("params"))
    if params is None:
        return None
    return arguments.get("tool_name"), params
