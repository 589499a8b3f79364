"""The forms of an answer for its reader: Open WebUI, or a plain client."""

import json

from openai_responses.clock import unix_seconds
from openai_responses.endings import ending_of_exception
from openai_responses.errors import ResponsesError
from openai_responses.items import Item, item_type, text_message
from openai_responses.loop.events import RunDone, Status
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from openai_responses.ulid import new_ulid
from owui_chat.cards import without_cards
from owui_chat.events import AnswerReport
from owui_chat.render.chunks import (
    METADATA_KEY,
    Chunk,
    closing_chunk,
    error_as_text,
    error_chunk,
    host_usage,
    source_data,
)
from owui_chat.render.client_errors import exception_error
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.render.native import NativeRenderer
from shells.answer_log import AnswerLog, LogLevel
from shells.caller import ChatCaller
from shells.failures import server_message
from strategies.context import read_context
from strategies.metadata import RunMetadata


def client_view(caller: ChatCaller) -> ChunkRenderer:
    """Return what renders a stream for a plain client."""
    return ChunkRenderer(
        _completion_id(),
        unix_seconds(),
        caller.host_model,
        has_usage_chunk=caller.wants_usage_chunk,
        has_older_calls=caller.reads_older_calls,
        has_format=caller.wants_format,
    )


def context_sources(context: object) -> list[Chunk]:
    """Return the entries of an agent's context as sources of the page.

    The page has them before those of the answer, also where the answer goes on: `[1]`
    in its text is the first of them.
    """
    return [source_data(name, text, url) for name, text, url in read_context(context)]


def whole_completion(
    ended: RunDone, model: str, report: AnswerReport, *, has_format: bool = False
) -> Chunk:
    """Return the whole answer at once, for a plain client."""
    return completion(
        ended,
        _completion_id(),
        unix_seconds(),
        model,
        report,
        has_format=has_format,
    )


def page_result(
    ended: RunDone, model: str, view: NativeRenderer, *, has_advice: bool = False
) -> Chunk:
    """Return the whole answer at once, with the items of a `view`, which the host stores.

    The page shows no finish_reason, so an answer that ended early gets its message as
    an error, unless a status line `has_advice` about it.
    """
    result = whole_completion(ended, model, view.report)
    for choice in result.get("choices", ()):
        said = choice["message"]
        drawn = {key: without_cards(said[key]) for key in _DRAWN if key in said}
        choice["message"] = {**said, **drawn}
    if "usage" in result:
        result |= host_usage(ended, view.report.cost)
    if has_advice and "choices" in result:
        result.pop("error", None)
    elif ended.ending.is_failure:
        result |= error_chunk(ended.ending.message)
    if view.output.items:
        result["output"] = view.output.items
    return result


_DRAWN = ("content", "reasoning_content")
"""What the page may show of a message."""


class OpenMessages:
    """The messages of a run that have not ended, with their texts so far."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Item, list[str]]] = {}

    def note(self, event: object) -> None:
        """Note an event of the run."""
        match event:
            case ItemAdded(index, item) if item_type(item) == "message":
                self._open[index] = (item, [])
            case TextDelta(index, "text" | "refusal", _, text) if index in self._open:
                self._open[index][1].append(text)
            case ItemDone(index):
                self._open.pop(index, None)

    def end(self) -> list[ItemDone]:
        """Return the ends of those that a failure left open, and that have a text."""
        ends: list[ItemDone] = []
        for index, (item, texts) in self._open.items():
            text = "".join(texts)
            if text:
                message = {**item, **text_message("assistant", text)}
                cut = {**message, "status": "incomplete"}
                ends.append(ItemDone(index, cut, shown=text))
        self._open = {}
        return ends


def log_refusal(
    log: AnswerLog, strategy: str, model: str, error: Exception
) -> RunMetadata | None:
    """Log what an agent's answer took that was refused before its run, and return it.

    None if something else went wrong.
    """
    if not isinstance(error, ResponsesError):
        return None
    ending = ending_of_exception(error, has_begun=False)
    metadata = RunMetadata(strategy, model, ending.kind)
    log_metadata(log, metadata)
    return metadata


def log_metadata(log: AnswerLog, metadata: RunMetadata) -> None:
    """Write a line with what an agent's answer took."""
    log.note(f"{METADATA_KEY} {json.dumps(metadata.wire())}")


def log_status(log: AnswerLog, line: Status) -> Status:
    """Log a status line with what the server said; return it without, for people.

    An administrator is warned of a failure at its end, once; what is sent again may pass.
    """
    level: LogLevel = "INFO" if line.is_retry else "WARNING"
    log.line(level, f"{line.message} {server_message(log, line.reason)}".strip())
    return line._replace(tried=None, reason="")


def metadata_chunk(metadata: RunMetadata, client: ChunkRenderer | None = None) -> Chunk:
    """Return what an agent's answer took that did not begin; a `client` has no page."""
    if client:
        return {**client.chunk({}), METADATA_KEY: metadata.wire()}
    return closing_chunk(metadata.describe(), metadata.wire())


def failure_chunks(
    caller: ChatCaller,
    message: str,
    error: Exception,
    metadata: RunMetadata | None = None,
    client: ChunkRenderer | None = None,
) -> list[Chunk]:
    """Return the chunks of an answer that an exception stopped.

    What it took comes first, if it was refused before its run: as a line of the page, or
    in the form of a `client`, which has no page.
    """
    chunks: list[Chunk] = []
    if metadata:
        chunks.append(metadata_chunk(metadata, client))
    return [*chunks, readable_chunk(_failure_chunk(caller, message, error), caller)]


def whole_failure(
    caller: ChatCaller,
    message: str,
    error: Exception,
    metadata: RunMetadata | None = None,
) -> Chunk:
    """Return the whole of an answer that an exception stopped, with what it took."""
    took = {METADATA_KEY: metadata.wire()} if metadata else {}
    return {**_failure_chunk(caller, message, error), **took}


def readable_chunk(chunk: Chunk, caller: ChatCaller) -> Chunk:
    """Return a chunk in a form that its reader shows."""
    return error_as_text(chunk) if caller.drops_errors else chunk


def _completion_id() -> str:
    return f"chatcmpl-{new_ulid()}"


def _failure_chunk(caller: ChatCaller, message: str, error: Exception) -> Chunk:
    if caller.is_open_webui:
        return error_chunk(message)
    return exception_error(message, error)
