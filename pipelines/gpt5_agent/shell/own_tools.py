"""The agent's own tools for one answer: tools of other servers, tools of the sandbox.

Only the sandbox files of a chat are kept between answers, for a limited time.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from gpt5_agent.ports import Tool
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.settings import PipelineCaller
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.execution import MAX_TOOL_FILE_BYTES
from openai_responses.clock import RecentTexts, monotonic_seconds
from openai_responses.errors import InvalidRequest
from openai_responses.redaction import describe_exception
from toolbox.host_files import HostFiles
from toolbox.sandbox.backend import MEBIBYTE, SandboxLimits
from toolbox.sandbox.tools import SandboxTools
from toolbox.sandbox.workspaces import SandboxFile
from toolbox.server_entries import ToolServerSettings
from toolbox.tool_servers import ToolServers


class _SandboxTool(NamedTuple):
    """One tool of the sandbox; `chat` selects the workspace."""

    name: str
    description: str
    args: Mapping[str, Any]
    sandbox: SandboxTools
    chat: str
    files: HostFiles

    async def execute(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run it with the attached files there; return the text, then the files."""
        problems = []
        for file_id, name in self.files.attached:
            read = partial(self.files.read, file_id)
            received = await self.sandbox.receive(self.chat, file_id, name, read)
            if received.failed:
                problems.append(f"{name} is not there. {received.text}")
        result = await self.sandbox.call(self.chat, self.name, args)
        text = {"type": "text", "text": "\n".join([result.text, *problems])}
        content = [text, *_build_file_parts(result.files)]
        return {"isError": result.failed, "content": content}


def _build_file_parts(files: Iterable[SandboxFile]) -> Iterator[dict[str, Any]]:
    """Yield the files as parts, together no larger than one file may be.

    A file that a later run has removed is left out.
    """
    left = MAX_TOOL_FILE_BYTES
    for file in files:
        content = _read_content(file, left)
        if content is None:
            text = f"{file.name} is not shown: files of one call may have 5 MB in all."
            yield {"type": "text", "text": text}
            continue
        left -= len(content)
        part = {"type": "blob", "data": content, "mimeType": file.media_type}
        yield {**part, "name": file.name}


def _read_content(file: SandboxFile, most: int) -> bytes | None:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(most + 1)
    except OSError:
        return None
    return content if len(content) <= most else None


def read_server_settings(
    mcp: str, openapi: str, *, allows_programs: bool
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


def hourly_texts() -> RecentTexts:
    """Return texts that are new again after an hour."""
    return RecentTexts(lambda: 24 * monotonic_seconds())  # they are kept for a day


def open_host_files(valves: Valves, caller: PipelineCaller, log: AgentLog) -> HostFiles:
    """Return the files of a chat; `log` hides the key."""
    key = _reveal_or_none(valves.OPEN_WEBUI_API_KEY) or ""
    log.hide([key])
    return HostFiles(valves.OPEN_WEBUI_URL, key, caller.user_id, caller.files)


class OwnToolPool:
    """What all answers of a pipeline share; everything is opened on first use."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._servers = ToolServers()
        self._sandboxes: dict[tuple[SandboxLimits, str], SandboxTools] = {}
        self._logged = hourly_texts()

    @asynccontextmanager
    async def open_tools(
        self,
        valves: Valves,
        chat: str,
        log: AgentLog,
        files: HostFiles,
        tell: Callable[[str], object] = str,
    ) -> AsyncGenerator[tuple[Tool, ...], None]:
        """Lend the tools of an answer; `log` hides secrets. Raises InvalidRequest.

        The answer goes on without a server that has a problem; `tell` is given it.
        """
        servers = read_server_settings(
            valves.MCP_SERVERS_JSON,
            valves.OPENAPI_SERVERS_JSON,
            allows_programs=valves.ALLOW_STDIO,
        )
        entries = (entry for read in servers.read_entries() for entry in read.entries)
        log.hide(secret for entry in entries for secret in entry.secrets)
        sandbox_tools = await self._sandbox_tools(valves, chat, log, files)
        names = {tool.name for tool in sandbox_tools}
        async with self._servers.open_tools(servers) as opened:
            for remark in (*opened.problems, *opened.remarks):
                if self._logged.first_time(remark):
                    log.warn(remark)
            for problem in opened.problems:
                tell(f"Tools are missing: {problem}")
            remote = [tool for tool in opened.tools if tool.name not in names]
            yield (*sandbox_tools, *remote)

    async def close(self) -> None:
        """End all runs and sessions, and remove the files of the chats."""
        for sandbox in self._sandboxes.values():
            await sandbox.close()
        await self._servers.close()

    async def _sandbox_tools(
        self, valves: Valves, chat: str, log: AgentLog, files: HostFiles
    ) -> list[_SandboxTool]:
        if not valves.SANDBOX:
            return []
        key = (_build_sandbox_limits(valves), valves.SANDBOX_WHEELS.strip())
        if key not in self._sandboxes:
            # Its log outlives the answer that needed it first.
            self._sandboxes[key] = SandboxTools(*key, AgentLog("sandbox").warn)
        sandbox = self._sandboxes[key]
        try:
            specs = await sandbox.specs()
        except Exception as error:  # an answer without Python is better than none
            reason = describe_exception(error)
            log.warn(f"The tools of the sandbox are not offered: {reason}")
            return []
        own = (sandbox, chat, files)
        return [
            _SandboxTool(spec["name"], spec["description"], spec["parameters"], *own)
            for spec in specs
        ]


def _build_sandbox_limits(valves: Valves) -> SandboxLimits:
    disk = valves.SANDBOX_DISK_MB * MEBIBYTE
    return SandboxLimits(
        seconds=valves.SANDBOX_SECONDS,
        memory=valves.SANDBOX_MEMORY_MB * MEBIBYTE,
        disk=disk,
        file=disk,
        output=valves.TOOL_OUTPUT_CHARACTERS,
    )
