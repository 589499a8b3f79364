"""A call of a tool: the workspace that it uses, and where its files go."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from owui_sandbox.host import (
    HostLacks,
    SandboxUpload,
    add_to_message,
    find_saved_message,
    read_user_file,
    store_for_user,
)
from toolbox.sandbox.tools import SandboxTools
from toolbox.sandbox.workspaces import SandboxFile, WorkspaceKey

EmitEvent = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends an event to the page of whoever asked."""


class AttachedFile(NamedTuple):
    """A file that the user attached to the chat."""

    id: str
    name: str


class SandboxCall(NamedTuple):
    """Who calls, from which chat, as Open WebUI says it."""

    user_id: str
    chat_id: str
    message_id: str
    attached: tuple[AttachedFile, ...]
    request: Any
    emit: EmitEvent | None

    @property
    def key(self) -> WorkspaceKey:
        """The workspace of the chat; without chat or user each call has a new one."""
        return WorkspaceKey(self.user_id, self.chat_id if self.user_id else "")


def read_sandbox_call(
    user: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    request: Any,
    emit: EmitEvent | None,
) -> SandboxCall:
    """Return the call that Open WebUI's reserved parameters describe."""
    known = metadata or {}
    return SandboxCall(
        user_id=str((user or {}).get("id") or ""),
        chat_id=str(known.get("chat_id") or ""),
        message_id=str(known.get("message_id") or ""),
        attached=tuple(_read_attached(known.get("files"))),
        request=request,
        emit=emit,
    )


def _read_attached(files: object) -> Iterator[AttachedFile]:
    """Yield the files of Open WebUI's metadata; notes and collections are none."""
    if not isinstance(files, list):
        return
    for file in files:
        match file:
            case {"type": "file", "id": str(file_id), "name": str(name)}:
                yield AttachedFile(file_id, name)


async def receive_attached(sandbox: SandboxTools, call: SandboxCall) -> list[str]:
    """Put the attached files into the workspace, each once; return what failed."""
    notes: list[str] = []
    for file in call.attached:
        read = partial(_read_attached_file, file.id, call.user_id)
        received = await sandbox.receive(call.key, file.id, file.name, read)
        if received.failed:
            notes.append(f"{file.name} is not in the workspace. {received.text}")
    return notes


async def _read_attached_file(file_id: str, user_id: str) -> bytes | str:
    """Return the content of a file, or why there is none."""
    try:
        content = await read_user_file(file_id, user_id)
    except HostLacks as missing:
        return str(missing)
    return "It cannot be read." if content is None else content


async def give_files(call: SandboxCall, files: Sequence[SandboxFile]) -> list[str]:
    """Store files for whoever asked, and show them; return what could not be done."""
    if not files:
        return []
    if call.request is None or call.emit is None:
        return ["There is no page that could show files to the user."]
    try:
        return await _store_and_show(call, call.emit, files)
    except HostLacks as missing:
        return [f"The user does not see the files. {missing}"]


async def _store_and_show(
    call: SandboxCall, emit: EmitEvent, files: Iterable[SandboxFile]
) -> list[str]:
    """Do so; return which files the host refused. Raises HostLacks."""
    message = await find_saved_message(call.chat_id, call.message_id, call.user_id)
    entries: list[dict[str, Any]] = []
    refused: list[str] = []
    for file in files:
        upload = SandboxUpload(file.name, file.media_type, file.path.read_bytes())
        entry = await store_for_user(call.request, upload, message, call.user_id)
        if entry is None:
            refused.append(file.name)
        else:
            entries.append(entry)
    if entries:
        shown = await add_to_message(message, entries)
        await emit({"type": "chat:message:files", "data": {"files": shown}})
    if refused:
        names = ", ".join(refused)
        return [f"Open WebUI did not store {names}, so the user does not see it."]
    return []
