"""Images and files that users or tools attached, as input parts.

The API reads PNG, JPEG, WEBP and GIFs of one frame, told by their first bytes, and
documents by their type. The name of a document counts first, because the type that
browsers declare differs between systems. Open WebUI keeps with a message of the user
the files it came with, and puts only the images into what it sends
(utils/middleware.py:2124). What cannot be sent with the message that is asked is an
error; in place of one at an earlier message the model gets a note, so that the chat
goes on.

A chat stores images of tools by their addresses. The host reads them for the next
request, but moves them out of the outputs into a message that no one wrote
(utils/misc.py:393); they go back to their outputs here. The chat's row tells how many
belong to each output of ours. Of the host's outputs, whose round goes on before it is
stored, the last one gets them all.
"""

import base64
import re
from collections.abc import Callable, Container, Sequence
from itertools import islice
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts, has_web_scheme, item_type
from openai_responses.json_input import JsonObject, as_mapping, as_text, value_at
from owui_chat.file_names import INERT_TYPES, shorten_name
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
_MORE_THAN_A_LINE = 80
"""Characters of base64: encoders for mail end a line after 64 or 76."""
_GIF_FRAME = b"\x00\x21\xf9\x04"
"""Is before each frame of an animated GIF."""


def _image_type(content: bytes) -> str:
    """Return the media type of an image; empty if the API cannot read it."""
    signature = _SIGNATURE.match(content)
    if signature is None:
        return ""
    if signature["gif"] and content.count(_GIF_FRAME) > 1:
        return ""  # the API refuses animations
    return f"image/{signature.lastgroup}"


def image_data_url(content: bytes) -> str:
    """Return an image as a data URL; empty if the API cannot read it."""
    media_type = _image_type(content)
    if not media_type:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _readable_url(url: str) -> str:
    """Return the address of an image with its real type; empty if unreadable.

    The API itself fetches images from the web.
    """
    if has_web_scheme(url):
        return url
    label, _, payload = url.partition(";base64,")
    if label[:5].lower() != "data:" or len(url) > _MAX_IMAGE_URL:
        return ""
    beginning = payload[:_MORE_THAN_A_LINE]
    if beginning.split() != [beginning]:
        payload = "".join(payload.split())  # some servers decode up to the first break
    try:
        media_type = _image_type(base64.b64decode(payload[:_HEAD]))
        if media_type == "image/gif":  # an animation shows only in the whole of it
            media_type = _image_type(base64.b64decode(payload))
    except ValueError:  # no base64, or not even ASCII
        return ""
    return f"data:{media_type};base64,{payload}" if media_type else ""


_DOCUMENTS = "csv doc docx json md odt pdf ppt pptx rtf tsv xls xlsx"
_DOCUMENT_TYPES = {
    **{ending: INERT_TYPES[ending] for ending in _DOCUMENTS.split()},
    "htm": "text/html",
    "html": "text/html",
    "xml": "text/xml",
}
PDF_TYPE = _DOCUMENT_TYPES["pdf"]
_PLAIN_TEXT = (
    "c cc cpp cs css go h hpp ini java js jsx kt log lua php pl py r rb rs sh sql swift "
    "tex toml ts tsx txt vb yaml yml"
)


def document_type(name: str, declared: str) -> str:
    """Return the media type of a document; empty if the API cannot read it."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PLAIN_TEXT.split():
        return "text/plain"
    if suffix in _DOCUMENT_TYPES:
        return _DOCUMENT_TYPES[suffix]
    media_type = declared.partition(";")[0].strip().lower()
    if media_type in _DOCUMENT_TYPES.values() or media_type.startswith("text/"):
        return media_type
    return ""


def document_part(name: str, media_type: str, content: bytes) -> Item:
    """Return a document as a part of a content."""
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": url}


GONE_FILE = (
    "{} cannot be read: it is gone, or it is not yours. Remove it from the message and "
    "send it again."
)
_UNKNOWN_IMAGE = (
    "{} is in a format that the model cannot read. It reads PNG, JPEG, WEBP, and GIF "
    "without animation: convert it and send it again."
)
_LARGE_IMAGE = (
    "{} is larger than the 50 MB that the model reads, and Open WebUI could not make it "
    "smaller. Attach a smaller one, of up to 50 megapixels."
)
_SVG_AS_TEXT = (
    "The model reads {} as text and cannot see the image. Attach a PNG instead."
)
_UNREAD = (
    "Open WebUI could not read {}, so the model gets none of it. Attach it in another "
    "format, or paste its text."
)
_Scale = Callable[[str], bytes]
"""Returns an image in base64 in fewer bytes, or nothing."""

_MAX_IMAGE_URL = 66_000_000
"""An image of 50 MB in base64: the limit is an assumption."""
_MAX_IMAGES = 1500
_MAX_INPUT_CHARACTERS = 512_000_000
_TOO_MUCH = (
    f"[An image or file is left out: one request takes {_MAX_IMAGES} images and "
    f"{_MAX_INPUT_CHARACTERS // 1_000_000} MB.]"
)


_MAX_ATTACHMENTS = 200
"""Files of a chat that are looked at."""


def attach_files(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which the user's messages have the files they came with.

    `rows` are the messages of the chat's row. Without a row only the files of the last
    message are known as such; all others are put at the first one.
    """
    users = user_messages(parts)
    files: dict[int, list[Attachment]] = {}
    if rows:
        # Whoever owns a chat can write any number of files into its row, and each is
        # looked up in the host's database: the newest count.
        left = _MAX_ATTACHMENTS
        for position, user in reversed(users.items()):
            if user.stored:
                row = user.stored.row
                author = as_text(row.get("user_id"))
                attached = _read_attachments(row.get("files"), author)[:left]
                files[position] = attached
                left -= len(attached)
    elif users:
        rows_of_last = value_at(metadata, "user_message", "files")
        own = _read_attachments(rows_of_last)[:_MAX_ATTACHMENTS]
        # The host lists them together with the knowledge of the model.
        knowledge = value_at(metadata, "model", "info", "meta", "knowledge")
        known_ids = {str(row.get("id")) for row in content_parts(knowledge)}
        known_ids.update(attachment.file_id for attachment in own)
        others: list[Attachment] = []
        for attachment in _read_attachments(metadata.get("files")):
            if attachment.file_id not in known_ids:
                others.append(attachment)
        others = others[: _MAX_ATTACHMENTS - len(own)]
        first = min(users)
        last = max(users)
        files[last] = own
        # In a chat of one message the first is the last.
        files[first] = others + files.get(first, [])
    result = list(parts)
    for position, attachments in files.items():
        result[position] = users[position]._replace(attachments=attachments)
    return result


