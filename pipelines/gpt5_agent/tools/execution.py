"""Runs the agent's own tools and converts their results for the model and the page.

A result is a list of parts with a `type`; MCP's parts are accepted unchanged. Files
that a tool names are read from one configured folder only: neither `..` nor a link
leads out of it. The texts for the model come from the specification of the agent.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from mimetypes import guess_type
from os.path import basename, commonpath, isabs, isfile, join, realpath
from typing import Any, NamedTuple

from gpt5_agent.ports import Tool
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping
from openai_responses.loop.tools import ToolResult
from openai_responses.transport.stream import NO_CARD

MAX_TOOL_FILE_BYTES = 5 * 1024 * 1024
_FILES_PREFIX = "/files"


def _read_tool_file(path: str, root: str) -> bytes:
    """Return the bytes of a file; raises InvalidRequest.

    A tool names it as `/files/...`, which stands for `root`, or by its path in there.
    The size is checked before and after, because a file may grow while it is read.
    """
    if not root.strip():
        raise InvalidRequest("files cannot be read here: FILES_ROOT is not set")
    try:
        with open(_resolve_path(path, realpath(root.strip())), "rb") as file:
            _check_size(os.fstat(file.fileno()).st_size)
            content = file.read(MAX_TOOL_FILE_BYTES + 1)
    except (OSError, ValueError):
        raise InvalidRequest("the file cannot be read") from None
    _check_size(len(content))
    return content


def _resolve_path(path: str, root: str) -> str:
    inside = path.removeprefix(f"{_FILES_PREFIX}/")
    found = realpath(join(root, inside) if inside != path else path)
    outside = not isabs(path) or commonpath((root, found)) != root
    if outside or not isfile(found):
        raise InvalidRequest(f"there is no such file below {_FILES_PREFIX}")
    return found


def _check_size(size: int) -> None:
    if size > MAX_TOOL_FILE_BYTES:
        raise InvalidRequest("the file is larger than 5 MB")


_IMAGE_SENT_TEXT = "image generated and sent to user. Tell user to review it now."

_TOOL_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PART_TYPES = (
    *("text", "json", "link", "image_link", "image"),
    *("blob", "file", "resource", "resource_link"),
)


class _ResultPart(NamedTuple):
    """A part, for the model and for the page."""

    text: str
    image: str = ""
    file: Mapping[str, Any] = NO_CARD


def _build_result(result: object, root: str) -> ToolResult:
    """Convert what a tool returned; raises InvalidRequest for an invalid file."""
    failed, content = False, result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        failed, content = result.get("isError") is True, result["content"]
    rows = as_list(content)
    if not rows or not all(map(_is_part, rows)):
        text = result if isinstance(result, str) else _format_response(result)
        return ToolResult(text, failed)
    parts = [_convert_part(row, root) for row in rows]
    images = [part.image for part in parts if part.image]
    files = [part.file for part in parts if part.file]
    card = {"images": images, "files": files}
    text = "\n".join(part.text for part in parts)
    return ToolResult(text, failed, {k: v for k, v in card.items() if v})


def _is_part(row: object) -> bool:
    return isinstance(row, Mapping) and row.get("type") in _PART_TYPES


def _format_response(value: object) -> str:
    return f"tool response: {json.dumps(value, ensure_ascii=False, default=str)}."


def _convert_part(part: Mapping[str, Any], root: str) -> _ResultPart:
    name, mime = _read_text_field(part, "name"), _read_text_field(part, "mimeType")
    match part["type"]:
        case "text":
            return _ResultPart(_read_text_field(part, "text"))
        case "json":
            return _ResultPart(_format_response(part.get("json")))
        case "link":
            return _build_link_part(part.get("url"))
        case "resource_link":
            return _build_link_part(part.get("uri"))
        case "image_link":
            return _ResultPart(_IMAGE_SENT_TEXT, image=_read_text_field(part, "url"))
        case "resource":
            return _build_resource_part(as_mapping(part.get("resource")))
        case "file":
            path = _read_text_field(part, "path")
            return _build_file_part(_read_tool_file(path, root), mime, name or path)
        case "image":
            mime = mime or "image/png"
    return _build_file_part(_decode_base64(part.get("data")), mime, name)


def _read_text_field(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _build_link_part(url: object) -> _ResultPart:
    return _ResultPart(f"result link: {url}. please tell user to check it.")


def _build_resource_part(resource: Mapping[str, Any]) -> _ResultPart:
    """Convert a resource of MCP, which has a text or a blob."""
    text = resource.get("text")
    if isinstance(text, str):
        return _ResultPart(text)
    mime, uri = (_read_text_field(resource, key) for key in ("mimeType", "uri"))
    return _build_file_part(_decode_base64(resource.get("blob")), mime, uri)


def _build_file_part(content: bytes, mime: str, name: str) -> _ResultPart:
    """Convert bytes: an image goes to the page, another file to the tool's card."""
    _check_size(len(content))
    own = basename(name) or "file"
    kind = mime or guess_type(own)[0] or "application/octet-stream"
    url = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    if kind in _TOOL_IMAGE_TYPES:
        return _ResultPart(_IMAGE_SENT_TEXT, image=url)
    text = f"Generated file {own} ({kind}, {len(content)} bytes) is sent to the user."
    return _ResultPart(text, file={"type": "file", "name": own, "url": url})


def _decode_base64(data: object) -> bytes:
    try:
        return base64.b64decode(str(data or ""), validate=True)
    except ValueError:
        raise InvalidRequest("the file is not base64") from None


class OwnTools:
    """The agent's own tools; `schemas` holds the arguments of each by its name."""

    def __init__(self, tools: Sequence[Tool], root: str) -> None:
        """Read files that a tool names below `root` only."""
        self.schemas = {tool.name: tool.args for tool in tools}
        self._tools = {tool.name: tool for tool in tools}
        self._root = root

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; a file that may not be read is a failure of the tool."""
        result = await self._tools[name].execute(arguments)
        if isinstance(result, ToolResult):
            return result
        try:
            return _build_result(result, self._root)
        except InvalidRequest as refused:
            return ToolResult(f"tool invoke error: {refused}", failed=True)


def describe_tool(tool: Tool) -> Item:
    """Return a tool as Open WebUI describes one."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.args),
    }
