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
from collections.abc import Callable, Mapping, Sequence

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts, item_type
from openai_responses.json_input import JsonObject, as_list, as_mapping
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.messages import (
    Attachment,
    ChatPart,
    ToolMessage,
    UserMessage,
    user_messages,
)

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_HEAD = 24
"""Characters of base64 that contain every signature."""
_GIF_FRAME = b"\x00\x21\xf9\x04"
"""Stands before each frame of an animated GIF."""


def _image_type(content: bytes) -> str:
    """Return the media type of a picture; empty if the API cannot read it."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind if content.count(_GIF_FRAME) < 2 else ""
    return ""


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
    if _is_too_large(url):
        return ""
    label, _, payload = url.partition(";base64,")
    kind = _encoded_type(payload) if label[:5].lower() == "data:" else ""
    return f"data:{kind};base64,{payload}" if kind else ""


def _input_image(url: str, detail: str) -> Item:
    return {"type": "input_image", "detail": detail, "image_url": url}


def _encoded_type(payload: str) -> str:
    """Return the media type of a picture in base64; a GIF is read completely."""
    try:
        kind = _image_type(base64.b64decode(payload[:_HEAD]))
        if kind == "image/gif":
            return _image_type(base64.b64decode(payload))
    except ValueError:  # no base64, or not even ASCII
        return ""
    return kind


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


def _is_too_large(url: str) -> bool:
    """Say whether the API refuses a data URL for its length."""
    return len(url) > _LONGEST_URL and url[:5].lower() == "data:"


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
    return [
        _attachment(row)
        for row in map(as_mapping, as_list(files))
        if row.get("type") in ("file", "image")
        and row.get("id")
        and not row.get("knowledge")
    ]


def resolve_images(parts: Sequence[ChatPart], scale: _Scale) -> list[ChatPart]:
    """Return a chat in which the API can read every picture of a message.

    `scale` makes one smaller that is too large. Raises InvalidRequest for an unreadable
    one in the message that is asked.
    """
    question, result = question_index(parts), list(parts)
    for place, part in enumerate(parts):
        if isinstance(part, UserMessage):
            result[place] = _with_readable(part, scale, is_asked=place == question)
    return result


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
    if not isinstance(rows, list):
        return item
    fitted = [_fit_part(part, left) for part in reversed(rows)][::-1]
    return item if fitted == rows else {**item, key: fitted}


def _fit_part(part: Item, left: list[int]) -> Item:
    held = len(part.get("image_url") or part.get("file_data") or "")
    left[0] -= item_type(part) == "input_image"
    left[1] -= held
    fits = not held or min(left) >= 0
    return part if fits else {"type": "input_text", "text": _TOO_MUCH}


def _files_without_row(
    metadata: JsonObject,
) -> tuple[list[Attachment], list[Attachment]]:
    own = _read_attachments(as_mapping(metadata.get("user_message")).get("files"))
    knowledge, owned = _knowledge_ids(metadata.get("model")), set(own)
    others = [
        found
        for found in _read_attachments(metadata.get("files"))
        if found.file_id not in knowledge and found not in owned
    ]
    return own, others


def _knowledge_ids(model: object) -> set[str]:
    """Return the ids of the files that an administrator gave to a model."""
    found = model
    for key in ("info", "meta", "knowledge"):
        found = as_mapping(found).get(key)
    return {str(as_mapping(row).get("id")) for row in as_list(found)}


def _attachment(row: JsonObject) -> Attachment:
    content_type = str(row.get("content_type") or "")
    is_image = row["type"] == "image" or content_type.startswith("image/")
    return Attachment(
        str(row["id"]), str(row.get("name") or ""), content_type, is_image
    )


def _with_readable(
    message: UserMessage, scale: _Scale, *, is_asked: bool
) -> UserMessage:
    parts = message.content
    shown = [place for place, part in enumerate(parts) if part.get("image_url")]
    names = [found.name for found in message.attachments if found.is_image]
    if not shown:
        return message
    if len(names) != len(shown):
        names = [""] * len(shown)
    for place, name in zip(shown, names, strict=True):
        found = _readable_part(parts[place], name, scale)
        parts[place] = part_or_note(found, is_asked=is_asked)
    return message.with_content(parts)


def _readable_part(part: Item, name: str, scale: _Scale) -> Item | str:
    url, shown = str(part["image_url"]), name or "A picture"
    if readable := _readable_url(url):
        return _input_image(readable, part["detail"])
    if _is_too_large(url):
        smaller = image_data_url(scale(url.partition(",")[2]))
        part = _input_image(smaller, part["detail"])
        return part if smaller else _LARGE_PICTURE.format(shown)
    held = url[:5].lower() == "data:"
    return (_UNKNOWN_PICTURE if held else GONE_FILE).format(shown)


_HOST_PROMPT = f"{TOOL_IMAGES_PREFIX} Please analyze them."

UNREADABLE_IMAGE = "[A picture is in a form that you cannot read; the user sees it.]"
"""Replaces a picture of a tool that the API would refuse."""


def add_tool_images(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    """Return a chat without the host's own messages, their pictures at their outputs.

    `rows` are the messages of the chat's row.
    """
    result: list[ChatPart] = []
    bare = 0  # where the last outputs begin; they get pictures once
    counts, users = _image_counts(rows), user_messages(parts)
    for place, part in enumerate(parts):
        urls = _tool_image_urls(users[place]) if place in users else []
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
        return _input_image(readable, "auto")
    return {"type": "input_text", "text": UNREADABLE_IMAGE}


def append_images(text: str, images: Sequence[Item]) -> str | list[Item]:
    """Return the output of a tool: a text, followed by pictures if there are any."""
    return [{"type": "input_text", "text": text}, *images] if images else text


def _tool_image_urls(message: UserMessage) -> list[str]:
    """Return the pictures of a message that the host made; of any other none."""
    first, *images = message.content or [{}]
    is_made = first.get("text") == _HOST_PROMPT
    if not is_made or not all(image.get("image_url") for image in images):
        return []
    return [str(image["image_url"]) for image in images]


def _assign_images(
    outputs: Sequence[ToolMessage], urls: Sequence[str], counts: Mapping[str, int]
) -> list[ChatPart]:
    shares = [counts.get(output.call_id, 0) for output in outputs]
    if sum(shares) != len(urls):
        shares = [*[0] * (len(outputs) - 1), len(urls)]
    left = iter(urls)
    result: list[ChatPart] = []
    for output, share in zip(outputs, shares, strict=True):
        images = [tool_image(next(left)) for _ in range(share)]
        with_images = append_images(str(output.output), images)
        result.append(output._replace(output=with_images))
    return result


def _image_counts(rows: JsonObject) -> dict[str, int]:
    outputs = (as_mapping(row).get("output") for row in rows.values())
    items = [item for output in outputs for item in content_parts(output)]
    return {
        str(item.get("call_id")): [
            item_type(part) for part in content_parts(item.get("output"))
        ].count("input_image")
        for item in items
        if item.get("id") == f"fco_{item.get('call_id')}"  # as our cards have it
    }
