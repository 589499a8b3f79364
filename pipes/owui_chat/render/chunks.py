"""Chunks that Open WebUI understands in addition to an answer's text.

The sums of tokens are for billing. The host's compaction reads `prompt_tokens` as the
size of the chat, so `prompt_tokens` and `completion_tokens` are those of the last
response (docs/reference/open-webui.md, "Usage").

With `choices` in a chunk, the host ignores its `error`.
"""

import json
from collections.abc import Iterator
from typing import Any

from openai_responses.items import has_web_scheme
from openai_responses.json_input import JsonObject, value_at
from openai_responses.loop.events import RunDone
from openai_responses.models.usage import Cost
from owui_chat.cards import without_cards

Chunk = dict[str, Any]
Chunks = Iterator[Chunk]

METADATA_KEY = "execution_metadata"
"""The specified name of what an agent's answer took."""


def host_usage(ended: RunDone, cost: Cost | None = None) -> Chunk:
    """Return the field `usage` as the host stores it; empty if nothing was counted."""
    usage = ended.usage
    if usage is None:
        return {}
    newest = ended.last_usage or usage
    counts: Chunk = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens": newest.input,
        "completion_tokens": newest.output,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_writes,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
    # Open WebUI adds repeated usage up (utils/response.py:104), so it is sent once.
    if cost is not None:
        counts["cost"] = cost.dollars
    if ended.trace.response_id:
        counts["response_id"] = ended.trace.response_id
    return {"usage": counts}


def client_usage(ended: RunDone, cost: Cost | None = None) -> Chunk:
    """Return the field `usage` for a client of Chat Completions: sums over all rounds.

    The host's form has the tokens of the last response in `prompt_tokens`, from which
    the page tells how full the context is. Programs look for the details under the names
    that Chat Completions has for them.
    """
    field = host_usage(ended, cost)
    if ended.usage is not None:
        sums = {
            "prompt_tokens": ended.usage.input,
            "completion_tokens": ended.usage.output,
            "prompt_tokens_details": {"cached_tokens": ended.usage.cached},
            "completion_tokens_details": {"reasoning_tokens": ended.usage.reasoning},
        }
        field["usage"] |= sums
    return field


def whole_characters(result: Chunk) -> Chunk:
    """Return a result without halves of characters; two that meet become one.

    The server's JSON may have them ("\\ud83d"), UTF-8 has none: a host that sends the
    result in one piece would raise, and the answer would be an HTTP 500 without a text.
    """
    text = json.dumps(result, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return dict(json.loads(mended))
    return result


def error_chunk(message: str) -> Chunk:
    """Return the chunk that marks the answer as failed and keeps its text."""
    return {"error": {"message": _without_code_marks(message)}}


def error_as_text(chunk: Chunk) -> Chunk:
    """Return a chunk with its error as text, for a reader that drops errors."""
    message = value_at(chunk, "error", "message")
    if not message:
        return chunk
    delta = {"content": f"\n\n{message}"}
    return {"choices": [{"index": 0, "delta": delta}]}


def status_chunk(text: str) -> Chunk:
    """Return a status line above the answer, which the host stores.

    Without a text it hides those before it, until the next one.
    """
    status: Chunk = {"description": _without_code_marks(text), "done": True}
    if not text:
        status["hidden"] = True
    return host_event("status", status)


def warning_chunk(text: str) -> Chunk:
    """Return a message that the page shows in its corner for some seconds.

    Nothing stores it, so it only repeats what stays above the answer.
    """
    shown: Chunk = {"type": "warning", "content": _without_code_marks(text)}
    return host_event("notification", shown)


def _without_code_marks(text: str) -> str:
    """Return a message without backticks, which the page shows as they are here.

    `/check` has the same messages in Markdown.
    """
    return text.replace("`", "")


def compaction_chunk(*, has_ended: bool) -> Chunk:
    """Return the host's event about a compaction of the chat, which begins or ends.

    The page then says that it is in progress (utils/context_compaction.py:82 of 0.12.4).
    """
    shown = {
        "action": "context_compaction",
        "description": "Compacting context",
        "done": has_ended,
    }
    return host_event("context_compaction", shown)


def closing_chunk(line: str, metadata: JsonObject) -> Chunk:
    """Return the last status line; the host stores an agent's `metadata` with it."""
    chunk = status_chunk(line)
    if metadata:
        chunk["event"]["data"] |= {"action": METADATA_KEY, METADATA_KEY: dict(metadata)}
    return chunk


def metadata_field(metadata: JsonObject) -> Chunk:
    """Return the field that holds an agent's metadata; empty if there is none."""
    return {METADATA_KEY: dict(metadata)} if metadata else {}


def source_chunk(name: str, text: str, url: str = "") -> Chunk:
    """Return a source below the answer that opens to show `text`."""
    return host_event("source", source_data(name, text, url))


def source_data(name: str, text: str, url: str = "") -> Chunk:
    """Return a source in the host's form; its address, if any, is what it leads to.

    Only addresses of the web are links of the page: whoever shares a model may write the
    context of its agent, which draws no cards, either.
    """
    url = url if has_web_scheme(url) else ""
    source = {"name": name, "url": url} if url else {"name": name}
    # `[1]` in a text refers to the first distinct value of this key.
    metadata = [{"source": url or name}]
    return {"source": source, "document": [without_cards(text)], "metadata": metadata}


def host_event(kind: str, data: JsonObject) -> Chunk:
    """Return a chunk whose event the host hands to its event emitter."""
    # A stream filter that reads `event["choices"]` raises for a chunk without it, and
    # Open WebUI then drops the chunk (observed: the whole answer was lost).
    event = {"type": kind, "data": data}
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}
