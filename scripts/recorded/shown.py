"""What the pipe showed of an answer, read back from its chunks."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Chunk = dict[str, Any]
Item = Mapping[str, Any]
COMMENTARY_ITEM = "openai_responses:remark"
EARLY_ENDS = ("length", "content_filter")
SOURCE_MARK = re.compile(
    r"\n+\[\d+\]: .*|\[\[\d+\]\]\([^)]*\)|\[\d+\]|\(\[[^\]]*\]\([^)]*\)\)"
)
"""The address below a text, the number of a source, or the link that it stands for. The
links of xAI are numbers themselves."""
ERROR_ID = "(Error id: "
"""It ends each message about a fault; the last line of an answer without one has none."""
TEXT_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "text",
    "response.reasoning_summary_text.delta": "summary",
}
DELTAS_OF_TYPE = {"message": "text", "reasoning": "summary"}
"""The kind of deltas that an item of a type grows by."""


class ShownAnswer(NamedTuple):
    """The parts of an answer that a person reads, without their outer white space."""

    text: str
    thoughts: str
    """Summaries and texts of reasoning, then commentary; without any white space."""
    failure: str
    """The message of the error; empty where there is none."""


def expected_answer(output: Iterable[Item], between: str) -> ShownAnswer:
    """Return what has to be shown of the output of a final response object.

    Summaries are joined by blank lines and commentary is shown as a thought: neither is
    a difference, so white space counts in the text of the answer only. ``between``
    is between the texts of two messages.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    commentary: list[str] = []
    for item in output:
        if item["type"] == "reasoning":
            thoughts += thought_texts(item)
        elif item["type"] == "message":
            text = message_text(item)
            if item.get("phase") == "commentary":
                commentary.append(text)
            else:
                texts.append(text)
    return make_answer([between.join(texts)], [*thoughts, *commentary])


def thought_texts(item: Item) -> list[str]:
    """Return the texts of reasoning: its summary, and what other servers send."""
    parts = [*(item.get("summary") or []), *(item.get("content") or [])]
    return [part.get("text") or "" for part in parts]


def make_answer(
    texts: Iterable[str], thoughts: Iterable[str], failure: str = ""
) -> ShownAnswer:
    """Return an answer in the form that is compared."""
    return ShownAnswer(
        text="".join(texts).strip(),
        thoughts="".join("".join(thoughts).split()),
        failure=failure,
    )


def message_text(item: Item) -> str:
    """Return the text and the refusal of a message."""
    parts = item.get("content") or []
    return "".join(part.get("text") or part.get("refusal") or "" for part in parts)


def read_native(chunks: Sequence[Chunk]) -> ShownAnswer:
    """Return what the page shows at the end: the last form of each finished item."""
    items = _finished_items(chunks)
    texts = [message_text(item) for item in items if item["type"] == "message"]
    thoughts = [
        text
        for item in items
        if item["type"] == "reasoning"
        for text in thought_texts(item)
    ]
    quoted = [message_text(item) for item in items if item["type"] == COMMENTARY_ITEM]
    commentary = [_without_quote(text) for text in quoted]
    failure = _read_failure(chunks) or _early_end(chunks)
    return make_answer(texts, [*thoughts, *commentary], failure)


def read_plain(chunks: Sequence[Chunk]) -> ShownAnswer:
    """Return what chunks of Chat Completions say; an early end is its reason."""
    texts: list[str] = []
    thoughts: list[str] = []
    early_ends: list[str] = []
    for chunk in chunks:
        for choice in chunk.get("choices") or []:
            texts.append(choice["delta"].get("content") or "")
            thoughts.append(choice["delta"].get("reasoning_content") or "")
            if choice.get("finish_reason") in EARLY_ENDS:
                early_ends.append(choice["finish_reason"])
    failure = _read_failure(chunks) or " ".join(early_ends)
    return make_answer(texts, thoughts, failure)


def find_doubled_text(chunks: Sequence[Chunk]) -> str:
    """Return how the deltas of an item differ from the finished item; or nothing.

    A page that draws the deltas and one that draws the finished items have to show the
    same. The numbers and addresses of sources may come with the finished item.
    """
    joined = _joined_deltas(chunks)
    for index, item in _finished_by_index(chunks).items():
        if item["type"] not in DELTAS_OF_TYPE:
            continue
        deltas = joined[index, DELTAS_OF_TYPE[item["type"]]]
        finished = _finished_text(item)
        if _without_sources(deltas) != _without_sources(finished):
            return f"item {index}: deltas {deltas!r:.200}, end {finished!r:.200}"
    return ""


def _joined_deltas(chunks: Sequence[Chunk]) -> dict[tuple[int, str], str]:
    """Return the joined deltas of each item, by its index and their kind."""
    joined: dict[tuple[int, str], str] = defaultdict(str)
    for chunk in chunks:
        kind = TEXT_DELTAS.get(chunk.get("type", ""))
        if kind:
            joined[chunk["output_index"], kind] += chunk["delta"]
    return joined


def _finished_text(item: Item) -> str:
    """Return the text of a finished item that its deltas have to add up to."""
    if item["type"] == "message":
        return message_text(item)
    return "".join(part["text"] for part in item.get("summary") or [])


def _finished_items(chunks: Sequence[Chunk]) -> list[Item]:
    finished = _finished_by_index(chunks)
    return [finished[index] for index in sorted(finished)]


def _finished_by_index(chunks: Sequence[Chunk]) -> dict[int, Item]:
    return {
        chunk["output_index"]: chunk["item"]
        for chunk in chunks
        if chunk.get("type") == "response.output_item.done"
    }


def _read_failure(chunks: Sequence[Chunk]) -> str:
    failures = [chunk["error"]["message"] for chunk in chunks if "error" in chunk]
    return " ".join(failures)


def _early_end(chunks: Sequence[Chunk]) -> str:
    """Return why an answer with a text is not complete: its last line says it."""
    events = [chunk["event"] for chunk in chunks if "event" in chunk]
    lines = [
        event["data"]["description"] for event in events if event["type"] == "status"
    ]
    return " ".join(line for line in lines if ERROR_ID in line)


def _without_sources(text: str) -> str:
    return SOURCE_MARK.sub("", text)


def _without_quote(text: str) -> str:
    """Return commentary without the sign of a quotation that comes before its lines."""
    lines = [line.removeprefix(">").removeprefix(" ") for line in text.split("\n")]
    return "\n".join(lines)
