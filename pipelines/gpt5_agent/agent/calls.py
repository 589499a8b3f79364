"""The judge of an agent's calls: refused, put to the user, made here, left to the host."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpt5_agent.agent.preparation import PreparedRun
from gpt5_agent.events import ToolCallRequested
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.approval_cards import card_reference, is_too_long_to_show
from gpt5_agent.tools.confirmations import (
    MAX_QUESTIONS,
    build_confirmation_request,
    build_question_call,
    compute_confirmation_id,
    compute_permission,
)
from gpt5_agent.tools.host_calls import names_no_tool, resolve_host_call
from openai_responses.items import Item
from openai_responses.loop.tools import (
    STRICTNESS,
    AskedCall,
    Judgment,
    ToolResult,
    Toolset,
    Verdict,
    tool_error,
)
from owui_chat.host_tools import CALL_TOOL
from strategies.guard import GuardedTools, parse_arguments


class ChatJudge:
    """Decides about the calls of an answer, also with what the user said in the chat.

    `question` is the call that asks the user, `requests` is what it asks,
    `new_permissions` are the approvals for this chat that were given in this answer;
    `toolset` runs the calls that this judge allows.
    """

    def __init__(self, request: AgentRequest, prepared: PreparedRun) -> None:
        """Start with the failures and the approvals of earlier rounds."""
        earlier = prepared.earlier_rounds
        self.question: Item | None = None
        self.requests: list[ToolCallRequested] = []
        self.new_permissions: set[str] = set()
        self._own_tools = request.own_tools
        self._chat = request.caller.workspace
        self._sign = request.sign
        self._offered = prepared.tools
        self._decisions = dict(earlier.answers)
        self._answered = earlier.answered
        self._permissions = prepared.permissions
        self._tools = GuardedTools(prepared.tools)
        for call in earlier.failed:
            self._tools.record_failed_call(call)
        self._approver = replace(
            request.own_tools.approver, ask=self._ask_user, log=request.log.note
        )
        # What the user allowed for the whole chat while this answer waited.
        for call in earlier.signed_calls:
            resolved = self._resolve_for_rules(self._offered.with_own_name(call))
            with suppress(ValueError):
                asked = build_confirmation_request(
                    resolved, chat=self._chat, sign=self._sign
                )
                decision = self._decisions.get(asked.confirmation_id)
                if asked.coverage and decision == "chat":
                    permission = compute_permission(
                        self._chat, asked.tool_name, asked.args
                    )
                    self.new_permissions.add(permission)
        self.toolset = Toolset(
            tools=self._tools,
            approver=self._approver,
            limits=request.own_tools.limits,
            log=request.log.note,
            redacted=request.log.redacted_for_model,
            texts=request.parameters.call_texts(),
            judge=self,
        )

    @property
    def holds_calls(self) -> bool:
        """Whether a call may need an approval that the host asks for."""
        if not self._own_tools.asks_in_chat:
            return False
        if CALL_TOOL in self._offered.host_names:
            # The tool that it passes a call on to is not known yet.
            rules = [rule for _, rule in self._approver.rules]
            if "ask" in (self._approver.default_rule, *rules):
                return True
        names = (*self._offered.own_names, *self._offered.host_names)
        return any(self._approver.rule_for(name) == "ask" for name in names)

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Return what happens to the calls.

        No approval is requested for a call that cannot be made.
        """
        named_calls = [self._offered.with_own_name(call) for call in calls]
        refusals: dict[str, ToolResult] = {}
        for call in named_calls:
            why = self._refusal(call)
            if why:
                refusals[call["call_id"]] = ToolResult(why, failed=True)
        open_calls = [call for call in named_calls if call["call_id"] not in refusals]
        resolved_calls = [self._resolve_for_rules(call) for call in open_calls]

        # One call asks the user about as many calls as it can hold.
        requests: list[ToolCallRequested] = []
        for call in resolved_calls:
            if self._own_tools.asks_in_chat and self._lacks_approval(call):
                request = build_confirmation_request(
                    call, chat=self._chat, sign=self._sign
                )
                if request.confirmation_id not in self._decisions:
                    requests.append(request)
        if requests:
            # A server chooses the ids of its calls: no two have one reference.
            distinct: dict[str, ToolCallRequested] = {}
            for request in requests:
                distinct.setdefault(card_reference(request), request)
            self.requests = list(distinct.values())[:MAX_QUESTIONS]
            self.question = build_question_call(self.requests, self._sign)
            return Judgment(_build_verdicts(calls, refusals, ()), self.question)

        # The host makes the calls of its tools that the rules, or the user, allow.
        left_ids = {
            call["call_id"]
            for call in open_calls
            if call["name"] not in self._offered.own_names
        }
        for call in resolved_calls:
            call_id = call["call_id"]
            if call_id in left_ids:
                arguments = parse_arguments(call)
                why = await self._approver.refusal(call_id, call["name"], arguments)
                if why:
                    refusals[call_id] = tool_error(why)
        return Judgment(_build_verdicts(calls, refusals, left_ids))

    def _refusal(self, call: Item) -> str | None:
        """Return why a call cannot be made; rules need to know the tool that runs."""
        why = self._tools.refusal(call)
        if why is not None:
            return why
        # The approval of the earlier call would count for it, too. A server that compacts
        # the chat between two calls can send the second with the id of the first.
        if call["call_id"] in self._answered:
            return "Error: the call was not made, because its id was used before."
        resolved = self._resolve_for_rules(call)
        if self._lacks_approval(resolved):
            name = resolved["name"]
            asks_in_chat = self._own_tools.asks_in_chat
            if not (asks_in_chat or self._own_tools.approver.ask):
                return (
                    f"Error: {name} needs an approval, and this client cannot be asked. "
                    "Continue without it."
                )
            request = build_confirmation_request(resolved)
            if asks_in_chat and is_too_long_to_show(request):
                return (
                    f"Error: {name} needs an approval, and this call is too long to be "
                    "shown to a person. Split it into smaller calls."
                )
        if self._approver.rules and names_no_tool(call):
            return "tool arguments validation error: no tool to call is named"
        return None

    async def _ask_user(self, calls: Sequence[AskedCall]) -> list[bool]:
        """Say of each call whether the user allows it, or has allowed it."""
        ask = self._own_tools.approver.ask
        answers: list[bool] = []
        for call in calls:
            name = call.name
            arguments = call.arguments
            if self._is_permitted(name, arguments):
                is_allowed = True
            elif self._own_tools.asks_in_chat:
                confirmation = compute_confirmation_id(
                    call.call_id, name, arguments, self._sign
                )
                decision = self._decisions.pop(confirmation, "deny")  # it counts once
                is_allowed = decision != "deny"
            else:
                is_allowed = ask is not None and any(await ask([call]))
            answers.append(is_allowed)
        return answers

    def _resolve_for_rules(self, call: Item) -> Item:
        """Return the call to apply the rules to: that of the tool that will run.

        If the rules are stricter for the tool that passes it on, they win.
        """
        if call["name"] in self._offered.own_names:
            return call
        resolved = resolve_host_call(call)
        if self._strictness(call) > self._strictness(resolved):
            return call
        return resolved

    def _strictness(self, call: Item) -> int:
        """Return a number that is higher for a stricter rule."""
        return STRICTNESS.index(self._approver.rule_for(call["name"]))

    def _is_permitted(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether the user allowed calls like this one for the whole chat."""
        permission = compute_permission(self._chat, name, arguments)
        return permission in self._permissions | self.new_permissions

    def _lacks_approval(self, resolved: Item) -> bool:
        """Say whether a call needs an approval that was not given for the chat."""
        name = resolved["name"]
        return self._approver.rule_for(name) == "ask" and not self._is_permitted(
            name, parse_arguments(resolved)
        )


def _build_verdicts(
    calls: Sequence[Item], refusals: Mapping[str, ToolResult], left_ids: Collection[str]
) -> list[Verdict]:
    """Return what happens to each call, by the ids of those that are not made here."""
    verdicts: list[Verdict] = []
    for call in calls:
        refusal = refusals.get(call["call_id"])
        is_left = refusal is None and call["call_id"] in left_ids
        verdicts.append(Verdict(call, refusal, is_left))
    return verdicts
