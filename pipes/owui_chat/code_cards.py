"""Code that the API runs, as the page shows it while it grows."""

from collections.abc import Iterator

from openai_responses.run_events import Grew, ItemEnded, ItemStarted, RunEvent
from owui_chat.code_texts import CODE_CARD, code_card, code_with_output
from owui_chat.host_chunks import Chunk
from owui_chat.picture_cards import show_files
from owui_chat.shown import ShownItems

_BROKEN_CODE = "The answer broke off before the code had run."


class CodeCard:
    """Shows one piece of code, what it printed and the pictures it made."""

    def __init__(self, shown: ShownItems) -> None:
        """Take the items that this one joins."""
        self._shown = shown
        self._place = len(shown.items)
        self._code: list[str] = []

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield what an event of the code is to the host."""
        match event:
            case ItemStarted():
                card = {
                    **code_card({**event.item, "code": ""}),
                    "status": "in_progress",
                }
                yield self._shown.begin(card)
            case Grew():
                self._code.append(event.text)
                yield self._shown.grow(self._place, event.kind, event.text)
            case ItemEnded():
                yield self._shown.end(self._place, code_card(event.item))
                yield from show_files(self._shown, event.card)
            case _:
                begun = self._shown.items[self._place]
                code = code_with_output({"code": "".join(self._code)}, _BROKEN_CODE)
                broken = {**begun, "status": "incomplete", "code": code}
                yield self._shown.end(self._place, broken)


def end_after_code(shown: ShownItems) -> Iterator[Chunk]:
    """Yield an item that nobody sees where code would be the last of a run.

    In its older mode of tools the host takes such code for a request to run it, and
    calls the pipe again, up to five times (utils/middleware.py:6117).
    """
    last = shown.items[-1] if shown.items else {}
    if last.get("type") == CODE_CARD:
        yield from shown.add(
            {"type": "openai_responses:end", "id": f"end_{last['id']}"}
        )
