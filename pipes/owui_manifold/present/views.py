"""The forms of an answer: native events, chunks for plain clients, one whole result."""

from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.json_input import value_at
from openai_responses.loop.events import RunDone
from openai_responses.ulid import new_ulid
from owui_chat.render.chunks import (
    METADATA_KEY,
    Chunk,
    closing_chunk,
    error_chunk,
    host_usage,
)
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_manifold.call.context import Caller
from strategies.metadata import RunMetadata


def stream_view(caller: Caller) -> NativeRenderer | ChunkRenderer:
    """Return what renders a stream for its reader: Open WebUI or a plain client."""
    if caller.host_reads:
        # A channel shows no status lines.
        return page_view(has_status_lines=not caller.is_in_channel)
    return ChunkRenderer(_completion_id(), unix_seconds(), caller.host_model)


def readable_chunk(chunk: Chunk, caller: Caller) -> Chunk:
    """Return a chunk in a form that its reader shows: in a channel, an error as text.

    There Open WebUI drops errors of a stream, and the answer would be empty
    (socket/main.py:1369 of 0.12.4).
    """
    if not caller.is_in_channel:
        return chunk
    message = value_at(chunk, "error", "message")
    if not message:
        return chunk
    delta = {"content": f"\n\n{message}"}
    return {"choices": [{"index": 0, "delta": delta}]}


def page_view(*, has_status_lines: bool = True) -> NativeRenderer:
    """Return what renders an answer for Open WebUI."""
    return NativeRenderer(
        monotonic_seconds, HostedItems, has_status_lines=has_status_lines
    )


def whole_result(caller: Caller, ended: RunDone, view: NativeRenderer) -> Chunk:
    """Return the whole answer at once; Open WebUI also gets the output items.

    The page shows no finish_reason, so an answer that ended early gets a message: as an
    error, unless a status line of the `view` has it.
    """
    result = completion(ended, _completion_id(), unix_seconds(), caller.host_model)
    if not caller.host_reads:
        return result
    if "usage" in result:
        result |= host_usage(ended)
    if view.advice and "choices" in result:
        result.pop("error", None)
    elif ended.ending.is_failure:
        result |= error_chunk(ended.ending.sentence)
    if view.shown.items:
        result |= {"output": view.shown.items}
    return result


def metadata_chunk(
    view: NativeRenderer | ChunkRenderer, metadata: RunMetadata
) -> Chunk:
    """Return what an agent's answer took, for an answer that did not begin."""
    if isinstance(view, ChunkRenderer):
        return {**view.head, "choices": [], METADATA_KEY: metadata.wire()}
    return closing_chunk(metadata.describe(), metadata.wire())


def _completion_id() -> str:
    return f"chatcmpl-{new_ulid()}"
