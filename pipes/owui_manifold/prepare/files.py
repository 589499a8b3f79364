"""The host's files that a chat names: documents for the model, and pictures it drew.

They are read with the rights of the current user.
"""

import base64
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import BytesIO

from openai_responses.items import Item
from owui_chat.file_names import shorten_name
from owui_chat.input.attachments import (
    GONE_FILE,
    PDF_TYPE,
    asked_files,
    document_part,
    document_type,
    part_or_note,
    question_index,
)
from owui_chat.messages import Attachment, ChatPart, UserMessage, user_messages
from owui_chat.storage.images import restore_images, stored_image_ids
from owui_chat.storage.records import Record
from owui_host.files import StoredFile, read_file, readable_file
from owui_host.users import HostUser, user_model

_MAX_DOCUMENT_BYTES = 50_000_000
"""The limit for all documents of one request."""

_TOO_LARGE = (
    "With {} the files of this chat exceed 50 MB, the limit of one request. Attach a "
    "smaller file, or start a new chat."
)


async def attached_file(file: Attachment, user: HostUser | None) -> StoredFile | None:
    """Return a file of a message that `user` may read, and whoever named it there.

    In a chat that others continue (Open WebUI 0.12), the others name files in their
    messages. What the answer tells of one is theirs to read, so a file of the owner that
    they may not read is not sent with the owner's next question.
    """
    stored = await readable_file(file.file_id, user)
    if stored is None or user is None or file.named_by in ("", user.id):
        return stored
    author = await user_model(file.named_by)
    return stored if await readable_file(file.file_id, author) else None


async def add_documents(
    parts: Sequence[ChatPart], user: HostUser | None, wanted: str
) -> list[ChatPart]:
    """Return a chat with the documents that the model reads itself.

    They go in front, where later changes do not reach them. `wanted` is `pdf` or
    `all`. Raises InvalidRequest for one that cannot be sent with the message that is
    asked.
    """
    result = list(parts)
    question = question_index(parts)
    left = _MAX_DOCUMENT_BYTES
    for index, part in enumerate(parts):
        if not isinstance(part, UserMessage) or not part.attachments:
            continue
        documents: list[Item] = []
        for file in part.attachments:
            document, size = await _read_document(file, user, wanted, left)
            left -= size
            if document is not None:
                documents.append(part_or_note(document, is_asked=index == question))
        result[index] = part.with_content([*documents, *part.content])
    return result


def document_ids(parts: Sequence[ChatPart], wanted: str) -> set[str]:
    """Return the host's ids of the documents that `add_documents` adds.

    A document whose message tells neither name nor type is not known before it is read.
    """
    ids = set[str]()
    for message in user_messages(parts).values():
        for file in message.attachments:
            kind = _wanted_type(file.name, file.content_type, wanted)
            if kind and not file.is_image:
                ids.add(file.file_id)
    return ids


async def silent_videos(parts: Sequence[ChatPart], user_id: str) -> set[str]:
    """Return the host's ids of the videos at the question of which it has no text.

    It stores most of them as they are, for tools (routers/files.py:176).
    """
    videos = [
        file.file_id
        for file in asked_files(parts)
        if file.content_type.startswith("video/")
    ]
    if not videos:
        return set()
    user = await user_model(user_id)
    silent: set[str] = set()
    for file_id in videos:
        stored = await readable_file(file_id, user)
        if stored and not stored.has_text:
            silent.add(file_id)
    return silent


def _wanted_type(name: str, declared: str, wanted: str) -> str:
    """Return the type of a document that the model gets; empty for other files."""
    kind = document_type(name, declared)
    if kind == PDF_TYPE or wanted == "all":
        return kind
    return ""


async def _read_document(
    file: Attachment, user: HostUser | None, wanted: str, left: int
) -> tuple[Item | str | None, int]:
    """Return a document and its size, of which as many bytes are `left`.

    A text says why it cannot be sent; None: it is not for the model.
    """
    if file.is_image:
        return None, 0
    stored = await attached_file(file, user)
    name = file.name
    declared = file.content_type
    if stored:
        name = name or shorten_name(stored.name)
        declared = declared or stored.media_type
    kind = _wanted_type(name, declared, wanted)
    if not kind:
        return None, 0
    if stored is None:
        return GONE_FILE.format(name), 0
    if stored.size > left:
        return _TOO_LARGE.format(name), 0

    def make_document(content: bytes) -> tuple[Item, int]:
        return document_part(name, kind, content), len(content)

    # The host may not know the size. One byte more tells that the file is longer.
    document = await read_file(stored, make_document, left + 1)
    if document is None:
        return GONE_FILE.format(name), 0
    if document[1] > left:
        return _TOO_LARGE.format(name), 0
    return document


async def load_stored_images(
    records: Mapping[str, Record], parts: Sequence[ChatPart], user_id: str
) -> Mapping[str, Record]:
    """Return a chat's records with the pictures that its answers name.

    Pictures that the user may not read, or that no longer exist, are left out.
    """
    wanted = stored_image_ids(parts, records)
    if not wanted:
        return records
    user = await user_model(user_id)
    pictures: dict[str, str] = {}
    for file_id in dict.fromkeys(wanted):
        file = await readable_file(file_id, user)
        encoded = await read_file(file, base64.b64encode)
        if encoded:
            pictures[file_id] = encoded.decode()
    return restore_images(records, pictures)


_MAX_SIDE_PIXELS = 2048
"""The API itself scales larger pictures down to about that."""

_MAX_PIXELS = 50_000_000
"""Of a picture that is decoded: each takes four bytes, and more for its scaled copy. A
few megabytes of PNG can hold any number; Pillow itself refuses only above 179 million."""
_SCALED_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
"""What the API reads. Pillow has decoders for many more, and runs a program for some."""


def scale_image(encoded: str) -> bytes:
    """Return a picture, given in base64, as a smaller JPEG; blocks.

    Empty if the host's library cannot read it, or if it has too many pixels.
    """
    scaled = BytesIO()
    try:
        file = BytesIO(base64.b64decode(encoded))
        # Only the header is read here; the pixels are decoded by what follows.
        with import_module("PIL.Image").open(file, formats=_SCALED_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                return b""
            image.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
            # A JPEG keeps neither the side on which a photo lies nor transparency:
            # drawings are mostly black lines on nothing.
            upright = import_module("PIL.ImageOps").exif_transpose(image)
            picture = upright.convert("RGBA")
            sheet = import_module("PIL.Image").new("RGB", picture.size, "white")
            sheet.paste(picture, mask=picture)
            sheet.save(scaled, "JPEG")
    except Exception:  # no Pillow, a damaged picture, too many pixels
        return b""
    return scaled.getvalue()
