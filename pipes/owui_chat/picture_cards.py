"""Pictures that the API draws, as the page shows them while they grow.

A picture stands above the text, in the message's list of files. The host stores the
`files` that it is told of; what `chat:message:files` shows is gone at the next reload,
so that nothing of an unfinished picture is stored (open-webui.md §6).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses.items import Item
from openai_responses.pictures import picture_url
from openai_responses.run_events import ItemEnded, ItemStarted, Pictured, RunEvent
from owui_chat.host_chunks import Chunk, host_event, status_chunk
from owui_chat.shown import ShownItems

_REFUSED = "The picture was not drawn: OpenAI's safety system refused it."
_FAILED = "The picture could not be drawn."
_BROKE_OFF = "The answer broke off before the picture was finished."


class PictureCard:
    """Shows one picture."""

    def __init__(self, shown: ShownItems) -> None:
        """Take the pictures that this one joins."""
        self._shown = shown

    def show(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield what an event of the picture is to the host."""
        match event:
            case ItemStarted():
                yield status_chunk("Drawing a picture")
            case Pictured():
                sketch = {"result": event.image, "output_format": event.form}
                yield _on_the_page(self._shown, [_file(picture_url(sketch))])
            case ItemEnded():
                yield from self._end(event)
                yield from show_files(self._shown, event.card)
            case _:
                yield from self._note(_BROKE_OFF)
                yield _on_the_page(self._shown, [])

    def _end(self, event: ItemEnded) -> Iterator[Chunk]:
        notes = event.card.get("notes", ())
        if event.item.get("result") and not notes:
            yield status_chunk("Picture drawn")
        else:
            yield from self._note(next(iter(notes), _failure(event.item)))

    def _note(self, sentence: str) -> Iterator[Chunk]:
        """Yield a text that the page draws, and that no later turn is given."""
        part = {"type": "output_text", "text": f"*{sentence}*"}
        number = len(self._shown.items)
        note = {"type": "openai_responses:note", "id": f"note_{number}"}
        yield from self._shown.add({**note, "content": [part]})


def show_files(shown: ShownItems, card: Mapping[str, Any]) -> Iterator[Chunk]:
    """Yield the files of a card.

    Where a message has several the page would show the last one alone, although the
    host adds them up.
    """
    files = card.get("files")
    if not files:
        return
    yield host_event({"type": "files", "data": {"files": files}})
    before, shown.files = bool(shown.files), [*shown.files, *files]
    if before:
        yield _on_the_page(shown, [])


def _on_the_page(shown: ShownItems, more: list[Item]) -> Chunk:
    """Return the chunk that puts files on the page alone.

    With a choice in it the host would send the page all of it twice (middleware.py:5015).
    """
    data = {"files": [*shown.files, *more]}
    return {**host_event({"type": "chat:message:files", "data": data}), "choices": []}


def _file(url: str) -> Item:
    return {"type": "image", "url": url}


def _failure(item: Item) -> str:
    error = item.get("error")
    code = error.get("code") if isinstance(error, Mapping) else None
    return _REFUSED if code == "moderation_blocked" else _FAILED
