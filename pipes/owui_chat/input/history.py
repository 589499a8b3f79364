"""The input items of a chat's history.

The host decides which items exist; a stored item decides their bytes. Everything
between two user messages is one run. Inside a run a stored call is placed where the
host has its card, with its reasoning before it. Stored items without a card are placed
at their marker.

`<details>` blocks of earlier writers, which no model wrote, are removed from answers
that are older than the host's `output` (docs/reference/markers.md, "Blocks of earlier
pipes"). In all others such a block is the model's own text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from openai_responses.items import (
    CALL_OUTPUTS,
    Item,
    count_updates,
    drop_orphans,
    drop_tool_items,
    has_image,
    has_plain_reasoning,
    is_call,
    is_code,
    is_commentary,
    is_compaction,
    is_hosted,
    is_replayed,
    item_type,
    message_text,
    since_compaction,
    text_message,
    text_part,
)
from openai_responses.repairs.chat_repairs import name_items
from openai_responses.repairs.request_repairs import Repair
from openai_responses.requests.replay import (
    CHANGED_LATER,
    Origin,
    is_remote_id,
    past_items,
    reorder_remote_outputs,
)
from owui_chat.code import take_out_code
from owui_chat.messages import (
    AssistantImage,
    AssistantText,
    AssistantThought,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from owui_chat.storage.markers import MarkedText, split_at_markers
from owui_chat.storage.records import Record, text_digest
from owui_chat.storage.shown_text import restore_from_shown

_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def build_input(
    parts: Iterable[ChatPart],
    records: Mapping[str, Record],
    reader: Origin | None,
    *,
    with_tools: bool = True,
    repairs: Sequence[Repair] = (),
) -> list[Item]:
    """Return the input of a request; without a `reader` no reasoning is sent.

    A compaction that the `repairs` leave out replaces nothing: what it stood for is
    sent again. Without `with_tools` runs that are over do not include what tools did.
    The result is always valid: calls and outputs come in pairs, and reasoning only with
    its encrypted content and directly before its product.
    """
    items: list[Item] = []
    run: list[_AssistantPart] = []
    unused = dict(records)  # a copied marker names nothing: each record is used once
    for part in parts:
        if not isinstance(part, UserMessage):
            run.append(part)
            continue
        ended_run = _RunHistory(run, unused, reader).items()
        if not with_tools:
            ended_run = drop_tool_items(ended_run)
        items += ended_run
        items.append(part.item)
        run = []
    items += _RunHistory(run, unused, reader, is_open=True).items()
    kinds = {item.get("type") for item in items}
    if "compaction" in kinds:
        if repairs:
            sent_ids = {id(row.item) for row in name_items(items, repairs)}
            items = [
                item
                for item in items
                if id(item) in sent_ids or not is_compaction(item)
            ]
        items = since_compaction(items)
    paired = drop_orphans(items)
    if kinds.isdisjoint(CHANGED_LATER):
        return paired
    # An image is an input message: inserted last, to keep reasoning next to its text.
    sent: list[Item] = []
    for item in paired:
        sent += past_items(item)
    return sent


_Unmarked = AssistantThought | AssistantImage | ToolCall | ToolMessage
_AssistantPart = AssistantText | _Unmarked
_Piece = MarkedText | _Unmarked


# An example, of a run with one call:
#
#   record A of the answer                   what the host gives back
#   --------------------------------------   ----------------------------
#   reasoning 1, call_1, reasoning 2,        call_1, the output of call_1
#   message "It rains."                      marker A, "It rains."
#
# The card of call_1 takes the items of the record up to the call, the marker takes the
# rest. So the result is reasoning 1, call_1, its output, reasoning 2, and the message in
# the model's own bytes. If the card was deleted, the marker takes all of the record, and
# `drop_orphans` removes the call with its reasoning.
class _RunHistory:
    """The items of one run, combined from the host's parts and the stored items."""

    def __init__(
        self,
        run: Sequence[_AssistantPart],
        records: dict[str, Record],
        reader: Origin | None,
        *,
        is_open: bool = False,
    ) -> None:
        """Take what the `run` names out of the `records`.

        What this request's server cannot read is left out. A call whose card was
        deleted stays for now, because it tells which reasoning must be removed with it.
        A run is open if no message of the user follows: its answer goes on.
        """
        self._pieces: list[_Piece] = []
        self._items: dict[str, list[Item]] = {}
        """The items of each record, by its ULID."""
        self._shown: dict[str, str] = {}
        """The digest of the text that each record was shown with."""
        self._taken: dict[str, int] = {}
        """How many items of each record are in the result already."""
        for part in run:
            if not isinstance(part, AssistantText):
                self._pieces.append(part)
                continue
            text = part.text
            if part.may_have_blocks and _SIGN in text:
                # Only what is before the last end is read, once: a block that is not
                # closed stays as text.
                head, end, rest = text.rpartition("</details>")
                text = _BLOCK.sub("", f"{head}{end}{rest[:1]}") + rest[1:]
            # The text in pieces, each after the marker of a record.
            ulids = part.ulids or ("",)
            in_front = [MarkedText(ulid, "") for ulid in ulids[:-1]]
            for piece in in_front + split_at_markers(text, ulids[-1]):
                self._pieces.append(piece)
                record = records.pop(piece.ulid, None)
                if record:
                    readable = _readable_items(record, reader, is_open=is_open)
                    self._items[piece.ulid] = readable
                    self._shown[piece.ulid] = record.shown
        self._take_out_code()

    @cached_property
    def _call_places(self) -> dict[str, tuple[str, int]]:
        """In which record each call is, and the index after it there, by its id."""
        places: dict[str, tuple[str, int]] = {}
        for ulid, items in self._items.items():
            for end, item in enumerate(items, 1):
                if is_call(item):
                    places[str(item.get("call_id"))] = (ulid, end)
        return places

    def _take_out_code(self) -> None:
        """Remove the host's text for code, and code whose card was deleted."""
        codes: list[Item] = []
        for items in self._items.values():
            codes += [item for item in items if "code" in item and is_code(item)]
        if not codes:
            return
        texts = [
            piece.text if isinstance(piece, MarkedText) else ""
            for piece in self._pieces
        ]
        cleaned, deleted = take_out_code(texts, codes)
        for number, piece in enumerate(self._pieces):
            if isinstance(piece, MarkedText):
                self._pieces[number] = MarkedText(piece.ulid, cleaned[number])
        # These items go, and no others that are equal.
        deleted_ids = {id(item) for item in deleted}
        for ulid, items in self._items.items():
            remaining = [item for item in items if id(item) not in deleted_ids]
            self._items[ulid] = remaining

    def items(self) -> list[Item]:
        """Return the items of the run in order."""
        items: list[Item] = []
        call_types: dict[str, str] = {}
        has_remote = False
        # Models that want their thoughts back want those of runs with calls alone.
        has_calls = any(isinstance(piece, ToolCall) for piece in self._pieces)
        for piece in self._pieces:
            if isinstance(piece, MarkedText):
                items += self._place_text(piece)
            elif isinstance(piece, AssistantThought):
                if has_calls:
                    content = [text_part("reasoning", piece.text)]
                    items.append(
                        {"type": "reasoning", "summary": [], "content": content}
                    )
            elif isinstance(piece, AssistantImage):
                image = {"type": "image_generation_call", "result": piece.url}
                if has_image(image):
                    items.append(image)
            elif isinstance(piece, ToolCall):
                before, item, after = self._place_call(piece)
                call_types.setdefault(piece.call_id, item["type"])
                items += [*before, item, *after]
            else:
                call_id = piece.call_id
                kind = CALL_OUTPUTS[call_types.get(call_id, "function_call")]
                items.append({"type": kind, "call_id": call_id, "output": piece.output})
                has_remote |= is_remote_id(call_id)
        return reorder_remote_outputs(items) if has_remote else items

    def _place_call(self, call: ToolCall) -> tuple[list[Item], Item, list[Item]]:
        """Return the items before a call, the call in its stored bytes, those after it.

        After the last call of a response comes the compaction that ended it. The
        outputs came later: they are not compacted.
        """
        ulid, end = self._call_places.get(call.call_id, ("", 0))
        items = self._take_items(ulid, end)
        if not items:
            return [], _call_item(call), []
        # The card has the words of a call that was made here, and of a record that is
        # not signed only the chat's own words count.
        item = items.pop()
        if not item.get("name"):
            item = {**item, **_call_item(call)}
        after: list[Item] = []
        following = self._items.get(ulid, [])[end:]
        # Recorded: the API compacts after the last item of a response (8 of 8).
        if following and is_compaction(following[0]):
            length = 1 + count_updates(following[1:])
            after = self._take_items(ulid, end + length)
        return items, item, after

    def _take_items(self, ulid: str, end: int | None = None) -> list[Item]:
        """Return the items of a record that were not taken yet, up to an index."""
        items = self._items.get(ulid, [])
        start = self._taken.get(ulid, 0)
        if end is None:
            end = len(items)
        self._taken[ulid] = max(start, end)
        return items[start:end]

    def _place_text(self, piece: MarkedText) -> list[Item]:
        """Return the items at a marker, and the text after it as a message.

        The message that is stored there is the model's own form of the text.
        """
        items = self._take_items(piece.ulid)
        message: Item | None = None
        if items and item_type(items[-1]) == "message":
            shown = self._shown[piece.ulid]
            if shown == text_digest(piece.text):
                return [*items[:-1], restore_from_shown(items[-1], piece.text)]
            # Open WebUI joins neighboring messages and drops `phase`
            # (utils/misc.py:408). It does not return the text of commentary, so the text
            # at its marker is another one.
            is_hidden = is_commentary(items[-1]) and message_text(items[-1])
            if shown or not is_hidden:
                message = items.pop()
        if piece.text:
            items.append(_message_item(message, piece.text))
        return items


