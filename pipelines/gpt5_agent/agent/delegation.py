"""The tool `delegate`: a bounded task for a second run of the loop.

A task knows nothing of the chat. It can use tools that run here and need no approval,
but no host's tools, and it cannot delegate. Without any tool to use there are no tasks.
Its steps are shown below the round that began it, and its tokens count for the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpt5_agent.ports import Tool
from gpt5_agent.request import AgentRequest, OwnToolSettings
from openai_responses.json_input import clamp_number
from openai_responses.loop.spending import Spending
from openai_responses.loop.tools import ToolResult, tool_error

DELEGATE = "delegate"
_MAX_TASKS_AT_ONCE = 3
_TASK_SECONDS = 600.0
_DELEGATE_DESCRIPTION = (
    "Give a part of the work to another agent, which knows nothing of this chat and "
    "cannot ask: say all that it needs. Give independent parts at once."
)
_TASK_INSTRUCTION = (
    "You work on one task for another agent. Give the result and what has to be known "
    "about it, nothing else."
)


def task_tools(own_tools: OwnToolSettings) -> list[Tool]:
    """Return the tools that a task may use: it cannot ask anyone.

    Without any there are no tasks, nor where nothing is delegated.
    """
    if not own_tools.delegates:
        return []
    return [
        tool
        for tool in own_tools.tools
        if own_tools.approver.rule_for(tool.name) == "auto"
    ]


RunTask = Callable[[AgentRequest, Spending], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class DelegateTool:
    """Runs tasks with the settings of a request, a few of an answer at once."""

    request: AgentRequest
    tools: Sequence[Tool]
    spending: Spending
    run_task: RunTask
    name: str = DELEGATE
    description: str = _DELEGATE_DESCRIPTION
    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(_MAX_TASKS_AT_ONCE), init=False
    )

    @property
    def args(self) -> Mapping[str, Any]:
        """The schema of the arguments, with the names of the tools."""
        tool_name = {"type": "string", "enum": [tool.name for tool in self.tools]}
        return {
            "type": "object",
            "properties": {
                "task": {"type": "string"},
                "tools": {
                    "type": "array",
                    "items": tool_name,
                    "description": "The tools to use; without it, all.",
                },
                "rounds": {"type": "integer", "minimum": 1},
            },
            "required": ["task"],
        }

    async def execute(self, args: dict[str, Any]) -> ToolResult:
        """Return the answer to a task."""
        # The request of a task: without the chat, with fewer tools.
        own_tools = self.request.own_tools
        parameters = self.request.parameters
        most = parameters.maximum_iterations
        rounds = clamp_number(args.get("rounds"), 1, most, most)
        names: Any = args.get("tools")
        tools = [tool for tool in self.tools if names is None or tool.name in names]
        instruction = f"{parameters.instruction}\n\n{_TASK_INSTRUCTION}".strip()
        request = self.request._replace(
            messages=[{"role": "user", "content": args["task"]}],
            body={},
            parameters=parameters.model_copy(
                update={
                    "instruction": instruction,
                    "context": None,
                    "maximum_iterations": rounds,
                }
            ),
            own_tools=own_tools._replace(
                tools=tools,
                asks_in_chat=False,
                delegates=False,
            ),
            pictures=None,  # a task is one call, which nobody continues
        )
        async with self._slots:
            seconds = _TASK_SECONDS
            if self.spending.seconds_left is not None:
                seconds = min(seconds, self.spending.seconds_left)
            try:
                async with asyncio.timeout(seconds):
                    spending = Spending(request.parameters.budget(), self.spending)
                    return await self.run_task(request, spending)
            except TimeoutError:
                return tool_error("the time of the task is used up.")
