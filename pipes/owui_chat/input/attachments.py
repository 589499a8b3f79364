"""Pictures and files that people or tools attached, as input parts.

The API reads PNG, JPEG, WEBP and GIFs of one frame, told by their first bytes, and
documents by their type. The name of a document counts first, because the type that
browsers declare differs between systems. Open WebUI keeps with a message of the user
the files it came with, and puts only the pictures into what it sends
(utils/middleware.py:2124). What cannot be sent with the message that is asked is an
error; in place of one at an earlier message the model gets a note, so that the chat
goes on.

A chat stores pictures of tools by their addresses. The host reads them for the next
request, but moves them out of the outputs into a message that no one wrote
(utils/misc.py:393); they go back to their outputs here. The chat's row tells how many
belong to each output of ours. Of the host's outputs, whose round goes on before it is
stored, the last one gets them all.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts, item_type
from openai_responses.json_input import JsonObject, value_at
from owui_chat.file_names import shorten_name
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.messages import (
    Attachment,
    ChatPart,
    ToolMessage,
    UserMessage,
    user_messages,
)

_SIGNATURE = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8)|"
    rb"(?P<webp>RIFF.{4}WEBP)",
    re.DOTALL,
)
_HEAD = 24
"""Characters of base64 that contain every signature."""
_GIF_FRAME = b"\x00\x21\xf9\x04"
"""Stands before each frame of an animated GIF."""


def _image_type(content: bytes) -> str:
    """Return the media type of a picture; empty if the API cannot read it."""
    found = _SIGNATURE.match(content)
    moves = found and found["gif"] and content.count(_GIF_FRAME) > 1
    return f"image/{found.lastgroup}" if found and not moves else ""


def image_data_url(content: bytes) -> str:
    """Return a picture as a data URL; empty if the API cannot read it."""
    kind = _image_type(content)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}" if kind else ""


def _readable_url(url: str) -> str:
    """Return the address of a picture with its real type; empty if unreadable.

    The API itself fetches pictures from the web.
    """
    if url.startswith(("https://", "http://")):
        return url
    label, _, payload = url.partition(";base64,")
    is_held = label[:5].lower() == "data:" and len(url) <= _LONGEST_URL
    kind = _encoded_type(payload) if is_held else ""
    return f"data:{kind};base64,{payload}" if kind else ""


def _encoded_type(payload: str) -> str:
    """Return the media type of a picture in base64; a GIF is read completely."""
    try:
        kind = _image_type(base64.b64decode(payload[:_HEAD]))
        is_gif = kind == "image/gif"
        return _image_type(base64.b64decode(payload)) if is_gif else kind
    except ValueError:  # no base64, or not even ASCII
        return ""


PDF_TYPE = "application/pdf"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENT_TYPES = {
    "pdf": PDF_TYPE,
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "odt": "application/vnd.oasis.opendocument.text",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rtf": "application/rtf",
    "tsv": "text/tab-separated-values",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "xml": "text/xml",
}
_PLAIN_TEXT = (
    "c cc cpp cs css go h hpp ini java js jsx kt log lua php pl py r rb rs sh sql swift "
    "tex toml ts tsx txt vb yaml yml"
)


def document_type(name: str, declared: str) -> str:
    """Return the media type of a document; empty if the API cannot read it."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PLAIN_TEXT.split():
        return "text/plain"
    kind = declared.partition(";")[0].strip().lower()
    is_read = kind in _DOCUMENT_TYPES.values() or kind.startswith("text/")
    return _DOCUMENT_TYPES.get(suffix) or (kind if is_read else "")


def document_part(name: str, kind: str, content: bytes) -> Item:
    """Return a document as a part of a content."""
    url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": url}


GONE_FILE = (
    "{} cannot be read: it is gone, or it is not yours. Remove it from the message and "
    "send it again."
)
_UNKNOWN_PICTURE = (
    "{} is in a form that the model cannot read. It reads PNG, JPEG, WEBP, and GIF that "
    "does not move: convert it and send it again."
)
_LARGE_PICTURE = (
    "{} is larger than the 50 MB that the model reads, and Open WebUI could not make it "
    "smaller. Attach a smaller one."
)
_DRAWING = (
    "The model reads {} as text and cannot see the picture. Attach a PNG instead."
)
_Scale = Callable[[str], bytes]
"""Returns a picture in base64 in fewer bytes, or nothing."""

