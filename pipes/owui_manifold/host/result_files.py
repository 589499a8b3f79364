"""The files of a tool's result, split between the model, the chat and the page."""

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from openai_responses.items import Item, item_type
from openai_responses.json_input import JsonObject
from owui_chat.input.attachments import append_images, image_data_url, tool_image
from owui_manifold.host.open_webui import HostUser, read_file, readable_file

StoreImage = Callable[[str], Awaitable[str]]
"""Stores a picture, given as a data URL; returns its address."""

_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")
"""The address of a stored picture in a chat."""


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
    images: list[Item] = []
    shown: list[JsonObject] = []
    stored: list[JsonObject] = []
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shown.append(file)
            continue
        address = await store(url) if url.startswith("data:") else url
        part = await _read_image(address, user)
        is_readable = item_type(part) == "input_image"
        if is_readable:
            images.append(part)
        else:
            text += f"\n{part['text']}"
        fits_row = not (has_row and address.startswith("data:"))
        if fits_row and is_readable:
            stored.append({"type": "input_image", "image_url": address})
        if fits_row and (address == url or not is_readable):
            shown.append({**file, "url": address})
    return append_images(text, images), {"files": shown, "stored": stored}


async def _read_image(address: str, user: HostUser | None) -> Item:
    """Return a tool's picture in the same bytes as the next turn will read it."""
    match = _STORED_ADDRESS.match(address)
    file = await readable_file(match[1], user) if match else None
    held = await read_file(file, image_data_url) if file else address
    return tool_image(held or "")
