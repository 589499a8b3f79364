"""Run events, joined as a whole, so that any chunking of a stream compares equal."""

from collections.abc import Iterable
from itertools import groupby

from openai_responses.loop.events import RunEvent
from openai_responses.transport.stream import TextDelta


def joined(events: Iterable[RunEvent]) -> list[RunEvent]:
    """Return `events` with neighboring growth of one text as one event."""
    out: list[RunEvent] = []
    for key, neighbors in groupby(events, _text_key):
        if key is None:
            out += neighbors
        else:
            texts = [event.text for event in neighbors if isinstance(event, TextDelta)]
            out.append(TextDelta(*key, "".join(texts)))
    return out


def grown_texts(events: Iterable[RunEvent]) -> dict[tuple[int, str, int], str]:
    """Return the texts that were shown, by item, kind and part."""
    texts: dict[tuple[int, str, int], str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            position = (event.output_index, event.kind, event.part)
            texts[position] = texts.get(position, "") + event.text
    return texts


def _text_key(event: RunEvent) -> tuple[int, str, int] | None:
    """Return what tells one growing text from another; None for all other events."""
    return (
        (event.output_index, event.kind, event.part)
        if isinstance(event, TextDelta)
        else None
    )
