"""The closed union of what a run reports to those who show it or keep it.

`index` counts the output items of the whole run, over all its turns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openai_responses.endings import Ending
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.models.usage import Usage


@dataclass(frozen=True, slots=True)
class ItemStarted:
    """An item began; `item` is what is known of it so far."""

    index: int
    item: Item


@dataclass(frozen=True, slots=True)
class Grew:
    """A text of the item at `index` grew by `text`.

    `kind` and `part` are those of `events.Delta`.
    """

    index: int
    kind: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A place in a text of the message at `index` refers to something.

    `annotation` is the wire's own; the ended item has it again.
    """

    index: int
    part: int
    annotation: Item


@dataclass(frozen=True, slots=True)
class Pictured:
    """A picture of the item at `index` as far as it is drawn.

    The fields are those of `events.Sketched`.
    """

    index: int
    number: int
    image: str
    form: str


@dataclass(frozen=True, slots=True)
class ItemEnded:
    """An item is whole: `item` is the wire dict that counts, byte for byte.

    `card` holds what a host shows beside it (`files`, `links`, `notes`).
    """

    index: int
    item: Item
    card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call got its output; `item` is the input item that gives it to the model.

    `card` holds what a host shows beside it (`files`, `embeds`).
    """

    index: int
    item: Item
    failed: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """One response ended in an orderly way; `usage` is None when it was not told."""

    response_id: str
    status: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a person should know while they wait, as a status line.

    `cause` names what was given up to get an answer (`healing.Healed`), or is empty.
    """

    sentence: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the log needs to know of the last response.

    `request_id` is OpenAI's own id of the request, `model` what answered it, `status`
    the HTTP status, if there was one, `error` what the API said went wrong, `removed`
    how many items the API took out of the input, by the reason.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = field(default_factory=ApiError)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of every run, however it ended.

    `usage` adds up all turns, `last_usage` is that of the last one; `output` holds the
    items of the whole run that ended, outputs of calls among them; `cost` is in US
    dollars, None where it is unknown or nobody asked.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = field(default_factory=Trace)
    cost: float | None = None


RunEvent = (
    ItemStarted
    | Grew
    | Cited
    | Pictured
    | ItemEnded
    | CallAnswered
    | TurnEnded
    | Noted
    | RunEnded
)
