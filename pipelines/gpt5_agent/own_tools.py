"""The agent's own tools, called by name."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gpt5_agent.files import read_tool_file
from gpt5_agent.ports import Tool
from gpt5_agent.results import tool_answer
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.loop.tools import ToolResult


class PortTools:
    """Tools of the port; `names` are theirs."""

    def __init__(self, tools: Sequence[Tool], root: str) -> None:
        """Read files that a tool names below `root` alone."""
        self._tools = {tool.name: tool for tool in tools}
        self._read_file = partial(read_tool_file, root=root)

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(self._tools)

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for no such tool."""
        tool = self._tools.get(name)
        return None if tool is None else tool.args

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the call itself: no tool stands for another."""
        return name, arguments

    def is_interactive(self, _name: str) -> bool:
        """Say that no tool's time is a person's."""
        return False

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; a file that may not be read is a failure of the tool."""
        result = await self._tools[name].execute(arguments)
        try:
            return tool_answer(result, self._read_file)
        except InvalidRequest as refused:
            return ToolResult(f"tool invoke error: {refused}", failed=True)


def tool_spec(tool: Tool) -> Item:
    """Return a tool as Open WebUI describes one."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.args),
    }
