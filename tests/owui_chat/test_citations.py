"""What an answer refers to is numbered as the page numbers it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from openai_responses.endings import CUT
from openai_responses.items import Item, text_part
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.transport.stream import AnnotationAdded, ItemDone, TextDelta
from owui_chat.citations import (
    Citations,
    HoldbackBuffer,
    length_before_tracking,
    source_keys,
)
from owui_chat.events import CitedEvent, SourceCited
from runs.sample import (
    message,
    output,
    reasoning,
    run_of,
    run_of_transcript,
    without_addresses,
)

STRANGE_TITLES = [
    "![x](https://e.example/p.png)",
    "<img src=x>",
    "`a`",
    "a](b",
    "$x$ {{a}}",
]
A = "https://a.example/x"
B = "https://b.example/y?z=1"


def link(url: str, label: str = "") -> str:
    """A link as the model writes it to a page that it found."""
    sign = "&" if "?" in url else "?"
    return f"([{label or url.split('/')[2]}]({url}{sign}utm_source=openai))"


def cites(text: str, *urls: str, **more: Any) -> Item:
    """A message with an annotation for each link of its text."""
    notes = [
        url_note(url, "A page", text.index(url) - 1, text.index(url) + len(url))
        for url in urls
    ]
    return message("1", text, annotations=notes, **more)


def url_note(url: str, title: str, start: int = 0, end: int = 0) -> Item:
    places = {"start_index": start, "end_index": end}
    return {"type": "url_citation", "url": url, "title": title, **places}


def file_note(name: str, index: int) -> Item:
    head = {"type": "file_citation", "file_id": f"file-{name}", "filename": name}
    return {**head, "index": index}


def shown(*items: Item, citations: Citations | None = None) -> list[str]:
    """The text of each message as it grew and as it is in the end."""
    return shown_events(run_of(*items), citations)


def noted(text: str, *notes: Item) -> str:
    return shown(message("1", text, annotations=list(notes)))[1]


def shown_events(
    events: Iterable[RunEvent], citations: Citations | None = None
) -> list[str]:
    """The same of a run."""
    texts = []
    grown = ""
    for event in fed(citations or Citations(), *events):
        if isinstance(event, TextDelta):
            grown += event.text
        elif isinstance(event, ItemDone):
            texts += [grown, without_addresses(event.shown)]
            grown = ""
    return texts


def fed(citations: Citations, *events: RunEvent) -> list[CitedEvent]:
    return [cited for event in events for cited in citations.feed(event)]


def sources_in(events: Sequence[CitedEvent]) -> list[Mapping[str, Any]]:
    return [event.source for event in events if isinstance(event, SourceCited)]


def sources_of(text: str, *notes: Item) -> list[Mapping[str, Any]]:
    cited = message("1", text, annotations=list(notes))
    return sources_in(fed(Citations(), *run_of(cited)))


def test_link_becomes_a_number() -> None:
    text = f"One {link(A)} two {link(B)}, one again {link(A)}."

    grown, stands = shown(cites(text, A))

    assert grown == stands == "One [1] two [2], one again [1]."


def test_headline_link_text_is_kept() -> None:
    """A headline is part of the answer; the site's name is not, nor what is apart."""
    inner = f"[The headline]({A}?utm_source=openai)"
    dotted = f"[Mr. Rain]({A}?utm_source=openai) [Rain]({A}?utm_source=openai)"
    site = f"[a.example]({A}?utm_source=openai)"

    text = f"- {inner} {dotted}\n- {site} {link(A, 'a page')} (see {site})"
    assert shown(message("1", text))[1] == (
        f"- [The headline]({A})[1] [Mr. Rain]({A})[1] [Rain]({A})[1]\n- [1] [1] (see [1])"
    )


@pytest.mark.parametrize(
    "text",
    ["See [the docs](https://docs.example).", "a[0](1)", "An [open", "Why?", "f("],
)
def test_text_without_citations_is_unchanged(text: str) -> None:
    assert shown(message("1", text)) == [text, text]


