"""Pictures that an answer made, as they are stored and sent back."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from openai_responses.items import Item, is_drawing
from openai_responses.loop.events import ItemEnded
from owui_chat.messages import Answered, Stretch
from owui_chat.storage.markers import split_at_markers
from owui_chat.storage.records import Record


def kept_item(event: ItemEnded) -> Item:
    """Return what is stored of an item; of a stored picture only its file's id."""
    files = event.card.get("files")
    if not is_drawing(event.item) or not files:
        return event.item
    form = event.item.get("output_format")
    return {
        "type": event.item["type"],
        **({"output_format": form} if form else {}),
        "stored": files[0]["id"],
    }


def is_kept_picture(item: Mapping[str, Any]) -> bool:
    """Say whether `item` names a stored picture."""
    return is_drawing(item) and isinstance(item.get("stored"), str)


def wanted_pictures(
    stretches: Iterable[Stretch], records: Mapping[str, Record]
) -> list[str]:
    """Return the ids of the stored pictures in the answers of a chat."""
    drawn = {ulid for ulid, record in records.items() if _has_kept_picture(record)}
    if not drawn:
        return []
    texts = (s.text for s in stretches if isinstance(s, Answered))
    named = {piece.ulid for text in texts for piece in split_at_markers(text)}
    return [
        item["stored"]
        for ulid in drawn & named
        for item in records[ulid].payload
        if is_kept_picture(item)
    ]


def with_pictures(
    records: Mapping[str, Record], pictures: Mapping[str, str]
) -> dict[str, Record]:
    """Return records with the stored pictures in them, as base64 by id.

    A picture that the user may no longer read is left out.
    """
    filled = {
        ulid: replace(record, payload=tuple(_filled(record.payload, pictures)))
        for ulid, record in records.items()
        if _has_kept_picture(record)
    }
    return {**records, **filled}


def _has_kept_picture(record: Record) -> bool:
    return any(map(is_kept_picture, record.payload))


def _filled(payload: Iterable[Item], pictures: Mapping[str, str]) -> Iterator[Item]:
    for item in payload:
        if not is_kept_picture(item):
            yield item
        elif item["stored"] in pictures:
            kept = {key: value for key, value in item.items() if key != "stored"}
            yield {**kept, "result": pictures[item["stored"]]}
