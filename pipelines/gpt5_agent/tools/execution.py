"""Runs the agent's own tools and converts their results for the model and the page.

A result is a list of parts with a `type`. No path of a tool is read: a file comes as
its bytes. The user gets it as a file of Open WebUI, or reads a short text. The texts
for the model come from the specification of the agent.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from mimetypes import guess_type
from posixpath import basename
from typing import Any, NamedTuple

from gpt5_agent.ports import HostFileError, StoreFile, Tool
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_list
from openai_responses.loop.tools import ToolResult
from owui_chat.file_names import shorten_name

MAX_TOOL_FILE_BYTES = 5 * 1024 * 1024
_MAX_FILES = 10
"""Of one call; each is an upload."""
_MAX_SHOWN_BYTES = 4_000
"""Of a text that is shown because it cannot be stored."""
_MAX_SEEN_IMAGES = 20
_MAX_SEEN_CHARACTERS = 24 * 1024 * 1024
"""Of the pictures that the model sees in one answer; each round sends them again."""


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
    """A part: for the model, `image` for the page, `seen` for the model too."""

    text: str
    image: str = ""
    seen: str = ""
    file: _ToolFile | None = None


def _read_result(result: object) -> tuple[bool, list[_ResultPart]]:
    """Return whether a tool failed, and its parts; raises InvalidRequest."""
    failed, content = False, result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        failed, content = result.get("isError") is True, result["content"]
    rows = as_list(content)
    if rows and all(map(_is_part, rows)):
        return failed, list(map(_convert_part, rows))
    text = result if isinstance(result, str) else _format_response(result)
    return failed, [_ResultPart(text)]


def _is_part(row: object) -> bool:
    return isinstance(row, Mapping) and row.get("type") in _PART_TYPES


def _format_response(value: object) -> str:
    return f"tool response: {json.dumps(value, ensure_ascii=False, default=str)}."


def _convert_part(part: Mapping[str, Any]) -> _ResultPart:
    name, mime = _read_text_field(part, "name"), _read_text_field(part, "mimeType")
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
        case "image":
            mime = mime or "image/png"
    return _build_file_part(_decode_base64(part.get("data")), mime, name)


def _read_text_field(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _build_file_part(content: bytes, mime: str, name: str) -> _ResultPart:
    """Convert bytes: an image goes to the page and to the model, or it is a file."""
    if len(content) > MAX_TOOL_FILE_BYTES:
        raise InvalidRequest("the file is larger than 5 MB")
    own = shorten_name(basename(name)) or "file"
    kind = mime or guess_type(own)[0] or "application/octet-stream"
    if kind not in _IMAGE_SIGNATURES:
        return _ResultPart("", file=_ToolFile(own, kind, content))
    begin = _IMAGE_SIGNATURES[kind]
    url = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    seen = url if begin and content.startswith(begin) else ""
    return _ResultPart(_IMAGE_SENT_TEXT, url, seen)


def _decode_base64(data: object) -> bytes:
    if isinstance(data, bytes):  # a tool of this program
        return data
    try:
        return base64.b64decode(str(data or ""), validate=True)
    except ValueError:
        raise InvalidRequest("the file is not base64") from None


def _quote_text(content: bytes) -> str:
    """Return a short text as a block of code; empty for anything else."""
    text = content[: _MAX_SHOWN_BYTES + 1].decode("utf-8", "replace")
    if not content or len(content) > _MAX_SHOWN_BYTES or {"\0", "\ufffd"} & set(text):
        return ""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"\n\n{fence}\n{text}\n{fence}"


class OwnTools:
    """The agent's own tools; `schemas` holds the arguments of each by its name."""

    def __init__(
        self, tools: Sequence[Tool], store_file: StoreFile | None = None
    ) -> None:
        """Give files to the user with `store_file`."""
        self.schemas = {tool.name: tool.args for tool in tools}
        self._tools = {tool.name: tool for tool in tools}
        self._store_file = store_file
        self._images_left = _MAX_SEEN_IMAGES
        self._characters_left = _MAX_SEEN_CHARACTERS

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
            text, note = part.text, ""
            if part.file:
                text, note = await self._give_file(part.file, len(notes))
            texts.append(text)
            notes += [note] * bool(note)
        images = [part.image for part in parts if part.image]
        card = {"images": images, "notes": notes}
        text = "\n".join(texts)
        seen = list(filter(None, map(self._build_image, parts)))
        output = [{"type": "input_text", "text": text}, *seen] if seen else text
        return ToolResult(output, failed, {k: v for k, v in card.items() if v})

    async def _give_file(self, file: _ToolFile, given: int) -> tuple[str, str]:
        """Return what the model and the user read of a file; store it if possible."""
        if given >= _MAX_FILES:
            return f"{file.name} is not sent: a call can send {_MAX_FILES} files.", ""
        shown = re.sub(r"([\\`*_\[\]<>])", r"\\\1", file.name)
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
            note = f"{shown} could not be stored as a file: {refused}{quoted}"
            return f"{text} could not be sent to the user: {refused}{end}", note
        return f"{text} is sent to the user.", f"[{shown}]({path})"

    def _build_image(self, part: _ResultPart) -> Item | None:
        """Return a picture for the model; None if it has seen enough of them."""
        self._images_left -= bool(part.seen)
        self._characters_left -= len(part.seen)
        if not part.seen or min(self._images_left, self._characters_left) < 0:
            return None
        return {"type": "input_image", "detail": "auto", "image_url": part.seen}


def describe_tool(tool: Tool) -> Item:
    """Return a tool as Open WebUI describes one."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.args),
    }