def test_no_link_tells_who_searched() -> None:
    text = f"{A}?utm_source=openai and [x]({B}&utm_source=openai)"

    assert "utm_source" not in shown(message("1", text))[1]


def test_parts_of_a_message_are_told_apart() -> None:
    first, second = (
        message("1", text)["content"][0] for text in ("a [b", f"] {link(A)}")
    )
    item = {**message("1", ""), "content": [first, second]}

    assert shown(item) == ["a [b] [1]"] * 2
    item["content"].append(text_part("refusal", "No."))
    assert shown(item) == ["a [b] [1]\n\nNo."] * 2


def test_other_servers_forms_of_content_are_read() -> None:
    short = {"type": "message", "role": "assistant", "content": f"Rain {link(A)}"}

    ended = fed(Citations(), ItemDone(0, short), ItemDone(1, {"type": "message"}))

    texts = [event.shown for event in ended if isinstance(event, ItemDone)]
    assert [without_addresses(text) for text in texts] == ["Rain [1]", ""]
    assert len(sources_in(ended)) == 1


def test_text_leads_to_the_files_of_a_container() -> None:
    item = message("1", "[A](sandbox:/a.csv)")
    ended = ItemDone(0, item, {"links": {"sandbox:/a.csv": "/f-1"}, "notes": ["Full."]})

    [shown_end] = fed(Citations(), ended)

    assert shown_end == ended._replace(shown="[A](/f-1)\n\nFull.")


YEAR = "It was in 1963 1963 that it froze."
YEAR_CITED = "It was in 1963[1] 1963 that it froze."
LOG = [file_note("log.md", 15), file_note("x.pdf", 15), file_note("log.md", 99)]
LINKED = f"One {link(A)} two {link(B)} three."
AT_B = LINKED.index(B)
ABOUT_B = url_note(B, "B", AT_B, LINKED.index(" three") + 6)
NO_PLACES = {"start_index": None, "end_index": None}


