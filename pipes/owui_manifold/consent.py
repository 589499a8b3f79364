"""Asking the person in front of the page, through the host's event call."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from openai_responses.approvals import Approver, Ask, read_rules
from owui_manifold.valves import Valves

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]


def approver_of(
    valves: Valves,
    metadata: Mapping[str, Any],
    event_call: EventCall | None,
    log: Callable[[str], object] = str,
) -> Approver:
    """Return who decides about the calls of a request.

    The rules of the valve come first; for other tools the host's own mode counts.
    """
    params = metadata.get("params")
    mode = params.get("tool_approval_mode") if isinstance(params, Mapping) else None
    return Approver(
        # A question to the user is no act: to ask whether to ask helps nobody.
        rules=[*read_rules(valves.TOOL_APPROVAL), ("ask_user", "auto")],
        otherwise="ask" if mode == "ask" else "auto",
        ask=_ask_through(event_call) if event_call else None,
        log=log,
    )


def not_for_the_host(
    valves: Valves, tools: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """Return the names of those of the host's `tools` that it must not be left to run.

    It knows nothing of our rules, so what they deny is not offered to the model; nor is
    the builtin tool that runs any other by its name (utils/tool_search.py).
    """
    judge = Approver(read_rules(valves.TOOL_APPROVAL))
    denied = {name for name in tools if judge.rule_for(name) == "deny"}
    if not denied:
        return frozenset()
    passing_on = "builtin:call_tool"
    others = {name for name in tools if tools[name].get("tool_id") == passing_on}
    return frozenset(denied | others)


def _ask_through(event_call: EventCall) -> Ask:
    """Return the way to show the host's approval card (socket/main.py:1620).

    Whoever does not answer, or has left, returns an object instead of True.
    """

    async def ask(call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        tool_call = {"id": call_id, "name": name, "arguments": dict(arguments)}
        data = {
            "title": "Allow this tool?",
            "message": f"The model wants to use {name}.",
            "tool_call": tool_call,
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask
