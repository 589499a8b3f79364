"""The calls of one round: refused, put to a person, run here, or left to the host."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from gpt5_agent.agent.accounting import RunTotals, StepLog
from gpt5_agent.agent.delegation import DELEGATE
from gpt5_agent.agent.preparation import PreparedRun
from gpt5_agent.agent.transcript import Transcript
from gpt5_agent.events import AgentEvent, StateChanged, StepStarted
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.confirmations import (
    MAX_QUESTIONS,
    build_confirmation_request,
    build_question_call,
    compute_confirmation_id,
    compute_permission,
)
from gpt5_agent.tools.host_calls import resolve_host_call
from openai_responses.items import Item, part_text
from openai_responses.loop.tools import (
    Approval,
    ToolResult,
    Toolset,
    run_calls,
    tool_error,
)
from owui_chat.host_tools import CALL_TOOL
from strategies.guard import TOOL_FAILED_TEXT, GuardedTools, parse_arguments

_RULES_BY_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")


class CallDecisions(NamedTuple):
    """What happens to the calls of a round; they have their tools' own names.

    `refusals` answer calls that are not made; the host makes those of `host_call_ids`.
    While there are `questions` for a person, no call is made.
    """

    calls: tuple[Item, ...]
    refusals: Mapping[str, ToolResult]
    host_call_ids: frozenset[str]
    questions: tuple[Item, ...] = ()

    @property
    def own_calls(self) -> list[Item]:
        """The calls that are answered here, in their order."""
        return [
            call for call in self.calls if call["call_id"] not in self.host_call_ids
        ]

    @property
    def made_calls(self) -> list[Item]:
        """The calls that run here."""
        return [call for call in self.own_calls if call["call_id"] not in self.refusals]


class RoundCalls:
    """Decides about the calls of a run, runs those that are ours, and reports them."""

    def __init__(
        self,
        request: AgentRequest,
        prepared: PreparedRun,
        totals: RunTotals,
        steps: StepLog,
        transcript: Transcript,
    ) -> None:
        """Start with the failures and the approvals of earlier rounds."""
        earlier = prepared.earlier_rounds
        self._settings = request.own_tools
        self._log = request.log
        self._own_names = prepared.own_tools.schemas.keys()
        self._host_names = prepared.host_schemas.keys()
        self._totals = totals
        self._steps = steps
        self._transcript = transcript
        self._decisions = dict(earlier.answers)
        self._chat = request.chat
        self._tools = GuardedTools(
            {**prepared.host_schemas, **prepared.own_tools.schemas},
            prepared.own_tools.call,
            interactive=(DELEGATE,),
        )
        for call in earlier.failed:
            self._tools.record_failed_call(call)
        self._approver = replace(
            request.own_tools.approver, ask=self._ask_person, log=request.log
        )
        self._permissions = prepared.permissions
        self.new_permissions: set[str] = set()
        """Approvals for this chat, given in this answer."""
        for call in earlier.signed_calls:
            self._add_permission(
                {**call, "name": prepared.names.own_name(str(call["name"]))}
            )

    @property
    def may_ask(self) -> bool:
        """Whether a call may need an approval that the host asks for."""
        names = (*self._own_names, *self._host_names)
        rules = self._approver.rules
        answers = (self._approver.default_rule, *(answer for _, answer in rules))
        passes_on = CALL_TOOL in self._host_names and "ask" in answers
        asks = passes_on or any(map(self._needs_approval, names))
        return self._settings.asks_in_chat and asks

    def failed_calls(self) -> list[Item]:
        """Return the calls that failed, for later rounds."""
        return self._tools.failed_calls()

    async def decide(self, calls: Sequence[Item], limit: str) -> CallDecisions:
        """Return what happens to the calls; with a `limit` all are refused.

        No approval is requested for a call that cannot be made.
        """
        refused: dict[str, ToolResult] = {}
        for call in calls:
            why = limit.replace("{tool}", call["name"]) or self._refusal(call)
            if why:
                refused[call["call_id"]] = ToolResult(why, failed=True)
        open_calls = [call for call in calls if call["call_id"] not in refused]
        questions = list(
            filter(self._must_ask, map(self._resolve_for_rules, open_calls))
        )
        if questions:
            first = tuple(questions[:MAX_QUESTIONS])
            return CallDecisions(tuple(calls), refused, frozenset(), first)
        host_calls = [
            call for call in open_calls if call["name"] not in self._own_names
        ]
        for call in map(self._resolve_for_rules, host_calls):
            why = await self._approver.refusal(
                call["call_id"], call["name"], parse_arguments(call)
            )
            if why:
                refused[call["call_id"]] = tool_error(why)
        ids = frozenset(call["call_id"] for call in host_calls) - refused.keys()
        return CallDecisions(tuple(calls), refused, ids)

    def _refusal(self, call: Item) -> str | None:
        """Return why a call cannot be made; rules need to know the tool that runs."""
        why = self._tools.refusal(call)
        name = self._resolve_for_rules(call)["name"]
        can_ask = self._settings.asks_in_chat or self._settings.approver.ask
        if not why and not can_ask and self._lacks_approval(call):
            return (
                f"Error: {name} needs an approval, and this client cannot be asked. "
                "Continue without it."
            )
        is_open = call["name"] == CALL_TOOL and resolve_host_call(call) is call
        if why or not (is_open and self._approver.rules):
            return why
        return "tool arguments validation error: no tool to call is named"

    def ask(self, decisions: CallDecisions) -> Iterator[AgentEvent]:
        """Yield the approval requests; the host shows a card for them."""
        requests = [
            build_confirmation_request(call, chat=self._chat)
            for call in decisions.questions
        ]
        yield from requests
        yield from self._transcript.build_call_events(build_question_call(requests))
        yield StateChanged("waiting_for_confirmation")

    async def run(
        self, decisions: CallDecisions, round_step: StepStarted
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer our calls in their order; yield each with its step of the log."""
        self._totals.calls += len(decisions.calls)
        steps: dict[str, StepStarted] = {}
        calls = decisions.made_calls
        if calls:
            yield StateChanged("executing_tool")
        for call in calls:
            steps[call["call_id"]] = self._start_step(call, round_step)
            yield steps[call["call_id"]]
        async with aclosing(run_calls(calls, self._toolset())) as results:
            for call in decisions.own_calls:
                refused = decisions.refusals.get(call["call_id"])
                if not refused:
                    work = asyncio.ensure_future(anext(results))
                    async with aclosing(self._steps.follow(work)) as events:
                        async for event in events:
                            yield event
                result = refused or work.result()[1]
                yield self._transcript.add_output(call, result)
                if not refused:
                    step = steps[call["call_id"]]
                    detail = _output_text(result)
                    yield self._steps.end(step, failed=result.failed, detail=detail)
        if decisions.host_call_ids:
            yield StateChanged("waiting_for_tools")

    def _start_step(self, call: Item, round_step: StepStarted) -> StepStarted:
        """Return the step of a call, below that of its round."""
        return self._steps.start(
            "tool",
            f"CALL {call['name']}",
            parent=round_step.id,
            detail=str(call.get("arguments", "")),
        )

    def _toolset(self) -> Toolset:
        """Return the tools that run here, within the time that is left."""
        limits = self._settings.limits
        seconds_left = self._totals.seconds_left
        if seconds_left is not None:
            batch_seconds = min(limits.batch_seconds, seconds_left)
            limits = limits._replace(batch_seconds=batch_seconds)
        return Toolset(
            self._tools,
            self._approver,
            limits,
            self._log,
            failure_text=TOOL_FAILED_TEXT,
        )

    async def _ask_person(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        """Say whether a person allows a call, or has allowed it."""
        if self._is_permitted(name, arguments):
            return True
        if self._settings.asks_in_chat:
            confirmation = compute_confirmation_id(call_id, name, arguments)
            decision = self._decisions.pop(confirmation, "deny")  # it counts once
            return decision != "deny"
        ask = self._settings.approver.ask
        with self._totals.pause():
            return ask is not None and await ask(call_id, name, arguments)

    def _resolve_for_rules(self, call: Item) -> Item:
        """Return the call to apply the rules to: that of the tool that will run.

        If the rules are stricter for the tool that passes it on, they win.
        """
        if call["name"] in self._own_names:
            return call
        return max(resolve_host_call(call), call, key=self._strictness)

    def _strictness(self, call: Item) -> int:
        """Return a number that is higher for a stricter rule."""
        return _RULES_BY_STRICTNESS.index(self._approver.rule_for(call["name"]))

    def _add_permission(self, call: Item) -> None:
        """Remember that a person allowed calls like this one for the whole chat."""
        resolved = self._resolve_for_rules(call)
        with suppress(ValueError):
            request = build_confirmation_request(resolved, chat=self._chat)
            decision = self._decisions.get(request.confirmation_id)
            if request.coverage and decision == "chat":
                self.new_permissions.add(
                    compute_permission(self._chat, request.tool_name, request.args)
                )

    def _is_permitted(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a person allowed calls like this one for the whole chat."""
        permission = compute_permission(self._chat, name, arguments)
        return permission in self._permissions | self.new_permissions

    def _lacks_approval(self, call: Item) -> bool:
        """Say whether a call needs an approval that was not given for the chat."""
        resolved = self._resolve_for_rules(call)
        name = resolved["name"]
        return self._needs_approval(name) and not self._is_permitted(
            name, parse_arguments(resolved)
        )

    def _must_ask(self, call: Item) -> bool:
        """Say whether the host has to ask a person about a call."""
        if not (self._settings.asks_in_chat and self._lacks_approval(call)):
            return False
        return build_confirmation_request(call).confirmation_id not in self._decisions

    def _needs_approval(self, name: str) -> bool:
        return self._approver.rule_for(name) == "ask"


def _output_text(result: ToolResult) -> str:
    """Return the text of an output, without its pictures."""
    if isinstance(result.output, str):
        return result.output
    return "\n".join(part_text(part) for part in result.output)
