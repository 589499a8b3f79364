"""What a tool returned -> what the model is told of it, and what a person is shown.

The texts are those of the seed (pipelines-and-agents.md §6). Parts are dicts with a
`type`; those of MCP are understood as they are.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from mimetypes import guess_type
from os.path import basename
from typing import Any

from gpt5_agent.files import LARGEST_FILE
from openai_responses.errors import InvalidRequest
from openai_responses.loop.tools import ToolResult

IMAGE_SENT = "image generated and sent to user. Tell user to review it now."

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PART_TYPES = frozenset(
    {
        "text",
        "json",
        "link",
        "image_link",
        "image",
        "blob",
        "file",
        "resource",
        "resource_link",
    }
)


@dataclass(frozen=True, slots=True)
class _Told:
    """A part, for the model and for the page."""

    text: str
    image: str = ""
    file: Mapping[str, Any] = field(default_factory=dict)


ReadFile = Callable[[str], bytes]
"""Gives the bytes of a file that a tool names; raises InvalidRequest."""


def tool_answer(result: object, read_file: ReadFile) -> ToolResult:
    """Return the answer for what a tool returned.

    Raises InvalidRequest for a file that may not be read, and for one that is none.
    """
    failed, content = False, result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        failed, content = result.get("isError") is True, result["content"]
    parts = _known_parts(content)
    if not parts:
        text = result if isinstance(result, str) else _response(result)
        return ToolResult(text, failed)
    told = [_told_part(part, read_file) for part in parts]
    images = [one.image for one in told if one.image]
    files = [one.file for one in told if one.file]
    card = {"images": images, "files": files}
    text = "\n".join(one.text for one in told)
    return ToolResult(text, failed, {k: v for k, v in card.items() if v})


def _known_parts(value: object) -> list[Mapping[str, Any]]:
    """Return the parts of a list of nothing else; none for any other value."""
    rows = value if isinstance(value, list) else []
    parts = [row for row in rows if isinstance(row, Mapping)]
    known = [part for part in parts if part.get("type") in _PART_TYPES]
    return known if len(known) == len(rows) else []


def _response(value: object) -> str:
    return f"tool response: {json.dumps(value, ensure_ascii=False, default=str)}."


def _told_part(part: Mapping[str, Any], read_file: ReadFile) -> _Told:
    match part["type"]:
        case "text":
            return _Told(_text_at(part, "text"))
        case "json":
            return _Told(_response(part.get("json")))
        case "link":
            return _link(part.get("url"))
        case "resource_link":
            return _link(part.get("uri"))
        case "image_link":
            return _Told(IMAGE_SENT, image=_text_at(part, "url"))
        case "file":
            path = _text_at(part, "path")
            name = _text_at(part, "name") or path
            return _blob(read_file(path), _text_at(part, "mimeType"), name)
        case "resource":
            return _resource(part.get("resource"))
    kind = "image/png" if part["type"] == "image" else ""
    mime = _text_at(part, "mimeType") or kind
    return _blob(_decoded(part.get("data")), mime, _text_at(part, "name"))


def _text_at(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _link(url: object) -> _Told:
    return _Told(f"result link: {url}. please tell user to check it.")


def _resource(resource: object) -> _Told:
    """Return a resource of MCP, which has a text or a blob."""
    found = resource if isinstance(resource, Mapping) else {}
    if isinstance(found.get("text"), str):
        return _Told(found["text"])
    mime, uri = _text_at(found, "mimeType"), _text_at(found, "uri")
    return _blob(_decoded(found.get("blob")), mime, uri)


def _blob(content: bytes, mime: str, name: str) -> _Told:
    """Return bytes: a picture goes to the page, another file to the tool's card."""
    if len(content) > LARGEST_FILE:
        raise InvalidRequest("the file is larger than 5 MB")
    own = basename(name) or "file"
    kind = mime or guess_type(own)[0] or "application/octet-stream"
    url = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    if kind in _PICTURES:
        return _Told(IMAGE_SENT, image=url)
    text = f"Generated file {own} ({kind}, {len(content)} bytes) is sent to the user."
    return _Told(text, file={"type": "file", "name": own, "url": url})


def _decoded(data: object) -> bytes:
    try:
        return base64.b64decode(str(data or ""), validate=True)
    except ValueError:
        raise InvalidRequest("the file is not base64") from None
