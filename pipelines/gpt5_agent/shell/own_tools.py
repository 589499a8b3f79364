"""The agent's own tools for one answer: tools of other servers, tools of the sandbox.

Only the sandbox files of a chat are kept between answers, for a limited time.
"""

import base64
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gpt5_agent.ports import Tool
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.execution import MAX_TOOL_FILE_BYTES
from openai_responses.errors import InvalidRequest
from toolbox.sandbox.backend import MEBIBYTE, SandboxLimits
from toolbox.sandbox.tools import SandboxTools
from toolbox.sandbox.workspaces import SandboxFile
from toolbox.server_entries import ToolServerSettings
from toolbox.tool_servers import ToolServers


@dataclass(frozen=True, slots=True)
class SandboxTool:
    """One tool of the sandbox; `chat` selects the workspace."""

    name: str
    description: str
    args: Mapping[str, Any]
    sandbox: SandboxTools = field(repr=False)
    chat: str = field(repr=False)

    async def execute(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run it; return the text, then the files."""
        answer = await self.sandbox.call(self.chat, self.name, args)
        parts = [
            {"type": "text", "text": answer.text},
            *_build_file_parts(answer.files),
        ]
        return {"isError": answer.failed, "content": parts}


def _build_file_parts(files: Iterable[SandboxFile]) -> list[dict[str, Any]]:
    """Return the files as parts, together no larger than one file may be.

    The host keeps them in the chat. A file that a later run has removed is left out.
    """
    parts: list[dict[str, Any]] = []
    left = MAX_TOOL_FILE_BYTES
    for file in files:
        content = _read_content(file, left)
        if content is None:
            told = f"{file.name} is not shown: files of one call may have 5 MB in all."
            parts.append({"type": "text", "text": told})
            continue
        left -= len(content)
        encoded = base64.b64encode(content).decode("ascii")
        part = {"type": "blob", "data": encoded, "mimeType": file.media_type}
        parts.append({**part, "name": file.name})
    return parts


def _read_content(file: SandboxFile, most: int) -> bytes | None:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(most + 1)
    except OSError:
        return None
    return content if len(content) <= most else None


def build_server_settings(
    mcp: str, openapi: str, *, allows_programs: bool = False
) -> ToolServerSettings:
    """Return the servers; raises InvalidRequest if a whole valve cannot be read."""
    return ToolServerSettings(
        reveal_secret(mcp, "MCP_SERVERS_JSON"),
        reveal_secret(openapi, "OPENAPI_SERVERS_JSON"),
        allows_programs,
        _reveal_or_none,
    )


def _reveal_or_none(text: str) -> str | None:
    """Return a secret, or None: only the entry that needs it is then left out."""
    try:
        return reveal_secret(text, "an entry")
    except InvalidRequest:
        return None


_SandboxKey = tuple[SandboxLimits, str]


class OwnToolPool:
    """What all answers of a pipeline share; everything is opened on first use."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._servers = ToolServers()
        self._sandboxes: dict[_SandboxKey, SandboxTools] = {}

    @asynccontextmanager
    async def open_tools(
        self, valves: Valves, chat: str, log: AgentLog
    ) -> AsyncGenerator[tuple[Tool, ...], None]:
        """Lend the tools of an answer; raises InvalidRequest.

        Problems of a server are logged, and the answer goes on without it.
        """
        sandboxed = await self._sandbox_tools(valves, chat)
        taken = {tool.name for tool in sandboxed}
        async with self._servers.open_tools(read_server_settings(valves)) as lent:
            for complaint in lent.problems:
                log.warn(complaint)
            remote = [tool for tool in lent.tools if tool.name not in taken]
            yield (*remote, *sandboxed)

    async def close(self) -> None:
        """End what runs, close the sessions, remove the files of the chats."""
        for sandbox in self._sandboxes.values():
            await sandbox.close()
        await self._servers.close()

    async def _sandbox_tools(self, valves: Valves, chat: str) -> list[SandboxTool]:
        if not valves.SANDBOX:
            return []
        wish = (_build_sandbox_limits(valves), valves.SANDBOX_WHEELS.strip())
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


def read_server_settings(valves: Valves) -> ToolServerSettings:
    """Return the servers that the valves name; raises InvalidRequest."""
    return build_server_settings(
        valves.MCP_SERVERS_JSON,
        valves.OPENAPI_SERVERS_JSON,
        allows_programs=valves.ALLOW_STDIO,
    )


def list_server_secrets(servers: ToolServerSettings) -> list[str]:
    """Return what is sent to servers and must be in no line of the log."""
    found = [entry for read in servers.read_entries() for entry in read.entries]
    return [secret for entry in found for secret in entry.secrets]


def _build_sandbox_limits(valves: Valves) -> SandboxLimits:
    return SandboxLimits(
        seconds=valves.SANDBOX_SECONDS,
        memory=valves.SANDBOX_MEMORY_MB * MEBIBYTE,
        disk=valves.SANDBOX_DISK_MB * MEBIBYTE,
        file=valves.SANDBOX_DISK_MB * MEBIBYTE,
        output=valves.TOOL_OUTPUT_CHARACTERS,
    )
