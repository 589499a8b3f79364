"""The files of a tool's result, shared out between the model, the chat and the page."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openai_responses.items import Item, item_type
from owui_chat.tool_images import UNREADABLE_IMAGE, output_with
from owui_manifold.files import read_tool_image

File = Mapping[str, Any]
StoreImage = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Pictures as the model gets them and as the chat stores them; what is shown.

    `unreadable` is how many pictures the model cannot read.
    """

    for_model: list[Item] = field(default_factory=list)
    stored: list[Item] = field(default_factory=list)
    shown: list[File] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def output(self, text: str) -> str | list[Item]:
        """Return the output of the tool: its text, and what the model can see."""
        return output_with("\n".join([text, *self.unreadable]), self.for_model)


async def share_out(
    files: Iterable[File], store: StoreImage, user: Any, *, has_row: bool
) -> ResultFiles:
    """Return the files of a result; `store` gives a picture an address of its own.

    One that came with an address is on the card, too (utils/middleware.py:5827). A
    picture that could not be stored is not written into the row of a chat.
    """
    shared = ResultFiles()
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shared.shown.append(file)
            continue
        address = await store(url) if url.startswith("data:") else url
        part = await read_tool_image(address, user)
        is_readable = item_type(part) == "input_image"
        if is_readable:
            shared.for_model.append(part)
        else:
            shared.unreadable.append(UNREADABLE_IMAGE)
        if has_row and address.startswith("data:"):
            continue
        if is_readable:
            shared.stored.append({"type": "input_image", "image_url": address})
        if address == url or not is_readable:
            shared.shown.append({**file, "url": address})
    return shared
