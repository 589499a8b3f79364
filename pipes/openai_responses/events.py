"""The closed union of stream events that we act on.

All other events, also those that do not exist yet, are `Unknown`: they keep the
connection alive, nothing more (responses-api.md §0.5).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from openai_responses.errors import ApiError
from openai_responses.items import Item


class Delta(NamedTuple):
    """More of a text that grows while we read.

    `kind` says which: the "text" or "refusal" of a message, the "summary" or the raw
    "reasoning" of a reasoning item, the "arguments" of a call (a custom call's input
    and a remote server's too), the "code" that the API runs. `part` is the content or
    summary index, 0 for arguments and code. A tuple, as there is one for each token.
    """

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A text that has ended: it replaces the deltas of the same kind and place."""

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Annotated:
    """`response.output_text.annotation.added`: what a place in a text refers to."""

    output_index: int
    part: int
    annotation: Item


@dataclass(frozen=True, slots=True)
class Sketched:
    """`response.image_generation_call.partial_image`: a picture as far as it is drawn.

    `image` is base64, `form` its format where the server tells it.
    """

    output_index: int
    number: int
    image: str
    form: str


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """`response.output_item.added`: an item began; its content is still missing."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ItemDone:
    """`response.output_item.done`: the item as it counts, encrypted content included."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """`response.completed`, `.incomplete` or `.failed`, with the final snapshot.

    `status` is "cancelled", too, where the response itself was asked for.
    """

    status: str
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamError:
    """`error`: the request failed; no response object comes with it."""

    error: ApiError


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything else, by its type."""

    type: str


StreamEvent = (
    Delta
    | Whole
    | Annotated
    | Sketched
    | ItemAdded
    | ItemDone
    | ResponseEnded
    | StreamError
    | Unknown
)


def joined_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events` with neighbouring deltas of one text as one delta."""
    out: list[StreamEvent] = []
    for place, neighbours in groupby(events, _delta_place):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, Delta)]
            out.append(Delta(*place, "".join(texts)))
    return out


def _delta_place(event: StreamEvent) -> tuple[str, int, int] | None:
    """Return what tells one growing text from another; None for all other events."""
    return event[:3] if isinstance(event, Delta) else None
