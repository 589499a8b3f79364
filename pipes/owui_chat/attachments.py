"""What people attached to which message of a chat.

Open WebUI keeps with a message of the user the files it came with, and shows a pipe the
pictures alone (utils/middleware.py:2124). What cannot be sent with the message that is
asked is an error; of an earlier message the model is told, so that the chat goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts, item_type
from owui_chat.image_input import image_part, readable_url
from owui_chat.messages import Said, Stretch
from owui_chat.paired import paired_messages, users_places

GONE_FILE = (
    "{} cannot be read: it is gone, or it is not yours. Remove it from the message and "
    "send it again."
)
_UNKNOWN_PICTURE = (
    "{} is in a form that the model cannot read. It reads PNG, JPEG, WEBP, and GIF that "
    "does not move: convert it and send it again."
)
_MOST_PICTURES = 1500
_LARGEST_INPUT = 512_000_000


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file at a message, as the host notes it there."""

    file_id: str
    name: str
    content_type: str
    is_image: bool  # the host itself puts it into the message


def attachments_by_place(
    stretches: Sequence[Stretch],
    messages: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> dict[int, list[Attachment]]:
    """Return what was attached to the user's messages, by their places in the chat.

    `messages` are those of the chat's row, by id. A chat without a row tells the
    files of its last message apart from all others; these stand at the first one.
    """
    if not messages:
        return _without_row(users_places(stretches), metadata)
    pairs = paired_messages(stretches, messages, metadata).items()
    return {place: read_attachments(one.message.get("files")) for place, one in pairs}


def read_attachments(files: object) -> list[Attachment]:
    """Return the files that came with a message; knowledge is the host's own."""
    rows = files if isinstance(files, list) else []
    return [
        _attachment(row)
        for row in rows
        if isinstance(row, Mapping)
        and row.get("type") in ("file", "image")
        and row.get("id")
        and not row.get("knowledge")
    ]


def with_parts(said: Said, parts: Sequence[Item]) -> Said:
    """Return a message with `parts` in front, where later changes do not reach them."""
    content = [*parts, *content_parts(said.item.get("content"))]
    return Said({**said.item, "content": content})


def with_readable_images(
    stretches: Sequence[Stretch], attached: Mapping[int, Sequence[Attachment]]
) -> list[Stretch]:
    """Return a chat in which the API can read every picture of a message.

    Raises InvalidRequest for one that it cannot, by its name, in the message asked.
    """
    asked = asked_place(stretches)
    return [
        (
            _with_readable(stretch, attached.get(place, ()), is_asked=place == asked)
            if isinstance(stretch, Said)
            else stretch
        )
        for place, stretch in enumerate(stretches)
    ]


def asked_place(stretches: Sequence[Stretch]) -> int:
    """Return the place of the last message of the user."""
    return max(users_places(stretches), default=-1)


def part_or_note(found: Item | str, *, is_asked: bool) -> Item:
    """Return a part, or the sentence that stands for it in an earlier message."""
    if not isinstance(found, str):
        return found
    if is_asked:
        raise InvalidRequest(found)
    return {"type": "input_text", "text": f"[{found}]"}


def refuse_too_much(items: Sequence[Item]) -> None:
    """Raise InvalidRequest for more pictures or bytes than one request may hold."""
    contents = [item.get("content") or item.get("output") for item in items]
    parts = [part for content in contents for part in content_parts(content)]
    pictures = sum(item_type(part) == "input_image" for part in parts)
    held = sum(
        len(part.get("image_url") or part.get("file_data") or "") for part in parts
    )
    if pictures > _MOST_PICTURES or held > _LARGEST_INPUT:
        raise InvalidRequest(
            f"This chat holds {pictures} pictures and {held // 1_000_000} MB of pictures "
            f"and files. One request takes {_MOST_PICTURES} and "
            f"{_LARGEST_INPUT // 1_000_000} MB: start a new chat."
        )


def _without_row(
    places: Sequence[int], metadata: Mapping[str, Any]
) -> dict[int, list[Attachment]]:
    message = metadata.get("user_message")
    own = read_attachments(
        message.get("files") if isinstance(message, Mapping) else None
    )
    knowledge = _knowledge_ids(metadata.get("model"))
    others = [
        found
        for found in read_attachments(metadata.get("files"))
        if found.file_id not in knowledge and found not in own
    ]
    if not places:
        return {}
    if len(places) == 1:
        return {places[0]: [*others, *own]}
    return {places[0]: others, places[-1]: own}


def _knowledge_ids(model: object) -> set[str]:
    """Return the ids of the files that an administrator gave to a model."""
    found = model
    for key in ("info", "meta", "knowledge"):
        found = found.get(key) if isinstance(found, Mapping) else None
    rows = found if isinstance(found, list) else []
    return {str(row.get("id")) for row in rows if isinstance(row, Mapping)}


def _attachment(row: Mapping[str, Any]) -> Attachment:
    content_type = str(row.get("content_type") or "")
    is_image = row["type"] == "image" or content_type.startswith("image/")
    return Attachment(
        str(row["id"]), str(row.get("name") or ""), content_type, is_image
    )


def _with_readable(
    said: Said, attached: Sequence[Attachment], *, is_asked: bool
) -> Said:
    parts = content_parts(said.item.get("content"))
    shown = [part for part in parts if part.get("image_url")]
    names = [found.name for found in attached if found.is_image]
    named = iter(names if len(names) == len(shown) else ())
    checked = [
        (
            part_or_note(_readable_part(part, next(named, "")), is_asked=is_asked)
            if part.get("image_url")
            else part
        )
        for part in parts
    ]
    return Said({**said.item, "content": checked})


def _readable_part(part: Item, name: str) -> Item | str:
    """Return a picture that the API reads, or why it does not."""
    url, shown = str(part["image_url"]), name or "A picture"
    if readable := readable_url(url):
        return image_part(readable, part["detail"])
    held = url[:5].lower() == "data:"
    return (_UNKNOWN_PICTURE if held else GONE_FILE).format(shown)
