"""What goes back of an answer: in the form that the API asks for, and to whom."""

import itertools
import json
from typing import Any

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, drop_orphans
from openai_responses.requests.replay import (
    Origin,
    drop_settled_approvals,
    origin_at,
    past_items,
    read_origin,
    refused_pair,
    remote_failed,
    remote_name,
    remote_pair,
    reorder_remote_outputs,
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


def test_hosted_items_have_new_ids_that_stay() -> None:
    """Of the same kind, the same however often; two searches are not one.

    `action.sources` would be refused, as would nulls; but code that printed nothing has
    `outputs: null`, which the API demands. An approval keeps the id that its answer says.
    """
    once = strip_for_replay(SEARCH)
    assert once["action"] == {"type": "search", "query": "rain"}
    assert once["status"] == "completed"
    assert strip_for_replay(CODE)["outputs"] is None
    assert strip_for_replay(REQUEST) == REQUEST
    assert "id" not in strip_for_replay({**SEARCH, "id": None})
    begun = {"type": "web_search_call", "id": "ws_1"}  # without an action
    assert strip_for_replay(begun) == {"type": "web_search_call"}
    assert strip_for_replay({**TOOL, "namespace": None}) == TOOL
    ids = {"ws_1", once["id"]}
    for end in "23":
        other = strip_for_replay({**SEARCH, "id": "ws_" + "0" * 50 + end})
        ids.add(other["id"])

    assert len(ids) == 4
    assert {name[:3] for name in ids} == {"ws_"}
    assert max(map(len, ids)) <= 64
    assert strip_for_replay(once) == once


def test_unfinished_search_does_not_go_back() -> None:
    picture = {"type": "image_generation_call", "id": "ig_1", "result": None}
    searching = {**SEARCH, "status": "searching"}

    assert replay_output([searching, picture], with_reasoning=True) == []


def test_text_beside_encrypted_reasoning_is_not_sent_again() -> None:
    """OpenAI refuses it, and gateways in front of it make it.

    The server of plain reasoning wants its text, but no empty encrypted content.
    """
    words = [{"type": "reasoning_text", "text": "So."}]
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    assert replay_items({**sealed, "content": words}) == [sealed]
    assert replay_items({**sealed, "content": []}) == [{**sealed, "content": []}]

    plain = {"type": "reasoning", "summary": [], "content": words}
    assert replay_items({**plain, "status": None, "encrypted_content": ""}) == [plain]


def test_message_without_a_text_does_not_go_back() -> None:
    """LiteLLM ends one beside calls; after reasoning it is what that has led to."""
    empty: Item = {"type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    output = [empty, TOOL, {**empty, "content": [part]}]

    assert replay_output(output, with_reasoning=True) == [TOOL]
    plain: Item = {"type": "reasoning", "summary": [{"type": "x", "text": "Hm."}]}
    silent = {**plain, "summary": []}
    output = [plain, silent, empty, TOOL]
    assert replay_output(output, with_reasoning=True) == [plain, TOOL]
    for last in ([sealed, empty], [{**sealed, "type": "compaction"}, empty]):
        kept = [item for item in last if item["type"] == "compaction"]
        assert replay_output(last, with_reasoning=True) == (kept or last)
        assert replay_output(last, with_reasoning=False) == kept


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
    unnamed = {**CODE, "id": 7}
    runs = [CODE, {**CODE, "id": "ci_2"}, unnamed, {**unnamed, "code": "3"}]

    pairs = [past_items(item) for item in runs]

    assert [past_items(item) for item in runs] == pairs
    assert len({call["call_id"] for call, _ in pairs}) == 4
    assert all(call["call_id"] == told["call_id"] for call, told in pairs)


def test_other_items_of_an_earlier_run() -> None:
    picture = {"type": "image_generation_call", "result": "iVBORw0KGgo="}

    [shown] = past_items(picture)

    assert past_items(SEARCH) == [SEARCH]
    assert (shown["type"], shown["role"]) == ("message", "user")
    [part] = shown["content"]
    assert (part["type"], part["detail"]) == ("input_image", "auto")
    assert part["image_url"].endswith("base64,iVBORw0KGgo=")


CALL: Item = {
    "type": "mcp_call",
    "id": "mcp_1",
    "server_label": "clocks",
    "name": "now",
    "arguments": '{"zone": "UTC"}',
    "output": "12:00\n",
    "error": None,
    "approval_request_id": None,
    "status": "completed",
}
CLOCK = {"server_label": "clocks", "name": "now"}
REQUEST: Item = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    **CLOCK,
    "arguments": "",
}
ANSWERED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}
YES: Item = {**ANSWERED, "approve": True}
NO: Item = {**ANSWERED, "approve": False, "reason": "Not today."}
SAID: Item = {"type": "message", "role": "assistant", "content": "Done."}
TOOL: Item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
REMOTE = {"type": "function_call", "call_id": "mcp_1"}
RAIN: Item = {"type": "function_call_output", "call_id": "c1", "output": "rain"}


