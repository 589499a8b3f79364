"""The agent's events -> lines of a terminal: thoughts, calls, what they gave, the end.

What others wrote is shown without control characters: a terminal would obey them.
"""

import json
from collections.abc import Iterator, Mapping

from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    Metadata,
    OwnEvent,
    SourceGiven,
    StepStarted,
)
from gpt5_agent.thoughts import Thoughts
from openai_responses.items import Item, is_call, is_reasoning
from openai_responses.loop.events import (
    ItemEnded,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)

_LONGEST_OUTPUT = 2_000


class TerminalLines:
    """The lines of one conversation."""

    def __init__(self, *, emits_thoughts: bool) -> None:
        """Begin with none."""
        self._thoughts = Thoughts(emits=emits_thoughts)

    def show(self, event: AgentEvent) -> Iterator[str]:
        """Yield the lines of what the seed has no event for."""
        match event:
            case StepStarted(kind="round"):
                self._thoughts.begin_round(may_call=event.may_call)
            case SourceGiven():
                yield f"[given: {event.name}]"
            case ExecutionEnded():
                yield _account_line(event.metadata)
            case _ if not isinstance(event, OwnEvent):
                for shown in self._thoughts.show(event):
                    yield from _run_lines(shown)


def shown_arguments(arguments: Mapping[str, object]) -> str:
    """Return arguments as a person reads them before they say yes."""
    return json.dumps(arguments, ensure_ascii=False, default=str)


def without_controls(text: str) -> str:
    """Return a text with nothing in it that a terminal obeys."""
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for sign in text
    )


def _run_lines(event: RunEvent) -> Iterator[str]:
    match event:
        case ItemEnded() if is_reasoning(event.item):
            yield from (f"~ {text}" for text in _summary_texts(event.item))
        case ItemEnded() if is_call(event.item):
            given = event.item.get("arguments", event.item.get("input", ""))
            yield f"* {event.item.get('name')} {given}"
        case ToolOutput():
            output = event.item.get("output")
            text = output if isinstance(output, str) else json.dumps(output)
            sign = "!" if event.failed else "="
            cut = "" if len(text) <= _LONGEST_OUTPUT else " [...]"
            yield f"{sign} {text[:_LONGEST_OUTPUT]}{cut}"
        case Status():
            yield f"[{event.sentence}]"
        case RunDone() if event.ending.is_failure:
            yield f"[{event.ending.sentence}]"


def _summary_texts(item: Item) -> Iterator[str]:
    parts = item.get("summary")
    for part in parts if isinstance(parts, list) else []:
        text = part.get("text") if isinstance(part, Mapping) else None
        if text:
            yield str(text)


def _account_line(metadata: Metadata) -> str:
    return (
        f"[{metadata.rounds} rounds, {metadata.tool_calls} calls, "
        f"{metadata.usage.total} tokens, {metadata.latency:.1f} s]"
    )
