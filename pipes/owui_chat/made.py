"""What a run made, as it is kept, shown and given back.

The edge stores pictures and files and puts a `card` beside the ended item: the `files`
to show, the `links` from addresses inside a container to those of the host, and
`notes`, lines of Markdown to put below a text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from openai_responses.items import Item, content_parts
from openai_responses.pictures import is_drawing
from openai_responses.run_events import ItemEnded
from owui_chat.markers import split_at_markers
from owui_chat.messages import Answered, Stretch
from owui_chat.stored import Record

_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def cited_files(item: Mapping[str, Any]) -> list[Item]:
    """Return the citations of container files in a message, one for each file."""
    parts = content_parts(item.get("content"))
    rows = [row for part in parts for row in content_parts(part.get("annotations"))]
    cited = (row for row in rows if row.get("type") == "container_file_citation")
    return list({str(row.get("file_id")): row for row in cited}.values())


def addresses_of(text: str, name: str) -> list[str]:
    """Return the addresses in `text` of the file in a container that has this name."""
    found = dict.fromkeys(_CONTAINER_ADDRESS.findall(text))
    return [
        address for address in found if PurePosixPath(unquote(address)).name == name
    ]


def made_text(text: str, card: Mapping[str, Any]) -> str:
    """Return a text with the addresses and the notes of its card."""
    links = card.get("links") or {}
    linked = _CONTAINER_ADDRESS.sub(lambda found: links.get(found[0], found[0]), text)
    return "\n\n".join([linked, *card.get("notes", ())])


def text_below(card: Mapping[str, Any]) -> str:
    """Return what a reader gets who has seen the text with its own addresses."""
    links = (card.get("links") or {}).items()
    lines = [
        f"[{PurePosixPath(unquote(address)).name}]({url})" for address, url in links
    ]
    return "".join(f"\n\n{line}" for line in [*lines, *card.get("notes", ())])


def kept_item(event: ItemEnded) -> Item:
    """Return what is kept of an item: of a stored picture only where it is stored."""
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
    """Return the ids of the stored pictures that the answers of a chat name."""
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
    """Return records with the stored pictures in them, as base64 by their ids.

    A picture that nobody may read any more is left out.
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
