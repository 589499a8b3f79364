"""The files that Open WebUI stores: read with a user's rights, stored for a user.

Each function raises HostTooOld if the host lacks a name that it needs.
"""

import asyncio
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from openai_responses.json_input import as_mapping, as_text
from owui_chat.file_names import stored_name
from owui_host.lookup import host_name
from owui_host.users import HostUser


class StoredFile(NamedTuple):
    """A file that the host stores; the `path` is for its storage."""

    path: str
    name: str
    media_type: str
    size: int
    """In bytes; 0 if the host does not say."""
    has_text: bool = False
    """Whether the host has read or heard a text in it."""


async def readable_file(file_id: str, user: HostUser | None) -> StoredFile | None:
    """Return a stored file that `user` may read by the host's rules, or None.

    Administrators may read all files, as in `get_file_content_by_id` of the host
    (routers/files.py, 0.12.4).
    """
    row = await host_name("models.files", "Files").get_file_by_id(file_id)
    if row is None or user is None or not row.path:
        return None
    if row.user_id != user.id and user.role != "admin":
        may_read = host_name("utils.access_control.files", "has_access_to_file")
        if not await may_read(file_id, "read", user):
            return None
    facts = as_mapping(row.meta)
    size = facts.get("size")
    return StoredFile(
        path=row.path,
        name=row.filename,
        media_type=as_text(facts.get("content_type")),
        size=size if isinstance(size, int) else 0,
        has_text=bool(as_mapping(row.data).get("content")),
    )


_WHOLE = -1
"""As many bytes as there are, for `read` of an open file."""

_Made = TypeVar("_Made")


async def read_file(
    file: StoredFile | None, make: Callable[[bytes], _Made], most_bytes: int = _WHOLE
) -> _Made | None:
    """Return the result of `make` for a file's bytes; None if the host lost the file.

    Of a longer file it gets the first `most_bytes`. Both run on a thread, because the
    file may be large and its storage remote. The storages of the host raise an OSError
    or a RuntimeError.
    """
    if file is None:
        return None
    storage = host_name("storage.provider", "Storage")

    def read() -> _Made:
        with Path(storage.get_file(file.path)).open("rb") as stored:
            content = stored.read(most_bytes)
        return make(content)

    try:
        return await asyncio.to_thread(read)
    except (OSError, RuntimeError):
        return None


async def store_file(
    request: Any,
    name: str,
    content: bytes,
    place: Mapping[str, str],
    user: HostUser,
) -> dict[str, Any] | None:
    """Store a file for a user; return its entry in a message's list of files.

    A model or its code chose the `name`. It becomes one whose file no browser runs, here
    and nowhere else: whoever stores a file goes through this function.

    The `place` decides who else may read the file: whoever may read the saved message
    of a `chat_id` and a `message_id`, or the members of the channel of a `channel_id`;
    nobody if it is empty. None: the host refused the file, for example for its size
    (docs/reference/open-webui.md, "Events and stored files").
    """
    upload = host_name("routers.files", "upload_file_handler")
    refused = host_name("routers.files", "HTTPException")
    name, media_type = stored_name(name)
    arriving = host_name("routers.files", "UploadFile")(
        BytesIO(content), filename=name, headers={"content-type": media_type}
    )
    try:
        row = await upload(
            request, file=arriving, metadata=dict(place), process=False, user=user
        )
    except refused:
        return None
    # The host itself links a file with the channel that its metadata name.
    if "chat_id" in place:
        chats = host_name("models.chats", "Chats")
        await chats.insert_chat_files(**place, file_ids=[row.id], user_id=user.id)
    url = request.app.url_path_for("get_file_content_by_id", id=row.id)
    return {
        "type": "image" if media_type.startswith("image/") else "file",
        "id": row.id,
        "url": str(url),
        "name": name,
        "content_type": media_type,
    }
