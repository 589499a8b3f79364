"""Files of Open WebUI, read for the model and stored for the page.

Stored files are read with the rights of the current user. The files of a tool's result
are split between the model, the chat and the page. Pictures that the model drew before
are read from the host's files.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from openai_responses.items import Item, item_type
from openai_responses.json_input import JsonObject
from owui_chat.file_names import shorten_name
from owui_chat.input.attachments import (
    GONE_FILE,
    PDF_TYPE,
    append_images,
    document_part,
    document_type,
    image_data_url,
    part_or_note,
    question_index,
    tool_image,
)
from owui_chat.messages import Attachment, ChatPart, UserMessage
from owui_chat.storage.images import restore_images, stored_image_ids
from owui_chat.storage.records import Record
from owui_manifold.host.open_webui import file_row, stored_bytes, user_model

_MAX_DOCUMENT_BYTES = 50_000_000
"""The limit for all documents of one request."""

_TOO_LARGE = (
    "With {} the files of this chat come to more than 50 MB, and one request takes no "
    "more. Attach a smaller file, or start a new chat."
)
_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")
"""The address of a stored picture in a chat."""

_Made = TypeVar("_Made")


async def _read_file(row: Any, make: Callable[[bytes], _Made]) -> _Made | None:
    """Return the result of `make` for a file's bytes; None if the host lost the file.

    Both run on a thread, because the file may be large and its storage remote. The
    storages of the host raise an OSError or a RuntimeError.
    """
    try:
        return await asyncio.to_thread(lambda: make(stored_bytes(row.path)))
    except (OSError, RuntimeError):
        return None


async def _read_tool_image(address: str, user: Any) -> Item:
    """Return a tool's picture in the same bytes as the next turn will read it."""
    match = _STORED_ADDRESS.match(address)
    row = await file_row(match[1], user) if match else None
    held = await _read_file(row, image_data_url) if row else address
    return tool_image(held or "")


async def add_documents(
    parts: Sequence[ChatPart], user: Any, wanted: str
) -> list[ChatPart]:
    """Return a chat with the documents that the model reads itself.

    They stand in front, where later changes do not reach them. `wanted` is `pdf` or
    `all`. Raises InvalidRequest for one that cannot be sent with the message that is
    asked.
    """
    result = list(parts)
    question = question_index(parts)
    left = _MAX_DOCUMENT_BYTES
    for index, part in enumerate(parts):
        if isinstance(part, UserMessage) and part.attachments:
            read = list[Item]()
            for file in part.attachments:
                document, size = await _read_document(file, user, wanted, left)
                left -= size
                if document:
                    is_asked = index == question
                    read.append(part_or_note(document, is_asked=is_asked))
            result[index] = part.with_content([*read, *part.content])
    return result


async def _read_document(
    file: Attachment, user: Any, wanted: str, left: int
) -> tuple[Item | str, int]:
    """Return a document and its size; or why it cannot be sent, and nothing if it is
    not for the model.
    """
    row = None if file.is_image else await file_row(file.file_id, user)
    name = file.name or shorten_name(getattr(row, "filename", ""))
    meta = getattr(row, "meta", None) or {}
    kind = document_type(name, file.content_type or str(meta.get("content_type")))
    if file.is_image or not kind or (kind != PDF_TYPE and wanted != "all"):
        return "", 0

    def sized_part(content: bytes) -> tuple[Item, int]:
        return document_part(name, kind, content), len(content)

    part: Item | str = GONE_FILE.format(name)
    size = int(meta.get("size") or 0)
    if row and size <= left:
        part, size = await _read_file(row, sized_part) or (part, 0)
    return (part, size) if size <= left else (_TOO_LARGE.format(name), 0)


_StoreImage = Callable[[str], Awaitable[str]]


async def split_result_files(
    files: Iterable[JsonObject],
    text: str,
    store: _StoreImage,
    user: Any,
    *,
    has_row: bool,
) -> tuple[str | list[Item], dict[str, Any]]:
    """Return the output of a tool with its pictures, and the files of its card.

    `store` gives a picture an address. A picture that came with an address is shown on
    the card, too (docs/reference/open-webui.md, "Tools of the host"). A picture that
    could not be stored is not written to a chat's row.
    """
    images: list[Item] = []
    shown: list[JsonObject] = []
    stored: list[JsonObject] = []
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shown.append(file)
            continue
        address = await store(url) if url.startswith("data:") else url
        part = await _read_tool_image(address, user)
        is_readable = item_type(part) == "input_image"
        if is_readable:
            images.append(part)
        else:
            text += f"\n{part['text']}"
        if has_row and address.startswith("data:"):
            continue
        if is_readable:
            stored.append({"type": "input_image", "image_url": address})
        if address == url or not is_readable:
            shown.append({**file, "url": address})
    return append_images(text, images), {"files": shown, "stored": stored}


async def load_stored_images(
    records: Mapping[str, Record], parts: Sequence[ChatPart], user_id: str
) -> Mapping[str, Record]:
    """Return a chat's records with the pictures that its answers name.

    Pictures that the user may not read, or that no longer exist, are left out.
    """
    wanted = stored_image_ids(parts, records)
    if not wanted:
        return records
    user = await user_model(user_id)
    pictures: dict[str, str] = {}
    for file_id in dict.fromkeys(wanted):
        row = await file_row(file_id, user)
        held = await _read_file(row, base64.b64encode) if row else None
        if held:
            pictures[file_id] = held.decode()
    return restore_images(records, pictures)
