"""The texts of one output item while they grow, part by part.

A part is named by its kind and its `content_index` or `summary_index`. Some servers
number parts in another way than the finished item does: Bedrock and vLLM's gpt-oss send
`content_index` 1 for the text that ends at `content[0]` (recordings; vllm 45742), older
vLLM gives each delta a number of its own (vllm 35184). So a part whose number the
finished item does not have is matched by its order and by its text.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from openai_responses.items import TextPlace

Rest = tuple[TextPlace, str]
"""A part, and the text of it that no delta brought."""
_FIRST_HALF = re.compile(r"[\ud800-\udbff]")
"""Of a character that JSON writes as two."""


class _Match(NamedTuple):
    """Parts whose deltas begin a text."""

    parts: list[TextPlace]
    shown: int
    """How many characters of the text they account for."""
    start: int = 0
    """Where the last of them begins."""
    is_longer: bool = False
    """Whether the last of them goes on after the text."""


class _FirstKind:
    """The kind of text in which a thought comes first, and whether another repeats it.

    Gateways to Grok give each thought as a text and as a summary of the same words
    (chenyme/grok2api 960): whoever reads both would read it twice.
    """

    def __init__(self) -> None:
        self._kind = ""
        self._ahead = deque[str]()
        """Its texts that the other kind has not repeated yet."""
        self._repeated = 0
        """How much of the first of them it has."""
        self._held: list[Rest] | None = []
        """What the other kind has said; None once it said something else."""

    def show(self, part: TextPlace, text: str) -> list[Rest]:
        """Return what is shown of more text: all that is no repetition."""
        if self._kind in ("", part[0]):
            self._kind = part[0]
            self._ahead.append(text)
            return [(part, text)]
        if self._held is None:
            return [(part, text)]
        self._held.append((part, text))
        at = 0
        while at < len(text) and self._ahead:
            first = self._ahead[0]
            size = min(len(text) - at, len(first) - self._repeated)
            if text[at : at + size] != first[self._repeated : self._repeated + size]:
                break
            at += size
            self._repeated += size
            if self._repeated == len(first):
                self._ahead.popleft()
                self._repeated = 0
        if at == len(text):
            return []
        held = self._held
        self._held = None
        return held


_THOUGHT_KINDS = ("summary", "reasoning")


class GrowingParts:
    """What the deltas of one item have brought so far."""

    def __init__(self, texts: Iterable[Rest] = ()) -> None:
        """Start with the texts that have ended before, if there are any."""
        self._deltas: dict[TextPlace, list[str]] = {
            part: [text] for part, text in texts if text
        }
        self._unended: dict[str, dict[TextPlace, None]] = defaultdict(dict)
        """The parts of each kind whose end has not come, in their order."""
        self.has_ended = False
        """Whether the last that came was the end of a text, and no other one is open."""
        self._halves: dict[TextPlace, str] = {}
        """The halves of characters with which deltas have ended."""
        self._first_kind = _FirstKind()
        for part, [text] in self._deltas.items():
            self._show(part, text)

    @property
    def has_text(self) -> bool:
        """Whether anything has come."""
        return any(any(deltas) for deltas in self._deltas.values())

    @property
    def whole(self) -> str:
        """All that has come, joined."""
        return "".join(chain.from_iterable(self._deltas.values()))

    def begins(self, text: str) -> int | None:
        """Return the length of all that has come, if `text` begins with it, else None.

        Nothing is joined, as in `_match`.
        """
        end = 0
        for delta in chain.from_iterable(self._deltas.values()):
            if not text.startswith(delta, end):
                return None
            end += len(delta)
        return end

    def text_of(self, part: TextPlace) -> str:
        """Return what has come of one part."""
        return "".join(self._deltas.get(part, ()))

    def grow(self, part: TextPlace, text: str) -> list[Rest]:
        """Take one delta; return what is shown: whole characters, a half at its end later.

        Gateways in JavaScript cut texts between the halves of an emoji, and send each
        half by itself (elie222/rakazo 416). They would stay halves in the chat and in the
        next request, where UTF-8 has none.
        """
        self.has_ended = False
        if self._halves:
            text = self._halves.pop(part, "") + text
        if not text.isascii() and _FIRST_HALF.search(text):
            if _FIRST_HALF.match(text[-1]):
                self._halves[part] = text[-1]
                text = text[:-1]
            units = text.encode("utf-16-le", "surrogatepass")
            text = units.decode("utf-16-le", "surrogatepass")
        deltas = self._deltas.get(part)
        if deltas is None:
            self._deltas[part] = [text]
            self._unended[part[0]][part] = None
        else:
            deltas.append(text)
        return self._show(part, text)

    def _show(self, part: TextPlace, text: str) -> list[Rest]:
        """Return what is shown of more text."""
        if part[0] not in _THOUGHT_KINDS or not text:
            return [(part, text)] if text else []
        return self._first_kind.show(part, text)

    def end_part(self, part: TextPlace, text: str) -> list[Rest]:
        """Take the whole text of one part; return what is still to be shown of it."""
        self._halves.pop(part, None)
        unended = self._unended[part[0]]
        own = [part] if part in self._deltas else []
        had_deltas = bool(own or unended)
        match = self._match(own, text)
        if match.shown < len(text):
            in_order = self._match(unended, text)
            if in_order.shown > match.shown:
                match = in_order
        unended.pop(part, None)
        for other in match.parts:
            unended.pop(other, None)
        self.has_ended = not any(self._unended.values())
        if match.is_longer:  # the end takes nothing of it away
            return []
        for other in match.parts:
            del self._deltas[other]
        self._deltas[part] = [text]
        return self._show(part, self._rest(text, match, had_deltas=had_deltas))

    def end_item(
        self, texts: Sequence[Rest]
    ) -> tuple[list[Rest], dict[TextPlace, str]]:
        """Take all parts of the finished item.

        Returns what is still to be shown, and the whole texts: those of the item, longer
        where more came, and those that only deltas brought.
        """
        numbered = {part for part, _ in texts}
        # The parts whose numbers the item does not have, by their kind, in their order.
        strays: dict[str, deque[TextPlace]] = defaultdict(deque)
        for part in self._deltas:
            if part not in numbered:
                strays[part[0]].append(part)
        rests: list[Rest] = []
        whole: dict[TextPlace, str] = {}
        for part, text in texts:
            own = [part] if part in self._deltas else []
            left = strays[part[0]]
            had_deltas = bool(own or left)
            match = self._match(chain(own, left), text)
            for matched_part in match.parts:
                if matched_part != part:
                    left.popleft()  # they match in their order
            if left and not own and not match.parts:
                left.popleft()  # it contradicts this text, and belongs to no other
            whole[part] = text
            if match.is_longer:
                last = "".join(self._deltas[match.parts[-1]])
                whole[part] = text[: match.start] + last
            rest = self._rest(text, match, had_deltas=had_deltas)
            rests += self._show(part, rest)
        # Some servers end a thought as another kind of text than it grew.
        own_texts = {"", *whole.values()}
        for part in chain.from_iterable(strays.values()):
            text = "".join(self._deltas[part])
            if text not in own_texts:
                whole[part] = text
        return rests, whole

    def _match(self, candidates: Iterable[TextPlace], text: str) -> _Match:
        """Return the first candidates whose deltas, joined, begin `text`.

        If the last of them goes on after `text`, the end is shorter than what came, and
        takes nothing away (gateways end a message with an empty text). The deltas are
        compared one by one: joined again and again, they would take the square of the
        stream.
        """
        matched: list[TextPlace] = []
        shown = 0
        start = 0
        for candidate in candidates:
            end = shown
            for delta in self._deltas[candidate]:
                if text.startswith(delta, end):
                    end += len(delta)
                elif delta.startswith(text[end:]):
                    return _Match([*matched, candidate], len(text), shown, True)
                else:
                    return _Match(matched, shown, start)
            matched.append(candidate)
            start = shown
            shown = end
            if shown == len(text):
                break
        return _Match(matched, shown, start)

    @staticmethod
    def _rest(text: str, match: _Match, *, had_deltas: bool) -> str:
        """Return what is to be shown of a text.

        A text that contradicts its deltas is corrected by the finished item alone.
        """
        contradicts_deltas = had_deltas and not match.parts
        return "" if contradicts_deltas else text[match.shown :]
