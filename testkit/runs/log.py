"""What a run reports, as lines that a person reads at a glance."""

from collections.abc import Iterable

from openai_responses.items import item_type
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.transport.stream import (
    AnnotationAdded,
    ItemAdded,
    ItemDone,
    PartialImage,
    TextDelta,
)


def log_of(events: Iterable[RunEvent]) -> list[str]:
    """Return one line an event: the item's index first, then what happened to it."""
    return [_line(event) for event in events]


def answer_text(events: Iterable[RunEvent]) -> str:
    deltas = [event for event in events if isinstance(event, TextDelta)]
    return "".join(delta.text for delta in deltas if delta.kind == "text")


def _line(event: RunEvent) -> str:
    match event:
        case ItemAdded(index, item):
            return f"{index} started {item_type(item)}"
        case TextDelta(index, kind, part, text):
            return f"{index} {kind} {part}: {text}"
        case HiddenMessage(index, item):
            return f"{index} hidden {item_type(item)}"
        case AnnotationAdded():
            return f"{event.output_index} cited {event.annotation.get('type')}"
        case PartialImage():
            return f"{event.output_index} pictured {event.form}"
        case ItemDone(index, item):
            return f"{index} ended {item_type(item)}"
        case ToolOutput(index, item, failed):
            return f"{index} {'failed' if failed else 'answered'}: {item['output']}"
        case ResponseDone():
            return "turn ended"
        case Status(message, None):
            return f"noted: {message}"
        case Status(message):
            return f"repaired: {message}"
        case RunDone(ending):
            return f"run {ending.kind}"
