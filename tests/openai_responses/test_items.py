"""Wire items answer their questions, and go back without what is not theirs."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import (
    Item,
    distinct_call_id,
    drop_orphans,
    is_call,
    is_call_output,
    is_reasoning,
    item_type,
    message_text,
    move_messages_after_outputs,
    since_compaction,
    text_part,
)
from openai_responses.requests.replay import strip_for_replay

USER: Item = {"role": "user", "content": "Hi"}
REASONING: Item = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
ANSWER: Item = {"type": "message", "role": "assistant", "content": []}


def call(name: str, type: str = "function_call") -> Item:
    """Return a call; its name is its id."""
    return {"type": type, "call_id": name, "name": name}


def output(name: str, type: str = "function_call_output") -> Item:
    """Return the output of that call."""
    return {"type": type, "call_id": name, "output": ""}


CALL_A = call("a")
CALL_B = call("b")
OUTPUT_A = output("a")
OUTPUT_B = output("b")
AGAIN = {**CALL_A, "name": "b"}
"""A later call with the same id."""
CUSTOM_CALL = call("a", "custom_tool_call")
CUSTOM_OUTPUT = output("a", "custom_tool_call_output")
SEARCH: Item = {"type": "web_search_call"}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (REASONING, "reasoning"),
        (USER, "message"),
        ({"role": "user"}, "message"),
        ({"type": None, "role": "user"}, "message"),
        ({"type": 7, "role": "user"}, ""),
        ({}, ""),
    ],
)
def test_short_message_is_a_message(item: Item, kind: str) -> None:
    assert item_type(item) == kind


@pytest.mark.parametrize(
    ("item", "kinds"),
    [
        (CALL_A, ["call"]),
        (CUSTOM_CALL, ["call"]),
        (OUTPUT_A, ["output"]),
        (CUSTOM_OUTPUT, ["output"]),
        (REASONING, ["reasoning"]),
        (USER, []),
        (SEARCH, []),
    ],
)
def test_calls_outputs_and_reasoning_differ(item: Item, kinds: list[str]) -> None:
    tests = {"call": is_call, "output": is_call_output, "reasoning": is_reasoning}
    assert [kind for kind, holds in tests.items() if holds(item)] == kinds


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"text": "a"}, {"refusal": "b"}, {"image": "c"}, "d", {"text": 7}], "ab"),
        ([{"type": "input_image"}], ""),
        (None, ""),
        ({"text": "a"}, ""),
    ],
)
def test_text_of_a_message_has_texts_and_refusals(content: object, text: str) -> None:
    assert message_text({"content": content}) == text


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("text", {"type": "output_text", "text": "a", "annotations": []}),
        ("refusal", {"type": "refusal", "refusal": "a"}),
        ("summary", {"type": "summary_text", "text": "a"}),
        ("reasoning", {"type": "reasoning_text", "text": "a"}),
    ],
)
def test_part_of_each_kind_is_the_apis(kind: str, part: Item) -> None:
    assert text_part(kind, "a") == part


def test_replayed_item_loses_ids_states_and_nulls() -> None:
    item: Item = {
        "id": "rs_1",
        "type": "reasoning",
        "status": None,
        "summary": [],
        "content": None,
        "encrypted_content": "gAAAA",
        "created_by": "x",
        "namespace": "n",
    }
    before = copy.deepcopy(item)
    assert list(strip_for_replay(item).items()) == [
        ("type", "reasoning"),
        ("summary", []),
        ("encrypted_content", "gAAAA"),
        ("namespace", "n"),
    ]
    assert item == before


def test_replayed_message_keeps_its_phase() -> None:
    """Its parts lose what no input takes; a text as content stays a text."""
    part: Item = {
        "type": "output_text",
        "text": "Hi",
        "annotations": [],
        "logprobs": [],
        "x": None,
    }
    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [part, {**part, "annotations": None}, "no part"],
    }
    text = {"type": "output_text", "text": "Hi"}
    assert strip_for_replay(item) == {
        "type": "message",
        "role": "assistant",
        "phase": "final_answer",
        "content": [{**text, "annotations": []}, text],
    }
    assert strip_for_replay({**USER, "id": "1"}) == USER


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([USER, OUTPUT_A, USER], [USER, USER]),
        ([REASONING, CALL_A, OUTPUT_A, USER], [REASONING, CALL_A, OUTPUT_A, USER]),
        ([USER, REASONING, CALL_A, USER], [USER, USER]),
        ([REASONING, REASONING, ANSWER], [REASONING, REASONING, ANSWER]),
        ([REASONING, USER], [USER]),
        ([REASONING, OUTPUT_A, ANSWER], [REASONING, ANSWER]),
        ([REASONING, CALL_A, CALL_B, OUTPUT_B], [REASONING, CALL_B, OUTPUT_B]),
        ([REASONING, CALL_A, output("x"), ANSWER], [ANSWER]),
        ([REASONING, CALL_A, REASONING, ANSWER], [REASONING, ANSWER]),
        ([CALL_A, REASONING, OUTPUT_A], [CALL_A, OUTPUT_A]),
        ([CUSTOM_CALL, CUSTOM_OUTPUT], [CUSTOM_CALL, CUSTOM_OUTPUT]),
        ([REASONING, SEARCH], [REASONING, SEARCH]),
        ([CALL_A, CALL_B, USER, OUTPUT_A, output("c")], [CALL_A, USER, OUTPUT_A]),
        ([OUTPUT_A, CALL_A], []),
        ([CALL_A, CALL_A, OUTPUT_A, OUTPUT_A], [CALL_A, OUTPUT_A]),
        ([CALL_A, USER, AGAIN, OUTPUT_A], [USER, AGAIN, OUTPUT_A]),
        ([CALL_A, CUSTOM_OUTPUT, OUTPUT_A], [CALL_A, OUTPUT_A]),
        ([CUSTOM_CALL, OUTPUT_A], []),
        ([{"type": "function_call", "call_id": None}], []),
        ([{"content": "?", "call_id": ["a"]}], [{"content": "?", "call_id": ["a"]}]),
    ],
)
def test_half_pairs_go_with_their_reasoning(
    items: list[Item], kept: list[Item]
) -> None:
    """Whole ones stay; an output answers one call in front of it."""
    assert drop_orphans(items) == kept


COMPACTION: Item = {"type": "compaction", "encrypted_content": "x"}
UPDATE: Item = {"type": "configuration_update", "reasoning": {"effort": "low"}}
INSTRUCTIONS: Item = {"role": "developer", "content": "Be brief."}
ADDED: Item = {"type": "additional_tools", "tools": [{"name": "a"}]}
REQUEST: Item = {"type": "mcp_approval_request", "id": "mcpr_1"}
RESPONSE: Item = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([USER, ANSWER], [USER, ANSWER]),
        ([USER, ANSWER, COMPACTION, USER], [COMPACTION, USER]),
        ([INSTRUCTIONS, USER, COMPACTION], [INSTRUCTIONS, COMPACTION]),
        (
            [USER, REASONING, CALL_A, COMPACTION, OUTPUT_A, ANSWER],
            [COMPACTION, CALL_A, OUTPUT_A, ANSWER],
        ),
        (
            [CALL_A, OUTPUT_A, CALL_B, COMPACTION, UPDATE, OUTPUT_B],
            [COMPACTION, UPDATE, CALL_B, OUTPUT_B],
        ),
        (
            [CALL_A, CALL_B, COMPACTION, OUTPUT_A, OUTPUT_B],
            [COMPACTION, CALL_A, CALL_B, OUTPUT_A, OUTPUT_B],
        ),
        ([CALL_A, COMPACTION], [COMPACTION, CALL_A]),
        (
            [CALL_A, COMPACTION, OUTPUT_A, CALL_B, COMPACTION, OUTPUT_B],
            [COMPACTION, CALL_B, OUTPUT_B],
        ),
        (
            [INSTRUCTIONS, USER, ADDED, USER, CALL_A, COMPACTION, OUTPUT_A],
            [INSTRUCTIONS, ADDED, COMPACTION, CALL_A, OUTPUT_A],
        ),
        ([REQUEST, COMPACTION, RESPONSE], [COMPACTION, REQUEST, RESPONSE]),
        ([REQUEST, RESPONSE, COMPACTION, USER], [COMPACTION, USER]),
    ],
)
def test_input_begins_with_the_last_compaction(
    items: list[Item], kept: list[Item]
) -> None:
    """Calls that it leaves without their outputs come after it, once and for all."""
    assert since_compaction(items) == kept
    assert since_compaction(kept) == kept


@pytest.mark.parametrize(
    ("items", "moved"),
    [
        (
            [ANSWER, CALL_A, ANSWER, CALL_B, OUTPUT_A, OUTPUT_B, USER],
            [ANSWER, CALL_A, CALL_B, OUTPUT_A, OUTPUT_B, ANSWER, USER],
        ),
        (
            [CALL_A, ANSWER, OUTPUT_A, CALL_B, USER, OUTPUT_B],
            [CALL_A, OUTPUT_A, ANSWER, CALL_B, OUTPUT_B, USER],
        ),
        (
            [CALL_A, REASONING, CALL_B, ANSWER, OUTPUT_B, OUTPUT_A],
            [CALL_A, REASONING, CALL_B, OUTPUT_B, OUTPUT_A, ANSWER],
        ),
        ([CALL_A, ANSWER, USER], [CALL_A, ANSWER, USER]),
        ([CALL_A, OUTPUT_A, ANSWER, USER], [CALL_A, OUTPUT_A, ANSWER, USER]),
    ],
)
def test_messages_between_calls_and_outputs_move(
    items: list[Item], moved: list[Item]
) -> None:
    """Nothing else does, and a call without an output moves nothing."""
    assert move_messages_after_outputs(items) == moved
    assert move_messages_after_outputs(moved) == moved


_ITEMS = st.lists(
    st.sampled_from(
        [USER, REASONING, ANSWER]
        + [part(name) for name in "abc" for part in (call, output)]
    ),
    max_size=12,
)


@given(items=_ITEMS)
def test_history_without_orphans_is_valid(items: list[Item]) -> None:
    """No call is left without output, no output without call, no reasoning alone."""
    kept = drop_orphans(items)
    assert drop_orphans(kept) == kept
    calls = {item["call_id"] for item in kept if is_call(item)}
    assert calls == {item["call_id"] for item in kept if is_call_output(item)}
    following: list[Any] = [*kept, USER][1:]
    for item, next_item in zip(kept, following, strict=True):
        if is_reasoning(item):
            assert is_reasoning(next_item) or next_item is ANSWER or is_call(next_item)


@given(items=_ITEMS)
def test_moved_messages_are_all_there(items: list[Item]) -> None:
    moved = move_messages_after_outputs(items)
    assert sorted(map(id, moved)) == sorted(map(id, items))


class _Asked(set[str]):
    """Ids that count how often they are searched."""

    count = 0

    def __contains__(self, value: object) -> bool:
        self.count += 1
        return super().__contains__(value)


def test_calls_of_one_id_are_numbered_without_counting() -> None:
    """Bedrock numbers the calls of each response anew, and a chat may have thousands."""
    taken = _Asked()
    numbered: list[str] = []
    for _ in range(4000):
        own_id = distinct_call_id("call", taken)
        taken.add(own_id)
        numbered.append(own_id)
    assert numbered == ["call", *(f"call_{number}" for number in range(2, 4001))]
    assert taken.count < 4000 * 30
