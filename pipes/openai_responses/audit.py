"""The lines of the audit log: JSON, without any text of a chat.

Each function names the fields of its event. They are always in its line, null where
nothing valid is known. No function gets a key, and all read only names, kinds and
numbers.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from openai_responses.errors import ApiError
from openai_responses.json_input import as_list, as_mapping
from openai_responses.redaction import redact

_OPENAI_HOST = "api.openai.com"

_API_WORD = re.compile(r"[a-z][a-z_.]{0,63}(?:\[\d{1,5}\][a-z_.]{0,64}){0,4}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_LINE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HOST_NAME = re.compile(r"[a-z0-9._:-]{1,253}")
_FORMATS = frozenset({"text", "json_object", "json_schema"})


def audit_request(payload: Mapping[str, Any], host: str, request_id: str) -> str:
    """Return the line for a request that is about to be sent to `host`."""
    fields = {
        "response_format": _response_format(payload),
        "stream": payload.get("stream") is True,
        "tool_count": len(as_list(payload.get("tools"))),
        "input_message_count": _message_count(payload.get("input")),
    }
    return _line("request", payload, host, request_id, fields)


def audit_success(
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    response: Mapping[str, Any],
    status: int = 200,
) -> str:
    """Return the line for an answer that ended, complete or not."""
    fields = {
        "response_model": _fitting(_MODEL_NAME, response.get("model")),
        "status_code": status,
    }
    return _line("success", payload, host, request_id, fields)


def audit_error(
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    error: ApiError,
    status: int | None = None,
) -> str:
    """Return the line for a request that failed; `status` is None if no answer came."""
    fields = {
        "status_code": status,
        "code": _fitting(_API_WORD, error.code),
        "param": _fitting(_API_WORD, error.param),
        "error_type": _fitting(_API_WORD, error.type),
    }
    return _line("error", payload, host, request_id, fields)


def _line(
    event: str,
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    fields: Mapping[str, Any],
) -> str:
    known_host = _fitting(_HOST_NAME, host)
    line = {
        "event": f"responses_api_{event}",
        "model": _fitting(_MODEL_NAME, payload.get("model")),
        "request_id": _fitting(_LINE_ID, request_id),
        **fields,
        "base_url_host": known_host,
        "use_custom_base_url": known_host != _OPENAI_HOST,
    }
    return json.dumps(line, separators=(",", ":"))


def _fitting(shape: re.Pattern[str], value: object) -> str | None:
    """Return `value` if it has the expected form and looks like no secret."""
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    return value if redact(value) == value else None


def _response_format(payload: Mapping[str, Any]) -> str | None:
    wanted = as_mapping(as_mapping(payload.get("text")).get("format"))
    kind = wanted.get("type", "text")
    return kind if isinstance(kind, str) and kind in _FORMATS else None


def _message_count(items: object) -> int:
    """Return the number of messages; a text is one message."""
    if isinstance(items, str):
        return 1
    found = (as_mapping(item) for item in as_list(items))
    return sum(item.get("type", "message") == "message" for item in found if item)
