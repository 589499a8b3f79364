"""Hosted items go back in the form that the API's own types ask for."""

import json

import pytest

from openai_responses.items import Item
from openai_responses.requests.replay import (
    past_items,
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


def test_message_without_a_text_does_not_go_back() -> None:
    """LiteLLM ends one beside calls; after reasoning it is what that has led to."""
    call: Item = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "look",
        "arguments": "{}",
    }
    empty: Item = {"type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    output = [empty, call, {**empty, "content": [part]}]

    assert replay_output(output, with_reasoning=True) == [call]
    plain: Item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    }
    assert replay_output([plain, empty, call], with_reasoning=True) == [plain, call]
    last = [sealed, empty]
    assert replay_output(last, with_reasoning=True) == last
    assert replay_output(last, with_reasoning=False) == []


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"outputs": [{"type": "logs", "logs": "2"}]}, "2"),
        ({"outputs": [{"type": "logs", "logs": "x" * 30_000}]}, "x" * 20_000),
        ({"status": "failed"}, "The code did not run to its end."),
    ],
)
def test_code_of_an_earlier_run_is_a_call_with_its_output(
    fields: Item, output: str
) -> None:
    """A request that names a dead container is refused."""
    call, told = past_items({**CODE, **fields, "code": "1" * 30_000})

    assert (call["type"], told["type"]) == ("function_call", "function_call_output")
    assert call["name"] == "code_interpreter"
    assert json.loads(call["arguments"]) == {"code": "1" * 20_000}
    gone = "[The container of this code is gone, with its files.]"
    assert told["output"] == f"{output}\n{gone}"


def test_each_run_of_code_has_an_id_that_stays() -> None:
    """By its code, where the server gave it none."""
    unnamed = {**CODE, "id": None}
    runs = [CODE, {**CODE, "id": "ci_2"}, unnamed, {**unnamed, "code": "3"}]

    pairs = [past_items(item) for item in runs]

    assert [past_items(item) for item in runs] == pairs
    assert len({call["call_id"] for call, _ in pairs}) == 4
    assert all(call["call_id"] == told["call_id"] for call, told in pairs)


def test_other_items_of_an_earlier_run() -> None:
    """A picture is sent as one; the rest stays as it was."""
    picture = {"type": "image_generation_call", "result": "iVBORw0KGgo="}

    [shown] = past_items(picture)

    assert past_items(SEARCH) == [SEARCH]
    assert (shown["type"], shown["role"]) == ("message", "user")
    [part] = shown["content"]
    assert (part["type"], part["detail"]) == ("input_image", "auto")
    assert part["image_url"].endswith("base64,iVBORw0KGgo=")
