"""Which card of the page shows which item of the API's own."""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from openai_responses.run_events import RunEvent
from owui_chat.code_cards import CodeCard
from owui_chat.host_chunks import Chunk
from owui_chat.picture_cards import PictureCard
from owui_chat.remote_cards import RemoteCallCard, RemoteListCard
from owui_chat.searches import SearchCard
from owui_chat.shown import ShownItems


class HostedCard(Protocol):
    """Shows one item.

    It gets the item's own events, from ItemStarted to ItemEnded, and the run's end if
    that came first.
    """

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield what an event is to the host."""


HOSTED_CARDS: Mapping[str, Callable[[ShownItems], HostedCard]] = {
    "web_search_call": SearchCard,
    "file_search_call": SearchCard,
    "mcp_call": RemoteCallCard,
    "mcp_list_tools": RemoteListCard,
    "code_interpreter_call": CodeCard,
    "image_generation_call": PictureCard,
}
"""By the type of the item; what has no card is not shown."""
