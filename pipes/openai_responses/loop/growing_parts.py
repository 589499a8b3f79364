"""The texts of one output item while they grow, part by part.

A part is named by its kind and its `content_index` or `summary_index`. Some servers
number parts in another way than the finished item does: Bedrock and vLLM's gpt-oss send
`content_index` 1 for the text that ends at `content[0]` (recordings; vllm 45742), older
vLLM gives each delta a number of its own (vllm 35184). So a part whose number the
finished item does not have is matched by its order and by its text.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain

from openai_responses.items import TextPlace

Rest = tuple[TextPlace, str]
"""A part, and the text of it that no delta brought."""


class GrowingParts:
    """What the deltas of one item have brought so far."""

    def __init__(self) -> None:
        """Start with no text."""
        self._deltas: dict[TextPlace, list[str]] = {}
        self._unended: dict[str, dict[TextPlace, None]] = defaultdict(dict)
        """The parts of each kind whose end has not come, in their order."""

    def grow(self, part: TextPlace, text: str) -> None:
        """Take one delta."""
        deltas = self._deltas.get(part)
        if deltas is None:
            self._deltas[part] = [text]
            self._unended[part[0]][part] = None
        else:
            deltas.append(text)

    def end_part(self, part: TextPlace, text: str) -> list[Rest]:
        """Take the whole text of one part; return what is still to be shown of it."""
        unended = self._unended[part[0]]
        had_deltas = bool(unended)
        own = [part] if part in unended else []
        matched, shown = self._match(own, text)
        if shown < len(text):
            in_order, shown_in_order = self._match(unended, text)
            if shown_in_order > shown:
                matched = in_order
                shown = shown_in_order
        for other in matched:
            del unended[other]
            del self._deltas[other]
        unended.pop(part, None)
        self._deltas[part] = [text]
        return self._rest(part, text, shown, had_deltas=had_deltas)

    def end_item(self, texts: Sequence[Rest]) -> list[Rest]:
        """Take all parts of the finished item; return what is still to be shown."""
        numbered = {part for part, _ in texts}
        strays: dict[str, deque[TextPlace]] = defaultdict(deque)
        for part in self._deltas:
            if part not in numbered:
                strays[part[0]].append(part)
        rests: list[Rest] = []
        for part, text in texts:
            rests += self._end_numbered(part, text, strays[part[0]])
        return rests

    def _end_numbered(
        self, part: TextPlace, text: str, strays: deque[TextPlace]
    ) -> list[Rest]:
        """Return what is still to be shown of one part of the finished item.

        `strays` are parts of its kind whose numbers the item does not have, in their
        order. Those that this text accounts for are removed.
        """
        own = [part] if part in self._deltas else []
        had_deltas = bool(own or strays)
        matched, shown = self._match(chain(own, strays), text)
        for matched_part in matched:
            if matched_part != part:
                strays.popleft()  # they match in their order
        if strays and not own and not matched:
            strays.popleft()  # it contradicts this text, and belongs to no other
        return self._rest(part, text, shown, had_deltas=had_deltas)

    def _match(
        self, candidates: Iterable[TextPlace], text: str
    ) -> tuple[list[TextPlace], int]:
        """Return the first candidates whose deltas, joined, begin `text`.

        Returns with them how many characters of `text` they account for.
        """
        matched: list[TextPlace] = []
        shown = 0
        for candidate in candidates:
            grown = "".join(self._deltas[candidate])
            self._deltas[candidate] = [grown]  # joined once, however often it is tried
            if not text.startswith(grown, shown):
                break
            matched.append(candidate)
            shown += len(grown)
            if shown == len(text):
                break
        return matched, shown

    @staticmethod
    def _rest(
        part: TextPlace, text: str, shown: int, *, had_deltas: bool
    ) -> list[Rest]:
        """Return what is to be shown of a text of which `shown` characters are.

        A text that contradicts its deltas is corrected by the finished item alone.
        """
        contradicts_deltas = had_deltas and shown == 0
        if contradicts_deltas or shown == len(text):
            return []
        return [(part, text[shown:])]
