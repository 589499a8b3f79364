"""Searches of the API look like the host's own."""

from typing import Any

import pytest

from calls.outcomes import host_events
from hosts.servers.functions import HostFunctions
from openai_responses.items import Item
from openai_responses.transport.stream import AnnotationAdded
from runs.sample import message, on_page, run_of, run_of_transcript, search

Json = dict[str, Any]
A = "https://a.example"
B = "https://b.example"


def pages(chunks: list[Json]) -> list[Json]:
    statuses = host_events(chunks, "status")
    return [status for status in statuses if status.get("action") == "web_search"]


def search_with(*urls: str) -> Item:
    action = {"type": "search", "query": "rain", "queries": ["rain", "snow"]}
    sources = [{"type": "url", "url": url} for url in urls]
    return {**search("1"), "action": {**action, "sources": sources}}


def test_card_of_a_search_has_its_queries(host_functions: HostFunctions) -> None:
    """It spins while the search goes on; the pages are not stored in it."""
    chunks, items = on_page(run_of(search_with(A)))

    [item] = host_functions.reduce([c for c in chunks if "type" in c])
    assert items == [item]
    assert item["type"] == "web_search_call"
    assert item["status"] == "completed"
    assert item["action"]["queries"] == ["rain", "snow"]
    assert "sources" not in item["action"]
    begun = [c["item"] for c in chunks if c.get("type") == "response.output_item.added"]
    assert [item["status"] for item in begun] == ["in_progress"]


def test_pages_stand_in_one_status_line() -> None:
    chunks, _ = on_page(run_of(search_with(f"{A}?utm_source=openai", A, B)))

    [status] = pages(chunks)
    assert status["urls"] == [A, B]
    assert status["description"] == "Searched 2 sites for rain, snow"
    assert status["done"] is True


def test_pages_are_addresses_of_the_web() -> None:
    """The page makes links of them, and whoever opens one runs what it says."""
    odd = (
        "javascript:alert(1)",
        "data:text/html,x",
        "//c.example",
        " https://d.example",
    )

    [status] = pages(on_page(run_of(search_with(*odd, "HTTP://b.example", A)))[0])

    assert status["urls"] == ["HTTP://b.example", A]
    assert pages(on_page(run_of(search_with(*odd)))[0]) == []


def test_pages_of_a_search_are_limited() -> None:
    """All are in one line, which the host writes again with each later one."""
    found = [f"https://a.example/{number}" for number in range(1_000)]

    [status] = pages(on_page(run_of(search_with(f"{A}{'a' * 4_000}", *found)))[0])

    assert status["urls"] == found[:200]


def test_search_that_found_nothing_has_no_line() -> None:
    """Nor has a page that was opened: the card says it."""
    action = {"type": "open_page", "url": f"{A}?utm_source=openai"}

    chunks, items = on_page(run_of(search_with(), {**search("2"), "action": action}))

    assert pages(chunks) == []
    assert [item["action"]["type"] for item in items] == ["search", "open_page"]
    assert items[1]["action"]["url"] == A


def test_search_in_files_has_its_queries_and_no_results() -> None:
    """Parts of files are for the model alone."""
    found = {"queries": ["rain"], "results": [{"text": "secret"}]}
    item = {"type": "file_search_call", "id": "fs_1", "status": "completed", **found}

    chunks, [card] = on_page(run_of(item))

    assert card["queries"] == ["rain"]
    assert "secret" not in str(chunks)


def test_search_that_broke_off_ends_with_the_run() -> None:
    """Else its card would spin for ever."""
    events = run_of(search_with(A))

    chunks, [card] = on_page([events[0], events[-1]])

    assert card["status"] == "incomplete"
    assert "response.output_item.done" in [chunk.get("type") for chunk in chunks]


@pytest.mark.parametrize("name", ["web-search.sse", "file-search.sse"])
def test_sources_map_to_the_numbers_of_the_text(name: str) -> None:
    """The page takes the n-th distinct one for `[n]`."""
    chunks, items = on_page(run_of_transcript(name))

    sources = host_events(chunks, "source")
    keys = [row["source"] for source in sources for row in source["metadata"]]
    assert len(keys) == len(set(keys)) > 1
    text = items[-1]["content"][0]["text"]
    for number in range(1, len(keys) + 1):
        assert f"[{number}]" in text
    assert f"[{len(keys) + 1}]" not in text


def test_source_comes_as_soon_as_its_annotation() -> None:
    """So that a number can be clicked while the text goes on."""
    text = f"One. ([a.example]({A}?utm_source=openai)) Two."
    note = {"type": "url_citation", "url": A, "title": "Page A"}
    events = run_of(message("1", text))
    events.insert(3, AnnotationAdded(0, note))

    chunks, _ = on_page(events)

    kinds = [c.get("type") or c["event"]["type"] for c in chunks if "usage" not in c]
    assert kinds.index("source") < kinds.index("response.output_item.done")
    [source] = host_events(chunks, "source")
    assert source["source"] == {"name": "Page A", "url": A}
