"""The turns of a run as they come to an end, for the host's `reasoning_details`.

A chat without a row keeps nothing else (open-webui.md §5).
"""

from collections.abc import Callable, Iterable

from openai_responses.items import Item, item_type
from openai_responses.origin import Origin
from openai_responses.run_events import ItemEnded, RunEnded, RunEvent, TurnEnded
from owui_chat.citations import Citations
from owui_chat.details import turn_details
from owui_chat.kept_cards import Carried
from owui_chat.made import kept_item
from owui_chat.remarks import with_given_texts


class Carrying:
    """Collects the items of one turn after another."""

    def __init__(
        self, origin: Origin, new_name: Callable[[], str], known: Iterable[str] = ()
    ) -> None:
        """Take who makes the items, and names that tell turns apart.

        `known` are the keys of the sources that the page has already.
        """
        self._origin = origin
        self._new_name = new_name
        self._citations = Citations(known)
        self._items: dict[int, tuple[Item, str]] = {}

    def feed(self, event: RunEvent) -> Carried | None:
        """Take an event; return what the turn that it ends came to."""
        self._citations.feed(event)
        match event:
            case ItemEnded():
                is_message = item_type(event.item) == "message"
                shown = self._citations.shown_text(event) if is_message else ""
                self._items[event.index] = (kept_item(event), shown)
            case TurnEnded() | RunEnded() if self._items:
                pairs = [self._items[index] for index in sorted(self._items)]
                self._items = {}
                entries = with_given_texts(pairs)
                name = self._new_name()
                return Carried(turn_details(name, entries, self._origin, {}))
        return None
