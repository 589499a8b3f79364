"""The agent's own tools, lent to one answer at a time: other servers', a sandbox's.

Nothing of a chat stays here but the files in its sandbox, which are forgotten in time.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gpt5_agent.log import AgentLog
from gpt5_agent.ports import Tool
from gpt5_agent.sandbox_tool import SandboxTool
from gpt5_agent.sealing import revealed
from gpt5_agent.valves import Valves
from openai_responses.errors import InvalidRequest
from toolbox.sandbox import SandboxTools
from toolbox.sandbox_limits import MEBIBYTE, SandboxLimits
from toolbox.tool_servers import NamedServers, ToolServers

_SandboxWish = tuple[SandboxLimits, str]


class Workbench:
    """What all answers of a pipeline share; nothing is opened before it is needed."""

    def __init__(self) -> None:
        """Ask no server, and look for no sandbox."""
        self._servers = ToolServers()
        self._sandboxes: dict[_SandboxWish, SandboxTools] = {}

    @asynccontextmanager
    async def lend(
        self, valves: Valves, chat: str, log: AgentLog
    ) -> AsyncGenerator[tuple[Tool, ...], None]:
        """Lend the tools of an answer; raises InvalidRequest.

        What is wrong with a server is logged, and the answer goes on without it.
        """
        sandboxed = await self._sandbox_tools(valves, chat)
        taken = {tool.name for tool in sandboxed}
        async with self._servers.lend(servers_of(valves)) as lent:
            for complaint in lent.complaints:
                log.warn(complaint)
            remote = [tool for tool in lent.tools if tool.name not in taken]
            yield (*remote, *sandboxed)

    async def close(self) -> None:
        """End what runs, tell the servers, remove the files of the chats."""
        for sandbox in self._sandboxes.values():
            await sandbox.close()
        await self._servers.close()

    async def _sandbox_tools(self, valves: Valves, chat: str) -> list[SandboxTool]:
        if not valves.SANDBOX:
            return []
        wish = (_sandbox_limits(valves), valves.SANDBOX_WHEELS.strip())
        if wish not in self._sandboxes:
            log = AgentLog("sandbox")  # it outlives the answer that wished for it
            self._sandboxes[wish] = SandboxTools(*wish, log.warn)
        sandbox = self._sandboxes[wish]
        return [
            SandboxTool(
                str(spec["name"]),
                str(spec["description"]),
                spec["parameters"],
                sandbox,
                chat,
            )
            for spec in await sandbox.specs()
        ]


def servers_of(valves: Valves) -> NamedServers:
    """Return the servers that the valves name; raises InvalidRequest."""
    mcp, openapi = "MCP_SERVERS_JSON", "OPENAPI_SERVERS_JSON"
    return NamedServers(
        mcp=revealed(valves.MCP_SERVERS_JSON, mcp),
        openapi=revealed(valves.OPENAPI_SERVERS_JSON, openapi),
        allows_programs=valves.ALLOW_STDIO,
        reveal=_readable_secret,
    )


def server_secrets(servers: NamedServers) -> list[str]:
    """Return what is told to servers and must be in no line of the log."""
    found = [entry for read in servers.entries() for entry in read.entries]
    return [secret for entry in found for secret in entry.secrets]


def _readable_secret(stored: str) -> str | None:
    try:
        return revealed(stored, "the entry")
    except InvalidRequest:
        return None


def _sandbox_limits(valves: Valves) -> SandboxLimits:
    return SandboxLimits(
        seconds=valves.SANDBOX_SECONDS,
        memory=valves.SANDBOX_MEMORY_MB * MEBIBYTE,
        disk=valves.SANDBOX_DISK_MB * MEBIBYTE,
        file=valves.SANDBOX_DISK_MB * MEBIBYTE,
        output=valves.TOOL_OUTPUT_CHARACTERS,
    )
