"""Chunks that Open WebUI understands in addition to an answer's text."""

from typing import Any

from openai_responses.models.usage import Usage

Chunk = dict[str, Any]


def host_usage(
    usage: Usage, last: Usage | None, cost: float | None = None
) -> dict[str, Any]:
    """Return the counts as the host stores them with a message.

    The sums are for billing. The host's compaction reads `prompt_tokens` as the size of
    the chat, so `prompt_tokens` and `completion_tokens` are those of the last response
    (docs/reference/open-webui.md, "Usage").
    """
    newest = last or usage
    return {
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
        **({} if cost is None else {"cost": cost}),
    }


def error_chunk(sentence: str) -> Chunk:
    """Return the chunk that marks the message as failed and keeps its text.

    It has no `choices`, because with them the host ignores `error`.
    """
    return {"error": {"message": sentence}}


def status_chunk(sentence: str) -> Chunk:
    """Return a status line above the answer; the host stores it."""
    data = {"description": sentence, "done": True}
    return host_event({"type": "status", "data": data})


def pages_chunk(queries: list[str], pages: list[str]) -> Chunk:
    """Return a status line that opens to the pages that a search found."""
    sites = "1 site" if len(pages) == 1 else f"{len(pages)} sites"
    sought = f" for {', '.join(queries)}" if queries else ""
    data = {
        "action": "web_search",
        "description": f"Searched {sites}{sought}",
        "urls": pages,
        "done": True,
    }
    return host_event({"type": "status", "data": data})


def source_chunk(name: str, text: str) -> Chunk:
    """Return a source below the answer that opens to show `text`."""
    data = {
        "source": {"name": name},
        "document": [text],
        "metadata": [{"source": name}],
    }
    return host_event({"type": "source", "data": data})


def host_event(event: dict[str, Any]) -> Chunk:
    """Return a chunk whose event the host hands to its event emitter."""
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}
