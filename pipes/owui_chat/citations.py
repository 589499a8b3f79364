"""Sources of an answer: `[n]` in its text, links, and annotations.

The model writes links such as `([host](https://host/page?utm_source=openai))`. Such a
link must be complete before it can be replaced, so text that may become one is held
back.

The page's `[n]` is the n-th distinct source of a message (docs/reference/open-webui.md,
"Sources and citations"). So the numbers continue over all rounds of a run, and sources
of the host's tools count as well. Links to pages of a search become numbers while the
text grows. Sources that only annotations name are inserted when the message ends.

At the end of a message are the addresses of its numbers, as definitions of links of
Markdown (`[1]: https://host/page "Title"`). The page draws none of them, and reads none
aloud, but what people copy, edit and export has them, and there `[1]` is a link
(docs/reference/open-webui.md, "Sources and citations"). A channel shows no sources, and
`[1]` would lead nowhere: there they are a list that is drawn.

For plain HTTP clients annotations have the form of Chat Completions.
"""

import re
from bisect import bisect, bisect_left
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple, TypeGuard

from openai_responses.items import (
    ANNOTATION_PLACES,
    Item,
    TextPlace,
    content_parts,
    has_web_scheme,
    is_commentary,
    item_type,
    move_annotations,
    part_text,
    parts_with_gaps,
)
from openai_responses.json_input import as_list, value_at
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.transport.stream import AnnotationAdded, ItemDone, TextDelta
from owui_chat.cards import beginnings_of, certain_length, without_cards
from owui_chat.events import CitedEvent, SourceCited
from owui_chat.file_names import shorten_name
from owui_chat.files import link_files
from owui_chat.wording import as_plain_markdown

# What a model writes arrives in pieces, and a link must be whole to be replaced:
#
#   The lake is warm ([zuerich.ch](https://zuerich.ch/lake_(north)?utm_source=openai)).
#                    ^ from here on the text is held back until the last parenthesis
#
# The page then gets `The lake is warm [1].`, and a source. An address may have one pair
# of parentheses. All patterns have bounds, so that hostile text is read in linear time
# (tests/test_regular_expressions.py).
_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

_LINK = re.compile(rf"\[({_LABEL})\]\(({_URL})\)")
"""Begins with a plain character, so that `re` skips all others fast."""
_CITED_LINK = re.compile(rf"\[(\[\d{{1,4}}\]|{_LABEL})\]\(({_URL})\)")
"""The same where annotations name the pages: xAI numbers its own (`[[1]](https://...)`,
its page "Citations")."""
_MAX_HELD_BACK = 4000
"""Characters of what may become a link, or a tracking parameter."""

_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
"""Every alternative begins with one, too."""


_MARK_BEGINS = "\ue200"
_IN_MARK = r"[^\ue200\ue201\n]{0,300}"
# What follows a first parameter takes its place: the `?` is not shown without it.
_UNFINISHED_TRACKING = (
    rf"\?{beginnings_of(f'{_TRACKED}&{_TRACKED}')}|&{beginnings_of(_TRACKED)}"
    rf"|\ue200{_IN_MARK}\Z"
)
_TRACKING = re.compile(
    rf"[?&]{_TRACKED}(?![\w-])|\ue200(?:file)?cite\ue202{_IN_MARK}\ue201"
)
"""And where a model cites by names of its own (`turn0search0`), in characters that no
page draws. Other marks of these characters have words of the answer."""

_OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
_OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)
"""The end of a text that may become what is not shown."""


def length_before_tracking(text: str) -> int:
    """Return how much of a growing text can be shown, cards and links as they are."""
    return _length_before(_OPEN_TRACKING, text)


def _length_before_link(text: str) -> int:
    """Return how much of a growing text can be shown, with its links and without cards."""
    return certain_length(text[: _length_before(_OPEN_LINK, text)])


