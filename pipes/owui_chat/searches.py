"""Searches of the API, on the web and in files, as the page shows them.

The page has a card of its own for both, with what was looked for; the pages that were
found stand in a status line (open-webui.md §5, §6).
"""

from collections.abc import Iterator

from openai_responses.hosted import searched_pages, searched_queries
from openai_responses.items import Item
from openai_responses.run_events import ItemEnded, ItemStarted, RunEnded, RunEvent
from owui_chat.host_chunks import Chunk, pages_chunk
from owui_chat.links import without_tracking
from owui_chat.shown import ShownItems


class SearchCard:
    """Shows one search."""

    def __init__(self, shown: ShownItems) -> None:
        """Take the items that this one joins."""
        self._shown = shown
        self._place = len(shown.items)

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield what an event of the search is to the host."""
        match event:
            case ItemStarted():
                yield self._shown.begin({**_card(event.item), "status": "in_progress"})
            case ItemEnded():
                yield self._shown.end(self._place, _card(event.item))
                pages = map(without_tracking, searched_pages(event.item))
                unique = list(dict.fromkeys(pages))
                if unique:
                    yield pages_chunk(searched_queries(event.item), unique)
            case RunEnded():
                card = {**self._shown.items[self._place], "status": "incomplete"}
                yield self._shown.end(self._place, card)


def _card(item: Item) -> Item:
    """Return a search without what was found: the host would store it for nobody."""
    shown = {k: v for k, v in item.items() if k != "results" and v is not None}
    action = shown.get("action")
    if isinstance(action, dict):
        rest = {k: v for k, v in action.items() if k != "sources"}
        if isinstance(rest.get("url"), str):
            rest["url"] = without_tracking(rest["url"])
        shown["action"] = rest
    return shown
