"""The host's output items of one message, and the events that make them.

The host builds these items from events. The place of an item counts over all responses
of a run (docs/reference/open-webui.md, "Native events" and "What a pipe yields").

Each event also is a chunk of Chat Completions, whose choice the host ignores. Stream
filters look for it, and other functions that call our models with the chat's metadata
read the text there: they get the events as they are.

The page shows a call before it has an output. The host would run a call that never gets
one, even if its arguments are incomplete, and would leave a call without a status out
of the next turn (docs/reference/open-webui.md, "Rounds of tools").

The host stores an item of unknown type unchanged and sends it to no model, and the page
shows nothing for one without `content`. So records can be stored as items:

    {"type": "openai_responses:kept", "id": "kept_{ulid}",
     "before": id of a message item, "kept": JSON of what a message key would hold}

Summaries that the page shows are not in it (`kept_summaries`). Without an item in
`before` the record belongs to the end of its message.

A chunk that shows files on the page has no choice: otherwise the host would send them
to the page twice (docs/reference/open-webui.md, "What a pipe yields").
"""

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any

from openai_responses.items import (
    Item,
    content_parts,
    distinct_id,
    is_call,
    is_call_output,
    is_reasoning,
    item_type,
    part_text,
    text_part,
)
from openai_responses.json_input import JsonObject, as_text
from openai_responses.loop.events import ToolOutput
from owui_chat.cards import without_cards
from owui_chat.events import StoredRecord, TurnDetails
from owui_chat.kept_summaries import omit_shown_summaries
from owui_chat.render.chunks import Chunk, Chunks, host_event


def call_host_item(item: Item) -> Item:
    """Return a call in the host's form; the text of a custom call is an argument."""
    # The host makes a call that has `approved` without asking, and asks about one that is
    # `pending` (utils/tool_approval.py:110 of 0.12.4): neither is the server's to say.
    shown = shown_fields(item)
    # A call without a status of `completed`, `failed` or `rejected` is left out of the
    # next turn (utils/misc.py:394 of 0.12.4).
    if shown.get("status") not in _STATUSES_OF_A_CALL:
        shown["status"] = "completed"
    if item_type(item) == "custom_tool_call":
        text = json.dumps({"input": shown.pop("input", "")}, ensure_ascii=False)
        shown |= {"type": "function_call", "arguments": text}
    return shown


_STATUSES_OF_A_CALL = ("in_progress", "incomplete", "failed")


def output_host_item(event: ToolOutput) -> Item:
    """Return a call's output with what its card shows; images by their address."""
    call_id = event.item["call_id"]
    output = event.item["output"]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    else:
        parts = [{"type": "input_text", "text": output}]
    item = {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if event.failed else "completed",
    }
    for name in ("files", "embeds"):
        if name in event.card:
            item[name] = event.card[name]
    return item