def _length_before(unfinished: re.Pattern[str], text: str) -> int:
    match = unfinished.search(text, max(0, len(text) - _MAX_HELD_BACK))
    return match.start() if match else len(text)


class HoldbackBuffer:
    """Holds back the end of a growing text while it may become something to replace."""

    def __init__(self, find_end: Callable[[str], int]) -> None:
        """Hold back what follows the end that is found."""
        self._find_end = find_end
        self._held = ""
        self._unread = 0
        """How many characters of it came since the end was looked for."""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        self._held += text
        self._unread += len(text)
        # All that is held is read again. Of much, a few letters more would cost a
        # millisecond each.
        if _SHARE_OF_HELD * self._unread < len(self._held):
            return ""
        self._unread = 0
        text = self._held
        end = self._find_end(text)
        self._held = text[end:]
        return text[:end]

    def rest(self) -> str:
        """Return the text that was held back, at the end of the text."""
        rest = self._held
        self._held = ""
        self._unread = 0
        return rest


_SHARE_OF_HELD = 32
"""After one of so many parts the end is looked for again."""


def strip_tracking(text: str) -> str:
    """Return a text, or an address, without tracking parameters and a model's marks."""
    if _TRACKED not in text and _MARK_BEGINS not in text:  # as nearly each delta
        return text
    return _TRACKING.sub("", text.replace(f"?{_TRACKED}&", "?"))


class _GrowingPart:
    """The part of an item that grows, and what is held back of it."""

    def __init__(self, place: TextPlace) -> None:
        self.place = place
        self.buffer = HoldbackBuffer(_length_before_link)
        self.last_number = ""
        """The number that its text ends with so far, as it was put in; empty if it ends
        with other text."""


class _Edit(NamedTuple):
    """What replaces the text from `start` to `end`."""

    start: int
    end: int
    text: str


_BY_PLACE = attrgetter("start", "end")
_MAX_SOURCES = 200
"""Of a message, those of the host's tools included; no one reads more."""
_LONGEST_KEY = 8000
_FEW_SOURCES = 10
_SOURCES_AT_ONCE = 10


