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