def test_a_call_and_its_output() -> None:
    assert replay_items(CALL) == [
        {**REMOTE, "name": "clocks_now", "arguments": '{"zone": "UTC"}'},
        {"type": "function_call_output", "call_id": "mcp_1", "output": "12:00\n"},
    ]
    assert not remote_failed(CALL)
    back = replay_output([SAID, CALL, TOOL], with_reasoning=True)
    assert back == [SAID, *replay_items(CALL), TOOL]
    # An output there has to be, and null arguments are none. Other servers' ids become
    # like those of remote calls, which history knows by it.
    for output in (None, ""):
        other = {**CALL, "id": "x-1", "output": output, "arguments": None}
        call, returned = remote_pair(other)
        assert (call["arguments"], returned["output"]) == ("{}", "")
        assert call["call_id"] == returned["call_id"] == "mcp_x-1"


@pytest.mark.parametrize(
    ("label", "name", "prefix"),
    [
        ("clocks", "zones.list", "clocks_zones_list_"),
        ("c" * 40, "n" * 40, f"{'c' * 40}_{'n' * 10}_"),
    ],
)
def test_remote_name_is_stable_and_at_most_64_characters(
    label: str, name: str, prefix: str
) -> None:
    item = {"server_label": label, "name": name}

    assert remote_name(item).startswith(prefix)
    assert len(remote_name(item)) <= 64
    assert remote_name(item) == remote_name(dict(item))


FAILED = {"type": "mcp_tool_execution_error"}
ZONE = {"type": "text", "text": "Unknown zone."}
BOTH = "Error: Unknown zone.\nTry UTC."


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            {"type": "mcp_protocol_error", "code": -32602, "message": "No such tool."},
            "Error: No such tool.",
        ),
        ({**FAILED, "content": [ZONE, {**ZONE, "text": "Try UTC."}]}, BOTH),
        ({**FAILED, "content": "Unknown zone."}, "Error: Unknown zone."),
        ("Bad.", "Error: Bad."),
        ({"type": "http_error", "code": 502}, "Error: the server did not say what"),
    ],
)
def test_a_call_that_failed(error: Any, words: str) -> None:
    """The model is told in the words of whoever failed, in all forms of the API."""
    item = {**CALL, "output": None, "error": error, "status": "failed"}

    assert remote_failed(item)
    assert remote_failed({**item, "error": None})
    assert remote_pair(item)[1]["output"].startswith(words)


ACTED_ON: Item = {**CALL, "approval_request_id": "mcpr_1"}
MADE = replay_items(ACTED_ON)
REFUSED = refused_pair(REQUEST, "Not today.")
SECOND: Item = {**REQUEST, "id": "mcpr_2"}
SECOND_YES: Item = {**YES, "approval_request_id": "mcpr_2"}


@pytest.mark.parametrize(
    ("items", "left"),
    [
        # The next response acts on a fresh answer; outputs may be next to it.
        ([REQUEST, TOOL, YES, RAIN], [REQUEST, TOOL, YES, RAIN]),
        ([REQUEST, TOOL, NO, RAIN], [REQUEST, TOOL, NO, RAIN]),
        # The host shows a denied call with a card, and gives it back.
        ([REQUEST, NO, *REFUSED], [REQUEST, NO, *REFUSED]),
        # Without its call the API would make it again.
        ([SAID, REQUEST, YES, *MADE, SAID], [SAID, *MADE, SAID]),
        ([REQUEST, TOOL, NO, RAIN, SAID], [*REFUSED, TOOL, RAIN, SAID]),
        # The API refuses an input that holds one that nobody answered.
        ([SAID, REQUEST], [SAID]),
        ([REQUEST, TOOL, RAIN], [TOOL, RAIN]),
        # The second question of a run is open while the first is over.
        ([REQUEST, YES, *MADE, SECOND, SECOND_YES], [*MADE, SECOND, SECOND_YES]),
        # No answer, though it names the request.
        ([REQUEST, NO, ACTED_ON, SAID], [*REFUSED, ACTED_ON, SAID]),
    ],
)
def test_approval_goes_when_it_is_settled(items: list[Item], left: list[Item]) -> None:
    """A refusal becomes a call that failed."""
    assert drop_settled_approvals(items) == left
    assert drop_settled_approvals(left) == left
    assert drop_orphans(left) == left


