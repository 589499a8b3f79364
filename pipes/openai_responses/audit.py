"""The lines of the audit log: JSON, without any text of a chat.

The fields of an event are always in its line, null where nothing valid is known. No
line gets a key, and all read only names, kinds and numbers.
"""

import json
import re
from dataclasses import dataclass

from openai_responses.errors import ApiError
from openai_responses.items import item_type
from openai_responses.json_input import JsonObject, as_mapping
from openai_responses.redaction import redact

_OPENAI_API_HOST = "api.openai.com"

_API_WORD = re.compile(r"[a-z][a-z_.]{0,63}(?:\[\d{1,5}\][a-z_.]{0,64}){0,4}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_LINE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HOST_NAME = re.compile(r"[a-z0-9._:-]{1,253}")
_FORMATS = ("text", "json_object", "json_schema")


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """A request to `host`, and the lines about it.

    `run_id` names the answer in the server's log; the server names its response in
    `request_id`, which is null before it answers.
    """

    payload: JsonObject
    host: str
    run_id: str

    def request_line(self) -> str:
        """Return the line before the request is sent."""
        text_format = as_mapping(self.payload.get("text", {}).get("format"))
        response_format = text_format.get("type", "text")
        if response_format not in _FORMATS:
            response_format = None
        items = self.payload["input"]
        messages = [item for item in items if item_type(item) == "message"]
        return self._line(
            "request",
            "",
            response_format=response_format,
            stream=self.payload.get("stream", False),
            tool_count=len(self.payload.get("tools", ())),
            input_message_count=len(messages),
        )

    def success_line(self, response_model: object, request_id: str) -> str:
        """Return the line for an answer, complete or not."""
        model = _keep_valid(_MODEL_NAME, response_model)
        return self._line("success", request_id, response_model=model, status_code=200)

    def error_line(self, error: ApiError, status: int | None, request_id: str) -> str:
        """Return the line for a failure; `status` is None if no answer came."""
        return self._line(
            "error",
            request_id,
            status_code=status,
            code=_keep_valid(_API_WORD, error.code),
            param=_keep_valid(_API_WORD, error.param),
            error_type=_keep_valid(_API_WORD, error.type),
        )

    def _line(self, event: str, request_id: str, **fields: object) -> str:
        host = _keep_valid(_HOST_NAME, self.host)
        line = {
            "event": f"responses_api_{event}",
            "model": _keep_valid(_MODEL_NAME, self.payload.get("model")),
            "run_id": _keep_valid(_LINE_ID, self.run_id),
            "request_id": _keep_valid(_LINE_ID, request_id),
            **fields,
            "base_url_host": host,
            "use_custom_base_url": host != _OPENAI_API_HOST,
        }
        return json.dumps(line, separators=(",", ":"))


def _keep_valid(shape: re.Pattern[str], value: object) -> str | None:
    """Return `value` if it has the expected form and looks like no secret."""
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    return value if redact(value) == value else None