_LONGEST_URL = 66_000_000
"""A picture of 50 MB in base64: the limit is an assumption."""
_MOST_PICTURES = 1500
_LARGEST_INPUT = 512_000_000
_TOO_MUCH = (
    f"[A picture or file is left out: one request takes {_MOST_PICTURES} pictures and "
    f"{_LARGEST_INPUT // 1_000_000} MB.]"
)


def attach_files(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which the user's messages have the files they came with.

    `rows` are the messages of the chat's row. Without a row only the files of the last
    message are known as such; all others are put at the first one.
    """
    result, users = list(parts), user_messages(parts)
    files = {
        place: _read_attachments(part.stored.row.get("files"))
        for place, part in users.items()
        if part.stored and rows
    }
    if users and not rows:
        own, others = _files_without_row(metadata)
        first, last = min(users), max(users)
        files = {last: own, first: others + (own if first == last else [])}
    for place, attachments in files.items():
        result[place] = users[place]._replace(attachments=attachments)
    return result


def _read_attachments(files: object) -> list[Attachment]:
    """Return the files that came with a message; the host reads knowledge itself."""
    found = list[Attachment]()
    for row in content_parts(files):
        kind, content_type = row.get("type"), str(row.get("content_type") or "")
        if kind in ("file", "image") and row.get("id") and not row.get("knowledge"):
            is_image = kind == "image" or content_type.startswith("image/")
            name = shorten_name(str(row.get("name") or ""))
            found.append(Attachment(str(row["id"]), name, content_type, is_image))
    return found


def resolve_images(parts: Sequence[ChatPart], scale: _Scale) -> list[ChatPart]:
    """Return a chat in which the API can read every picture of a message.

    `scale` makes one smaller that is too large. Raises InvalidRequest for an unreadable
    one in the message that is asked.
    """
    question = question_index(parts)
    return [
        (
            _with_readable(part, scale, is_asked=place == question)
            if isinstance(part, UserMessage)
            else part
        )
        for place, part in enumerate(parts)
    ]


def drawing_notice(parts: Sequence[ChatPart]) -> str:
    """Return what a person is told who attached an SVG, which the host sends as a file."""
    asked = user_messages(parts).get(question_index(parts))
    files = asked.attachments if asked else ()
    names = [f.name for f in files if f.content_type.startswith("image/svg")]
    return _DRAWING.format(", ".join(names)) if names else ""


def image_length(part: ChatPart) -> int:
    """Return the length of the data URLs of a message."""
    parts = part.content if isinstance(part, UserMessage) else ()
    return sum(len(str(one.get("image_url"))) for one in parts)


def question_index(parts: Sequence[ChatPart]) -> int:
    """Return the place of the last message of the user."""
    return max(user_messages(parts), default=-1)


def part_or_note(found: Item | str, *, is_asked: bool) -> Item:
    """Return a part, or the note that replaces it in an earlier message."""
    if not isinstance(found, str):
        return found
    if is_asked:
        raise InvalidRequest(found)
    return {"type": "input_text", "text": f"[{found}]"}


def fit_input(items: Sequence[Item]) -> list[Item]:
    """Return `items` with a note for each of the oldest pictures and files that are too
    many for a request.
    """
    left = [_MOST_PICTURES, _LARGEST_INPUT]
    return [_fit_item(item, left) for item in reversed(items)][::-1]


def _fit_item(item: Item, left: list[int]) -> Item:
    key = "output" if "output" in item else "content"
    rows = item.get(key)
    if not isinstance(rows, list) or not any(map(_held_file, rows)):
        return item
    return {**item, key: [_fit_part(part, left) for part in reversed(rows)][::-1]}


def _held_file(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    return part.get("image_url") or part.get("file_data")


def _fit_part(part: Item, left: list[int]) -> Item:
    if not (held := _held_file(part)):
        return part
    left[0] -= item_type(part) == "input_image"
    left[1] -= len(str(held))
    return part if min(left) >= 0 else {"type": "input_text", "text": _TOO_MUCH}


def _files_without_row(
    metadata: JsonObject,
) -> tuple[list[Attachment], list[Attachment]]:
    """Return the files of the last message, and others but for a model's knowledge."""
    own = _read_attachments(value_at(metadata, "user_message", "files"))
    knowledge = value_at(metadata, "model", "info", "meta", "knowledge")
    known = {str(row.get("id")) for row in content_parts(knowledge)}
    known.update(found.file_id for found in own)
    others = _read_attachments(metadata.get("files"))
    return own, [found for found in others if found.file_id not in known]


def _with_readable(
    message: UserMessage, scale: _Scale, *, is_asked: bool
) -> UserMessage:
    shown = [part for part in message.content if part.get("image_url")]
    if not shown:
        return message
    names = [found.name for found in message.attachments if found.is_image]
    left, parts = iter(names if len(names) == len(shown) else ()), list[Item]()
    for part in message.content:
        found: Item | str = part
        if part.get("image_url"):
            found = _readable_part(part, next(left, ""), scale)
        parts.append(part_or_note(found, is_asked=is_asked))
    return message.with_content(parts)


def _readable_part(part: Item, name: str, scale: _Scale) -> Item | str:
    url = str(part["image_url"])
    readable, is_held = _readable_url(url), url[:5].lower() == "data:"
    why = _UNKNOWN_PICTURE if is_held else GONE_FILE
    if is_held and len(url) > _LONGEST_URL:
        readable = image_data_url(scale(url.partition(",")[2]))
        why = _LARGE_PICTURE
    picture = {**part, "image_url": readable}
    return picture if readable else why.format(name or "A picture")


_HOST_PROMPT = f"{TOOL_IMAGES_PREFIX} Please analyze them."

UNREADABLE_IMAGE = "[A picture is in a form that you cannot read; the user sees it.]"
"""Replaces a picture of a tool that the API would refuse."""


def add_tool_images(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    """Return a chat without the host's own messages, their pictures at their outputs.

    `rows` are the messages of the chat's row.
    """
    users = user_messages(parts).items()
    made = {place: urls for place, part in users if (urls := _tool_image_urls(part))}
    if not made:
        return list(parts)
    result: list[ChatPart] = []
    bare = 0  # where the last outputs begin; they get pictures once
    counts = _image_counts(rows)
    for place, part in enumerate(parts):
        urls = made.get(place, [])
        last = result[bare:] if urls else []
        if outputs := [one for one in last if isinstance(one, ToolMessage)]:
            result[bare:] = _assign_images(outputs, urls, counts)
            bare = len(result)
        else:
            result.append(part)
            bare = bare if isinstance(part, ToolMessage) else len(result)
    return result


def tool_image(url: str) -> Item:
    """Return a picture of a tool as a part of its output."""
    if readable := _readable_url(url):
        return {"type": "input_image", "detail": "auto", "image_url": readable}
    return {"type": "input_text", "text": UNREADABLE_IMAGE}


def append_images(text: str, images: Sequence[Item]) -> str | list[Item]:
    """Return the output of a tool: a text, followed by pictures if there are any."""
    return [{"type": "input_text", "text": text}, *images] if images else text


def _tool_image_urls(message: UserMessage) -> list[str]:
    """Return the pictures of a message that the host made; of any other none."""
    first, *images = message.content or [{}]
    if first.get("text") != _HOST_PROMPT:
        return []
    urls = [str(image.get("image_url") or "") for image in images]
    return urls if all(urls) else []


def _assign_images(
    outputs: Sequence[ToolMessage], urls: Sequence[str], counts: Mapping[str, int]
) -> list[ChatPart]:
    shares = [counts.get(output.call_id, 0) for output in outputs]
    if sum(shares) != len(urls):
        shares = [*[0] * (len(outputs) - 1), len(urls)]
    left = iter(urls)
    return [
        output._replace(
            output=append_images(
                str(output.output), [tool_image(url) for url in islice(left, share)]
            )
        )
        for output, share in zip(outputs, shares, strict=True)
    ]


def _image_counts(rows: JsonObject) -> dict[str, int]:
    """Return the number of pictures in each output, by the ids of their calls."""
    outputs = (content_parts(value_at(row, "output")) for row in rows.values())
    return {
        str(item.get("call_id")): sum(
            item_type(part) == "input_image"
            for part in content_parts(item.get("output"))
        )
        for item in chain.from_iterable(outputs)
        if item.get("id") == f"fco_{item.get('call_id')}"  # as our cards have it
    }
