"""Requests for servers that check more strictly than OpenAI."""

import json

import pytest

from openai_responses.requests.build import strict_payload, with_json_arguments

CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
USER = {"type": "message", "role": "user", "content": []}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
}


def test_strict_payload_drops_keys_of_openai_alone() -> None:
    """Keys of OpenAI alone would be refused as unknown."""
    payload = {
        "model": "m",
        "input": [],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "access_programs": [],
        "context_management": [],
        "image": {},
        "moderation": {},
        "prompt_cache_key": "k",
        "prompt_cache_options": {},
        "safety_identifier": "s",
    }
    assert strict_payload(payload).keys() == {"model", "input", "store", "include"}


def test_items_get_ids_that_never_change() -> None:
    """The same history is the same bytes on every turn."""
    payload = {"input": [USER, THOUGHT, CALL, ANSWER]}
    user, thought, call, answer = strict_payload(payload)["input"]
    assert user == USER
    assert thought["id"].startswith("rs_")
    assert call["id"].startswith("fc_")
    assert {**call, "id": None} == {**CALL, "id": None}
    assert answer == {"type": "message", "role": "assistant", "content": "Yes."}
    assert strict_payload(payload) == strict_payload(payload)
    assert payload == {"input": [USER, THOUGHT, CALL, ANSWER]}


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"city": "Bern"', {"arguments": '{"city": "Bern"'}),
        ("Zürich", {"arguments": "Zürich"}),
        ("[1]", {"arguments": "[1]"}),
        (" ", {}),
        ('{"city":  "Bern"}', None),
    ],
)
def test_arguments_that_are_no_object(written: str, sent: object) -> None:
    """Their words stay; a call that can be read stays as its bytes."""
    call = {**CALL, "arguments": written}
    custom = {"type": "custom_tool_call", "call_id": "call_2", "input": "{"}

    payload = with_json_arguments({"model": "m", "input": [USER, call, custom]})

    [user, changed, other] = payload["input"]
    assert (payload["model"], user, other) == ("m", USER, custom)
    if sent is None:
        assert changed == call
    else:
        assert json.loads(changed["arguments"]) == sent
        assert {**changed, "arguments": written} == call