@pytest.mark.parametrize(
    ("text", "notes", "numbered"),
    [
        # After the words, whatever `end_index` means; but no word is cut.
        (YEAR, [url_note(A, "A", 7, 13)], YEAR_CITED),
        (YEAR, [url_note(A, "A", 7, 14)], YEAR_CITED),
        ("so (1963)it", [url_note(A, "A", 0, 9)], "so (1963)[1]it"),
        ("it, so", [url_note(A, "A", 0, 2)], "it[1], so"),
        ("a bc", [url_note(A, "A", 0, 3)], "a bc[1]"),
        # After the end of a sentence.
        ("Rain. So", [url_note(A, "A", 0, 4)], "Rain.[1] So"),
        ("Rain! So", [url_note(A, "A", 0, 4)], "Rain![1] So"),
        ("Rain? So", [url_note(A, "A", 0, 4)], "Rain?[1] So"),
        ("Rain; so", [url_note(A, "A", 0, 4)], "Rain[1]; so"),
        ("Rain", [url_note(A, "A", 0, 99)], "Rain[1]"),
        # At the end without a place; some servers mean that by -1.
        ("It rains.", [{**url_note(A, "A", 0, 2), "start_index": "x"}], "It rains.[1]"),
        ("It rains.", [{**url_note(A, "A", 2, 0), "end_index": "x"}], "It rains.[1]"),
        # Some servers know only where a citation ends.
        (
            "It rains.",
            [{**url_note(A, "A", 0, 2), "start_index": None}],
            "It[1] rains.",
        ),
        ("It rains.", [{**url_note(A, "A", 2, 0), "end_index": None}], "It rains.[1]"),
        ("It rains.", [url_note(A, "A", -1, -1)], "It rains.[1]"),
        ("It rains.", [url_note(A, "A", -9, 4)], "It rains.[1]"),
        ("It rains.", [url_note(A, "A", 0, 2**70)], "It rains.[1]"),
        ("It rains.", [file_note("f", -1)], "It rains.[1]"),
        # Servers that write all fields of a class write null for those that are absent.
        ("A. B.", [{**file_note("f", 2), **NO_PLACES}], "A.[1] B."),
        # One that begins in a link is about the link, wherever it ends.
        (LINKED, [ABOUT_B], "One [1] two [2] three."),
        (LINKED, [file_note("b.md", AT_B)], "One [1] two [2][3] three."),
        # Links were numbered while the text grew, so files come after them.
        (f"The log says so. {link(A)} End.", LOG, "The log says so[2][3]. [1] End.[2]"),
        # Only equal neighbors are merged, and never what the model wrote itself.
        ("Rain.", [url_note(A, "A", 0, 4), url_note(A, "A", 2, 4)], "Rain.[1]"),
        (f"Rain {link(A)}{link(A)}", [url_note(A, "A", 5, 9)], "Rain [1]"),
        (f"Rain{link(A)}", [file_note("x", 4), url_note(A, "A", 0, 4)], "Rain[2][1]"),
        (f"Rain {link(A)}{link(B)}", [url_note(A, "A", 5, 9)], "Rain [1][2]"),
        ("a[1][1]", [url_note(A, "A", 0, 7)], "a[1][1][1]"),
        # OpenRouter knows no places.
        ("It rains.", [url_note(A, "A", 0, 0)], "It rains.[1]"),
        (
            "It rains.",
            [url_note(A, "A", 0, 0), url_note(B, "B", 0, 0)],
            "It rains.[1][2]",
        ),
        ("It rains.", [file_note("f", 0)], "[1]It rains."),
        # Azure's agents write a mark where they cite.
        ("So it is【4:0†source】.", [url_note(A, "A", 8, 20)], "So it is[1]."),
        ("So【4:0†source】.", [file_note("f", 2)], "So[1]."),
        ("So【so】 it is.", [url_note(A, "A", 0, 12)], "So【so】 it is.[1]"),
        # Where words have no spaces between them, none is cut.
        ("据报道今天下雨。", [file_note("f", 3)], "据报道[1]今天下雨。"),
        ("据报道今天下雨。", [url_note(A, "A", 0, 3)], "据报道[1]今天下雨。"),
        # Wherever it is meant to end, a word stays whole.
        ("It rained today.", [url_note(A, "A", 0, 5)], "It rained[1] today."),
        # Gemini counts bytes, and gateways pass that on.
        ("Über Zürich. So.", [url_note(A, "A", 0, 14)], "Über Zürich.[1] So."),
        (
            "Öl. Über Zürich. So.",
            [url_note(A, "A", 0, 4), url_note(B, "B", 5, 19)],
            "Öl.[1] Über Zürich.[2] So.",
        ),
        ("天气很好。冷。", [url_note(A, "A", 0, 15)], "天气很好。[1]冷。"),
        # What fits no better than characters, as the API counts, is not meant.
        ("Öäü öäü öäü.", [url_note(A, "A", 0, 5)], "Öäü öäü[1] öäü."),
        # Others count as JavaScript does.
        (
            "🌧🌧🌧 It rains. Then not.",
            [url_note(A, "A", 0, 16)],
            "🌧🌧🌧 It rains.[1] Then not.",
        ),
        # xAI's links are numbers that it counts itself.
        (
            f"So.[[1]]({A})[[2]]({B})",
            [url_note(A, "1", 3, 31), url_note(B, "2", 31)],
            "So.[1][2]",
        ),
        (f"So [[7]]({A}).", [], f"So [[7]]({A})."),
    ],
)
def test_number_is_where_an_annotation_cites(
    text: str, notes: list[Item], numbered: str
) -> None:
    assert noted(text, *notes) == numbered


def test_annotated_link_without_tracking_becomes_a_number() -> None:
    text = f"Rain ([a.example]({A}))."

    linked = message("1", text, annotations=[url_note(A, "A", 5)])

    assert shown(linked) == [text, "Rain [1]."]


def test_adjacent_citations_are_merged_while_the_text_grows() -> None:
    """The deltas of a stream cut links anywhere; the page shows what is there later."""
    *_, grown, stands = shown_events(run_of_transcript("search-twice.sse"))

    assert grown == stands == "It froze in 1963. [1] The ice was 40 cm thick. [2][1]"


