"""The audit log tells what was asked of whom and how it ended, and quotes no one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.audit import AuditedRequest
from openai_responses.errors import ApiError

CANARY = "sk-canary-7c1e5f"
SPOKEN = "Canary words"
ID = "01KAB2C3D4E5F6G7H8J9KAMBNC"
REQUEST_ID = "req_011CT7Y2vXKQe4bY6y"
HOST = "api.openai.com"
PAYLOAD: dict[str, Any] = {
    "model": "gpt-6.1-sol",
    "instructions": SPOKEN,
    "input": [
        {"type": "message", "role": "user", "content": SPOKEN},
        {"type": "reasoning", "encrypted_content": CANARY, "summary": []},
        {"type": "function_call", "name": SPOKEN, "arguments": SPOKEN, "call_id": "c"},
        {"type": "function_call_output", "output": SPOKEN, "call_id": "c"},
        {"role": "user", "content": SPOKEN},
    ],
    "stream": True,
    "store": False,
    "tools": [
        {"type": "function", "name": SPOKEN, "parameters": {"title": SPOKEN}},
        {"type": "mcp", "headers": {"Authorization": f"Bearer {CANARY}"}},
    ],
    "text": {"format": {"type": "json_schema", "name": SPOKEN, "schema": {SPOKEN: 1}}},
    "metadata": {"note": SPOKEN},
}
REFUSED = ApiError(
    "invalid_value", "invalid_request_error", "input[3].content", f"{CANARY} {SPOKEN}"
)


@pytest.mark.parametrize(
    ("host", "is_custom"), [(HOST, False), ("gateway.example", True)]
)
def test_lines_name_model_and_server(host: str, is_custom: bool) -> None:
    """And have none of the words of people or of the model."""
    audited = AuditedRequest(PAYLOAD, host, ID)
    of_each = {
        "model": "gpt-6.1-sol",
        "run_id": ID,
        "request_id": REQUEST_ID,
        "base_url_host": host,
        "use_custom_base_url": is_custom,
    }
    assert json.loads(audited.request_line()) == {
        **of_each,
        "event": "responses_api_request",
        "request_id": None,
        "response_format": "json_schema",
        "stream": True,
        "tool_count": 2,
        "input_message_count": 2,
    }
    answered = audited.success_line("gpt-6.1-sol-2026-10-01", REQUEST_ID)
    assert json.loads(answered) == {
        **of_each,
        "event": "responses_api_success",
        "response_model": "gpt-6.1-sol-2026-10-01",
        "status_code": 200,
    }
    assert json.loads(audited.error_line(REFUSED, 400, REQUEST_ID)) == {
        **of_each,
        "event": "responses_api_error",
        "status_code": 400,
        "code": "invalid_value",
        "param": "input[3].content",
        "error_type": "invalid_request_error",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({}, "text"),
        ({"format": None}, "text"),
        ({"format": {"type": "json_object"}}, "json_object"),
        ({"format": {"type": SPOKEN}}, None),
        ({"format": {"type": [SPOKEN]}}, None),
    ],
)
def test_unknown_response_format_is_not_told(
    text: object, expected: str | None
) -> None:
    """Without one the API answers in text."""
    audited = AuditedRequest({**PAYLOAD, "text": text}, HOST, ID)
    assert json.loads(audited.request_line())["response_format"] == expected


def test_what_is_unknown_is_null_or_nothing() -> None:
    """What is no message does not count."""
    payload = {"model": "m", "input": [{}, {"role": "user"}]}
    audited = AuditedRequest(payload, HOST, ID)
    asked = json.loads(audited.request_line())
    failed = json.loads(audited.error_line(ApiError(), None, ""))

    assert (asked["input_message_count"], asked["tool_count"]) == (1, 0)
    assert asked["stream"] is False
    for name in ("status_code", "code", "param", "error_type", "request_id"):
        assert failed[name] is None


@pytest.mark.parametrize(
    "word",
    [
        *(
            CANARY,
            f"Authorization: {CANARY}",
            SPOKEN,
            f'","x":"{SPOKEN}',
            f"a\n{SPOKEN}",
        ),
        *(f"http://me:{CANARY}@host", f"eyJhbGciOiJ.eyJzdWIi.{CANARY}"),
    ],
)
def test_audit_lines_contain_no_key_or_text(word: str) -> None:
    audited = AuditedRequest({**PAYLOAD, "model": word}, word, word)
    for line in (
        audited.request_line(),
        audited.success_line(word, word),
        audited.error_line(ApiError(word, word, word, word), 401, word),
    ):
        assert "canary" not in line.lower()
        assert "\n" not in line
        assert json.loads(line)["event"].startswith("responses_api_")


WIRE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(WIRE, st.text(), WIRE)
def test_anything_makes_a_line(form: object, word: str, other: object) -> None:
    payload = {**PAYLOAD, "model": word, "text": {"format": form}}
    audited = AuditedRequest(payload, word, word)
    for line in (
        audited.request_line(),
        audited.success_line(other, word),
        audited.error_line(ApiError(word, word, word), None, word),
    ):
        assert line.isascii()
        assert len(line.splitlines()) == 1
        assert isinstance(json.loads(line), dict)
