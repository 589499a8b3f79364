"""Stored files, read with the rights of the user who asks."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from openai_responses.items import Item
from owui_chat.attachments import (
    GONE_FILE,
    Attachment,
    asked_place,
    part_or_note,
    with_parts,
)
from owui_chat.documents import PDF_TYPE, document_part, document_type
from owui_chat.image_input import image_data_url
from owui_chat.messages import Said, Stretch
from owui_chat.tool_images import tool_image
from owui_manifold.host import file_row, stored_bytes

_MOST_BYTES = 50_000_000
"""What one request takes of documents, all together."""

_TOO_LARGE = (
    "With {} the files of this chat come to more than 50 MB, and one request takes no "
    "more. Attach a smaller file, or start a new chat."
)
_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")
"""How a chat names a stored picture (utils/files.py:36)."""

_Made = TypeVar("_Made")


async def read_file(row: Any, make: Callable[[bytes], _Made]) -> _Made | None:
    """Return what `make` makes of a file's bytes; None where the host lost them.

    Both happen on a thread: the file may be large, and its storage elsewhere.
    """
    try:
        return await asyncio.to_thread(lambda: make(stored_bytes(row.path)))
    except (OSError, RuntimeError):  # the host's storages raise these
        return None


async def read_tool_image(address: str, user: Any) -> Item:
    """Return a picture of a tool as the next turn will read it, byte for byte."""
    match = _STORED_ADDRESS.match(address)
    row = await file_row(match[1], user) if match else None
    held = await read_file(row, image_data_url) if row else address
    return tool_image(held or "")


async def with_documents(
    stretches: Sequence[Stretch],
    attached: Mapping[int, Sequence[Attachment]],
    user: Any,
    wanted: str,
) -> list[Stretch]:
    """Return a chat with the documents that the model is to read itself.

    `wanted` is `pdf` or `all`. Raises InvalidRequest for one that cannot be sent with
    the message that is asked.
    """
    result, asked = list(stretches), asked_place(stretches)
    documents = _Documents(user, wanted)
    for place in sorted(attached):
        found = [await documents.part(file) for file in attached[place]]
        parts = [part_or_note(f, is_asked=place == asked) for f in found if f]
        said = result[place]
        if parts and isinstance(said, Said):
            result[place] = with_parts(said, parts)
    return result


class _Documents:
    """Reads the documents of one request, within what it may hold."""

    def __init__(self, user: Any, wanted: str) -> None:
        self._user = user
        self._wanted = wanted
        self._left = _MOST_BYTES

    async def part(self, file: Attachment) -> Item | str | None:
        """Return a document, why it cannot be sent, or None if it is not for us."""
        if file.is_image:
            return None
        row = await file_row(file.file_id, self._user)
        name = file.name or (row.filename if row else "")
        meta = (row.meta if row else None) or {}
        kind = self._kind(name, file.content_type or str(meta.get("content_type")))
        if not kind:
            return None
        if row is None:
            return GONE_FILE.format(name)
        if int(meta.get("size") or 0) > self._left:
            return _TOO_LARGE.format(name)
        return await self._read(row, name, kind)

    async def _read(self, row: Any, name: str, kind: str) -> Item | str:
        def sized_part(content: bytes) -> tuple[Item, int]:
            return document_part(name, kind, content), len(content)

        part, size = await read_file(row, sized_part) or (None, 0)
        if part is None:
            return GONE_FILE.format(name)
        if size > self._left:
            return _TOO_LARGE.format(name)
        self._left -= size
        return part

    def _kind(self, name: str, declared: str) -> str:
        """Return the type of a document that is wanted; else nothing."""
        kind = document_type(name, declared)
        return kind if self._wanted == "all" or kind == PDF_TYPE else ""
