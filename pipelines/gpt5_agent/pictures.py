"""The pictures of own tools that the model sees, while Open WebUI runs its tools.

Open WebUI stores a picture as a file and sends back the text of an output alone. The
agent that is called again would continue without the picture, and its request would
begin differently from the one before, which costs the prompt cache.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

from openai_responses.clock import monotonic_seconds
from openai_responses.items import Item, content_parts, is_call_output
from openai_responses.json_input import as_text

MAX_SEEN_IMAGES = 20
MAX_SEEN_CHARACTERS = 24 * 1024 * 1024
"""Of the pictures that the model sees in one answer: each round sends them again."""
_MAX_OUTPUTS = 1000
_MAX_CHARACTERS = 4 * MAX_SEEN_CHARACTERS
"""Of all outputs that are kept."""
_KEPT_SECONDS = 3600.0
"""Nobody tells of an answer that is stopped while the host runs a tool."""


class _SeenOutput(NamedTuple):
    """An output with pictures; `size` counts the characters of their addresses.

    `end` is until when it is kept, unless its answer goes on.
    """

    user: str
    answer: str
    call_id: str
    output: list[Item]
    size: int
    end: float


class PictureMemory:
    """Outputs with pictures of answers that are not complete, oldest first.

    If there are too many, whoever has the most loses the oldest, so that the answers of
    one user cannot push out those of others; and those of an answer go that did not go
    on for an hour. Such answers continue with the text alone, as they do after a restart
    of the server. An `answer` is named with its chat and its user, because two models can
    answer in one chat at the same time.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        self._now = now
        self._outputs: list[_SeenOutput] = []
        self._lock = Lock()
        """Requests are prepared in threads."""

    def keep(self, answer: str, item: Item, user: str = "") -> None:
        """Remember the output of a call in an answer for a user, if it has pictures."""
        output = item.get("output")
        if not answer or not isinstance(output, list):
            return
        size = sum(len(str(part.get("image_url", ""))) for part in output)
        if not size:
            return
        call_id = str(item.get("call_id"))
        now = self._now()
        seen = _SeenOutput(user, answer, call_id, output, size, now + _KEPT_SECONDS)
        with self._lock:
            self._outputs = [kept for kept in self._outputs if now < kept.end]
            self._outputs.append(seen)
            while surplus := self._find_surplus():
                self._outputs.remove(surplus)

    def _find_surplus(self) -> _SeenOutput | None:
        """Return the output to drop next; None if there are not too many."""
        counts = Counter(kept.user for kept in self._outputs)
        sizes = Counter[str]()
        for kept in self._outputs:
            sizes[kept.user] += kept.size
        if sizes.total() > _MAX_CHARACTERS:
            [(most, _)] = sizes.most_common(1)
        elif counts.total() > _MAX_OUTPUTS:
            [(most, _)] = counts.most_common(1)
        else:
            return None
        return next(kept for kept in self._outputs if kept.user == most)

    def restore(self, answer: str, items: Sequence[Item]) -> list[Item]:
        """Return the items of a chat with the pictures in the outputs of its calls."""
        outputs: dict[str, list[Item]] = {}
        end = self._now() + _KEPT_SECONDS
        with self._lock:
            for number, kept in enumerate(self._outputs):
                if kept.answer == answer:
                    outputs[kept.call_id] = kept.output
                    self._outputs[number] = kept._replace(end=end)
        restored: list[Item] = []
        for item in items:
            output = outputs.get(str(item.get("call_id")))
            if output is not None and is_call_output(item):
                restored.append({**item, "output": output})
            else:
                restored.append(item)
        return restored

    def forget(self, answer: str) -> None:
        """Drop what an answer has, once it is complete."""
        with self._lock:
            self._outputs = [kept for kept in self._outputs if kept.answer != answer]


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
