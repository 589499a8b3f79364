"""What the API runs itself is asked its questions."""

from typing import Any

import pytest

from openai_responses.items import (
    Item,
    code_output,
    drop_tool_items,
    is_commentary,
    is_host_returned,
    is_hosted,
    is_kept_hosted,
    is_replayed,
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


@pytest.mark.parametrize(
    ("item", "goes_back"),
    [
        ({**SEARCH, "status": "failed"}, True),
        ({**FILES, "status": "failed"}, True),
        ({**SEARCH, "status": "searching"}, False),
        ({**SEARCH, "status": "in_progress"}, False),
        ({**SEARCH, "status": "incomplete"}, False),
        ({**SEARCH, "action": "search"}, False),
        (action(type="find", pattern="x"), False),
    ],
)
def test_only_a_search_that_is_over_goes_back(item: Item, goes_back: bool) -> None:
    """One that failed, too: the model knows that it did. One of an older form does not."""
    assert is_hosted(item)
    assert is_host_returned(item) is goes_back


LIST: Item = {"type": "mcp_list_tools", "server_label": "clocks", "tools": []}
APPROVAL: Item = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "clocks",
    "name": "now",
    "arguments": "{}",
}
NEEDED = {
    "web_search_call": ["action"],
    "file_search_call": ["queries"],
    "mcp_list_tools": ["server_label", "tools"],
    "mcp_call": ["server_label", "name", "arguments"],
    "mcp_approval_request": ["id", "server_label", "name", "arguments"],
    "mcp_approval_response": ["approval_request_id", "approve"],
    "code_interpreter_call": ["container_id"],
}


@pytest.mark.parametrize(
    ("kind", "needed"), [(kind, name) for kind in NEEDED for name in NEEDED[kind]]
)
def test_item_without_a_field_that_the_api_wants_does_not_go_back(
    kind: str, needed: str
) -> None:
    """The API would refuse the whole request."""
    item = {"type": kind, **{name: {"type": "search"} for name in NEEDED[kind]}}

    assert is_host_returned(item)
    assert not is_host_returned({**item, needed: None})


SEALED: Item = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
ANSWER: Item = {"type": "message", "role": "assistant", "content": []}
IMAGE: Item = {"type": "image_generation_call", "result": "iVBORw0KGgo="}
OURS = [True, False]
"""Whether the reader is of the family, server and account that made an item."""


@pytest.mark.parametrize(
    ("item", "same_run", "later"),
    [
        (SEARCH, True, OURS),
        (FILES, True, OURS),
        (LIST, True, OURS),
        ({**LIST, "error": "no answer"}, False, []),
        (APPROVAL, True, []),
        (IMAGE, False, OURS),
        ({**IMAGE, "result": None}, False, []),
        (SEALED, False, [True]),
        ({**SEALED, "encrypted_content": ""}, False, []),
        ({"type": "compaction", "encrypted_content": "x"}, False, [True]),
        ({"type": "configuration_update", "reasoning": {}}, False, [True]),
        (ANSWER, False, OURS),
        ({"type": "message", "content": []}, False, OURS),
        ({**ANSWER, "role": "user"}, False, []),
        ({"type": "function_call", "call_id": "1", "name": "f"}, False, OURS),
        ({"type": "surprise"}, False, []),
        ({}, False, []),
    ],
)
def test_who_gets_an_item_back(item: Item, same_run: bool, later: list[bool]) -> None:
    """Only its maker can decrypt it; a type that is not known goes to no one."""
    assert is_host_returned(item) is same_run
    assert [ours for ours in OURS if is_replayed(item, is_ours=ours)] == later
    assert is_kept_hosted(item) is (same_run and later == OURS)


def test_calls_go_with_the_reasoning_that_led_to_them() -> None:
    """At the end as well; what led to a text stays."""
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "1", "output": ""}
    question = {"role": "user", "content": "Hi"}
    items = [question, SEALED, SEALED, call, output, SEALED, ANSWER, SEALED, SEARCH]

    assert drop_tool_items([*items, SEALED]) == [question, SEALED, ANSWER]
    assert drop_tool_items([SEALED, ANSWER]) == [SEALED, ANSWER]


@pytest.mark.parametrize(
    ("fields", "is_remark"),
    [
        ({"phase": "commentary"}, True),
        ({"phase": "final_answer"}, False),
        ({"type": "reasoning", "phase": "commentary"}, False),
    ],
)
def test_remarks_are_messages_about_the_work(fields: Item, is_remark: bool) -> None:
    assert is_commentary({**ANSWER, **fields}) is is_remark


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"outputs": [{"type": "logs", "logs": "a\n"}, {"logs": "b"}]}, "a\nb"),
        ({"outputs": [{"type": "image", "url": "x"}, {"logs": None}]}, ""),
        ({"outputs": None}, ""),
        ({"status": "failed", "outputs": [{"logs": "a"}]}, "failed"),
        ({"status": "incomplete"}, "failed"),
    ],
)
def test_what_code_printed(fields: Item, text: str) -> None:
    """Of code that was ended early no one knows all of it."""
    failed = "The code did not run to its end."
    assert code_output(fields) == (failed if text == "failed" else text)


@pytest.mark.parametrize(
    ("item", "queries"),
    [
        (FILES, ["rain"]),
        (SEARCH, ["rain"]),
        (action(type="search", query="a", queries=["a", "b"]), ["a", "b"]),
        (action(type="search", query=None, queries=None), []),
        (action(type="search", query="a", queries=["", 7]), ["a"]),
        (action(type="open_page", url="https://a.example"), []),
        ({"type": "file_search_call", "queries": "rain"}, []),
        ({"type": "web_search_call"}, []),
    ],
)
def test_queries_of_both_kinds_of_search(item: Item, queries: list[str]) -> None:
    assert search_queries(item) == queries


def test_pages_come_once() -> None:
    sources = [{"url": "https://a.example"}, {"url": None}, "x", {}]

    item = action(type="search", sources=[*sources, sources[0]])

    assert search_pages(item) == ["https://a.example"]
    assert search_pages(SEARCH) == search_pages({}) == []


def test_answers_cite_what_a_search_found() -> None:
    """On the web and in files; no other tool has results to cite."""
    kinds = ["web_search", "file_search", "function", "mcp", "code_interpreter"]
    cited = [tool_kind({"type": kind}).is_cited for kind in kinds]
    assert cited == [True, True, False, False, False]
