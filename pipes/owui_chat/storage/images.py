"""Images that an answer made, as they are stored and sent back."""

from collections.abc import Iterable, Mapping

from openai_responses.items import Item, image_format, is_image_call
from openai_responses.json_input import JsonObject
from openai_responses.transport.stream import ItemDone
from owui_chat.messages import AssistantText, ChatPart
from owui_chat.storage.markers import split_at_markers
from owui_chat.storage.records import Record


def stored_item(event: ItemDone) -> Item:
    """Return what is kept of an item: of a stored image only where it is stored.

    An image that is shown from an address of the web is not: such addresses expire.
    """
    files = event.card.get("files")
    if not is_image_call(event.item) or not files:
        return event.item
    stored: Item = {"type": event.item["type"]}
    output_format = image_format(event.item)
    if event.item.get("output_format") or output_format != "png":
        stored["output_format"] = output_format
    stored["stored"] = files[0]["id"]
    return stored


def is_stored_image(item: JsonObject) -> bool:
    """Say whether `item` names a stored image."""
    return is_image_call(item) and isinstance(item.get("stored"), str)


def stored_image_ids(
    parts: Iterable[ChatPart], records: Mapping[str, Record]
) -> list[str]:
    """Return the ids of the stored images in the answers of a chat."""
    file_ids: dict[str, list[str]] = {}
    for ulid, record in records.items():
        ids = [item["stored"] for item in record.payload if is_stored_image(item)]
        if ids:
            file_ids[ulid] = ids
    if not file_ids:  # the texts need not be searched
        return []
    ulids: set[str] = set()
    for part in parts:
        if isinstance(part, AssistantText):
            ulids.update(part.ulids)
            ulids.update(piece.ulid for piece in split_at_markers(part.text))
    wanted: list[str] = []
    for ulid in ulids:
        wanted += file_ids.get(ulid, [])
    return wanted


def restore_images(
    records: Mapping[str, Record], images: Mapping[str, str]
) -> dict[str, Record]:
    """Return records with the stored images in them, as base64 by id.

    An image that the user may no longer read is left out.
    """
    restored: dict[str, Record] = {}
    for ulid, record in records.items():
        payload: list[Item] = []
        for item in record.payload:
            if not is_stored_image(item):
                payload.append(item)
            elif item["stored"] in images:
                payload.append({**item, "result": images[item["stored"]]})
        restored[ulid] = record._replace(payload=tuple(payload))
    return restored
