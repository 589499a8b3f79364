"""Run events as Chat Completions for plain HTTP clients.

They are streamed or in one piece. Open calls are for the client; they come at the end.
Commentary is shown as reasoning, so that the text is only the answer. If a run ends
with commentary, it is repeated as the answer.
"""

from collections.abc import Iterable
from typing import Any

from openai_responses.endings import Ending
from openai_responses.items import (
    Item,
    content_parts,
    image_url,
    is_commentary,
    is_reasoning,
    item_texts,
    item_type,
    message_text,
    open_calls,
    shows_image,
)
from openai_responses.json_input import JsonObject, as_text
from openai_responses.loop.events import RunDone
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.answers import closing_commentary
from owui_chat.citations import (
    HoldbackBuffer,
    chat_annotations,
    length_before_tracking,
    strip_tracking,
)
from owui_chat.events import AnswerEvent, AnswerReport
from owui_chat.files import file_lines
from owui_chat.older_calls import in_older_form
from owui_chat.render.chunks import Chunk, Chunks, client_usage, metadata_field
from owui_chat.render.client_errors import ending_error

_GAP = "\n\n"
_FINISH_REASONS = {
    "max_output_tokens": "length",
    "context_length_exceeded": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
}
_BROKEN_OFF = ("cancelled", "steered")
"""Reasons for which an answer is incomplete that no finish reason tells."""