class Citations:
    """Numbers the sources of one run; the same events give the same numbers."""

    def __init__(
        self, known: Iterable[str] = (), *, shows_addresses: bool = False
    ) -> None:
        """Continue after the sources that the page already has, given by their keys.

        With `shows_addresses` the sources below a message are drawn.
        """
        self._shows_addresses = shows_addresses
        self._numbers = {key: number for number, key in enumerate(known, 1)}
        self._cited: dict[int, str] = {}
        """The numbers that were put into the last message, with their keys."""
        self._names: dict[str, str] = {}
        """What the sources are called, by their keys, as far as it is known."""
        self._waiting = deque[str]()
        """The sources that the page does not know yet."""
        self._growing: dict[int, _GrowingPart] = {}
        self._shown = 0
        """How many sources of ours the page knows."""

    def feed(self, event: RunEvent) -> list[CitedEvent]:
        """Return the event with its text as it is shown, and the sources it names."""
        match event:
            case TextDelta() if event.kind in ("text", "refusal"):
                index = event.output_index
                growing = self._growing.get(index)
                before = ""
                place = (event.kind, event.part)
                if growing is None or growing.place != place:
                    before = self._take_held(index)  # the rest of an earlier part
                    if growing and growing.place[0] != event.kind:
                        before += "\n\n"  # as in `parts_with_gaps`
                    growing = _GrowingPart(place)
                    self._growing[index] = growing
                certain = growing.buffer.feed(event.text)
                text = before + self._number_links(growing, certain)
                return [event if text == event.text else event._replace(text=text)]
            case AnnotationAdded():
                self._note_name(event.annotation)
                return [event, *self._sources(ended=False)]
            case ItemDone() if item_type(event.item) == "message":
                rest = self._rest(event.output_index)
                shown = event._replace(shown=self._shown_text(event))
                return [*rest, shown, *self._sources(ended=True)]
            case ItemDone():
                # If it grew, its text was a thought (loop/tagged_thoughts.py).
                self._growing.pop(event.output_index, None)
            case ToolOutput():
                # Those of the text have got their numbers before.
                cited = self._sources(ended=True)
                sources = event.card.get("sources", ())
                for key in source_keys(sources):
                    self._numbers.setdefault(key, len(self._numbers) + 1)
                return [event, *cited, *map(SourceCited, sources)]
            case RunDone():
                left: list[CitedEvent] = []
                for unended in list(self._growing):
                    left += self._rest(unended)
                return [*left, *self._sources(ended=True), event]
        return [event]

    def _rest(self, index: int) -> list[CitedEvent]:
        """Return the text of an item that was held back."""
        text = self._take_held(index)
        return [TextDelta(index, "text", 0, text)] if text else []

    def _take_held(self, index: int) -> str:
        """Return the text of an item that was held back, as it is shown; end holding."""
        growing = self._growing.pop(index, None)
        if growing is None:
            return ""
        return self._number_links(growing, growing.buffer.rest())

    def _shown_text(self, ended: ItemDone) -> str:
        """Return the whole text of a message as it is shown.

        Its numbers, and no earlier ones, are those whose addresses follow.
        """
        content = ended.item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        self._cited = {}
        text = "".join(
            gap + self._shown_part(part) for part, _, gap in parts_with_gaps(parts)
        )
        text = without_cards(text)  # of two parts, each of which has half a card
        linked = link_files(text, ended.card)
        return linked + self._addresses(linked, is_quoted=is_commentary(ended.item))

    def _addresses(self, text: str, *, is_quoted: bool) -> str:
        """Return the addresses of the numbers that were put into a text.

        Not in a quotation, nor after code that does not end, where definitions were
        drawn, and links were not.
        """
        lines: list[str] = []
        for number, key in sorted(self._cited.items()):
            name = _NOT_IN_TITLE.sub(" ", self._names.get(key, "")).strip()
            is_address = bool(_DEFINABLE.fullmatch(key)) and key.isprintable()
            if self._shows_addresses:
                source = name
                if is_address:
                    source = f"[{name}](<{key}>)" if name else f"<{key}>"
                lines.append(f"[{number}] {source}".rstrip())
            elif is_address:
                title = f' "{name}"' if name else ""
                lines.append(f"[{number}]: {key}{title}")
        if not lines or is_quoted or _is_in_fence(text):
            return ""
        # Two spaces at its end let the next line begin a line.
        return "\n\n" + ("  \n" if self._shows_addresses else "\n").join(lines)

    def _sources(self, *, ended: bool) -> list[CitedEvent]:
        """Return the sources to show now, in the order of their numbers, as one event.

        For each event the host reads and writes all sources of the message
        (socket/main.py:1583 of 0.12.4), so the first few are shown at once, and the
        others some at a time. While a message is growing, sources without a known name
        wait.
        """
        names: dict[str, str] = {}
        for key in self._waiting:
            if not ended and key not in self._names:
                break
            names[key] = self._names.get(key, key)
        is_due = ended or self._shown < _FEW_SOURCES or len(names) >= _SOURCES_AT_ONCE
        if not names or not is_due:
            return []
        self._shown += len(names)
        for _ in names:
            self._waiting.popleft()
        first = next(iter(names))
        source = {"name": names[first]}
        if has_web_scheme(first):
            source["url"] = first
        metadata = [{"source": key, "name": name} for key, name in names.items()]
        # The page shows a source that is opened as Markdown.
        shown = [as_plain_markdown(name) for name in names.values()]
        return [
            SourceCited({"source": source, "document": shown, "metadata": metadata})
        ]

    def _number_links(self, growing: _GrowingPart, text: str) -> str:
        """Return more text of a part, in which links to pages of a search are numbers.

        A number directly after the same number is left out, as in the whole text.
        """
        if _TRACKED not in text:
            if text:
                growing.last_number = ""
            return without_cards(strip_tracking(text))
        edits = _without_repeats(self._edit_links(text, set()), growing.last_number)
        # The number that the edited text ends with. If all of the text repeats the number
        # in front of it, that one is still the last.
        numbers = [edit.text for edit in edits if edit.text]
        if max((edit.end for edit in edits), default=0) < len(text):
            growing.last_number = ""
        elif numbers:
            growing.last_number = numbers[-1]
        return without_cards(strip_tracking(_apply_edits(text, edits)))

    def _edit_links(self, text: str, sources: Collection[str]) -> list[_Edit]:
        """Return the numbers for links to what a search found, or to one of `sources`.

        A label with meaning stays in the text. Parentheses directly around a link go.
        """
        edits: list[_Edit] = []
        links = _CITED_LINK if sources else _LINK
        for link in links.finditer(text):
            address = link[2]
            if not (_TRACKING.search(address) or address in sources):
                continue
            url = strip_tracking(address)
            label = link[1].strip()
            number = self._number(url)
            if not number:
                continue  # it stays a link
            start = link.start()
            end = link.end()
            # Slices, because a link may be the first or the last of the text.
            is_in_parentheses = (
                text[start - 1 : start] == "(" and text[end : end + 1] == ")"
            )
            # A label like `zuerich.ch` only repeats the address; any other is a part of the
            # sentence, and stays.
            names_site = "." in label and " " not in label
            is_number = label.startswith("[")
            if is_in_parentheses:
                edits.append(_Edit(start - 1, end + 1, number))
            elif names_site or is_number:
                edits.append(_Edit(start, end, number))
            else:
                edits.append(_Edit(start, end, f"[{label}]({url}){number}"))
        return edits

    def _shown_part(self, part: Item) -> str:
        """Return the text of a part with the numbers of the sources that it cites."""
        text = part_text(part)
        annotations = _annotations_of(part)
        if not annotations and _TRACKED not in text:
            return without_cards(strip_tracking(text))
        for annotation in annotations:
            self._note_name(annotation)
        keys = {_key(annotation) for annotation in annotations}
        link_edits = self._edit_links(text, keys)
        starts = [edit.start for edit in link_edits]
        edits = list(link_edits)
        for annotation in annotations:
            key = _key(annotation)
            start, end = _range(annotation, text)
            # An annotation that begins inside of a link is about that link, which has
            # got its number.
            links_before = bisect(starts, start)
            is_in_link = links_before > 0 and start < link_edits[links_before - 1].end
            is_link = "url" in annotation and is_in_link
            if key and not is_link:
                mark = _MARK.match(text, start)
                begin, end = mark.span() if mark else (end, end)
                edits.append(_Edit(begin, end, self._number(key)))
        return without_cards(
            strip_tracking(_apply_edits(text, _without_repeats(edits)))
        )

    def _number(self, key: str) -> str:
        """Return the number of a source in brackets; a new one waits to be shown.

        Empty for one source more than a message may have, or a longer one.
        """
        if key not in self._numbers:
            if len(self._numbers) >= _MAX_SOURCES or len(key) > _LONGEST_KEY:
                return ""
            self._numbers[key] = len(self._numbers) + 1
            self._waiting.append(key)
        number = self._numbers[key]
        self._cited[number] = key
        return f"[{number}]"

    def _note_name(self, annotation: Item) -> None:
        name = str(annotation.get("title") or annotation.get("filename") or "")
        key = _key(annotation)
        # The titles of xAI are the numbers of its links.
        if name and key and not name.isdecimal():
            self._names[key] = shorten_name(name)


