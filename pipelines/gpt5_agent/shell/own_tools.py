"""The agent's own tools for one answer: those of the sandbox.

Only the sandbox files of a chat are kept between answers, for a limited time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from gpt5_agent.ports import Tool
from gpt5_agent.shell.host_files import HostFiles
from gpt5_agent.shell.json_valves import read_sandbox_options
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.execution import MAX_TOOL_FILE_BYTES
from openai_responses.clock import monotonic_seconds
from openai_responses.errors import InvalidRequest
from openai_responses.recent_texts import RecentTexts
from openai_responses.redaction import describe_exception
from toolbox.sandbox.backend import MEBIBYTE, SandboxLimits
from toolbox.sandbox.tools import SandboxTools
from toolbox.sandbox.workspaces import SandboxFile


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
    bytes_left = MAX_TOOL_FILE_BYTES
    for file in files:
        content = _read_content(file, bytes_left)
        if content is None:
            text = f"{file.name} is not shown: files of one call may have 5 MB in all."
            yield {"type": "text", "text": text}
            continue
        bytes_left -= len(content)
        yield {
            "type": "blob",
            "data": content,
            "mimeType": file.media_type,
            "name": file.name,
        }


def _read_content(file: SandboxFile, max_bytes: int) -> bytes | None:
    """Return the content of a file; None if it is gone or too large."""
    try:
        with file.path.open("rb") as opened:
            content = opened.read(max_bytes + 1)
    except OSError:
        return None
    return content if len(content) <= max_bytes else None


def hourly_texts() -> RecentTexts:
    """Return texts that are new again after an hour."""
    return RecentTexts(_read_fast_clock)


def _read_fast_clock() -> float:
    """Return the time of a clock whose day, for which texts are kept, is an hour."""
    return 24 * monotonic_seconds()


def open_host_files(
    valves: Valves, user_id: str, files: Sequence[tuple[str, str]], log: AgentLog
) -> HostFiles:
    """Return the attached `files` of a chat, by id and name; `log` hides the key.

    A key that cannot be read is none: it must not cost the answer.
    """
    try:
        key = reveal_secret(valves.OPEN_WEBUI_API_KEY, "OPEN_WEBUI_API_KEY")
    except InvalidRequest:
        key = ""
    log.hide(key)
    return HostFiles(valves.OPEN_WEBUI_URL, key, user_id, files)


_MAX_SANDBOXES = 4
"""Sandboxes of earlier valves stay for the answers that use them."""


class OwnToolPool:
    """What all answers of a pipeline share; everything is opened on first use."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._sandboxes: dict[tuple[SandboxLimits, str], SandboxTools] = {}

    async def open_tools(
        self, valves: Valves, chat: str, log: AgentLog, files: HostFiles
    ) -> tuple[Tool, ...]:
        """Return the tools of an answer; a sandbox that cannot be used offers none."""
        if not valves.SANDBOX:
            return ()
        sandbox = self._open_sandbox(valves)
        await self._close_oldest()
        try:
            specs = await sandbox.specs()
        except Exception as error:  # an answer without Python is better than none
            reason = describe_exception(error)
            log.warn(f"The tools of the sandbox are not offered: {reason}")
            return ()
        return tuple(
            _SandboxTool(
                spec["name"],
                spec["description"],
                spec["parameters"],
                sandbox,
                chat,
                files,
            )
            for spec in specs
        )

    async def close(self) -> None:
        """End all runs, and remove the files of the chats."""
        for sandbox in self._sandboxes.values():
            await sandbox.close()

    async def _close_oldest(self) -> None:
        """Close the sandbox of the earliest settings if there are too many."""
        if len(self._sandboxes) > _MAX_SANDBOXES:
            oldest = next(iter(self._sandboxes))
            await self._sandboxes.pop(oldest).close()

    def _open_sandbox(self, valves: Valves) -> SandboxTools:
        """Return the sandbox with the limits and packages of the valves."""
        limits = _build_sandbox_limits(valves)
        wheels = read_sandbox_options(valves).wheels.strip()
        key = (limits, wheels)
        if key not in self._sandboxes:
            # Its log outlives the answer that needed it first.
            log = AgentLog("sandbox")
            self._sandboxes[key] = SandboxTools(limits, wheels, log.warn)
        return self._sandboxes[key]


def _build_sandbox_limits(valves: Valves) -> SandboxLimits:
    """Return the limits of the valves, in seconds, bytes and characters."""
    options = read_sandbox_options(valves)
    disk = options.disk_mb * MEBIBYTE
    return SandboxLimits(
        seconds=options.seconds,
        memory=options.memory_mb * MEBIBYTE,
        disk=disk,
        file=disk,
        output=valves.TOOL_OUTPUT_CHARACTERS,
    )
