"""What the API runs itself is asked its questions."""

from typing import Any

import pytest

from openai_responses.items import (
    Item,
    is_host_returned,
    is_hosted,
    search_pages,
    search_queries,
    tool_kind,
)

SEARCH: Item = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
FILES: Item = {"type": "file_search_call", "queries": ["rain"], "status": "completed"}


def action(**fields: Any) -> Item:
    """A search that did this."""
    return {**SEARCH, "action": fields}


@pytest.mark.parametrize("item", [SEARCH, FILES])
def test_finished_search_goes_back(item: Item) -> None:
    """One that failed, too: the model knows that it did."""
    assert is_hosted(item)
    assert is_host_returned(item)
    assert is_host_returned({**item, "status": "failed"})


@pytest.mark.parametrize(
    "item",
    [
        {**SEARCH, "status": "searching"},
        {**SEARCH, "status": "in_progress"},
        {**SEARCH, "status": "incomplete"},
        {**SEARCH, "action": None},
        {**SEARCH, "action": "search"},
        action(type="find", pattern="x"),
        {**FILES, "queries": None},
        {"type": "image_generation_call", "status": "completed", "result": "x"},
        {"type": "code_interpreter_call", "status": "completed"},
        {"type": "function_call", "status": "completed"},
        {},
    ],
)
def test_unfinished_or_incomplete_hosted_item_does_not_go_back(item: Item) -> None:
    """Unfinished, of an older form, or without what its type asks for."""
    assert not is_host_returned(item)


@pytest.mark.parametrize(
    ("item", "queries"),
    [
        (FILES, ["rain"]),
        (SEARCH, ["rain"]),
        (action(type="search", query="a", queries=["a", "b"]), ["a", "b"]),
        (action(type="search", query=None, queries=None), []),
        (action(type="open_page", url="https://a.example"), []),
        ({"type": "file_search_call", "queries": "rain"}, []),
        ({"type": "web_search_call"}, []),
    ],
)
def test_queries_of_both_kinds_of_search(item: Item, queries: list[str]) -> None:
    assert search_queries(item) == queries


def test_pages_come_once() -> None:
    """Whatever else the server lists."""
    sources = [{"url": "https://a.example"}, {"url": None}, "x", {}]

    item = action(type="search", sources=[*sources, sources[0]])

    assert search_pages(item) == ["https://a.example"]
    assert search_pages(SEARCH) == search_pages({}) == []


def test_answers_cite_what_a_search_found() -> None:
    """On the web and in files; no other tool has results to cite."""
    kinds = ["web_search", "file_search", "function", "mcp", "code_interpreter"]
    cited = [tool_kind({"type": kind}).is_cited for kind in kinds]
    assert cited == [True, True, False, False, False]
