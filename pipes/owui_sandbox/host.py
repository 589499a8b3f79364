"""The only module of this tool that uses `open_webui`.

Its names are looked up here, when they are used: the tool still loads if an older host
lacks one.
"""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple


class HostLacks(RuntimeError):
    """This Open WebUI lacks what the tool needs."""


class SandboxUpload(NamedTuple):
    """A file to store for a person."""

    name: str
    media_type: str
    content: bytes


def data_folder() -> Path:
    """Return the folder in which the server keeps its data; raises HostLacks."""
    return Path(_look_up("env", "DATA_DIR"))


async def read_user_file(file_id: str, user_id: str) -> bytes | None:
    """Return a stored file that the user may read by the host's rules, or None.

    Raises HostLacks.
    """
    row = await _look_up("models.files", "Files").get_file_by_id(file_id)
    user = await _look_up("models.users", "Users").get_user_by_id(user_id)
    if row is None or user is None or not row.path:
        return None
    if row.user_id != user.id:
        may_read = _look_up("utils.access_control.files", "has_access_to_file")
        if not await may_read(file_id, "read", user):
            return None
    storage = _look_up("storage.provider", "Storage")
    try:
        path = await asyncio.to_thread(storage.get_file, row.path)
        return await asyncio.to_thread(Path(path).read_bytes)
    except (OSError, RuntimeError):
        return None


async def find_saved_message(
    chat_id: str, message_id: str, user_id: str
) -> dict[str, str]:
    """Return `chat_id` and `message_id` if the user has this chat, else nothing.

    Temporary chats, channels and plain API calls have no row. Raises HostLacks.
    """
    if not chat_id or not message_id:
        return {}
    chats = _look_up("models.chats", "Chats")
    if await chats.get_chat_by_id_and_user_id(chat_id, user_id) is None:
        return {}
    return {"chat_id": chat_id, "message_id": message_id}


async def store_for_user(
    request: Any, file: SandboxUpload, message: Mapping[str, str], user_id: str
) -> dict[str, Any] | None:
    """Store a file for a user; return its entry in a message's list of files.

    It is linked with the saved `message`, if there is one. None: the host does not
    know the user, or refuses the file, for example for its size. Raises HostLacks.
    """
    user = await _look_up("models.users", "Users").get_user_by_id(user_id)
    if user is None:
        return None
    upload = _look_up("routers.files", "upload_file_handler")
    refused = _look_up("routers.files", "HTTPException")
    arriving = _look_up("routers.files", "UploadFile")(
        BytesIO(file.content),
        filename=file.name,
        headers={"content-type": file.media_type},
    )
    try:
        row = await upload(
            request, file=arriving, metadata=dict(message), process=False, user=user
        )
    except refused:
        return None
    if message:
        chats = _look_up("models.chats", "Chats")
        await chats.insert_chat_files(**message, file_ids=[row.id], user_id=user.id)
    kind = "image" if file.media_type.startswith("image/") else "file"
    url = request.app.url_path_for("get_file_content_by_id", id=row.id)
    return {
        "type": kind,
        "id": row.id,
        "url": str(url),
        "name": file.name,
        "content_type": file.media_type,
    }


async def add_to_message(
    message: Mapping[str, str], entries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Put files below a saved message; return all files that it has then.

    Open WebUI 0.12.4 does so for its own pictures (tools/builtin.py, generate_image):
    the page replaces a message's files by those of an event. Raises HostLacks.
    """
    if not message:
        return entries
    chats = _look_up("models.chats", "Chats")
    stored: list[dict[str, Any]] | None
    stored = await chats.add_message_files_by_id_and_message_id(
        message["chat_id"], message["message_id"], entries
    )
    return stored or entries


def _look_up(module: str, name: str) -> Any:
    """Return a name of the host; raises HostLacks if it does not exist."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise HostLacks(f"This Open WebUI has no {module}.{name}.") from None
