"""A chat with one tool, as the host passes it to the pipe."""

from typing import Any

from calls.sample import IDS, TOOL, USER
from stand_in.host import host_callable

Json = dict[str, Any]


def rain(city: str) -> str:
    """Answer at once, as most tools do."""
    return f"Rain in {city}."


def with_tool(function: Any = rain, **metadata: Any) -> Json:
    """What the host passes for a chat that has `function` as `get_weather`."""
    kept = host_callable(function)
    tool = {"tool_id": "toolkit", "callable": kept, "spec": TOOL["function"]}
    known = {**IDS, "user_id": "user-1", **metadata}
    return {
        "__user__": USER,
        "__metadata__": known,
        "__tools__": {"get_weather": tool},
    }