def _readable_items(
    record: Record, reader: Origin | None, *, is_open: bool
) -> list[Item]:
    """Return what is sent of a record: a configuration is for its model alone.

    Items are stored in the form in which they are sent again. Searches go to their own
    server: llama.cpp, Ollama and vLLM refuse a chat with items of tools that they do not
    have. Plain reasoning does, too, and only until the answer that it led to is
    complete. Earlier pipes stored reasoning that OpenAI had not sealed, but never in one
    record with a call.
    """
    is_ours = bool(reader and reader.can_decrypt(record.origin))
    goes_on = is_open and is_ours
    if not record.is_carried:
        goes_on = goes_on and any(map(is_call, record.payload))
    is_elsewhere = bool(reader and not reader.shares_server(record.origin))
    readable: list[Item] = []
    for item in record.payload:
        # What becomes a call or an image is no item of a tool in the request.
        is_foreign = is_hosted(item) and item_type(item) not in CHANGED_LATER
        is_sent = is_replayed(item, is_ours=is_ours)
        is_sent = is_sent and not (is_elsewhere and is_foreign)
        if is_sent or (goes_on and has_plain_reasoning(item)):
            readable.append(item)
    return readable


def _call_item(call: ToolCall) -> Item:
    """Return a call as the chat has it, without a stored item."""
    named = {"call_id": call.call_id, "name": call.name}
    if call.is_custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments}


def _message_item(kept: Item | None, shown: str) -> Item:
    """Return a message in the model's own bytes, unless a user edited it."""
    if kept is None:
        return text_message("assistant", shown)
    if message_text(kept).strip() == shown:
        return kept
    match kept.get("content"):
        case [{"type": "output_text"} as part]:
            edited = {**part, "text": shown}
            if "text" in part:
                edited["annotations"] = []  # their positions are no longer valid
            content = [edited]
        case _:
            content = text_message("assistant", shown)["content"]
    return {**kept, "content": content}
