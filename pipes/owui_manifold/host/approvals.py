"""Asks people for approval of a tool's call, in the host's own dialog."""

import json
from collections.abc import Callable
from functools import partial

from openai_responses.json_input import JsonObject, value_at
from openai_responses.loop.tools import ApprovalRules, Approver, Ask
from openai_responses.requests.tools import ToolNames
from owui_manifold.host.callables import function_names
from owui_manifold.host.context import EventCall, HostContext


def build_approver(
    host: HostContext, rules: ApprovalRules, log: Callable[[str], object]
) -> Approver:
    """Return who decides about the calls of a request.

    The rules of TOOL_APPROVAL come first; other tools follow the host's own mode. The
    host's `ask_user` needs no approval, because it only asks a question.
    """
    mode = value_at(host.metadata, "params", "tool_approval_mode")
    if host.is_builtin("ask_user"):
        rules = [*rules, ("ask_user", "auto")]
    return Approver(
        rules=rules,
        default_rule="ask" if mode == "ask" else "auto",
        ask=_ask_in_page(host.event_call) if host.event_call else None,
        log=log,
        other_names=partial(_other_names, host),
    )


def _other_names(host: HostContext, name: str) -> list[str]:
    """Return the names that a tool has or may have had.

    It has one in its toolkit or on its server. The host puts an id in front of a name
    that another tool has, and of all names of an MCP server
    (docs/reference/open-webui.md, "Tools of the host"), which it cuts if they are long. A
    rule for the longer name holds on when the chat has no other tool of that name: a
    user chooses the tools.
    """
    tool = host.tools.get(name, {})
    names = function_names(tool.get("callable"))
    # `server:openapi:ID|names`, or the id of a toolkit.
    own_id = str(tool.get("tool_id") or "").rpartition(":")[2].partition("|")[0]
    if not own_id:  # an MCP server's tool has no id, but its connection (0.12)
        own_id = str(getattr(tool.get("client"), "server_name", ""))
    if own_id:
        names += [f"{own_id}_{own_name}" for own_name in {name, *names}]
    return names


def _question(name: str, arguments: JsonObject) -> str:
    """Return the question about a call as Markdown.

    It shows all arguments, however long they are: nobody approves what they cannot read.
    Arguments cannot end the code block: no line of their JSON begins with backticks.
    """
    shown = json.dumps(arguments, ensure_ascii=False, indent=1)
    return (
        f"The model wants to use {name} with:\n\n"
        f"{_SCROLLING_BLOCK}\n\n```json\n{shown}\n```\n\n</div>"
    )


_SCROLLING_BLOCK = '<div style="max-height: 50vh; overflow: auto">'
"""What holds the arguments in the message.

The dialog of 0.11.4 neither scrolls nor shrinks: a long call would push its own
beginning and the buttons off the screen. The card of 0.12 scrolls by itself.
"""
_MAX_WAITING_MS = 240_000
"""The longest time that Open WebUI waits for an answer to its approval card.

From 0.12 on it stops after 120 s unless the event asks for more, and shortens what is
above 240 s (`socket/main.py`, `get_event_call`). 0.11.4 has no such limit and does not
read the field.
"""


def _ask_in_page(event_call: EventCall) -> Ask:
    """Return the way to show the host's approval card.

    An older host shows the message alone, so it holds the arguments. Without an answer
    the host returns an object, so only True is an approval
    (docs/reference/open-webui.md, "Dialogs").
    """

    async def ask(call_id: str, name: str, arguments: JsonObject) -> bool:
        data = {
            "title": "Allow this tool?",
            "message": _question(ToolNames().sent_name(name), arguments),
            "tool_call": {"id": call_id, "name": name, "arguments": dict(arguments)},
            "timeout_ms": _MAX_WAITING_MS,
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask
