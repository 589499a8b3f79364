"""Sources of an answer: `[n]` in its text, links, and annotations.

The model writes links such as `([host](https://host/page?utm_source=openai))`. Such a
link must be complete before it can be replaced, so text that may become one is held
back.

The page's `[n]` is the n-th distinct source of a message (docs/reference/open-webui.md,
"Sources and citations"). So the numbers continue over all rounds of a run, and sources
of the host's tools count as well. Links to pages of a search become numbers while the
text grows. Sources that only annotations name are inserted when the message ends.

For plain HTTP clients annotations have the form of Chat Completions.
"""

import re
from bisect import bisect, bisect_left
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import accumulate
from operator import itemgetter

from openai_responses.items import Item, content_parts, item_type, part_text
from openai_responses.json_input import as_list, value_at
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.transport.stream import AnnotationAdded, ItemDone, TextDelta
from owui_chat.events import CitedEvent, SourceCited
from owui_chat.file_names import shorten_name
from owui_chat.files import link_files

_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

_LINK = re.compile(rf"\[({_LABEL})\]\(({_URL})\)")
"""Begins with a plain character, so that `re` skips all others fast."""
_LONGEST_OPEN = 4000
"""Characters of what may become a link, or a tracking parameter."""

_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
"""Every alternative begins with one, too."""
_BEGUN_TRACKING = (
    "".join(f"(?:{letter}" for letter in _TRACKED) + ")?" * len(_TRACKED) + r"\Z"
)
_UNFINISHED_TRACKING = rf"\?{_BEGUN_TRACKING}|&{_BEGUN_TRACKING}"
_TRACKING = re.compile(rf"[?&]{_TRACKED}(?![\w-])")

_OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)
"""The end of a text that may become a tracking parameter."""


class HoldbackBuffer:
    """Holds back the end of a growing text while it may become something to replace."""

    def __init__(self, unfinished: re.Pattern[str]) -> None:
        """Hold back the end that matches `unfinished`."""
        self._unfinished = unfinished
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        text = self._held + text
        match = self._unfinished.search(text, max(0, len(text) - _LONGEST_OPEN))
        place = match.start() if match else len(text)
        self._held = text[place:]
        return text[:place]

    def rest(self) -> str:
        """Return the text that was held back, at the end of the text."""
        rest, self._held = self._held, ""
        return rest


def strip_tracking(text: str) -> str:
    """Return a text, or an address, without tracking parameters in its links."""
    if _TRACKED not in text:
        return text
    return _TRACKING.sub("", text.replace(f"?{_TRACKED}&", "?"))


class Citations:
    """Numbers the sources of one run; the same events give the same numbers.

    `_waiting` holds the sources that the page does not know yet.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Continue after the sources that the page already has, given by their keys."""
        self._numbers = {key: number for number, key in enumerate(known, 1)}
        self._names: dict[str, str] = {}
        self._waiting = deque[str]()
        self._growing: dict[int, tuple[int, HoldbackBuffer]] = {}

    def feed(self, event: RunEvent) -> Iterable[CitedEvent]:
        """Return the event with its text as it is shown, and the sources it names.

        A delta is common: it needs no generator.
        """
        if not isinstance(event, TextDelta):
            return self._feed_other(event)
        if event.kind not in ("text", "refusal"):
            return (event,)
        text = self._grow(event)
        return (event if text == event.text else event._replace(text=text),)

    def _feed_other(self, event: RunEvent) -> Iterator[CitedEvent]:
        match event:
            case AnnotationAdded():
                self._name(event.annotation)
                yield event
                yield from self._sources(ended=False)
            case ItemDone() if item_type(event.item) == "message":
                yield from self._rest(event.output_index)
                yield event._replace(shown=self._shown_text(event))
                yield from self._sources(ended=True)
            case ToolOutput():
                yield event
                yield from self._sources(ended=True)
                sources = event.card.get("sources", ())
                for key in source_keys(sources):
                    self._numbers.setdefault(key, len(self._numbers) + 1)
                yield from map(SourceCited, sources)
            case RunDone():
                for index in [*self._growing]:
                    yield from self._rest(index)
                yield from self._sources(ended=True)
                yield event
            case _:
                yield event

    def _rest(self, index: int) -> Iterator[CitedEvent]:
        if text := self._take_held(index):
            yield TextDelta(index, "text", 0, text)

    def _take_held(self, index: int) -> str:
        _, held = self._growing.pop(index, (0, None))
        return self._linked(held.rest()) if held else ""

    def _shown_text(self, ended: ItemDone) -> str:
        content = ended.item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        text = "".join(map(self._shown_part, content_parts(parts)))
        return link_files(text, ended.card)

    def _sources(self, *, ended: bool) -> Iterator[CitedEvent]:
        """Yield the sources to show now, in the order of their numbers.

        While a message is growing, sources without a known name wait.
        """
        while self._waiting and (ended or self._waiting[0] in self._names):
            key = self._waiting.popleft()
            name = self._names.get(key, key)
            url = {"url": key} if key.startswith("http") else {}
            head = {"source": {"name": name, **url}, "document": [name]}
            yield SourceCited({**head, "metadata": [{"source": key, "name": name}]})

    def _grow(self, event: TextDelta) -> str:
        index, before = event.output_index, ""
        part, held = self._growing.get(index, (None, None))
        if held is None or part != event.part:
            before, held = self._take_held(index), HoldbackBuffer(_OPEN_LINK)
            self._growing[index] = (event.part, held)
        return before + self._linked(held.feed(event.text))

    def _linked(self, text: str) -> str:
        """Return a text in which links to pages of a search are numbers."""
        edits = self._edit_links(text, set()) if _TRACKED in text else []
        return strip_tracking(_apply_edits(text, edits))

    def _edit_links(
        self, text: str, sources: Container[str]
    ) -> list[tuple[int, int, str]]:
        """Return the numbers for links to what a search found, or to one of `sources`.

        A label with meaning stays in the text. Parentheses directly around a link go.
        """
        edits = list[tuple[int, int, str]]()
        for link in _LINK.finditer(text):
            (start, end), (label, address) = link.span(), link.groups()
            if not (_TRACKING.search(address) or address in sources):
                continue
            url, label = strip_tracking(address), label.strip()
            shown = f"[{self._number(url)}]"
            names_site = "." in label and " " not in label
            if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                start, end = start - 1, end + 1
            elif not names_site:
                shown = f"[{label}]({url}){shown}"
            edits.append((start, end, shown))
        return edits

    def _shown_part(self, part: Item) -> str:
        text, annotations = part_text(part), content_parts(part.get("annotations"))
        if not annotations:
            return self._linked(text)
        for annotation in annotations:
            self._name(annotation)
        edits = self._edit_links(text, set(map(_key, annotations)))
        starts = [start for start, _, _ in edits]
        ends = [float("-inf"), *(end for _, end, _ in edits)]
        for annotation in annotations:
            key, (start, end) = _key(annotation), _range(annotation, text)
            is_link = "url" in annotation and start < ends[bisect(starts, start)]
            if key and not is_link:
                edits.append((end, end, f"[{self._number(key)}]"))
        return strip_tracking(_apply_edits(text, edits))

    def _number(self, key: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            self._waiting.append(key)
        return self._numbers[key]

    def _name(self, annotation: Item) -> None:
        name = annotation.get("title") or annotation.get("filename")
        if name and _key(annotation):
            self._names[_key(annotation)] = shorten_name(str(name))


def source_keys(sources: object) -> list[str]:
    """Return the keys by which the page tells the host's sources apart, each once."""
    keys = []
    for source in content_parts(sources):
        rows, own = as_list(source.get("metadata")), value_at(source, "source", "id")
        for place, _ in enumerate(as_list(source.get("document"))):
            row = rows[place] if place < len(rows) else None
            keys.append(str(value_at(row, "source") or own or "N/A"))
    return list(dict.fromkeys(keys))


def _key(annotation: Item) -> str:
    """Return the key of a source; empty if the annotation is not a source."""
    match annotation.get("type"):
        case "url_citation":
            return strip_tracking(str(annotation.get("url") or ""))
        case "file_citation":
            return str(annotation.get("file_id") or annotation.get("filename") or "")
    return ""


def _range(annotation: Item, text: str) -> tuple[int, int]:
    """Return the first position of an annotation's text, and the one behind the last.

    `end_index` is documented as the last character, but in practice it is the one
    behind it. A file's `index` is the place of the citation.
    """
    start = annotation.get("start_index", annotation.get("index"))
    last = annotation.get("end_index", annotation.get("index"))
    if not isinstance(start, int) or not isinstance(last, int):
        return len(text), len(text)
    inside_word = text[last - 1 : last].isalnum() and text[last : last + 1].isalnum()
    ends_sentence = text[last : last + 1] in (".", "!", "?") and last > start
    end = last + 1 if inside_word or ends_sentence else last
    return min(start, len(text)), min(end, len(text))


def _apply_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    pieces, done = [], 0
    for start, end, told in sorted(edits, key=itemgetter(0, 1)):
        pieces += [text[done:start], told]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def chat_annotations(item: Item, before: int) -> list[Item]:
    """Return the pages that a message cites, with their positions in the answer.

    `before` is where the message begins in it, counted without tracking parameters.
    """
    annotations: list[Item] = []
    for part in content_parts(item.get("content")):
        find_place = _place_finder(part_text(part))
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "url_citation":
                title = shorten_name(str(annotation.get("title") or ""))
                cited: Item = {"url": _key(annotation), "title": title}
                for key in ("start_index", "end_index"):
                    cited[key] = before + find_place(annotation.get(key))
                annotations.append({"type": "url_citation", "url_citation": cited})
        before += find_place(None)
    return annotations


def _place_finder(text: str) -> Callable[[object], int]:
    """Return what finds a place of a text again when tracking parameters are gone.

    What is no place is the end.
    """
    found = list(_TRACKING.finditer(text))
    starts = [match.start() for match in found]
    gone_before = [0, *accumulate(len(match[0]) for match in found)]

    def find(place: object) -> int:
        old = place if isinstance(place, int) else len(text)
        return old - gone_before[bisect_left(starts, old)]

    return find
