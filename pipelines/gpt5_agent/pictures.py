"""The pictures of own tools that the model sees, while Open WebUI runs its tools.

Open WebUI stores a picture as a file and sends back the text of an output alone. The
agent that is called again would continue without the picture, and its request would
begin differently from the one before, which costs the prompt cache.
"""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from openai_responses.items import Item, content_parts, is_call_output
from openai_responses.json_input import as_text

MAX_SEEN_IMAGES = 20
MAX_SEEN_CHARACTERS = 24 * 1024 * 1024
"""Of the pictures that the model sees in one answer: each round sends them again."""
_MAX_OUTPUTS = 1000
_MAX_CHARACTERS = 4 * MAX_SEEN_CHARACTERS
"""Of all outputs that are kept."""


class _SeenOutput(NamedTuple):
    """An output with pictures; `size` counts the characters of their addresses."""

    chat: str
    call_id: str
    output: list[Item]
    size: int


class PictureMemory:
    """Outputs with pictures of answers that are not complete, oldest first.

    If there are too many, the oldest go: their answers continue with the text alone, as
    they do after a restart of the server.
    """

    def __init__(self) -> None:
        self._outputs: list[_SeenOutput] = []
        self._lock = Lock()
        """Requests are prepared in threads."""

    def keep(self, chat: str, item: Item) -> None:
        """Remember the output of a call if it has pictures; `chat` names the user too."""
        output = item.get("output")
        if not chat or not isinstance(output, list):
            return
        size = sum(len(str(part.get("image_url", ""))) for part in output)
        if not size:
            return
        with self._lock:
            self._outputs.append(
                _SeenOutput(chat, str(item.get("call_id")), output, size)
            )
            total = sum(kept.size for kept in self._outputs)
            while total > _MAX_CHARACTERS or len(self._outputs) > _MAX_OUTPUTS:
                total -= self._outputs.pop(0).size

    def restore(self, chat: str, items: Sequence[Item]) -> list[Item]:
        """Return the items of a chat with the pictures in the outputs of its calls."""
        with self._lock:
            outputs = {
                kept.call_id: kept.output for kept in self._outputs if kept.chat == chat
            }
        return [_with_output(item, outputs) for item in items]

    def forget(self, chat: str) -> None:
        """Drop what a chat has, once its answer is complete."""
        with self._lock:
            self._outputs = [kept for kept in self._outputs if kept.chat != chat]


def seen_pictures(items: Sequence[Item]) -> list[str]:
    """Return the addresses of pictures in the outputs of calls of the current answer.

    They come after the last message of the user.
    """
    pictures: list[str] = []
    for item in items:
        if item.get("role") == "user":
            pictures = []
        elif is_call_output(item):
            for part in content_parts(item.get("output")):
                pictures += filter(None, [as_text(part.get("image_url"))])
    return pictures


def _with_output(item: Item, outputs: Mapping[str, list[Item]]) -> Item:
    """Return the output of a call as the model saw it; other items as they are."""
    output = outputs.get(str(item.get("call_id")))
    if output is None or not is_call_output(item):
        return item
    return {**item, "output": output}
