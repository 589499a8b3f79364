"""Write the specs of all builtin tools of the Open WebUI that runs this."""

import ast
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from open_webui.tools import builtin
from open_webui.utils import tools as converters
from open_webui.utils import voice_avatar as avatar

NOT_TOOLS_OF_A_LIST = ["search_tools"]  # comes in only when tools are deferred
GESTURES = [{"name": "wave", "description": "Waves with the right hand."}]


def tool_names() -> list[str]:
    """The functions that the converters' module takes from the builtin tools."""
    tree = ast.parse(inspect.getsource(converters))
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == builtin.__name__
        for alias in node.names
    ]
    return sorted({*names, *NOT_TOOLS_OF_A_LIST})


def main() -> None:
    """Write one JSON list: the tools in the order of their names, then the avatar's.

    The host prints migrations to its standard output, so the list goes to a file.
    """
    tools: list[Callable[..., Any]] = [getattr(builtin, name) for name in tool_names()]
    specs = [converters.get_builtin_tool_spec(tool) for tool in tools]
    specs += avatar.avatar_animation_tools(GESTURES)
    text = json.dumps(specs, indent=1, ensure_ascii=False)
    Path(sys.argv[1]).write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