class ChunkRenderer:
    """Shows one run as growing text and reasoning, which includes commentary."""

    def __init__(
        self,
        completion_id: str,
        created: int,
        model: str,
        *,
        has_usage_chunk: bool = False,
        has_older_calls: bool = False,
        has_format: bool = False,
    ) -> None:
        """Take the fields of every chunk: its id, its time in seconds, the model.

        With `has_usage_chunk` the sums have a chunk of their own, which has no choice;
        with `has_older_calls` a call is a `function_call`; with `has_format` the text is
        the JSON that was asked for, and what refuses it has a field of its own.
        """
        self.head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self.report = AnswerReport()
        self._held: dict[int, HoldbackBuffer] = {}
        """What is held back of each message, by its output index."""
        self._refusals: set[int] = set()
        """The output indexes of messages that refuse."""
        self._length = 0
        """How many characters the text has so far."""
        self._last_part: dict[str, object] = {}
        """The part of the last text of each kind."""
        self._commentary: dict[int, Item] = {}
        """The messages of commentary, by their output indexes."""
        self._has_usage_chunk = has_usage_chunk
        self._has_older_calls = has_older_calls
        self._has_format = has_format
        self._has_role = False
        """Whether a chunk has said who speaks."""

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; a client without a chat stores nothing.

        The first one says who speaks, as OpenAI's does. Without that n8n drops the
        calls, and OpenAI's package for JavaScript fails at the end
        (langchain-ai/langchainjs 11157, diegosouzapw/OmniRoute 3911).
        """
        for chunk in self._render(event):
            if chunk.get("choices") and not self._has_role:
                self._has_role = True
                yield self.chunk({"role": "assistant", "content": ""})
            yield in_older_form(chunk) if self._has_older_calls else chunk

    def _render(self, event: AnswerEvent) -> Chunks:
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._commentary[event.output_index] = event.item
            case TextDelta(kind="text" | "refusal"):
                index = event.output_index
                if event.kind == "refusal" and index not in self._refusals:
                    yield from self._show_held(index)
                    self._refusals.add(index)
                held = self._held.setdefault(
                    index, HoldbackBuffer(length_before_tracking)
                )
                shown = strip_tracking(held.feed(event.text))
                if index in self._commentary:
                    yield from self._think(event, shown)
                else:
                    kind = "refusal" if self._refuses_format(index) else "text"
                    gap = self._gap(kind, (index, event.kind))
                    yield from self._add_text(gap + shown, index)
            case TextDelta(kind="summary" | "reasoning"):
                yield from self._think(event, event.text)
            case ItemDone() if shows_image(event.item):
                yield self.chunk({"images": [_chat_image(event.item)]})
            case ItemDone() if item_type(event.item) == "message":
                yield from self._end_message(event)
            case AnswerReport():
                self.report = event
            case RunDone():
                yield from self._end(event)

    def _think(self, event: TextDelta, text: str) -> Chunks:
        """Yield more reasoning, after a blank line if another part begins."""
        gap = self._gap("reasoning", (event.output_index, event.part))
        yield from self._add_reasoning(gap + text)

    def _end_message(self, event: ItemDone) -> Chunks:
        """Yield the rest of a message, its citations and its files."""
        yield from self._show_held(event.output_index)
        if event.output_index in self._commentary:
            self._commentary[event.output_index] = event.item
        else:
            before = self._length - len(_clean_text(event.item))
            annotations = chat_annotations(event.item, before)
            if annotations:
                yield self.chunk({"annotations": annotations})
            logprobs = _chat_logprobs([event.item])
            if logprobs:
                chunk = self.chunk({})
                chunk["choices"][0] |= logprobs
                yield chunk
        yield from self._add_text(file_lines(event.card))

    def _show_held(self, index: int) -> Chunks:
        held = self._held.pop(index, None)
        rest = strip_tracking(held.rest()) if held else ""
        if index in self._commentary:
            yield from self._add_reasoning(rest)
        else:
            yield from self._add_text(rest, index)

    def _add_text(self, text: str, index: int | None = None) -> Chunks:
        """Yield more text, of a message if it has an `index`.

        A refusal has a field of its own only where OpenAI's packages would read it as the
        JSON that was asked for, and fail. The text would have to be empty then, and most
        programs show nothing else; the AI SDK shows both, mixed.
        """
        if text and self._refuses_format(index):
            yield self.chunk({"refusal": text})
            return
        self._length += len(text)
        if text:
            yield self.chunk({"content": text})

    def _refuses_format(self, index: int | None) -> bool:
        return self._has_format and index in self._refusals

    def _add_reasoning(self, text: str) -> Chunks:
        if text:
            yield self.chunk({"reasoning_content": text})

    def chunk(self, delta: JsonObject, finish: str | None = None) -> Chunk:
        """Return a chunk of the answer, which may be its last one."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self.head, "choices": [choice]}

    def _gap(self, kind: str, part: object) -> str:
        """Return the blank line before a text of another part than the last one."""
        before = self._last_part.get(kind, part)
        self._last_part[kind] = part
        return "" if before == part else _GAP

    def _end(self, event: RunDone) -> Chunks:
        """Yield the end of a run: open calls, a finish reason, the usage, or an error."""
        for index in list(self._held):
            yield from self._show_held(index)
        closing = closing_commentary(event.output)
        if closing and closing in self._commentary.values():
            gap = _GAP if self._length else ""
            yield from self._add_text(gap + _clean_text(closing))
        calls = open_calls(event.output)
        for index, call in enumerate(calls):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self.chunk({"tool_calls": [tool_call]})
        error = _error(event)
        finish = None
        if not error:
            finish = _finish_reason(event.ending, bool(calls))
        sums = {
            **client_usage(event, self.report.cost),
            **metadata_field(self.report.metadata),
        }
        # Clients that have not asked for a chunk without a choice read the first of each.
        in_last_choice = {} if self._has_usage_chunk else sums
        if in_last_choice or not error:
            yield {**self.chunk({}, finish), **in_last_choice}
        if sums and self._has_usage_chunk:
            yield {**self.head, "choices": [], **sums}
        if error:
            yield error  # the last one: clients of OpenAI raise it and read no further


def _chat_image(item: Item) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(item)}}