@pytest.mark.parametrize(
    "note",
    [
        {},
        {"type": "file_path", "file_id": "f", "index": 1},
        {"type": "container_file_citation", "file_id": "f", "start_index": 0},
        {"type": "url_citation"},
        {"type": "file_citation", "index": "x"},
    ],
)
def test_annotation_without_a_source_is_none(note: Item) -> None:
    assert noted("Rain.", note) == "Rain."
    assert sources_of("Rain.", note) == []


def test_sources_have_the_titles_of_the_annotations() -> None:
    """In the order of their numbers, 200 characters of each; without one the address."""
    titled = url_note(f"{B}&utm_source=openai", "Page B" + "!" * 36_000)
    title = "Page B" + "!" * 194

    assert sources_of(f"{link(A)} {link(B)}", titled, file_note("log.md", 0)) == [
        {
            "source": {"name": A, "url": A},
            "document": [A, title, "log.md"],
            "metadata": [
                {"source": A, "name": A},
                {"source": B, "name": title},
                {"source": "file-log.md", "name": "log.md"},
            ],
        }
    ]


@pytest.mark.parametrize("title", ["", "1"])
def test_source_without_a_title_is_named_by_its_address(title: str) -> None:
    """The titles of xAI are the numbers of its links."""
    [source] = sources_of("Rain.", url_note(A, title))
    assert source["document"] == [A]


def test_many_sources_are_few_events() -> None:
    """For each the host reads and writes all sources of the message."""
    citations = Citations(["kept.pdf"])
    pages = [f"https://a.example/{number}" for number in range(500)]
    events: list[CitedEvent] = []
    for page in pages:
        events += fed(citations, TextDelta(0, "text", 0, f"{link(page)} "))
        events += fed(citations, AnnotationAdded(0, url_note(page, f"Page {page}")))
    text = " ".join(map(link, pages))
    events += fed(citations, *run_of(message("1", text))[-1:])

    sources = sources_in(events)
    assert [len(source["document"]) for source in sources] == [1] * 10 + [10] * 18 + [9]
    rows = [row for source in sources for row in source["metadata"]]
    assert [row["source"] for row in rows] == pages[:199]


def test_more_sources_than_a_message_may_have_stay_links() -> None:
    """None is lost, and none has a number that the page does not know."""
    pages = [f"https://a.example/{number}" for number in range(202)]
    notes = [file_note(f"{number}.md", 0) for number in range(3)]
    text = " ".join(f"({link(page)})" for page in pages)

    [grown, whole] = shown(message("1", text, annotations=notes))

    assert "([199]) ([200])" in whole
    assert whole.endswith("(https://a.example/201)))")
    assert "[201]" not in whole
    assert grown == whole


def test_source_waits_for_its_name_while_the_text_grows() -> None:
    """Those after it wait with it, because the page counts them."""
    citations = Citations()
    fed(citations, TextDelta(0, "text", 0, f"{link(A)} {link(B)} "))

    second = AnnotationAdded(0, url_note(B, "Page B"))
    assert fed(citations, second) == [second]
    sources = sources_in(fed(citations, AnnotationAdded(0, url_note(A, "Page A"))))

    assert [source["document"] for source in sources] == [["Page A", "Page B"]]
    fed(citations, TextDelta(0, "text", 0, link("https://c.example")))
    of_tool = {"source": {"name": "search"}, "document": ["x"]}
    answered = ToolOutput(2, output("1"), card={"sources": [of_tool]})
    sources = sources_in(fed(citations, answered))
    assert [source["document"] for source in sources] == [["https://c.example"], ["x"]]


def test_numbers_run_on_over_messages_and_tools() -> None:
    """What a tool of the host cited in between counts, once for each document."""
    citations = Citations(["kept.pdf"])
    source = {
        "source": {"name": "search", "id": "own"},
        "document": ["x", "y", "z"],
        "metadata": [{"source": "https://c.example"}, {}],
    }
    answered = ToolOutput(2, output("1"), card={"sources": [source]})

    first = shown(message("1", link(A)), citations=citations)[1]
    assert fed(citations, answered) == [answered, SourceCited(source)]
    text = f"{link(B)} {link(A)} {link('https://c.example')}"
    second = shown(message("2", text), citations=citations)[1]

    assert (first, second) == ("[2]", "[5] [2] [3]")


