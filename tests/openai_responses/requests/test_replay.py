"""Hosted items go back in the form that the API's own types ask for."""

from openai_responses.items import Item
from openai_responses.requests.replay import (
    replay_items,
    replay_output,
    strip_for_replay,
)

SEARCH: Item = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {
        "type": "search",
        "query": "rain",
        "queries": None,
        "sources": [{"type": "url", "url": "https://a.example"}],
    },
}
CODE: Item = {
    "id": "ci_1",
    "type": "code_interpreter_call",
    "status": "completed",
    "code": "1 + 1",
    "container_id": "cntr_1",
    "outputs": None,
}


def test_search_goes_back_without_what_it_found() -> None:
    """`action.sources` would be refused, as would nulls."""
    back = strip_for_replay(SEARCH)

    assert back["action"] == {"type": "search", "query": "rain"}
    assert back["status"] == "completed"


def test_hosted_items_have_new_ids_that_stay() -> None:
    """Of the same kind, the same however often; two searches are not one."""
    once = strip_for_replay(SEARCH)
    other = strip_for_replay({**SEARCH, "id": "ws_2"})

    assert once["id"].startswith("ws_")
    assert len(once["id"]) <= 64
    assert len({"ws_1", once["id"], other["id"]}) == 3
    assert strip_for_replay(once) == once


def test_approval_keeps_the_id_that_names_it() -> None:
    """The answer to it says so."""
    request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "clocks",
        "name": "now",
        "arguments": "{}",
    }

    assert strip_for_replay(request) == request


def test_nulls_that_have_to_be_there_stay() -> None:
    """Code that printed nothing has `outputs: null`, which the API demands."""
    assert strip_for_replay(CODE)["outputs"] is None


def test_unfinished_search_does_not_go_back() -> None:
    """Nor does a picture as itself."""
    picture = {"type": "image_generation_call", "id": "ig_1", "result": None}
    searching = {**SEARCH, "status": "searching"}

    assert replay_output([searching, picture], with_reasoning=True) == []


def test_text_beside_encrypted_reasoning_is_not_sent_again() -> None:
    """OpenAI refuses it, and gateways in front of it make it."""
    words = [{"type": "reasoning_text", "text": "So."}]
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "x"}

    assert replay_items({**sealed, "content": words}) == [sealed]
    assert replay_items({**sealed, "content": []}) == [{**sealed, "content": []}]


def test_plain_reasoning_goes_back_as_it_was() -> None:
    """Its server wants its text, but no empty encrypted content and no nulls."""
    words = [{"type": "reasoning_text", "text": "So."}]
    plain = {"type": "reasoning", "summary": [], "content": words}

    assert replay_items({**plain, "status": None, "encrypted_content": ""}) == [plain]