def _chat_logprobs(messages: Iterable[Item]) -> dict[str, Any]:
    """Return the field of a choice with the tokens of its text; empty without them."""
    tokens: list[Item] = []
    for message in messages:
        for part in content_parts(message.get("content")):
            for row in content_parts(part.get("logprobs")):
                # Clients check that there is a list.
                others = content_parts(row.get("top_logprobs"))
                tokens.append({**row, "top_logprobs": others})
    return {"logprobs": {"content": tokens, "refusal": None}} if tokens else {}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of Chat Completions."""
    call_id = item["call_id"]
    name = as_text(item.get("name"))  # null from some servers
    if item_type(item) == "custom_tool_call":
        custom = {"name": name, "input": item.get("input") or ""}
        return {"id": call_id, "type": "custom", "custom": custom}
    function = {"name": name, "arguments": item.get("arguments") or "{}"}
    return {"id": call_id, "type": "function", "function": function}


def has_failed(ending: Ending) -> bool:
    """Say whether a client gets an error; an answer that was cut has a finish reason."""
    has_reason = ending.kind == "incomplete" and ending.code not in _BROKEN_OFF
    return ending.is_failure and not has_reason


def _error(ended: RunDone) -> Chunk:
    return ending_error(ended) if has_failed(ended.ending) else {}


def _finish_reason(ending: Ending, has_calls: bool) -> str:
    """Return the word of Chat Completions for how an answer ended."""
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"


def completion(
    ended: RunDone,
    completion_id: str,
    created: int,
    model: str,
    report: AnswerReport,
    *,
    has_format: bool = False,
) -> dict[str, Any]:
    """Return the `chat.completion` of a run; only the error if it failed at once.

    With `has_format` the text is the JSON that was asked for.

    What came before a failure is in it. Clients check the reason against those of
    OpenAI, and `length` is the one of an answer that is not whole.
    """
    error = _error(ended)
    if error and not ended.output:
        return {**metadata_field(report.metadata), **error}
    message = _chat_message(ended, has_format=has_format)
    finish = "length"
    if not error:
        finish = _finish_reason(ended.ending, "tool_calls" in message)
    logprobs = _chat_logprobs(_answer_messages(ended))
    choice = {"index": 0, "message": message, "finish_reason": finish, **logprobs}
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        **client_usage(ended, report.cost),
        **metadata_field(report.metadata),
        **error,
    }


def _chat_message(ended: RunDone, *, has_format: bool) -> dict[str, Any]:
    """Return an answer as the message of a completion, without fields that are empty."""
    answer = _answer_messages(ended)
    said: list[str] = []
    refusals: list[str] = []
    annotations: list[Item] = []
    before = 0  # characters of the whole text in front of a message
    for message in answer:
        parts = content_parts(message.get("content"))
        declined = [as_text(part["refusal"]) for part in parts if part.get("refusal")]
        text = _clean_text(message)
        if has_format and declined:
            refusals += declined
            others = [part for part in parts if not part.get("refusal")]
            text = _clean_text({**message, "content": others})
            if not text:
                continue
        said.append(text)
        annotations += chat_annotations(message, before)
        before += len(text) + len(_GAP)
    # What came before the answer: reasoning and commentary.
    answer_ids = {id(message) for message in answer}
    thoughts: list[str] = []
    for item in ended.output:
        is_step = is_commentary(item) and id(item) not in answer_ids
        if is_step or is_reasoning(item):
            # A thought may come as two kinds of text with the same words.
            thoughts += dict.fromkeys(text for _, text in item_texts(item) if text)
    optional = {
        "refusal": _GAP.join(refusals),
        "reasoning_content": strip_tracking(_GAP.join(thoughts)),
        "annotations": annotations,
        "images": [_chat_image(item) for item in ended.output if shows_image(item)],
        "tool_calls": [chat_tool_call(call) for call in open_calls(ended.output)],
    }
    filled = {name: value for name, value in optional.items() if value}
    return {"role": "assistant", "content": _GAP.join(said), **filled}


def completion_text(ended: RunDone) -> str:
    """Return the text of an answer: without commentary, unless that is all or the end."""
    return _GAP.join(_clean_text(message) for message in _answer_messages(ended))


def _answer_messages(ended: RunDone) -> list[Item]:
    """Return the messages that are the answer; commentary only if nothing follows."""
    messages = [item for item in ended.output if item_type(item) == "message"]
    closing = closing_commentary(ended.output)
    said = [item for item in messages if not is_commentary(item) or item == closing]
    # Beside calls that a client makes it is reasoning, as in a stream.
    return said or ([] if open_calls(ended.output) else messages)


def _clean_text(message: Item) -> str:
    return strip_tracking(message_text(message))