def _read_attachments(files: object, author: str = "") -> list[Attachment]:
    """Return the files that came with a message; the host reads knowledge itself."""
    attachments: list[Attachment] = []
    for row in content_parts(files):
        kind = row.get("type")
        is_usable = kind in ("file", "image") and row.get("id")
        if is_usable and not row.get("knowledge"):
            name = shorten_name(str(row.get("name") or ""))
            content_type = str(row.get("content_type") or "")
            is_image = kind == "image" or content_type.startswith("image/")
            # Of a PDF that is scanned, or that nothing on this server can read, the page
            # tells only while it is uploaded (routers/files.py:260).
            text = as_mapping(value_at(row, "file", "data"))
            is_unread = text.get("status") == "failed" and not text.get("content")
            attachments.append(
                Attachment(
                    str(row["id"]), name, content_type, is_image, is_unread, author
                )
            )
    return attachments


def resolve_images(parts: Sequence[ChatPart], scale: _Scale) -> list[ChatPart]:
    """Return a chat in which the API can read every image of a message.

    `scale` makes one smaller that is too large. Raises InvalidRequest for an unreadable
    one in the message that is asked.
    """
    question = question_index(parts)
    resolved = list(parts)
    for position, message in enumerate(parts):
        if not isinstance(message, UserMessage):
            continue
        images = [part for part in message.content if item_type(part) == "input_image"]
        if not images:
            continue
        # The host puts the attached images into a message in their order, without names.
        names = [file.name for file in message.attachments if file.is_image]
        if len(names) != len(images):
            names = [""] * len(images)
        remaining = iter(names)
        content: list[Item] = []
        for part in message.content:
            readable: Item | str = part
            if item_type(part) == "input_image":
                readable = _readable_image(part, next(remaining), scale)
            content.append(part_or_note(readable, is_asked=position == question))
        resolved[position] = message.with_content(content)
    return resolved


def svg_notice(parts: Sequence[ChatPart]) -> str:
    """Return the message for a user who attached an SVG, which the host sends as a file."""
    names = [
        file.name
        for file in asked_files(parts)
        if file.content_type.startswith("image/svg")
    ]
    return _SVG_AS_TEXT.format(", ".join(names)) if names else ""


def unread_notice(
    parts: Sequence[ChatPart], whole: Container[str], silent: Container[str] = ()
) -> str:
    """Return the message for a user whose file the host could not read.

    The files with the ids `whole` need no reading: the model or its code gets them. Of
    those with the ids `silent` the host has no text, although nothing failed.
    """
    names: list[str] = []
    for file in asked_files(parts):
        is_unread = file.is_unread or file.file_id in silent
        if is_unread and not file.is_image and file.file_id not in whole:
            names.append(file.name)
    return _UNREAD.format(", ".join(names)) if names else ""


def asked_files(parts: Sequence[ChatPart]) -> Sequence[Attachment]:
    """Return the files at the message that is asked."""
    question = user_messages(parts).get(question_index(parts))
    return question.attachments if question else ()


def image_length(part: ChatPart) -> int:
    """Return the length of the data URLs of a message."""
    if not isinstance(part, UserMessage):
        return 0
    return sum(len(str(row.get("image_url"))) for row in part.content)


