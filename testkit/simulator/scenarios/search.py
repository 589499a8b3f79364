"""Replies that search the web or files, and cite their sources."""

from urllib.parse import urlsplit

from simulator.scenarios.builders import (
    Item,
    build_file_search_call,
    build_function_call,
    build_message,
    build_reasoning,
    build_url_citation,
    build_web_search_call,
)
from simulator.scenarios.scenario import Scenario, make_reply, make_scenario

SEARCHING = build_reasoning("**Searching the web**\n\nThis needs a source.")
COMPARING = build_reasoning("**Comparing the pages**\n\nTwo pages agree.")

CHRONICLE = "https://www.harbour.example/chronicle?year=1963&utm_source=openai"
ALMANAC = "https://almanac.example/ice_(lake)?utm_source=openai"
MUSEUM = "https://museum.example/ships?utm_source=openai#frozen"
LAKE = "https://lake.example/zuerich/today?utm_source=openai"
BEACH = "https://beaches.example/mythenquai?utm_source=openai"
TITLES = {
    CHRONICLE: "The chronicle of the harbour",
    ALMANAC: "Ice on the lake",
    MUSEUM: "Ships in the ice",
    LAKE: "Lake Zürich today",
    BEACH: "The beach at Mythenquai",
}


def build_link(url: str) -> str:
    """Return the link by which the model cites a page in its text."""
    host = urlsplit(url).netloc.removeprefix("www.")
    return f"([{host}]({url}))"


def build_cited_message(text: str, *urls: str) -> Item:
    """Return a message with an annotation for each link of its text, in order."""
    annotations: list[Item] = []
    start = 0
    for url in urls:
        cited = build_url_citation(text, build_link(url), url, TITLES[url], start)
        annotations.append(cited)
        start = cited["end_index"]
    return build_message(text, annotations=annotations)


def build_file_citation(text: str, words: str, file: str) -> Item:
    """Return a citation of a file, positioned after some words of a text."""
    return {
        "type": "file_citation",
        "file_id": f"file-{file.partition('.')[0]}",
        "filename": file,
        "index": text.index(words) + len(words),
    }


ANSWER = (
    f"The harbour froze in 1963. {build_link(CHRONICLE)} The ice was 40 cm thick "
    f"{build_link(ALMANAC)}, and no ship left for six weeks. {build_link(CHRONICLE)}\n\n"
    f"Two ships were lost; an array such as `[0, 1]` stays as it is. {build_link(MUSEUM)}"
)
TWICE = (
    f"It froze in 1963. {build_link(CHRONICLE)}{build_link(CHRONICLE)} The ice was 40 cm "
    f"thick. {build_link(ALMANAC)}{build_link(CHRONICLE)}{build_link(CHRONICLE)}"
)
SWIM = (
    f"**Yes, this afternoon is a good time.** The gauge reads: $output "
    f"The wind stays weak until six {build_link(LAKE)}, and the beach is open until eight. "
    f"{build_link(BEACH)}\n\n"
    "- Before six the lake is calm.\n- Take something warm for the way back."
)
FILES = "The pier was built in 1902. It burned in 1963, as the log tells.\n\nEnd."
SEARCH = build_web_search_call("when did the harbour freeze", CHRONICLE, ALMANAC)
SEARCH["action"]["queries"].append("thickness of the ice in 1963")
OPENED_PAGE = {
    "type": "web_search_call",
    "action": {"type": "open_page", "url": CHRONICLE},
}
SEARCHED_PAGE = {
    "type": "web_search_call",
    "action": {"type": "find_in_page", "url": CHRONICLE, "pattern": "1963"},
}


SEARCH_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "web-search",
        "a search with two queries, a page opened and searched, three sources",
        SEARCHING,
        SEARCH,
        COMPARING,
        OPENED_PAGE,
        SEARCHED_PAGE,
        build_cited_message(ANSWER, CHRONICLE, ALMANAC, CHRONICLE, MUSEUM),
        tool="web_search",
    ),
    make_scenario(
        "swim",
        "a search beside a call of the first function, then an answer with two sources",
        make_reply(
            build_reasoning(
                "**Planning the look-ups**\n\nWhether one can swim depends on the "
                "water and on the wind: the gauge tells the one, the web the other."
            ),
            build_web_search_call("Lake Zürich wind and beaches today", LAKE, BEACH),
            build_function_call("$tool", "$arguments"),
        ),
        make_reply(
            build_reasoning(
                "**Weighing both**\n\nThe water is warm enough, and the wind comes "
                "only in the evening."
            ),
            build_cited_message(SWIM, LAKE, BEACH),
        ),
        tool="web_search",
    ),
    make_scenario(
        "search-twice",
        "a search, then an answer that cites the same page twice at one place",
        SEARCHING,
        build_web_search_call("ice in 1963", CHRONICLE, ALMANAC),
        build_cited_message(TWICE, CHRONICLE, CHRONICLE, ALMANAC, CHRONICLE, CHRONICLE),
        tool="web_search",
    ),
    make_scenario(
        "search-failed",
        "a search that fails, then an answer without a source",
        SEARCHING,
        {**build_web_search_call("ice in 1963"), "status": "failed"},
        build_message("The search failed. I would say 1963."),
        tool="web_search",
    ),
    make_scenario(
        "file-search",
        "a search in files, then an answer that cites two of them",
        build_reasoning("**Searching the files**\n\nOne of them should tell."),
        build_file_search_call("pier", "fire at the pier"),
        build_message(
            FILES,
            annotations=[
                build_file_citation(FILES, "built in 1902", "harbour.pdf"),
                build_file_citation(FILES, "log tells", "log-1963.md"),
            ],
        ),
        tool="file_search",
    ),
)