def test_outputs_stand_behind_their_calls() -> None:
    """Whatever the order in which a host gives calls and outputs of one time."""
    first = replay_items(CALL)
    second = replay_items({**CALL, "id": "mcp_2", "output": "2"})
    expected = [*first, *second]

    for order in itertools.permutations([*first, *second]):
        calls = [item for item in order if item in (first[0], second[0])]
        if calls == [first[0], second[0]]:
            assert reorder_remote_outputs(order) == expected


def test_remote_call_without_an_output_stays_where_it_is() -> None:
    """The host may have dropped the output."""
    call, output = replay_items(CALL)
    lonely = {**call, "call_id": "mcp_2"}

    ordered = reorder_remote_outputs([lonely, call, TOOL, output])

    assert ordered == [lonely, call, output, TOOL]


def test_other_calls_keep_the_order_of_the_host() -> None:
    other = {**TOOL, "call_id": "c2"}
    items = [TOOL, other, {**RAIN, "call_id": "c2"}, RAIN]

    assert reorder_remote_outputs(items) == items


HERE = Origin("gpt-5.6-sol", "api.openai.com", "ours")


@pytest.mark.parametrize(
    ("maker", "readable"),
    [
        (HERE, True),
        (Origin("gpt-5.6-sol"), True),  # noted by an earlier writer
        (Origin("gpt-5.6-sol", "api.openai.com"), True),
        (Origin("gpt-5.6-sol", "api.openai.com", "theirs"), False),
        (Origin("gpt-5.6-sol", "another.host"), False),
        (Origin("gpt-5.6-luna", "api.openai.com"), False),
        (Origin("gpt-5.6-luna"), False),
    ],
)
def test_reasoning_is_readable_where_family_server_and_account_agree(
    maker: Origin, readable: bool
) -> None:
    assert HERE.can_decrypt(maker) is readable


@pytest.mark.parametrize("wire", [None, {"family": ""}, {"endpoint": "y"}])
@pytest.mark.parametrize(
    ("model", "family"),
    [("gpt-5.2-2025-12-11", "gpt-5.2"), ("gpt-5-thinking-high", "gpt-5")],
)
def test_origin_that_nobody_noted(wire: object, model: str, family: str) -> None:
    """The name of the model tells the family, without date or alias."""
    assert read_origin(wire, model) == Origin(family)


def test_stored_origin_is_read_back() -> None:
    """Values of a careless writer that are no texts become some."""
    assert read_origin(HERE.wire(), "gpt-4o") == HERE
    assert Origin("y").wire() == {"family": "y", "endpoint": ""}
    assert read_origin({"family": 7, "endpoint": None}, "y") == Origin("7")


URL = "https://api.openai.com/v1"
KEY = "sk-canary-77c1"
ONE_KEY = Endpoint(URL, KEY)
NAMED = Endpoint(URL, KEY, organization="org-1")


@pytest.mark.parametrize(
    ("maker", "reader", "readable"),
    [
        (ONE_KEY, Endpoint(f"{URL}/responses", f" {KEY} "), True),
        (ONE_KEY, Endpoint(URL, "sk-canary-88d2"), False),
        (NAMED, Endpoint(URL, "sk-canary-88d2", organization="org-1"), True),
        (NAMED, Endpoint(URL, KEY, organization="org-2"), False),
        (NAMED, Endpoint("https://eu.api.openai.com", KEY, "org-1"), False),
    ],
)
def test_keys_of_one_organization_read_each_others(
    maker: Endpoint, reader: Endpoint, readable: bool
) -> None:
    """Without its name only the key itself tells whose it is."""
    made = origin_at("gpt-5.2", maker)
    asked = origin_at("gpt-5.2", reader)

    assert asked.can_decrypt(made) is readable


def test_origin_contains_no_part_of_the_key() -> None:
    """It is stored in the chat."""
    stored = str(origin_at("gpt-5.2", ONE_KEY).wire())
    assert "canary" not in stored
    assert "77c1" not in stored