def question_index(parts: Sequence[ChatPart]) -> int:
    """Return the place of the last message of the user."""
    return max(user_messages(parts), default=-1)


def part_or_note(part: Item | str, *, is_asked: bool) -> Item:
    """Return a part, or the note that replaces it in an earlier message.

    A text says why there is no part; for the message that is asked it is raised, as
    InvalidRequest.
    """
    if not isinstance(part, str):
        return part
    if is_asked:
        raise InvalidRequest(part)
    return {"type": "input_text", "text": f"[{part}]"}


def fit_input(items: Sequence[Item]) -> list[Item]:
    """Return `items` as a request can hold them.

    Of too many images and files the oldest become a note each.
    """
    images = _MAX_IMAGES
    characters = _MAX_INPUT_CHARACTERS
    newest_first: list[Item] = []
    for item in reversed(items):
        key = "output" if "output" in item else "content"
        rows = item.get(key)
        # Most items have none, and need no copy.
        if not isinstance(rows, list) or not any(_file_content(row) for row in rows):
            newest_first.append(item)
            continue
        parts: list[Item] = []
        for part in reversed(rows):
            content = _file_content(part)
            # What is too much also takes its room: nothing older is sent in its place.
            characters -= len(content)
            if content and item_type(part) == "input_image":
                images -= 1
            if content and (images < 0 or characters < 0):
                parts.append({"type": "input_text", "text": _TOO_MUCH})
            else:
                parts.append(part)
        newest_first.append({**item, key: parts[::-1]})
    return newest_first[::-1]


def _file_content(part: Any) -> str:
    """Return the image or file that a part holds, as a data URL; empty for none."""
    if not isinstance(part, dict):
        return ""
    return str(part.get("image_url") or part.get("file_data") or "")


def _readable_image(part: Item, name: str, scale: _Scale) -> Item | str:
    """Return an image that the API can read, or why there is none.

    In place of a deleted image the host leaves the id of its file. One that a program
    names by the id of a file at OpenAI has no address (`parse_messages`).
    """
    url = str(part.get("image_url") or "")
    is_whole = url[:5].lower() == "data:"
    if is_whole and len(url) > _MAX_IMAGE_URL:
        readable = image_data_url(scale(url.partition(",")[2]))
        problem = _LARGE_IMAGE
    else:
        readable = _readable_url(url)
        problem = _UNKNOWN_IMAGE if is_whole else GONE_FILE
    if not readable:
        return problem.format(name or "An image")
    return {**part, "image_url": readable}


_HOST_PROMPT = f"{TOOL_IMAGES_PREFIX} Please analyze them."

UNREADABLE_IMAGE = "[An image is in a format that you cannot read; the user sees it.]"
"""Replaces an image of a tool that the API would refuse."""


def add_tool_images(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    """Return a chat without the host's own messages, their images at their outputs.

    `rows` are the messages of the chat's row.
    """
    urls_by_position: dict[int, list[str]] = {}
    for position, user in user_messages(parts).items():
        content = user.content
        if content and content[0].get("text") == _HOST_PROMPT:
            urls = [str(image.get("image_url") or "") for image in content[1:]]
            if urls and "" not in urls:
                urls_by_position[position] = urls
    if not urls_by_position:
        return list(parts)
    # How many images each output has, by the id of its call, as our cards have it.
    counts: dict[str, int] = {}
    for row in rows.values():
        for item in content_parts(value_at(row, "output")):
            call_id = item.get("call_id")
            if item.get("id") == f"fco_{call_id}":
                kinds = [item_type(part) for part in content_parts(item.get("output"))]
                counts[str(call_id)] = kinds.count("input_image")
    result: list[ChatPart] = []
    # The outputs at the end of the result that have no images yet.
    outputs: list[ToolMessage] = []
    for position, part in enumerate(parts):
        urls = urls_by_position.get(position, [])
        if urls and outputs:
            # The last output gets all images if the counts differ.
            shares = [counts.get(output.call_id, 0) for output in outputs]
            if sum(shares) != len(urls):
                shares = [0] * len(outputs)
                shares[-1] = len(urls)
            remaining = iter(urls)
            del result[-len(outputs) :]
            for output, share in zip(outputs, shares, strict=True):
                images = [tool_image(url) for url in islice(remaining, share)]
                with_images = append_images(str(output.output), images)
                result.append(output._replace(output=with_images))
            outputs.clear()
            continue
        result.append(part)
        if isinstance(part, ToolMessage):
            outputs.append(part)
        else:
            outputs.clear()
    return result


def tool_image(url: str) -> Item:
    """Return an image of a tool as a part of its output."""
    readable = _readable_url(url)
    if not readable:
        return {"type": "input_text", "text": UNREADABLE_IMAGE}
    return {"type": "input_image", "detail": "auto", "image_url": readable}


def append_images(text: str, images: Sequence[Item]) -> str | list[Item]:
    """Return the output of a tool: a text, followed by images if there are any."""
    if not images:
        return text
    return [{"type": "input_text", "text": text}, *images]
