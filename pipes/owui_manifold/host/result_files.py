"""The files of a tool's result, split between the model, the chat and the page."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import count
from typing import Any

from openai_responses.items import Item, item_type
from openai_responses.json_input import JsonObject
from owui_chat.files import MAX_TOOL_FILE_BYTES
from owui_chat.input.attachments import append_images, image_data_url, tool_image
from owui_host.files import read_file, readable_file
from owui_host.users import HostUser

StoreImage = Callable[[str], Awaitable[str]]
"""Stores a picture, given as a data URL; returns its address."""

_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")
"""The address of a stored picture in a chat."""


_LARGE_FILE_TEXT = "A file over 5 MB was left out of this result."
_MANY_FILES_TEXT = "A file was left out of this result, because it has more than 100."
_MOST_FILES = 100
"""Of one result: each is stored in the user's account."""
_READ_LEVELS = 64
"""What is deeper is no file."""


def without_large_files(
    result: Any, levels: int = _READ_LEVELS, numbers: Iterator[int] | None = None
) -> Any:
    """Return a tool's result with a text in the place of each file over 5 MB.

    And of each one after the first hundred, which have the `numbers` up to there. What
    is a file is the host's to say (utils/middleware.py:686 and 851 of 0.12.4): data URLs
    at any depth, and what MCP servers send as pictures, sounds and resources. It would
    store some of them before it hands them on. `levels` are those that are still read.
    """
    if levels == 0:
        return result
    numbers = numbers or count(1)
    match result:
        case str() if result[:5].lower() == "data:":
            return _why_left_out(_is_large_url(result), numbers) or result
        case (
            {"type": "image" | "audio", "data": str(encoded)}
            | {"type": "image" | "audio", "blob": str(encoded)}
            | {"type": "resource", "resource": {"blob": str(encoded)}}
        ) if encoded and (why := _why_left_out(_is_large(encoded), numbers)):
            return {"type": "text", "text": why}
        case dict():
            return {
                key: without_large_files(row, levels - 1, numbers)
                for key, row in result.items()
            }
        case list():
            return [without_large_files(row, levels - 1, numbers) for row in result]
        case tuple() if type(result) is tuple:
            rows = [without_large_files(row, levels - 1, numbers) for row in result]
            return tuple(rows)
    return result


def _why_left_out(is_large: bool, numbers: Iterator[int]) -> str:
    """Return what is in the place of a file, which takes a number; empty if it stays."""
    if is_large:
        return _LARGE_FILE_TEXT
    return _MANY_FILES_TEXT if next(numbers) > _MOST_FILES else ""


def _is_large_url(text: str) -> bool:
    """Say whether a data URL is one of more than 5 MB."""
    if len(text) <= MAX_TOOL_FILE_BYTES:
        return False
    start = text.find(",") + 1
    if text[:start].lower().endswith(";base64,"):
        return _is_large(text[start:])
    return len(text) - start > MAX_TOOL_FILE_BYTES


def _is_large(encoded: str) -> bool:
    """Say whether bytes in base64 are more than 5 MB."""
    size = len(encoded) * 3 // 4 - encoded[-2:].count("=")
    return size > MAX_TOOL_FILE_BYTES


async def split_result_files(
    files: Iterable[JsonObject],
    text: str,
    store: StoreImage,
    user: HostUser | None,
    *,
    has_row: bool,
) -> tuple[str | list[Item], dict[str, Any]]:
    """Return the output of a tool with its pictures, and the files of its card.

    A picture that came with an address is shown on the card, too
    (docs/reference/open-webui.md, "Tools of the host"). A picture that could not be
    stored is not written to a chat's row.
    """
    lines = [text]
    images: list[Item] = []
    shown: list[JsonObject] = []
    stored: list[Item] = []
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shown.append(file)
            continue
        # One that came whole is stored; a row holds no picture whole.
        address = await store(url) if url.startswith("data:") else url
        fits = not (has_row and address.startswith("data:"))
        part = await _read_image(address, user)
        is_readable = item_type(part) == "input_image"
        if fits and (address == url or not is_readable):
            shown.append({**file, "url": address})
        # The model gets the picture, or why it cannot be read. The chat keeps it by its
        # address.
        if not is_readable:
            lines.append(str(part["text"]))
            continue
        images.append(part)
        if fits:
            stored.append({"type": "input_image", "image_url": address})
    output = append_images("\n".join(lines), images)
    return output, {"files": shown, "stored": stored}


async def _read_image(address: str, user: HostUser | None) -> Item:
    """Return a tool's picture in the same bytes as the next turn will read it."""
    match = _STORED_ADDRESS.match(address)
    file = await readable_file(match[1], user) if match else None
    if file is None:
        return tool_image(address)
    data_url = await read_file(file, image_data_url)
    return tool_image(data_url or "")
