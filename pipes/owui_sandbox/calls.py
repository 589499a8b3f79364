"""A call of a tool: the workspace that it uses, and where its files go."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from owui_sandbox.host import (
    HostLacks,
    SandboxUpload,
    add_to_message,
    find_saved_message,
    store_for_user,
)
from toolbox.sandbox.workspaces import SandboxFile, WorkspaceKey

EmitEvent = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends an event to the page of whoever asked."""


class SandboxCall(NamedTuple):
    """Who calls, from which chat, as Open WebUI says it."""

    user_id: str
    chat_id: str
    message_id: str
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
        request=request,
        emit=emit,
    )


async def give_files(call: SandboxCall, files: Sequence[SandboxFile]) -> str:
    """Store files for whoever asked, and show them; return what could not be done."""
    if not files:
        return ""
    if call.request is None or call.emit is None:
        return "There is no page that could show files to the user."
    try:
        return await _store_and_show(call, call.emit, files)
    except HostLacks as missing:
        return f"The user does not see the files. {missing}"


async def _store_and_show(
    call: SandboxCall, emit: EmitEvent, files: Iterable[SandboxFile]
) -> str:
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
        return f"Open WebUI did not store {names}, so the user does not see it."
    return ""
