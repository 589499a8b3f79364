"""The agent's own tools for one answer: those of the sandbox.

Only the sandbox files of a chat are kept between answers, for a limited time. If they
are gone although the chat shows earlier calls, the model is told.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gpt5_agent.ports import Tool
from gpt5_agent.shell.host_files import HostFiles
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import pipelines_folder, reveal_secret
from gpt5_agent.shell.valves import Valves, ValveSettings
from gpt5_agent.tools.confirmations import read_tool_calls
from openai_responses.endpoint import bare_key
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import as_mapping, value_at
from openai_responses.redaction import describe_exception
from owui_chat.files import MAX_TOOL_FILE_BYTES
from sandbox.backend import SandboxLimits
from sandbox.options import build_sandbox_limits
from sandbox.sandboxes import Sandboxes
from sandbox.tools import OfferedFile, SandboxTools
from sandbox.workspaces import WorkspaceKey, WorkspacePool

TERMINAL_WORKSPACE = WorkspaceKey("", "terminal")
_WORKSPACE_LOST = (
    "The workspace was emptied since the last call in this chat, because it was not "
    "used for long or the server was restarted: files that earlier calls wrote are "
    "gone."
)


@dataclass(frozen=True, slots=True)
class _SandboxTool:
    """One tool of the sandbox, in the workspace of a chat."""

    name: str
    description: str
    args: Mapping[str, Any]
    sandbox: SandboxTools
    key: WorkspaceKey
    files: HostFiles
    was_used: bool
    """Whether the chat shows earlier calls, whose files should be there."""

    async def execute(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run it with the attached files there; return the text, then the files."""
        notes = []
        if self.was_used and not self.sandbox.has_workspace(self.key):
            notes.append(_WORKSPACE_LOST)
        offered = [
            OfferedFile(file_id, file_name, partial(self.files.read, file_id))
            for file_id, file_name in self.files.attached
        ]
        notes += await self.sandbox.receive(self.key, offered)
        result = await self.sandbox.call(self.key, self.name, args)
        text = "\n".join([result.text, *notes])
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]

        # The files together may be as large as one.
        bytes_left = MAX_TOOL_FILE_BYTES
        for file in result.files:
            data = b""
            why_not = ""
            try:
                with file.path.open("rb") as opened:
                    data = opened.read(bytes_left + 1)
            except OSError:
                why_not = "later calls have removed it."
            if len(data) > bytes_left:
                why_not = "files of one call may have 5 MB in all."
            if why_not:
                text = f"{file.name} is not shown: {why_not}"
                content.append({"type": "text", "text": text})
                continue
            bytes_left -= len(data)
            content.append(
                {
                    "type": "blob",
                    "data": data,
                    "mimeType": file.media_type,
                    "name": file.name,
                }
            )
        return {"isError": result.failed, "content": content}


class OwnToolOffer(NamedTuple):
    """The tools of an answer; `problems` are for administrators."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


NO_OFFER = OwnToolOffer()


def open_host_files(
    valves: Valves, user_id: str, files: Sequence[tuple[str, str]], log: AgentLog
) -> HostFiles:
    """Return the attached `files` of a chat, by id and name; `log` hides the key.

    A key that cannot be read is none: it must not cost the answer.
    """
    try:
        key = bare_key(reveal_secret(valves.OPEN_WEBUI_API_KEY, "OPEN_WEBUI_API_KEY"))
    except InvalidRequest:
        key = ""
    log.hide(key)
    return HostFiles(valves.OPEN_WEBUI_URL, key, user_id, files)


class OwnToolPool:
    """What all answers of a pipeline share; everything is opened on first use.

    The workspaces do not depend on the valves: a chat keeps its files when an
    administrator changes the limits.
    """

    def __init__(self) -> None:
        self._workspaces = WorkspacePool()
        self._sandboxes = Sandboxes(_make_agent_sandbox, self._workspaces)

    @asynccontextmanager
    async def lend_tools(
        self,
        settings: ValveSettings,
        key: WorkspaceKey,
        log: AgentLog,
        files: HostFiles,
        messages: Sequence[Mapping[str, Any]] = (),
    ) -> AsyncGenerator[OwnToolOffer, None]:
        """Lend the tools of an answer to `messages`; without a sandbox say why not."""
        if not settings.valves.SANDBOX:
            yield NO_OFFER
            return
        output = settings.valves.TOOL_OUTPUT_CHARACTERS
        limits = build_sandbox_limits(settings.sandbox, output)
        options = (limits, settings.sandbox.wheels)
        async with self._sandboxes.lend(options) as sandbox:
            try:
                specs = await sandbox.specs()
            except Exception as error:  # an answer without Python is better than none
                reason = describe_exception(error)
                problem = f"The tools of the sandbox are not offered: {reason}"
                log.warn(problem)
                offer = OwnToolOffer(problems=(problem,))
            else:
                names = {spec["name"] for spec in specs}
                called = {
                    str(value_at(call, "function", "name"))
                    for message in messages
                    # One that is no object is refused when the request is prepared.
                    for call in read_tool_calls(as_mapping(message))
                }
                was_used = not names.isdisjoint(called)
                tools = [
                    _SandboxTool(
                        name=spec["name"],
                        description=spec["description"],
                        args=spec["parameters"],
                        sandbox=sandbox,
                        key=key,
                        files=files,
                        was_used=was_used,
                    )
                    for spec in specs
                ]
                offer = OwnToolOffer(tuple(tools), tuple(sandbox.problems))
            yield offer

    async def close(self) -> None:
        """End all runs, and remove the files of the chats."""
        await self._sandboxes.close()
        await self._workspaces.close()


def _make_agent_sandbox(
    options: tuple[SandboxLimits, str], workspaces: WorkspacePool
) -> SandboxTools:
    """Return the sandbox with the limits and the folder of packages of the valves."""
    limits, wheels = options
    folder = pipelines_folder()  # valves and the key that seals them
    return SandboxTools(
        workspaces,
        limits,
        wheels,
        AgentLog("sandbox").warn,  # it outlives the answer that needed it first
        private={"PIPELINES_DIR": Path(folder)} if folder else {},
    )