def test_keys_of_the_hosts_sources_are_the_pages_own() -> None:
    """A source without documents is none there."""
    assert source_keys([{}, {"document": ["x"]}, {"document": ["y"]}]) == ["N/A"]


@pytest.mark.parametrize(
    "sources",
    [
        7,
        [7, {"source": 7, "document": 7}],
        [{"source": [], "document": ["x"], "metadata": {"source": "y"}}],
        [{"document": ["x"], "metadata": [7]}],
    ],
)
def test_strange_sources_break_nothing(sources: Any) -> None:
    """A tool or a filter may have put them there."""
    assert source_keys(sources) in ([], ["N/A"])


def test_text_that_broke_off_is_shown_to_its_end() -> None:
    """Also what might have become a link, and the sources whose titles did not come."""
    ended = RunDone(CUT)
    text = f"{link(A)} Rain ([a.exam"

    events = fed(Citations(), TextDelta(0, "text", 0, text), ended)

    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "[1] Rain ([a.exam"
    assert [source["document"] for source in sources_in(events)] == [[A]]
    assert events[-1] == ended
    thought = ItemDone(0, reasoning("1"))  # its text was none of the answer
    rest = fed(Citations(), TextDelta(0, "text", 0, "Hm ["), thought, ended)[1:]
    assert rest == [thought, ended]


def test_other_texts_are_not_cited() -> None:
    """A thought may hold a link of the search; it takes no number."""
    event = TextDelta(0, "summary", 0, link(A))
    citations = Citations()

    assert fed(citations, event) == [event]
    assert shown(message("1", link(B)), citations=citations)[1] == "[1]"


def listed(*items: Item) -> list[str]:
    """What is below the text of each message where no sources are shown."""
    events = fed(Citations(shows_addresses=True), *run_of(*items))
    ended = [event for event in events if isinstance(event, ItemDone)]
    return [event.shown.partition("\n\n")[2] for event in ended]


def definitions(*items: Item) -> list[str]:
    """What is below the text of each message, which the page does not draw."""
    events = fed(Citations(), *run_of(*items))
    texts = [event.shown for event in events if isinstance(event, ItemDone)]
    return [text.removeprefix(without_addresses(text)) for text in texts]


def test_a_copied_text_has_the_addresses_of_its_numbers() -> None:
    """As definitions of links, in the order of the numbers, each once.

    A channel of Open WebUI draws `[1]`, and nothing that it could mean: it has a list.
    """
    text = f"One {link(B)} two {link(A)}, one again {link(B)}."
    notes = [url_note(A, 'A "great"\npage'), file_note("a.pdf", 3)]
    cited = message("1", text, annotations=notes)

    assert definitions(cited) == [f'\n\n[1]: {B}\n[2]: {A} "A great page"']
    assert listed(cited)[0].splitlines() == [
        f"[1] <{B}>  ",
        f"[2] [A great page](<{A}>)  ",
        "[3] a.pdf",
    ]


def test_each_message_has_the_addresses_of_its_own_numbers() -> None:
    """Another one may be copied without it."""
    texts = (f"One {link(A)}.", "And [1].", f"One {link(A)} two {link(B)}.")

    below = definitions(*(message(str(n), text) for n, text in enumerate(texts)))

    assert below == [f"\n\n[1]: {A}", "", f"\n\n[1]: {A}\n[2]: {B}"]


@pytest.mark.parametrize(
    ("text", "has_addresses"),
    [
        (f"```\ncode\n```\n{link(A)}", True),
        (f"~~~\n```\n~~~\n{link(A)}", True),
        (f"{link(A)}\n```\ncode", False),
        (f"{link(A)}\n~~~\n```", False),
        (f"{link(A)} and ``` in a line", True),
    ],
)
def test_addresses_are_never_drawn_as_code(text: str, has_addresses: bool) -> None:
    """After an open fence they would be a part of it."""
    [below] = definitions(message("1", text))

    assert bool(below) is has_addresses


