"""The calls of one round: refused, put to a person, run here, or left to the host."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

from gpt5_agent.agent.accounting import RunTotals, StepLog
from gpt5_agent.agent.preparation import PreparedRun
from gpt5_agent.agent.transcript import Transcript
from gpt5_agent.events import AgentEvent, StateChanged, StepStarted
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.confirmations import (
    MAX_QUESTIONS,
    Confirmations,
    build_confirmation_request,
    build_question_call,
)
from gpt5_agent.tools.guard import (
    CallGuard,
    GuardedTools,
    parse_arguments,
    resolve_host_call,
)
from openai_responses.items import Item
from openai_responses.loop.tools import (
    Approval,
    ToolResult,
    Toolset,
    run_calls,
    tool_error,
)
from owui_chat.host_tools import CALL_TOOL

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
    """Decides about the calls of a run, and runs those that are ours."""

    def __init__(
        self, asked: AgentRequest, prepared: PreparedRun, totals: RunTotals
    ) -> None:
        """Start with the failures and the approvals of earlier rounds."""
        self._own = asked.own_tools
        self._log = asked.log
        self._tools = prepared.own_tools
        self._host_schemas = prepared.host_schemas
        self._totals = totals
        self._confirmations = Confirmations(prepared.earlier_rounds.answers)
        self._guard = CallGuard(self._schema)
        for call in prepared.earlier_rounds.failed:
            self._guard.record_failed_call(call)
        self._approver = replace(
            asked.own_tools.approver, ask=self._ask_person, log=asked.log
        )

    @property
    def may_ask(self) -> bool:
        """Whether a call may need an approval that the host asks for."""
        names = (*self._tools.names, *self._host_schemas)
        passes_on = CALL_TOOL in self._host_schemas and self._approver.may_ask
        asks = passes_on or any(map(self._needs_approval, names))
        return self._own.asks_in_chat and asks

    def failed_calls(self) -> list[Item]:
        """Return the calls that failed, for later rounds."""
        return self._guard.failed_calls()

    async def decide(self, calls: Sequence[Item], limit: str) -> CallDecisions:
        """Return what happens to the calls; with a `limit` all are refused.

        No approval is requested for a call that cannot be made.
        """
        refused: dict[str, ToolResult] = {}
        for call in calls:
            why = limit.replace("{tool}", call["name"]) or self._guard.refusal(call)
            if why:
                refused[call["call_id"]] = ToolResult(why, failed=True)
        open_calls = [call for call in calls if call["call_id"] not in refused]
        judged = [self._resolve_for_rules(call) for call in open_calls]
        questions = [call for call in judged if self._must_ask(call)]
        if questions:
            shown = tuple(questions[:MAX_QUESTIONS])
            return CallDecisions(tuple(calls), refused, frozenset(), shown)
        left = [call for call in open_calls if call["name"] not in self._tools.names]
        for call in map(self._resolve_for_rules, left):
            why = await self._approver.refusal(
                call["call_id"], call["name"], parse_arguments(call)
            )
            if why:
                refused[call["call_id"]] = tool_error(why)
        ids = frozenset(call["call_id"] for call in left) - refused.keys()
        return CallDecisions(tuple(calls), refused, ids)

    async def run(
        self, found: CallDecisions
    ) -> AsyncGenerator[tuple[Item, ToolResult], None]:
        """Yield the calls that are answered here with their results, in their order."""
        async with aclosing(run_calls(found.made_calls, self._toolset())) as running:
            for call in found.own_calls:
                refused = found.refusals.get(call["call_id"])
                if refused is not None:
                    yield call, refused
                else:
                    yield await anext(running)

    def _toolset(self) -> Toolset:
        limits, left = self._own.limits, self._totals.seconds_left
        if left is not None:
            limits = limits._replace(batch_seconds=min(limits.batch_seconds, left))
        tools = GuardedTools(self._tools, self._guard, self._log)
        return Toolset(tools, self._approver, limits, self._log)

    async def _ask_person(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        if self._own.asks_in_chat:
            return self._confirmations.consume(call_id, name, arguments)
        ask = self._own.approver.ask
        with self._totals.pause():
            return ask is not None and await ask(call_id, name, arguments)

    def _resolve_for_rules(self, call: Item) -> Item:
        """Return the call to apply the rules to: that of the tool that will run.

        If the rules are stricter for the tool that passes it on, they win.
        """
        if call["name"] in self._tools.names:
            return call
        return max(resolve_host_call(call), call, key=self._strictness)

    def _strictness(self, call: Item) -> int:
        return _RULES_BY_STRICTNESS.index(self._approver.rule_for(call["name"]))

    def _must_ask(self, call: Item) -> bool:
        if not (self._own.asks_in_chat and self._needs_approval(call["name"])):
            return False
        arguments = parse_arguments(call)
        return not self._confirmations.has_answer(
            call["call_id"], call["name"], arguments
        )

    def _needs_approval(self, name: str) -> bool:
        return self._own.approver.rule_for(name) == "ask"

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        own = self._tools.parameters(name)
        return self._host_schemas.get(name) if own is None else own


class CallEvents:
    """Answers calls and reports each of them."""

    def __init__(
        self,
        round_calls: RoundCalls,
        steps: StepLog,
        transcript: Transcript,
        totals: RunTotals,
    ) -> None:
        """Write outputs to `transcript`, their number to `totals`."""
        self._round_calls = round_calls
        self._steps = steps
        self._transcript = transcript
        self._totals = totals

    def ask(self, found: CallDecisions) -> Iterator[AgentEvent]:
        """Yield the approval requests; the host shows a card for them."""
        requests = [build_confirmation_request(call) for call in found.questions]
        yield from requests
        yield from self._transcript.build_call_events(build_question_call(requests))
        yield StateChanged("waiting_for_confirmation")

    def show_calls(self, found: CallDecisions) -> Iterator[AgentEvent]:
        """Yield the calls that the host was not shown before."""
        for call in found.calls:
            yield from self._transcript.build_call_events(call)

    async def run(
        self, found: CallDecisions, round_step: StepStarted
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer our calls; yield each with its step of the log."""
        self._totals.calls += len(found.calls)
        if found.made_calls:
            yield StateChanged("executing_tool")
        steps: dict[str, StepStarted] = {}
        for call in found.made_calls:
            step = self._steps.start(
                "tool",
                f"CALL {call['name']}",
                parent=round_step.id,
                detail=str(call.get("arguments", "")),
            )
            steps[call["call_id"]] = step
            yield step
        async with aclosing(self._round_calls.run(found)) as answers:
            async for call, answer in answers:
                yield self._transcript.add_output(call, answer)
                if call["call_id"] in steps:
                    yield self._steps.end(
                        steps[call["call_id"]],
                        failed=answer.failed,
                        detail=str(answer.output),
                    )
        if found.host_call_ids:
            yield StateChanged("waiting_for_tools")