_MARK = re.compile(r"【[\d:]{1,9}†[^】\n]{0,100}】")
"""What Azure's agents write where they cite (`【4:0†source】`)."""
_DEFINABLE = re.compile(r"https?://[^\s<>{]+")
"""The keys that are addresses, as the definition of a link may have them.

A brace may begin what the page replaces: `{{HTML_FILE_ID_1a}}` becomes a file.
What cannot be printed ends an address for some readers and not for others (U+FEFF is a
space in JavaScript), and what follows it would be drawn.
"""
_NOT_IN_TITLE = re.compile(r'["\\\s\[\]<>`${]+')
"""What ends a title; and what makes a link, an image or markup where a reader takes the
definition for text: titles are the words of strangers."""
_FENCE = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


def _is_in_fence(text: str) -> bool:
    """Say whether a text ends inside of a block of code."""
    opened = ""
    for fence in _FENCE.findall(text):
        if not opened:
            opened = fence
        elif opened == fence:
            opened = ""
    return bool(opened)


def source_keys(sources: object) -> list[str]:
    """Return the keys by which the page tells the host's sources apart, each once.

    Each document of a source is one, by the metadata at its place, if there is any.
    """
    keys: list[str] = []
    for source in content_parts(sources):
        own_id = value_at(source, "source", "id")
        metadata = as_list(source.get("metadata"))
        for index in range(len(as_list(source.get("document")))):
            row = metadata[index] if index < len(metadata) else None
            keys.append(str(value_at(row, "source") or own_id or "N/A"))
    return list(dict.fromkeys(keys))


