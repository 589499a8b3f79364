"""The tool that a call is for, where the host passes the call on to another."""

from openai_responses.items import Item
from openai_responses.json_input import parse_json_object

DISPATCHER = "call_tool"
"""The host's own tool for those whose definitions it holds back."""

_DISPATCH_KEYS = {"tool_name", "params"}


def meant_call(call: Item) -> Item:
    """Return a call as one of the tool that the host would run (utils/tool_search.py).

    Any other call is returned as it is, and so is what the host refuses to pass on.
    """
    if call.get("name") != DISPATCHER:
        return call
    given = parse_json_object(call.get("arguments")) or {}
    name, params = given.get("tool_name"), given.get("params")
    if given.keys() != _DISPATCH_KEYS or parse_json_object(params) is None:
        return call
    return (
        {**call, "name": name, "arguments": params} if isinstance(name, str) else call
    )
