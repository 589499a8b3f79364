"""Requests for servers that check more strictly than OpenAI."""

from openai_responses.requests.build import strict_payload

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
