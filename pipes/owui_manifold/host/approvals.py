"""Asks users for approval of calls: at the host's cards, or in its dialog.

From 0.12.2 on the host can ask itself. It stores the question with the chat, so that it
is answered after a reload or from another device; then it makes the call and calls the
pipe again. It is left to ask where its answer is enough, and its card shows all that
will run (`HostQuestions`). The dialog is for all others, and asks once about several
calls (docs/reference/open-webui.md, "Approvals").
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from openai_responses.items import Item, item_type
from openai_responses.json_input import parse_json_object, value_at
from openai_responses.loop.tools import (
    ApprovalRules,
    Approver,
    AskedCall,
    CallableTools,
    Judgment,
    ReadyCall,
    Verdict,
    checked_call,
)
from openai_responses.requests.tools import ToolNames
from owui_chat.wording import plural, value_with_escapes
from owui_manifold.host.callables import function_names
from owui_manifold.host.open_webui import (
    EventCall,
    HostContext,
    is_valid_question,
    resolve_dispatched,
)


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
        ask=partial(_ask_in_page, host.event_call) if host.event_call else None,
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


class HostQuestions:
    """Leaves to the host the calls about which it asks the user itself.

    They are those that need an approval by the chat's own mode alone, and a question to
    the user if no other call stays open. A rule of TOOL_APPROVAL is not the
    host's: it would make the call without asking as soon as the user switches the mode.
    """

    holds_calls = False
    """What the host may see it asks about."""

    def __init__(
        self, host: HostContext, approver: Approver, tools: CallableTools
    ) -> None:
        self._host = host
        self._approver = approver
        self._tools = tools

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Leave what the host asks about; all other calls are made here."""
        left: list[Item] = []
        questions: list[Item] = []
        for call in calls:
            may_ask = self._tools.call_kind(str(call.get("name"))) == "question"
            if self._approver.default_rule != "ask" and not may_ask:
                continue  # the usual case, which costs no check
            ready = checked_call(call, self._tools)
            await asyncio.sleep(0)  # a check may take some milliseconds
            if not isinstance(ready, ReadyCall):
                continue
            if not self._is_shown_as_made(call, ready):
                continue
            rule = self._approver.rule_for(ready.name, ready.via)
            by_rules = self._approver.rule_for(
                ready.name, ready.via, default_rule="auto"
            )
            is_question = ready.kind == "question" and is_valid_question(
                ready.arguments
            )
            if is_question and rule == "auto":
                questions.append(call)
            elif rule == "ask" and by_rules == "auto":
                left.append(call)  # the mode of the chat asks, and no rule
        if not left and len(questions) == 1:  # the host puts only one, and it alone
            left = questions
        left_ids = {call["call_id"] for call in left}
        return Judgment(
            [Verdict(call, is_left=call["call_id"] in left_ids) for call in calls]
        )

    def _is_shown_as_made(self, call: Item, ready: ReadyCall) -> bool:
        """Say whether the host makes the very call that was checked, and shows all of it.

        Its card has the bare arguments: a character that cannot be seen, or turns the
        line around, shows another call than the one that is made.
        """
        if item_type(call) != "function_call":  # it makes no custom tool's call
            return False
        text = str(call.get("arguments") or "{}")
        made = resolve_dispatched(str(call.get("name")), text, self._host.tools)
        if made is None or made[0] != ready.name:
            return False
        arguments = parse_json_object(made[1])
        is_as_checked = _as_text(arguments) == _as_text(ready.arguments)
        shown = {ready.name: ready.arguments}
        return is_as_checked and value_with_escapes(shown) == shown


def _as_text(value: object) -> str:
    """Return a JSON value as a text that is the same for equal ones alone: 1 is not 1.0."""
    return json.dumps(value, sort_keys=True)


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


async def _ask_in_page(event_call: EventCall, calls: Sequence[AskedCall]) -> list[bool]:
    """Show the host's approval card; say of each call whether it is allowed.

    An older host shows the message alone, so it holds the arguments.
    """
    names = [call.name for call in calls]
    title = "Allow this tool?"
    name = names[0]
    arguments: dict[str, Any] = dict(calls[0].arguments)
    if len(calls) > 1:  # the card shows one: its arguments are then all calls
        title = f"Allow these {len(calls)} calls?"
        name = ", ".join(dict.fromkeys(names))
        arguments = {
            f"{number}. {call.name}": dict(call.arguments)
            for number, call in enumerate(calls, 1)
        }
    shown = value_with_escapes({name: arguments})
    [(shown_name, shown_arguments)] = shown.items()
    # All arguments, however long they are: no one approves what they cannot read.
    # They cannot end the code block: no line of their JSON begins with backticks.
    block = json.dumps(shown_arguments, ensure_ascii=False, indent=1)
    wanted = ", ".join(dict.fromkeys(map(ToolNames().sent_name, names)))
    if len(names) > 1:
        wanted = f"{plural(len(names), 'call')} of {wanted}"
    card = {
        "title": title,
        "message": (
            f"The model wants to use {wanted} with:\n\n"
            f"{_SCROLLING_BLOCK}\n\n```json\n{block}\n```\n\n</div>"
        ),
        "tool_call": {
            "id": calls[0].call_id,
            "name": shown_name,
            "arguments": shown_arguments,
        },
        "timeout_ms": _MAX_WAITING_MS,
    }
    answer = await event_call({"type": "confirmation", "data": card})
    # Without an answer the host returns an object (docs/reference/open-webui.md,
    # "Dialogs").
    if not isinstance(answer, bool):
        raise TimeoutError
    return [answer] * len(calls)
