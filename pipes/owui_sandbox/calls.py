"""A call of a tool: the workspace that it uses, and where its files go."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from owui_host.files import read_file, readable_file, store_file
from owui_host.lookup import HostTooOld
from owui_host.users import user_model
from owui_sandbox.host import add_to_message, find_saved_message
from sandbox.backend import MEBIBYTE
from sandbox.tools import OfferedFile, SandboxTools
from sandbox.workspaces import SandboxFile, WorkspaceKey

EmitEvent = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends an event to the page of whoever asked."""


class SandboxCall(NamedTuple):
    """Who calls, from which chat, as Open WebUI says it."""

    user_id: str
    chat_id: str
    message_id: str
    attached: tuple[tuple[str, str], ...]
    """The ids and names of files."""
    request: Any
    emit: EmitEvent | None

    @property
    def key(self) -> WorkspaceKey:
        """The workspace of the chat; without chat or user each call has a new one."""
        if not self.user_id:
            return WorkspaceKey("", "")
        return WorkspaceKey(self.user_id, self.chat_id)


def read_sandbox_call(
    user: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    request: Any,
    emit: EmitEvent | None,
) -> SandboxCall:
    """Return the call that Open WebUI's reserved parameters describe."""
    known = metadata or {}
    files = known.get("files")
    attached: list[tuple[str, str]] = []
    for file in files if isinstance(files, list) else ():
        match file:  # notes and collections are skipped
            case {"type": "file", "id": str(file_id), "name": str(name)}:
                attached.append((file_id, name))
    return SandboxCall(
        user_id=str((user or {}).get("id") or ""),
        chat_id=str(known.get("chat_id") or ""),
        message_id=str(known.get("message_id") or ""),
        attached=tuple(attached),
        request=request,
        emit=emit,
    )


async def receive_attached(sandbox: SandboxTools, call: SandboxCall) -> list[str]:
    """Put the attached files into the workspace, each once; return what is missing."""
    offered: list[OfferedFile] = []
    for file_id, name in call.attached:
        read = partial(
            _read_attached_file, file_id, call.user_id, sandbox.max_file_bytes
        )
        offered.append(OfferedFile(file_id, name, read))
    return await sandbox.receive(call.key, offered)


async def _read_attached_file(
    file_id: str, user_id: str, max_bytes: int
) -> bytes | str:
    """Return the content of a file, or why there is none."""
    try:
        stored = await readable_file(file_id, await user_model(user_id))
        if stored is not None and stored.size > max_bytes:
            return _too_large_message(max_bytes)
        # The host may not know the size. One byte more tells that the file is longer.
        content = await read_file(stored, bytes, max_bytes + 1)
    except HostTooOld as missing:
        return str(missing)
    except Exception as error:  # the host's database is away
        return f"It cannot be read: Open WebUI reports a {type(error).__name__}."
    if content is None:
        return "It cannot be read."
    if len(content) > max_bytes:
        return _too_large_message(max_bytes)
    return content


def _too_large_message(max_bytes: int) -> str:
    megabytes = max_bytes // MEBIBYTE
    return f"It is larger than {megabytes} MB, the limit of a workspace."


async def give_files(call: SandboxCall, files: Sequence[SandboxFile]) -> list[str]:
    """Store files for whoever asked, and show them; return what could not be done."""
    if not files:
        return []
    if call.request is None or call.emit is None:
        return ["There is no page that could show files to the user."]
    entries: list[dict[str, Any]] = []
    refused: list[str] = []
    try:
        user = await user_model(call.user_id)
        message = await find_saved_message(call.chat_id, call.message_id, call.user_id)
        for file in files:
            entry = None
            if user is not None:
                content = await asyncio.to_thread(file.path.read_bytes)
                entry = await store_file(
                    call.request, file.name, content, message, user
                )
            if entry is None:
                refused.append(file.name)
            else:
                entries.append(entry)
        if entries:
            shown = await add_to_message(message, entries)
            await call.emit({"type": "chat:message:files", "data": {"files": shown}})
    except HostTooOld as missing:
        return [f"The user does not see the files. {missing}"]
    except Exception as error:  # the host's database or its storage is away
        kind = type(error).__name__
        return [f"The user does not see the files. Open WebUI reports a {kind}."]
    if refused:
        names = ", ".join(refused)
        return [f"Open WebUI did not store {names}, so the user does not see it."]
    return []