@pytest.mark.parametrize("name", STRANGE_TITLES)
def test_titles_of_strangers_draw_nothing(name: str) -> None:
    """Some readers take a definition for text; where it is listed, a title is a label."""
    notes = [url_note(A, name, 0, 4), file_note(name, 2)]
    rain = message("1", "Rain.", annotations=notes)

    [below] = definitions(rain)
    page, file = listed(rain)[0].splitlines()

    assert below.startswith(f'\n\n[1]: {A} "')
    assert not set("[]<>`${") & set(below.partition(A)[2])
    label = page.removeprefix("[1] [").removesuffix(f"](<{A}>)  ")
    assert not set("[]<>`${") & {*label, *file.removeprefix("[2] ")}


def test_source_that_is_opened_draws_nothing() -> None:
    """The page shows it as Markdown."""
    [cited] = sources_of("Rain.", url_note(A, STRANGE_TITLES[0] + " <b>", 0, 4))

    assert cited["document"] == ["!&#91;x&#93;(https://e.example/p.png) \\<b\\>"]
    assert cited["source"]["name"] == "![x](https://e.example/p.png) <b>"


@pytest.mark.parametrize("name", ["http_codes.txt", "https.csv"])
def test_name_of_a_file_is_no_address(name: str) -> None:
    """The page would make a link of it, which leads nowhere."""
    [cited] = sources_of("Rain.", {"type": "file_citation", "filename": name})

    assert cited["source"] == {"name": name}


@pytest.mark.parametrize("end", ["\ufeffx", "{{HTML_FILE_ID_1a}}"])
def test_address_that_ends_for_some_readers_has_no_definition(end: str) -> None:
    """U+FEFF is a space in JavaScript, and not in Python: the rest would be drawn."""
    url = f"https://a.example/{end}"
    note = url_note(url, "![x](https://e.example/p.png)", 0, 4)

    assert definitions(message("1", "Rain.", annotations=[note])) == [""]
    named = message("1", "Rain.", annotations=[url_note(url, "A", 0, 4)])
    assert listed(named) == ["[1] A"]


def test_commentary_has_no_addresses() -> None:
    """People do not copy it."""
    assert definitions(message("1", f"One {link(A)}.", "commentary")) == [""]


@pytest.mark.parametrize("url", ["ftp://a.example", "https://a.example/<b>", "a b"])
def test_what_is_no_address_has_no_definition(url: str) -> None:
    """It would be drawn as text."""
    note = url_note(url, "A", 0, 4)

    assert definitions(message("1", "Rain.", annotations=[note])) == [""]


def test_number_at_the_beginning_of_a_part_stays() -> None:
    """The one before it ends another part."""
    part = message("1", link(A))["content"][0]
    item = {**message("1", ""), "content": [part, part]}

    assert shown(item) == ["[1][1]"] * 2


def test_end_that_becomes_too_long_is_shown() -> None:
    """Nobody writes such a link; the reader would wait for the rest of the answer."""
    buffer = HoldbackBuffer(length_before_tracking)
    assert buffer.feed("It is ?utm_") == "It is "
    assert buffer.feed("x" * 100_000) == "?utm_" + "x" * 100_000


def test_much_that_is_held_back_is_not_read_for_each_letter() -> None:
    looks: list[str] = []

    def find_no_end(text: str) -> int:
        looks.append(text)
        return 0

    buffer = HoldbackBuffer(find_no_end)
    assert [buffer.feed("&") for _ in range(1_000)] == [""] * 1_000
    assert len(looks) < 200
    assert buffer.rest() == "&" * 1_000


def test_address_of_megabytes_is_no_source() -> None:
    """The host writes it again with each event, and its signs are escaped one by one."""
    longest = A.ljust(8_000, "*")

    assert sources_of("Rain.", url_note(f"{longest}*", "", 0, 4)) == []
    assert len(sources_of("Rain.", url_note(longest, "", 0, 4))) == 1
