"""Runs the agent's own tools and converts their results for the model and the page.

A result is a list of parts with a `type`. No path of a tool is read: a file comes as
its bytes. The user gets it as a file of Open WebUI, or reads a short text. The texts
for the model come from the specification of the agent.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from mimetypes import guess_type
from posixpath import basename
from typing import Any, NamedTuple

from gpt5_agent.pictures import MAX_SEEN_CHARACTERS, MAX_SEEN_IMAGES
from gpt5_agent.ports import HostFileError, StoreFile, Tool
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping
from openai_responses.loop.tools import ToolResult
from owui_chat.file_names import shorten_name
from owui_chat.files import MAX_TOOL_FILE_BYTES
from owui_chat.wording import as_plain_markdown, code_block

_MAX_FILES = 10
"""Of one call; each is an upload."""
_MAX_SHOWN_BYTES = 4_000
"""Of a text that is shown because it cannot be stored."""

_IMAGE_SENT_TEXT = "image generated and sent to user. Tell user to review it now."

_IMAGE_SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/webp": b"RIFF",
    "image/gif": None,
}
"""How the pictures of the page begin that the API can read; GIFs may move."""
_PART_TYPES = ("text", "json", "link", "image_link", "image", "blob")


class _ToolFile(NamedTuple):
    """A file for the user."""

    name: str
    media_type: str
    content: bytes


class _ResultPart(NamedTuple):
    """A part of a result, for those who get it."""

    text: str
    """For the model."""
    image: str = ""
    """The address of a picture for the page."""
    seen: str = ""
    """The same address if the model can see the picture, too."""
    file: _ToolFile | None = None
    """For the user; what the model reads of it depends on whether it can be stored."""


def _read_result(result: object) -> tuple[bool, list[_ResultPart]]:
    """Return whether a tool failed, and its parts; raises InvalidRequest."""
    failed = False
    content = result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        failed = result.get("isError") is True
        content = result["content"]
    rows = as_list(content)
    parts = [row for row in rows if as_mapping(row).get("type") in _PART_TYPES]
    if rows and len(parts) == len(rows):
        return failed, [_convert_part(part) for part in parts]
    if isinstance(result, str):
        return failed, [_ResultPart(result)]
    return failed, [_ResultPart(_format_response(result))]


def _format_response(value: object) -> str:
    """Return a value that is no text as the model reads it."""
    return f"tool response: {json.dumps(value, ensure_ascii=False, default=str)}."


def _convert_part(part: Mapping[str, Any]) -> _ResultPart:
    """Convert a part of one of the known types; raises InvalidRequest."""
    match part["type"]:
        case "text":
            return _ResultPart(_read_text_field(part, "text"))
        case "json":
            return _ResultPart(_format_response(part.get("json")))
        case "link":
            url = part.get("url")
            return _ResultPart(f"result link: {url}. please tell user to check it.")
        case "image_link":
            return _ResultPart(_IMAGE_SENT_TEXT, image=_read_text_field(part, "url"))

    # An `image` or a `blob`. A tool of this program gives bytes, others base64.
    data = part.get("data")
    try:
        if isinstance(data, bytes):
            content = data
        else:
            content = base64.b64decode(str(data or ""), validate=True)
    except ValueError:
        raise InvalidRequest("the file is not base64") from None
    if len(content) > MAX_TOOL_FILE_BYTES:
        raise InvalidRequest("the file is larger than 5 MB")
    media_type = _read_text_field(part, "mimeType")
    if part["type"] == "image" and not media_type:
        media_type = "image/png"
    file_name = shorten_name(basename(_read_text_field(part, "name"))) or "file"
    media_type = media_type or guess_type(file_name)[0] or "application/octet-stream"
    if media_type not in _IMAGE_SIGNATURES:
        return _ResultPart("", file=_ToolFile(file_name, media_type, content))

    # An image goes to the page, and to the model if the API can read it.
    encoded = base64.b64encode(content).decode("ascii")
    url = f"data:{media_type};base64,{encoded}"
    signature = _IMAGE_SIGNATURES[media_type]
    is_readable = signature is not None and content.startswith(signature)
    return _ResultPart(_IMAGE_SENT_TEXT, image=url, seen=url if is_readable else "")


def _read_text_field(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _quote_text(content: bytes) -> str:
    """Return a short text as a block of code; empty for anything else."""
    if not content or len(content) > _MAX_SHOWN_BYTES:
        return ""
    text = content.decode("utf-8", "replace")
    if "\0" in text or "\N{REPLACEMENT CHARACTER}" in text:
        return ""
    return f"\n\n{code_block(text)}"


class OwnTools:
    """The agent's own tools; `schemas` holds the arguments of each by its name."""

    def __init__(
        self,
        tools: Sequence[Tool],
        store_file: StoreFile | None = None,
        seen: Sequence[str] = (),
    ) -> None:
        """Give files to the user with `store_file`.

        `seen` are the pictures of earlier rounds, which the model sees again.
        """
        self.schemas = {tool.name: tool.args for tool in tools}
        self._tools = {tool.name: tool for tool in tools}
        self._store_file = store_file
        self._images_left = MAX_SEEN_IMAGES - len(seen)
        self._characters_left = MAX_SEEN_CHARACTERS - sum(map(len, seen))

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; a file that cannot be read is a failure of the tool."""
        result = await self._tools[name].execute(arguments)
        if isinstance(result, ToolResult):
            return result
        try:
            failed, parts = _read_result(result)
        except InvalidRequest as refused:
            return ToolResult(f"tool invoke error: {refused}", failed=True)
        texts: list[str] = []
        notes: list[str] = []
        for part in parts:
            if part.file is None:
                texts.append(part.text)
                continue
            text, note = await self._give_file(part.file, len(notes))
            texts.append(text)
            if note:
                notes.append(note)

        # The model gets the text, with the pictures for which this answer has room.
        seen: list[Item] = []
        for part in parts:
            url = part.seen
            if url and self._images_left > 0 and self._characters_left >= len(url):
                self._images_left -= 1
                self._characters_left -= len(url)
                seen.append({"type": "input_image", "detail": "auto", "image_url": url})
        text = "\n".join(texts)
        output = [{"type": "input_text", "text": text}, *seen] if seen else text

        # The page shows this next to the call.
        card: dict[str, Any] = {}
        images = [part.image for part in parts if part.image]
        if images:
            card["images"] = images
        if notes:
            card["notes"] = notes
        return ToolResult(output, failed, card)

    async def _give_file(self, file: _ToolFile, file_count: int) -> tuple[str, str]:
        """Return what the model and the user read of a file; store it if possible.

        `file_count` files of the call went to the user already.
        """
        if file_count >= _MAX_FILES:
            return f"{file.name} is not sent: a call can send {_MAX_FILES} files.", ""
        name = as_plain_markdown(file.name)
        text = (
            f"Generated file {file.name} ({file.media_type}, {len(file.content)} bytes)"
        )
        try:
            if self._store_file is None:
                raise HostFileError("This client is not a chat of Open WebUI.")
            path = await self._store_file(file.name, file.content)
        except HostFileError as refused:
            quoted = _quote_text(file.content)
            end = " The user is shown its text instead." if quoted else ""
            note = f"{name} could not be stored as a file: {refused}{quoted}"
            return f"{text} could not be sent to the user: {refused}{end}", note
        return f"{text} is sent to the user.", f"[{name}]({path})"


def describe_tool(tool: Tool) -> Item:
    """Return a tool as Open WebUI describes one."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.args),
    }
