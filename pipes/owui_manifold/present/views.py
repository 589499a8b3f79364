"""The forms of an answer: native events, chunks for plain clients, one whole result."""

from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.items import Item
from openai_responses.loop.events import RunDone
from openai_responses.ulid import new_ulid
from owui_chat.render.chunks import (
    METADATA_KEY,
    Chunk,
    closing_chunk,
    error_as_text,
    error_chunk,
    host_usage,
)
from owui_chat.render.completions import ChunkRenderer, client_error, completion
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_manifold.call.context import Caller
from strategies.metadata import RunMetadata


def stream_view(caller: Caller) -> NativeRenderer | ChunkRenderer:
    """Return what renders a stream for its reader: Open WebUI or a plain client."""
    if caller.has_page:
        return page_view()
    return ChunkRenderer(_completion_id(), unix_seconds(), caller.host_model)


def readable_chunk(chunk: Chunk, caller: Caller) -> Chunk:
    """Return a chunk in a form that its reader shows."""
    return error_as_text(chunk) if caller.drops_errors else chunk


def page_view() -> NativeRenderer:
    """Return what renders an answer for Open WebUI."""
    return NativeRenderer(monotonic_seconds, HostedItems)


def whole_result(caller: Caller, ended: RunDone, items: list[Item]) -> Chunk:
    """Return the whole answer at once; Open WebUI also gets the output items.

    The page shows no finish_reason, so an answer that ended early gets a message.
    """
    result = completion(ended, _completion_id(), unix_seconds(), caller.host_model)
    if not caller.host_reads:
        return result
    if "usage" in result:
        result |= host_usage(ended)
    if ended.ending.is_failure:
        result |= error_chunk(ended.ending.sentence)
    if items:
        result |= {"output": items}
    return result


def refused_answer(caller: Caller, message: str, error: Exception) -> Chunk:
    """Return the error of an answer that an exception ended."""
    if caller.host_reads:
        return error_chunk(message)
    return client_error(message, error)


_REQUEST_FAULTS = (400, 413, 422, 429)


def error_status(ended: RunDone) -> int:
    """Return the HTTP status of an answer that failed.

    401, 403 and 404 are about the pipe's own key and settings, not about the client's.
    """
    status = ended.trace.status
    return status if status in _REQUEST_FAULTS else 502


def metadata_chunk(
    view: NativeRenderer | ChunkRenderer, metadata: RunMetadata
) -> Chunk:
    """Return what an agent's answer took, for an answer that did not begin."""
    if isinstance(view, ChunkRenderer):
        return {**view.head, "choices": [], METADATA_KEY: metadata.wire()}
    return closing_chunk(metadata.describe(), metadata.wire())


def _completion_id() -> str:
    return f"chatcmpl-{new_ulid()}"