def _key(annotation: Item) -> str:
    """Return the key of a source; empty if the annotation is not a source."""
    match annotation.get("type"):
        case "url_citation":
            return strip_tracking(str(annotation.get("url") or ""))
        case "file_citation":
            return str(annotation.get("file_id") or annotation.get("filename") or "")
    return ""


def _is_position(value: object) -> TypeGuard[int]:
    """Say whether this can be a place in a text; some servers write -1 for none.

    Python looks for nothing at a place above 2**63.
    """
    return isinstance(value, int) and 0 <= value < _NO_PLACE


_NO_PLACE = 2**53


def _stated_range(annotation: Item) -> tuple[Any, Any]:
    """Return where a citation begins and ends; some servers know only its end."""
    last = annotation.get("end_index")
    start = annotation.get("start_index")
    return last if start is None else start, last


def _range(annotation: Item, text: str) -> tuple[int, int]:
    """Return the first position of an annotation's text, and the one after the last.

    `end_index` is documented as the last character, but it is the one after it
    (recorded, 148 of 149). A file's `index` is the place of the citation.
    """
    start, last = _stated_range(annotation)
    # Nothing in front of the text is cited: OpenRouter writes 0 of what it does not know.
    knows_none = start == last == 0
    if start is None:  # some servers write null for what is not there
        start = last = annotation.get("index")
    if knows_none or not (_is_position(start) and _is_position(last)):
        return len(text), len(text)
    # What would cut a word, or leave the sentence's end after it, is meant as
    # documented; a word stays whole in any case.
    word = _IN_WORD.match(text, last - 1) if last > 0 else None
    ends_sentence = text[last : last + 1] in (".", "!", "?") and last > start
    end = word.end() if word else last + ends_sentence
    return min(start, len(text)), min(end, len(text))


_LETTER = r"[^\W_\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\U0010ffff]"
"""Of a script that has spaces between words: not of Thai, Chinese or Japanese."""
_IN_WORD = re.compile(rf"{_LETTER}{{2,100}}")
_UNITS = (("utf-32-le", 4), ("utf-16-le", 2), ("utf-8", 1))
"""What servers count, with the bytes of one: characters, as the API; what JavaScript
counts; bytes, as Gemini, whose places gateways pass on (maximhq/bifrost 4345)."""