def begun_host_item(item: Item) -> Item:
    """Return an item at its beginning; its texts follow as growth."""
    begun = {**shown_fields(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [text_part("text", "")]}
        case "reasoning":
            begun |= {"summary": []}
        case "function_call" | "custom_tool_call":
            begun = {**call_host_item(begun), "arguments": ""}
    return begun


def message_host_item(item: Item, text: str) -> Item:
    """Return a message with one text; refusals are shown as well."""
    return {
        "status": "completed",
        **shown_fields(item),
        "type": "message",
        "role": "assistant",
        "content": [text_part("text", text)],
    }


def reasoning_host_item(item: Item, seconds: int) -> Item:
    """Return reasoning with its texts as one part each, and its duration."""
    shown = {**shown_fields(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        if item.get(key) is not None:
            parts = [part for part in content_parts(item[key]) if part_text(part)]
            text = without_cards("\n\n".join(part_text(part) for part in parts))
            shown[key] = [{**parts[0], "text": text}] if parts else []
    return shown


def shown_fields(item: Item) -> Item:
    """Return the texts of an item that the page and the host need."""
    # Open WebUI stores items as they come, and a shared chat shows the row to others. It
    # sends some fields of a server to the next model, which the page does not show
    # (`start_tag`, `reasoning_details`; utils/misc.py:541 of 0.12.4). A value of another
    # type than they expect breaks the page, or each later question of the chat.
    return {name: item[name] for name in _SHOWN_FIELDS if as_text(item.get(name))}


_SHOWN_FIELDS = (
    *("type", "id", "status", "role", "phase"),
    *("call_id", "name", "arguments", "input"),
)
INVISIBLE_TYPE = "openai_responses:end"
_NOT_RUN = "Error: this was not run, because the answer was interrupted."

_DELTA_TYPES: Mapping[str, str] = {
    "text": "output_text.delta",
    "refusal": "output_text.delta",
    "summary": "reasoning_summary_text.delta",
    "reasoning": "reasoning_text.delta",
    "arguments": "function_call_arguments.delta",
    "code": "code.delta",
}


_FEW_FILES = 32
"""So many are shown again with each file; of more the page is told less often."""


class OutputItems:
    """What the host has stored of an answer so far, and the events that show it."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._files: list[Item] = []
        self._turn_start = 0
        """The index of the first item of the current response."""
        self._files_due = 0
        """How many files there must be before the page is shown all of them again."""
        self._answered: set[object] = set()
        """The ids of the calls that have an output."""
        self._open_calls: dict[object, int] = {}
        """The indexes of the others, by the ids of the calls."""
        self._records: dict[object, int] = {}
        """The indexes of records, by their ids."""
        self._ids: set[str] = set()
        """All ids so far."""
        self._own_ids: dict[int, str] = {}
        """The ids of the items whose own are those of earlier ones."""

    @property
    def has_open_calls(self) -> bool:
        """Whether a call has no output yet."""
        return bool(self._open_calls)

    def has_open_call(self, call_id: str) -> bool:
        """Say whether this call has no output yet."""
        return call_id in self._open_calls

    def begin(self, item: Item) -> Chunk:
        """Return the event of a new item at the last place."""
        index = len(self.items)
        # An item with the id of an earlier one would take its place (utils/response.py
        # of 0.12.4). MLflow's helpers give all items of a response one id, and other
        # servers number those of each response anew.
        wire_id = as_text(item.get("id"))
        own_id = distinct_id(wire_id, self._ids)
        if own_id != wire_id:
            self._own_ids[index] = own_id
        item = self._with_own_id(index, item)
        self.items.append(item)
        self._note_call(index, item)
        return _native("output_item.added", index, item=item)

    def _with_own_id(self, index: int, item: Item) -> Item:
        """Return an item with the id that it has on the page."""
        own_id = self._own_ids.get(index)
        if own_id:
            item = {**item, "id": own_id}
        if item.get("id"):
            self._ids.add(str(item["id"]))
        return item

    def _note_call(self, index: int, item: Item) -> None:
        call_id = item.get("call_id")
        if is_call_output(item):
            self._answered.add(call_id)
            self._open_calls.pop(call_id, None)
        elif is_call(item) and call_id not in self._answered:
            self._open_calls[call_id] = index

    def hide(self, index: int) -> Chunk:
        """Return the event after which the item at `index` is none."""
        item = self.items[index]
        self._open_calls.pop(item.get("call_id"), None)
        end = {"type": INVISIBLE_TYPE, "id": f"end_{item.get('id')}"}
        return self.end(index, end)

    def end(self, index: int, item: Item, said: Chunk | None = None) -> Chunk:
        """Return the event that replaces the item at `index`; `said` is as in `grow`."""
        item = self._with_own_id(index, item)
        self.items[index] = item
        self._note_call(index, item)
        return _native("output_item.done", index, said, item=item)

    def update(self, index: int, **fields: Any) -> Chunk:
        """Return the event that changes fields of the item at `index`."""
        return self.end(index, {**self.items[index], **fields})

    def add(self, item: Item) -> Chunks:
        """Yield the event of an item that is complete at once.

        Host and page append an item that ends without a beginning. A second event would
        send it again, and all items to those who read a shared chat.
        """
        self.items.append(item)
        yield self.end(len(self.items) - 1, item)

    def add_marker(self, marker: str) -> Chunks:
        """Yield a separate message for a marker that no text follows."""
        index = len(self.items)
        item = message_host_item({"id": f"msg_kept_{index}"}, marker)
        yield self.begin(begun_host_item(item))
        yield self.end(index, item)

    def grow(
        self, index: int, kind: str, text: str, said: Chunk | None = None
    ) -> Chunk:
        """Return the event of more text; `kind` is that of a delta.

        `said` is the delta of Chat Completions with the same text.
        """
        # All texts of one kind are shown as one part, so its number is 0.
        index_name = "summary_index" if kind == "summary" else "content_index"
        fields = {
            "item_id": self.items[index].get("id"),
            index_name: 0,
            "delta": text,
        }
        return _native(_DELTA_TYPES[kind], index, said, **fields)

    def add_files(self, card: JsonObject) -> Chunks:
        """Yield the files of a card; the page gets those of earlier cards again."""
        files = card.get("files")
        if not files:
            return
        yield host_event("files", {"files": files})
        if self._files:
            yield from self.show_files(files)
        self._files += files

    def show_files(self, more: Sequence[Item] = (), *, is_last: bool = False) -> Chunks:
        """Yield the chunk that shows files on the page only, with some `more`.

        It has all files, so if they are many, it comes less often. With `is_last`, it
        comes once more, for those that were not shown yet.
        """
        count = len(self._files)
        is_due = count > _FEW_FILES if is_last else count >= self._files_due
        if not is_due:
            return
        self._files_due = count + count // _FEW_FILES
        event = host_event("chat:message:files", {"files": [*self._files, *more]})
        # With an empty list of choices Open WebUI ends there; a chunk with a choice it
        # would also send to the page as it is (utils/middleware.py:4938, 5460).
        yield {**event, "choices": []}

    def answer(self, event: ToolOutput) -> Chunks:
        """Yield the output of a call in the form in which the host would store it."""
        index = self._open_calls.get(event.item["call_id"])
        if index is not None and event.failed:
            yield self.update(index, status="failed")
        yield from self.add(output_host_item(event))

    def break_off_calls(self, left: Set[object]) -> Chunks:
        """Yield outputs for the calls that are open, but for those of the ids `left`."""
        for call_id, index in list(self._open_calls.items()):
            if call_id not in left:
                yield from self.break_off(index, _NOT_RUN)

    def break_off(self, index: int, why: str) -> Chunks:
        """Yield the end of a call that got no output, and one that says why."""
        yield self.update(index, status="incomplete")
        output = {"call_id": self.items[index].get("call_id"), "output": why}
        yield from self.add(output_host_item(ToolOutput(index, output, failed=True)))

    def add_record(self, stored: StoredRecord, index: int | None) -> Chunks:
        """Yield the events of a record, which may replace an earlier one.

        `index` is that of the item whose text follows.
        """
        before = ""
        if index is not None:
            before = self.items[index].get("id") or ""
        record = {**stored.item, "before": before}
        earlier = self._records.setdefault(record["id"], len(self.items))
        record["kept"] = omit_shown_summaries(record["kept"], self.items, earlier)
        if earlier < len(self.items):
            yield self.update(earlier, kept=record["kept"])
        else:
            yield from self.add(record)

    def add_details(self, turn: TurnDetails) -> Chunks:
        """Yield the reasoning of a response again, now with its details, if any."""
        indexes = range(self._turn_start, len(self.items))
        self._turn_start = len(self.items)
        for index in indexes:
            if is_reasoning(self.items[index]):
                yield self.update(index, reasoning_details=list(turn.details))
                return


def _native(kind: str, index: int, said: Chunk | None = None, **fields: Any) -> Chunk:
    """Return an event of the Responses API as the host takes it."""
    return {
        "type": f"response.{kind}",
        "output_index": index,
        **fields,
        "choices": [{"index": 0, "delta": said or {}}],
    }
