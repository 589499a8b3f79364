"""Remote MCP servers as the page shows them.

A call looks like one of the host's own tools. The host never runs it: an output stands
behind it, or it was not whole (utils/middleware.py:5545).
"""

from collections.abc import Iterator

from openai_responses.items import Item
from openai_responses.remote_calls import (
    remote_call,
    remote_failed,
    remote_output,
)
from openai_responses.run_events import (
    CallAnswered,
    Grew,
    ItemEnded,
    ItemStarted,
    RunEnded,
    RunEvent,
)
from owui_chat.cards import output_card
from owui_chat.host_chunks import Chunk, status_chunk
from owui_chat.shown import ShownItems

_UNKNOWN_OUTCOME = "Error: the answer broke off. The server may have made this call."


class RemoteCallCard:
    """Shows one call of a remote server."""

    def __init__(self, shown: ShownItems) -> None:
        """Take the items that this one joins."""
        self._shown = shown
        self._place = len(shown.items)

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield what an event of the call is to the host."""
        match event:
            case ItemStarted():
                begun = {**_remote_card(event.item, "in_progress"), "arguments": ""}
                yield self._shown.begin(begun)
            case Grew():
                yield self._shown.grow(self._place, event.kind, event.text)
            case ItemEnded():
                failed = remote_failed(event.item)
                status = "failed" if failed else "completed"
                yield self._shown.end(self._place, _remote_card(event.item, status))
                answer = CallAnswered(event.index, remote_output(event.item), failed)
                yield from self._shown.add(output_card(answer))
            case RunEnded():
                call = self._shown.items[self._place]
                yield self._shown.end(self._place, {**call, "status": "incomplete"})
                unknown = {"call_id": call["call_id"], "output": _UNKNOWN_OUTCOME}
                answer = CallAnswered(self._place, unknown, failed=True)
                yield from self._shown.add(output_card(answer))


class RemoteListCard:
    """Shows that a server was asked for its tools, in a line."""

    def __init__(self, shown: ShownItems) -> None:
        """Take nothing: a line joins no items."""
        del shown

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield a line when the server has answered, or has not."""
        if isinstance(event, ItemEnded):
            yield status_chunk(_list_sentence(event.item))


def _remote_card(item: Item, status: str) -> Item:
    call = remote_call(item)
    return {**call, "id": f"fc_{call['call_id']}", "status": status}


def _list_sentence(item: Item) -> str:
    label, tools = item.get("server_label"), item.get("tools")
    if item.get("error") or not isinstance(tools, list):
        return f"{label} did not list its tools: the answer goes on without them."
    return f"{label} offers {len(tools)} tool{'' if len(tools) == 1 else 's'}."
