"""The forms of an answer: native events, chunks for plain clients, one whole result."""

from typing import Any

from openai_responses.clock import monotonic_seconds, unix_seconds
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
from owui_chat.render.client_errors import (
    ending_status,
    exception_error,
    seconds_to_wait,
)
from owui_chat.render.completions import ChunkRenderer, completion, has_failed
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_manifold.call.context import Caller
from owui_manifold.host.http_answers import failed_answer
from strategies.metadata import RunMetadata


def stream_view(caller: Caller) -> NativeRenderer | ChunkRenderer:
    """Return what renders a stream for its reader: Open WebUI or a plain client."""
    if caller.has_page:
        # A channel shows no status lines.
        return page_view(has_status_lines=not caller.is_in_channel)
    return ChunkRenderer(_completion_id(), unix_seconds(), caller.host_model)


def failure_chunk(caller: Caller, message: str, error: Exception) -> Chunk:
    """Return the chunk of an answer that an exception stopped."""
    if caller.host_reads:
        return error_chunk(message)
    return exception_error(message, error)


def readable_chunk(chunk: Chunk, caller: Caller) -> Chunk:
    """Return a chunk in a form that its reader shows."""
    return error_as_text(chunk) if caller.drops_errors else chunk


def page_view(*, has_status_lines: bool = True) -> NativeRenderer:
    """Return what renders an answer for Open WebUI."""
    return NativeRenderer(
        monotonic_seconds, HostedItems, has_status_lines=has_status_lines
    )


def whole_result(caller: Caller, ended: RunDone, view: NativeRenderer) -> Any:
    """Return the whole answer at once; Open WebUI also gets the output items.

    The page shows no finish_reason, so an answer that ended early gets a message: as an
    error, unless a status line of the `view` has it. A program gets the status of a
    failure, and what there is of an answer with it.
    """
    result = completion(ended, _completion_id(), unix_seconds(), caller.host_model)
    if not caller.host_reads:
        if has_failed(ended.ending):
            headers = _failure_headers(ended)
            return failed_answer(result, ending_status(ended), headers)
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


def _failure_headers(ended: RunDone) -> dict[str, str]:
    """Return the headers by which clients decide whether and when to ask again."""
    headers: dict[str, str] = {}
    seconds = seconds_to_wait(ended)
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    if ended.output:
        # Clients of OpenAI and Anthropic repeat 429 and 5xx by themselves, unless this
        # header says no. This answer has cost money, and its tools have run.
        headers["x-should-retry"] = "false"
    return headers


def metadata_chunk(
    view: NativeRenderer | ChunkRenderer, metadata: RunMetadata
) -> Chunk:
    """Return what an agent's answer took, for an answer that did not begin."""
    if isinstance(view, ChunkRenderer):
        return {**view.head, "choices": [], METADATA_KEY: metadata.wire()}
    return closing_chunk(metadata.describe(), metadata.wire())


def _completion_id() -> str:
    return f"chatcmpl-{new_ulid()}"
