"""The calls of one round: refused, asked for, made here or left to the host."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from gpt5_agent.asked import AgentAsked
from gpt5_agent.confirmations import MOST_QUESTIONS, Confirmations
from gpt5_agent.guard import Guard, GuardedTools, parsed_arguments
from gpt5_agent.ledger import Ledger
from gpt5_agent.meant_calls import DISPATCHER, meant_call
from gpt5_agent.preparation import Prepared
from openai_responses.items import Item
from openai_responses.loop.tools import (
    Approval,
    ToolResult,
    Toolset,
    run_calls,
    tool_error,
)

_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")


@dataclass(frozen=True, slots=True)
class SortedCalls:
    """The calls of a round, under their tools' own names.

    `refused` are the answers of those that are not made, `left` those that the host
    makes. While there are `questions` for a person, calls as they would be run, none is
    made.
    """

    calls: tuple[Item, ...]
    refused: Mapping[str, ToolResult]
    left: frozenset[str]
    questions: tuple[Item, ...] = ()

    @property
    def ours(self) -> list[Item]:
        """The calls that are answered here, in their order."""
        return [call for call in self.calls if call["call_id"] not in self.left]


class Calling:
    """Knows of every call of a run what becomes of it."""

    def __init__(self, asked: AgentAsked, prepared: Prepared, ledger: Ledger) -> None:
        """Begin with what failed, and what a person answered, in earlier rounds."""
        self._own = asked.own
        self._log = asked.log
        self._tools = prepared.own
        self._hosts = prepared.host_schemas
        self._ledger = ledger
        self._confirmations = Confirmations(prepared.earlier.answers)
        self._guard = Guard(self._schema)
        for call in prepared.earlier.failed:
            self._guard.note_failed_call(call)
        self._approver = replace(
            asked.own.approver, ask=self._asked_person, log=asked.log
        )

    @property
    def may_ask(self) -> bool:
        """Whether a call may have to wait for a person whom the host asks."""
        names = (*self._tools.names, *self._hosts)
        passes_on = DISPATCHER in self._hosts and self._approver.may_ask
        asks = passes_on or any(map(self._asks_for, names))
        return self._own.asks_in_chat and asks

    def failed_calls(self) -> list[Item]:
        """Return the calls that failed, for later rounds."""
        return self._guard.failed_calls()

    async def sort(self, calls: Sequence[Item], limit: str) -> SortedCalls:
        """Return what becomes of the calls; with a `limit` none is made.

        Nobody is asked about a call that cannot be made.
        """
        refused: dict[str, ToolResult] = {}
        for call in calls:
            why = limit.replace("{tool}", call["name"]) or self._guard.refusal(call)
            if why:
                refused[call["call_id"]] = ToolResult(why, failed=True)
        open_calls = [call for call in calls if call["call_id"] not in refused]
        judged = [self._judged(call) for call in open_calls]
        questions = [call for call in judged if self._must_ask(call)]
        if questions:
            shown = tuple(questions[:MOST_QUESTIONS])
            return SortedCalls(tuple(calls), refused, frozenset(), shown)
        left = [call for call in open_calls if call["name"] not in self._tools.names]
        for call in map(self._judged, left):
            why = await self._approver.refusal(
                call["call_id"], call["name"], parsed_arguments(call)
            )
            if why:
                refused[call["call_id"]] = tool_error(why)
        ids = frozenset(call["call_id"] for call in left) - refused.keys()
        return SortedCalls(tuple(calls), refused, ids)

    async def answers(
        self, found: SortedCalls
    ) -> AsyncGenerator[tuple[Item, ToolResult], None]:
        """Yield the calls that are answered here with their answers, in their order."""
        made = [call for call in found.ours if call["call_id"] not in found.refused]
        async with aclosing(run_calls(made, self._toolset())) as running:
            for call in found.ours:
                refused = found.refused.get(call["call_id"])
                if refused is not None:
                    yield call, refused
                else:
                    yield await anext(running)

    def _toolset(self) -> Toolset:
        """Return what runs the calls, in no more than the time that is left."""
        limits, left = self._own.limits, self._ledger.seconds_left
        if left is not None:
            limits = replace(limits, batch_seconds=min(limits.batch_seconds, left))
        tools = GuardedTools(self._tools, self._guard, self._log)
        return Toolset(tools, self._approver, limits, self._log)

    async def _asked_person(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        """Return a person's answer: given through the host, or asked for now."""
        if self._own.asks_in_chat:
            return self._confirmations.take(call_id, name, arguments)
        ask = self._own.approver.ask
        with self._ledger.paused():
            return ask is not None and await ask(call_id, name, arguments)

    def _judged(self, call: Item) -> Item:
        """Return the call that the rules are about: of the tool that will run.

        Where they are stricter about the tool that passes it on, that one counts.
        """
        if call["name"] in self._tools.names:
            return call
        return max(meant_call(call), call, key=self._strictness)

    def _strictness(self, call: Item) -> int:
        return _STRICTNESS.index(self._approver.rule_for(call["name"]))

    def _must_ask(self, call: Item) -> bool:
        if not (self._own.asks_in_chat and self._asks_for(call["name"])):
            return False
        arguments = parsed_arguments(call)
        return not self._confirmations.has_answer(
            call["call_id"], call["name"], arguments
        )

    def _asks_for(self, name: str) -> bool:
        return self._own.approver.rule_for(name) == "ask"

    def _schema(self, name: str) -> Mapping[str, Any] | None:
        own = self._tools.parameters(name)
        return self._hosts.get(name) if own is None else own
