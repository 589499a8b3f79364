"""The chunks that show what an agent does beside its answer."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpt5_agent.events import Metadata, SourceGiven, StepEnded, StepStarted
from gpt5_agent.steps import step_line
from openai_responses.loop.events import ToolOutput
from owui_chat.render.chunks import Chunk, host_event, source_chunk


def metadata_keys(metadata: Metadata | None) -> dict[str, Any]:
    """Return what a chunk or a result says of the whole execution."""
    return {"execution_metadata": metadata.wire()} if metadata else {}


def picture_chunks(event: ToolOutput) -> Iterator[Chunk]:
    """Yield the pictures of a tool; the host stores them (middleware.py:5130)."""
    urls = event.card.get("images", ())
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    if images:
        yield {"choices": [{"index": 0, "delta": {"images": images}}]}


def context_chunk(source: SourceGiven) -> Chunk:
    """Return a source below the answer."""
    chunk = source_chunk(source.name, source.text)
    if source.url:
        chunk["event"]["data"]["source"]["url"] = source.url
        chunk["event"]["data"]["metadata"][0]["source"] = source.url
    return chunk


def metadata_chunk(metadata: Metadata) -> Chunk:
    """Return a status line that the host stores with the message."""
    rounds, calls = metadata.rounds, metadata.tool_calls
    line = (
        f"{rounds} round{'s'[: rounds != 1]}, {calls} tool call{'s'[: calls != 1]}, "
        f"{metadata.usage.total} tokens, {metadata.latency:.1f} s"
    )
    if metadata.price:
        line += f", ${metadata.price:.4f}"
    return _status(line, "execution_metadata", {"execution_metadata": metadata.wire()})


def _status(line: str, action: str, more: Mapping[str, Any]) -> Chunk:
    data = {"description": line, "done": True, "action": action, **more}
    return host_event({"type": "status", "data": data})


def step_chunk(step: StepStarted | StepEnded) -> Chunk:
    """Return a step of the log; the host stores the ends as status lines."""
    if isinstance(step, StepStarted):
        return host_event({"type": "agent:log", "data": _step(step)})
    return _status(step_line(step), "agent_log", _step(step))


def _step(step: StepStarted | StepEnded) -> dict[str, Any]:
    """Return a step as it is stored, with what debugging adds to it."""
    told = {"id": step.id, "kind": step.kind, "label": step.label}
    if isinstance(step, StepStarted):
        told |= {"parent": step.parent, "status": "start"}
        return told | ({"detail": step.detail} if step.detail else {})
    tokens = {"tokens": step.usage.total} if step.usage else {}
    more = {"detail": step.detail} if step.detail else {}
    return {
        **told,
        "status": "finish",
        "seconds": round(step.seconds, 3),
        **tokens,
        **more,
    }
