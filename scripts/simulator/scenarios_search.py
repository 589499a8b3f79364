"""What the model says when it searches."""

from simulator.asked import Asked
from simulator.builders import (
    Item,
    file_search_call,
    function_call,
    message,
    reasoning,
    url_citation,
    web_search_call,
)
from simulator.options import Options
from simulator.scenario import Compose, Reply, Scenario, reply, scenario

SEARCHING = reasoning("**Searching the web**\n\nThis needs a source.")
COMPARING = reasoning("**Comparing the pages**\n\nTwo pages agree.")

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
HOSTS = {
    CHRONICLE: "harbour.example",
    ALMANAC: "almanac.example",
    MUSEUM: "museum.example",
    LAKE: "lake.example",
    BEACH: "beaches.example",
}


def link(url: str) -> str:
    """Return a citation as the model writes it into its text."""
    return f"([{HOSTS[url]}]({url}))"


def cited(text: str, *urls: str, phase: str | None = None) -> Item:
    """Return a message with an annotation for each link of its text, in order."""
    annotations: list[Item] = []
    place = 0
    for url in urls:
        place = text.index(link(url), place)
        found = url_citation(text[place:], link(url), url, TITLES[url])
        for key in ("start_index", "end_index"):
            found[key] += place
        annotations.append(found)
        place += len(link(url))
    return message(text, phase=phase, annotations=annotations)


def page_call(kind: str, url: str, pattern: str | None = None) -> Item:
    """Return a look into a page that the search had found."""
    more = {} if pattern is None else {"pattern": pattern}
    action = {"type": kind, "url": url, **more}
    return {"type": "web_search_call", "action": action}


def file_citation(text: str, behind: str, file: str) -> Item:
    """Return a citation of a file, behind some words of a text."""
    place = text.index(behind) + len(behind)
    return {
        "type": "file_citation",
        "file_id": f"file-{file.partition('.')[0]}",
        "filename": file,
        "index": place,
    }


ANSWER = (
    f"The harbour froze in 1963. {link(CHRONICLE)} The ice was 40 cm thick "
    f"{link(ALMANAC)}, and no ship left for six weeks. {link(CHRONICLE)}\n\n"
    f"Two ships were lost; an array such as `[0, 1]` stays as it is. {link(MUSEUM)}"
)
SWIM = (
    f"**Yes, this afternoon is a good time.** The gauge reads: $output "
    f"The wind stays weak until six {link(LAKE)}, and the beach is open until eight. "
    f"{link(BEACH)}\n\n"
    "- Before six the lake is calm.\n- Take something warm for the way back."
)
FILES = "The pier was built in 1902. It burned in 1963, as the log tells.\n\nEnd."
SEARCH = web_search_call("when did the harbour freeze", CHRONICLE, ALMANAC)
SEARCH["action"]["queries"].append("thickness of the ice in 1963")


def only_with(kind: str, *replies: Reply) -> tuple[Compose, ...]:
    """Return replies of a model that has a tool; without it, it says so."""

    def due(found: Reply) -> Compose:
        def compose(asked: Asked, options: Options) -> Reply:
            del options
            return found if asked.tools(kind) else reply(message(f"I have no {kind}."))

        return compose

    return tuple(map(due, replies))


SEARCH_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "web-search",
        "a search with two queries, a page opened, a word found there, three sources",
        *only_with(
            "web_search",
            reply(
                SEARCHING,
                SEARCH,
                COMPARING,
                page_call("open_page", CHRONICLE),
                page_call("find_in_page", CHRONICLE, "1963"),
                cited(ANSWER, CHRONICLE, ALMANAC, CHRONICLE, MUSEUM),
            ),
        ),
    ),
    scenario(
        "search-tool",
        "a search with a cited word on it, a call of the first function, another search",
        *only_with(
            "web_search",
            reply(
                SEARCHING,
                web_search_call("ice in 1963", CHRONICLE),
                cited(
                    f"So far: 1963. {link(CHRONICLE)}", CHRONICLE, phase="commentary"
                ),
                function_call("$tool", "$arguments"),
            ),
            reply(
                COMPARING,
                web_search_call("ships in the ice", MUSEUM, CHRONICLE),
                cited(
                    f"Ships were lost {link(MUSEUM)} in 1963. {link(CHRONICLE)}",
                    MUSEUM,
                    CHRONICLE,
                    phase="final_answer",
                ),
            ),
        ),
    ),
    scenario(
        "swim",
        "a search beside a call of the first function, then an answer with two sources",
        *only_with(
            "web_search",
            reply(
                reasoning(
                    "**Planning the look-ups**\n\nWhether one can swim depends on the "
                    "water and on the wind: the gauge tells the one, the web the other."
                ),
                web_search_call("Lake Zürich wind and beaches today", LAKE, BEACH),
                function_call("$tool", "$arguments"),
            ),
            reply(
                reasoning(
                    "**Weighing both**\n\nThe water is warm enough, and the wind comes "
                    "only in the evening."
                ),
                cited(SWIM, LAKE, BEACH),
            ),
        ),
    ),
    scenario(
        "search-failed",
        "a search that fails, then an answer without a source",
        *only_with(
            "web_search",
            reply(
                SEARCHING,
                {**web_search_call("ice in 1963"), "status": "failed"},
                message("The search failed. I would say 1963."),
            ),
        ),
    ),
    scenario(
        "file-search",
        "a search in files, then an answer that cites two of them",
        *only_with(
            "file_search",
            reply(
                reasoning("**Searching the files**\n\nOne of them should tell."),
                file_search_call("pier", "fire at the pier"),
                message(
                    FILES,
                    annotations=[
                        file_citation(FILES, "built in 1902", "harbour.pdf"),
                        file_citation(FILES, "log tells", "log-1963.md"),
                    ],
                ),
            ),
        ),
    ),
)