def _annotations_of(part: Item) -> list[Item]:
    """Return the annotations of a part of a content, with their places in characters.

    No server says what it counts. It is what lets the fewest citations end in a word,
    after a space, or outside of the text.
    """
    text = part_text(part)
    annotations = content_parts(part.get("annotations"))
    if not annotations or text.isascii():
        return annotations
    stated = [row.get(name) for row in annotations for name in ANNOTATION_PLACES]
    places = sorted(set(filter(_is_position, stated)))
    ends = [
        row["end_index"] for row in annotations if _is_position(row.get("end_index"))
    ]
    fewest = len(ends) + 1
    best: dict[int, int] = {}
    for encoding, size in _UNITS:
        moved = _places_in_characters(text, places, encoding, size)
        odd = 0
        for last in map(moved.__getitem__, ends):
            before = text[max(0, last - 1) : last]
            is_in_word = _IN_WORD.match(text, last - 1) if last > 0 else None
            odd += bool(is_in_word or before.isspace() or last > len(text))
        if odd < fewest:
            fewest = odd
            best = moved
        if odd == 0:
            break
    return content_parts(move_annotations(part, best.__getitem__)["annotations"])


def _places_in_characters(
    text: str, places: Iterable[int], encoding: str, size: int
) -> dict[int, int]:
    """Return the places in a text that are counted in units of an encoding."""
    encoded = text.encode(encoding, "surrogatepass")
    decoder = getincrementaldecoder(encoding)("surrogatepass")
    moved: dict[int, int] = {}
    begin = 0
    count = 0
    for place in places:
        end = place * size
        count += len(decoder.decode(encoded[begin:end]))
        moved[place] = count if end <= len(encoded) else len(text) + 1
        begin = end
    return moved


def _apply_edits(text: str, edits: Iterable[_Edit]) -> str:
    """Return a text with the edits, in the order of their places in it."""
    pieces: list[str] = []
    done = 0
    # Where two edits overlap, what both replace is left out once.
    for edit in sorted(edits, key=_BY_PLACE):
        pieces += [text[done : edit.start], edit.text]
        done = max(done, edit.end)
    pieces.append(text[done:])
    return "".join(pieces)


def _without_repeats(edits: Iterable[_Edit], number: str = "") -> list[_Edit]:
    """Return the edits without numbers directly after the same number.

    An annotation often cites the page that the link next to it names. `number` is what
    comes in front of the text.
    """
    kept: list[_Edit] = []
    end = 0
    for edit in sorted(edits, key=_BY_PLACE):
        repeats = edit.start <= end and number.endswith(edit.text)
        if repeats:
            kept.append(edit._replace(text=""))
        else:
            kept.append(edit)
            number = edit.text
        end = max(end, edit.end)
    return kept


def chat_annotations(item: Item, before: int) -> list[Item]:
    """Return the pages that a message cites, with their positions in the answer.

    `before` is where the message begins in it, counted without tracking parameters.
    """
    annotations: list[Item] = []
    for part, text, gap in parts_with_gaps(item.get("content")):
        before += len(gap)
        find_position = _position_finder(text)
        for annotation in _annotations_of(part):
            if annotation.get("type") != "url_citation":
                continue
            start, end = map(find_position, _stated_range(annotation))
            cited = {
                "url": _key(annotation),
                "title": shorten_name(str(annotation.get("title") or "")),
                "start_index": before + start,
                "end_index": before + end,
            }
            annotations.append({"type": "url_citation", "url_citation": cited})
        before += find_position(len(text))
    return annotations


def _position_finder(text: str) -> Callable[[object], int]:
    """Return what finds a place of a text again when tracking parameters are gone.

    What is no place is the end.
    """
    matches = list(_TRACKING.finditer(text))
    starts = [match.start() for match in matches]
    removed_before = [0, *accumulate(len(match[0]) for match in matches)]

    def find(position: object) -> int:
        """Return the place in the text without tracking parameters."""
        old_position = position if _is_position(position) else len(text)
        return old_position - removed_before[bisect_left(starts, old_position)]

    return find
