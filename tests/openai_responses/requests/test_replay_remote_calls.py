"""A remote server's call, told as a call and its output."""

import itertools
from typing import Any

import pytest

from openai_responses.items import Item, drop_orphans
from openai_responses.requests.replay import (
    drop_settled_approvals,
    refused_pair,
    remote_failed,
    remote_name,
    remote_pair,
    reorder_remote_outputs,
    replay_items,
    replay_output,
)

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
REQUEST: Item = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "clocks",
    "name": "now",
    "arguments": "{}",
}
YES: Item = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
NO: Item = {**YES, "approve": False, "reason": "Not today."}
SAID: Item = {"type": "message", "role": "assistant", "content": "Done."}
TOOL: Item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RAIN: Item = {"type": "function_call_output", "call_id": "c1", "output": "rain"}


def call(number: int) -> Item:
    """One of several calls."""
    return {**CALL, "id": f"mcp_{number}", "output": str(number)}


def test_a_call_and_its_output() -> None:
    """What the server was asked and what it said, byte for byte, under one id."""
    assert replay_items(CALL) == [
        {
            "type": "function_call",
            "call_id": "mcp_1",
            "name": "clocks_now",
            "arguments": '{"zone": "UTC"}',
        },
        {"type": "function_call_output", "call_id": "mcp_1", "output": "12:00\n"},
    ]
    assert not remote_failed(CALL)


@pytest.mark.parametrize(
    ("label", "name", "prefix"),
    [
        ("clocks", "now", "clocks_now"),
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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            {"type": "mcp_protocol_error", "code": -32602, "message": "No such tool."},
            "Error: No such tool.",
        ),
        (
            {
                "type": "mcp_tool_execution_error",
                "content": [
                    {"type": "text", "text": "Unknown zone."},
                    {"type": "text", "text": "Try UTC."},
                ],
            },
            "Error: Unknown zone.\nTry UTC.",
        ),
        (
            {"type": "mcp_tool_execution_error", "content": "Unknown zone."},
            "Error: Unknown zone.",
        ),
        ("Bad.", "Error: Bad."),
        ({"type": "http_error", "code": 502}, "Error: the server did not say what"),
    ],
)
def test_a_call_that_failed(error: Any, words: str) -> None:
    """The model is told in the words of whoever failed, in all forms of the API."""
    item = {**CALL, "output": None, "error": error, "status": "failed"}

    assert remote_failed(item)
    assert remote_pair(item)[1]["output"].startswith(words)


@pytest.mark.parametrize("output", [None, ""])
def test_remote_call_without_output_has_an_empty_one(output: str | None) -> None:
    """An output there has to be, and null arguments are none."""
    item = {**CALL, "output": output, "arguments": None}

    assert remote_pair(item)[1]["output"] == ""
    assert remote_pair(item)[0]["arguments"] == "{}"


def test_ids_that_another_server_makes_up() -> None:
    """They are made to look like those of remote calls, which history knows by it."""
    call, output = replay_items({**CALL, "id": "x-1"})

    assert call["call_id"] == output["call_id"] == "mcp_x-1"


def test_remote_call_is_replayed_as_a_pair() -> None:
    """What goes back of an output is the pair, in the place of the call."""
    back = replay_output([SAID, CALL, TOOL], with_reasoning=True)
    assert back == [SAID, *replay_items(CALL), TOOL]


# ------------------------------------------------------------- approvals


def test_an_answer_that_was_not_acted_on_stays() -> None:
    """The next response acts on it; outputs may be next to it."""
    for answer in (YES, NO):
        fresh = [REQUEST, TOOL, answer, RAIN]
        assert drop_settled_approvals(fresh) == fresh


def test_an_approval_goes_when_its_call_is_made() -> None:
    """Without its call the API would make it again."""
    pair = replay_items({**CALL, "approval_request_id": "mcpr_1"})

    settled = drop_settled_approvals([SAID, REQUEST, YES, *pair, SAID])
    assert settled == [SAID, *pair, SAID]


def test_a_refusal_becomes_a_call_that_failed() -> None:
    """In its place, with the reason that was given."""
    after = drop_settled_approvals([REQUEST, TOOL, NO, RAIN, SAID])

    assert after == [*refused_pair(REQUEST, "Not today."), TOOL, RAIN, SAID]
    assert drop_orphans(after) == after


def test_a_request_that_nobody_answered_goes() -> None:
    """The API refuses an input that holds one."""
    assert drop_settled_approvals([SAID, REQUEST]) == [SAID]
    assert drop_settled_approvals([REQUEST, TOOL, RAIN]) == [TOOL, RAIN]


def test_old_answers_go_and_new_ones_stay() -> None:
    """The second question of a run is open while the first is over."""
    second = {**REQUEST, "id": "mcpr_2"}
    answer = {**YES, "approval_request_id": "mcpr_2"}
    items = [REQUEST, YES, *replay_items(CALL), second, answer]

    left = drop_settled_approvals(items)
    assert left == [*replay_items(CALL), second, answer]
    assert drop_settled_approvals(left) == left


# ------------------------------------------------------------- order


def test_outputs_stand_behind_their_calls() -> None:
    """Whatever the order in which a host gives calls and outputs of one time."""
    first = replay_items(call(1))
    second = replay_items(call(2))
    expected = [*first, *second]

    for order in itertools.permutations([*first, *second]):
        calls = [item for item in order if item in (first[0], second[0])]
        if calls == [first[0], second[0]]:
            assert reorder_remote_outputs(order) == expected


def test_remote_call_without_an_output_stays_where_it_is() -> None:
    """The host may have dropped the output."""
    call_item, output = replay_items(call(1))
    lonely = replay_items(call(2))[0]

    ordered = reorder_remote_outputs([lonely, call_item, TOOL, output])

    assert ordered == [lonely, call_item, output, TOOL]


def test_other_calls_keep_the_order_of_the_host() -> None:
    """Only remote ones are moved."""
    other = {**TOOL, "call_id": "c2"}
    items = [TOOL, other, {**RAIN, "call_id": "c2"}, RAIN]

    assert reorder_remote_outputs(items) == items
