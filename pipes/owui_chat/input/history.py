"""The input items of a chat's history.

The host decides which items exist; a stored item decides their bytes. Everything
between two user messages is one run. Inside a run a stored call is placed where the
host has its card, with its reasoning before it. Stored items without a card are placed
at their marker.

`<details>` blocks of earlier writers, which no model wrote, are removed
(docs/reference/markers.md, "Blocks of earlier pipes").
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    drop_hosted_tool_items,
    drop_orphans,
    has_image,
    image_message,
    is_call,
    is_commentary,
    is_encrypted,
    is_replayed,
    item_type,
    message_text,
    since_compaction,
)
from openai_responses.requests.replay import (
    Origin,
    reorder_remote_outputs,
    strip_for_replay,
)
from owui_chat.code import is_code, remove_code
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from owui_chat.storage.markers import MarkedText, split_at_markers
from owui_chat.storage.records import Record, text_digest

_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def strip_old_blocks(text: str) -> str:
    """Return `text` without such blocks; a block that is not closed stays as text."""
    if _SIGN not in text or "</details>" not in text:
        return text  # below, only the text before the last end is read, once
    end = text.rindex("</details>") + len("</details>\n")
    return _BLOCK.sub("", text[:end]) + text[end:]


def build_input(
    parts: Iterable[ChatPart],
    records: Mapping[str, Record],
    reader: Origin | None,
    *,
    with_tools: bool = True,
) -> list[Item]:
    """Return the input of a request; without a `reader` no reasoning is sent.

    Without `with_tools` runs that are over do not include what tools did. The result is
    always valid: calls and outputs come in pairs, and reasoning only with its encrypted
    content and directly before its product.
    """
    items: list[Item] = []
    run: list[AssistantText | ToolCall | ToolMessage] = []
    for part in parts:
        if isinstance(part, UserMessage):
            past = _RunHistory(run, records, reader).items()
            items += past if with_tools else drop_hosted_tool_items(past)
            items.append(part.item)
            run = []
        else:
            run.append(part)
    items += _RunHistory(run, records, reader).items()
    # A picture is an input message: inserted last, to keep reasoning next to its text.
    return [
        image_message(item) if has_image(item) else item
        for item in drop_orphans(reorder_remote_outputs(since_compaction(items)))
    ]


def tool_message_item(returned: ToolMessage, before: Iterable[Item]) -> Item:
    """Return the input item for a tool's result; its call is one of `before`."""
    call_id = returned.call_id
    calls = (i for i in before if is_call(i) and i.get("call_id") == call_id)
    kind = next(map(item_type, calls), "function_call")
    return {"type": CALL_OUTPUTS[kind], "call_id": call_id, "output": returned.output}


class _RunHistory:
    """The items of one run, combined from the host's parts and the stored items."""

    def __init__(
        self,
        run: Sequence[AssistantText | ToolCall | ToolMessage],
        records: Mapping[str, Record],
        reader: Origin | None,
    ) -> None:
        self._pieces = [_split(part) for part in run]
        self._reader = reader
        self._records = {
            piece.ulid: records[piece.ulid]
            for pieces in self._pieces
            if isinstance(pieces, list)
            for piece in pieces
            if piece.ulid in records
        }
        self._waiting = {
            ulid: [
                strip_for_replay(item) for item in record.payload if is_replayed(item)
            ]
            for ulid, record in self._records.items()
        }
        self._ulid_of_call = {
            str(item.get("call_id")): ulid
            for ulid, record in self._records.items()
            for item in record.payload
            if is_call(item)
        }

        for waiting in self._waiting.values():
            for item in filter(is_code, list(waiting)):
                if not self._takes_out(item):
                    waiting.remove(item)

    def _takes_out(self, code: Item) -> bool:
        """Remove from the text what the host inserted for `code`; say whether it was
        there.
        """
        for pieces in [found for found in self._pieces if isinstance(found, list)]:
            for place, piece in enumerate(pieces):
                rest = remove_code(piece.text, code)
                if rest is not None:
                    pieces[place] = piece._replace(text=rest)
                    return True
        return False

    def items(self) -> list[Item]:
        """Return the items of the run in order."""
        items: list[Item] = []
        for part in self._pieces:
            match part:
                case ToolCall():
                    items += self._call(part)
                case ToolMessage():
                    items.append(tool_message_item(part, items))
                case _:
                    for piece in part:
                        items += self._piece(piece)
        return items

    def _call(self, call: ToolCall) -> list[Item]:
        """Return a call in its stored bytes, after the items stored before it."""
        ulid = self._ulid_of_call.get(call.call_id, "")
        waiting = self._waiting.get(ulid, [])
        for place, item in enumerate(waiting):
            if is_call(item) and item.get("call_id") == call.call_id:
                self._waiting[ulid] = waiting[place + 1 :]
                # Of a record that is not signed only the chat's own words count.
                whole = item if item.get("name") else _call_item(call)
                return self._allowed(ulid, [*waiting[:place], whole])
        return [_call_item(call)]

    def _piece(self, piece: MarkedText) -> list[Item]:
        kept = self._allowed(piece.ulid, self._waiting.pop(piece.ulid, []))
        message = kept.pop() if kept and _is_answer(kept[-1]) else None
        record = self._records.get(piece.ulid)
        if message and record and not record.shown and _is_whole_commentary(message):
            kept, message = [*kept, message], None
        if not piece.text:
            return kept
        if message and record and record.shown == text_digest(piece.text):
            return [*kept, message]
        return [*kept, _message_item(message, piece.text)]

    def _allowed(self, ulid: str, items: Sequence[Item]) -> list[Item]:
        """Remove items that nobody at this request's server could read.

        A call whose card was deleted stays for now, because it tells which reasoning
        must be removed with it.
        """
        if not items:
            return []
        reader = self._reader
        readable = bool(reader and reader.can_decrypt(self._records[ulid].origin))
        return [
            item
            for item in items
            if not is_encrypted(item) or (readable and item.get("encrypted_content"))
        ]


def _call_item(call: ToolCall) -> Item:
    kind, key = "function_call", "arguments"
    if call.is_custom:
        kind, key = "custom_tool_call", "input"
    head = {"type": kind, "call_id": call.call_id, "name": call.name}
    return {**head, key: call.arguments}


def _split(
    part: AssistantText | ToolCall | ToolMessage,
) -> list[MarkedText] | ToolCall | ToolMessage:
    if isinstance(part, AssistantText):
        return list(split_at_markers(strip_old_blocks(part.text)))
    return part


def _is_answer(item: Item) -> bool:
    """Say whether `item` is a model's message; earlier writers stored other kinds."""
    return item_type(item) == "message" and item.get("role") == "assistant"


def _is_whole_commentary(item: Item) -> bool:
    """Say whether `item` is commentary whose text the host does not return."""
    return is_commentary(item) and bool(message_text(item))


def _message_item(kept: Item | None, shown: str) -> Item:
    """Return a message in the model's own bytes, unless a person edited it."""
    part = {"type": "output_text", "text": shown, "annotations": []}
    if kept is None:
        return {"type": "message", "role": "assistant", "content": [part]}
    if message_text(kept).strip() == shown:
        return kept
    parts = kept.get("content")
    if isinstance(parts, list) and len(parts) == 1 and _is_text_part(parts[0]):
        is_edited = "text" in parts[0]  # the annotations' positions are no longer valid
        part = {**parts[0], "text": shown, **({"annotations": []} if is_edited else {})}
    return {**kept, "content": [part]}


def _is_text_part(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "output_text"
