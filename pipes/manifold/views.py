"""The forms of an answer for its reader: Open WebUI, or a plain client."""

from collections.abc import Sequence

from openai_responses.clock import unix_seconds
from openai_responses.items import Item
from openai_responses.loop.events import RunDone
from openai_responses.ulid import new_ulid
from owui_chat.render.chunks import Chunk, error_as_text, error_chunk, host_usage
from owui_chat.render.client_errors import exception_error
from owui_chat.render.completions import ChunkRenderer, completion
from shells.caller import ChatCaller


def client_view(model: str) -> ChunkRenderer:
    """Return what renders a stream for a plain client."""
    return ChunkRenderer(_completion_id(), unix_seconds(), model)


def whole_completion(ended: RunDone, model: str) -> Chunk:
    """Return the whole answer at once, for a plain client."""
    return completion(ended, _completion_id(), unix_seconds(), model)


def page_result(
    ended: RunDone, model: str, items: Sequence[Item], *, has_advice: bool = False
) -> Chunk:
    """Return the whole answer at once, with the output items that Open WebUI stores.

    The page shows no finish_reason, so an answer that ended early gets its message as
    an error, unless a status line `has_advice` about it.
    """
    result = whole_completion(ended, model)
    if "usage" in result:
        result |= host_usage(ended)
    if has_advice and "choices" in result:
        result.pop("error", None)
    elif ended.ending.is_failure:
        result |= error_chunk(ended.ending.message)
    if items:
        result["output"] = items
    return result


def failure_chunk(caller: ChatCaller, message: str, error: Exception) -> Chunk:
    """Return the chunk of an answer that an exception stopped."""
    if caller.is_open_webui:
        return error_chunk(message)
    return exception_error(message, error)


def readable_chunk(chunk: Chunk, caller: ChatCaller) -> Chunk:
    """Return a chunk in a form that its reader shows."""
    return error_as_text(chunk) if caller.drops_errors else chunk


def _completion_id() -> str:
    return f"chatcmpl-{new_ulid()}"
