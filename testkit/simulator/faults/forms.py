"""The forms in which a refusal reaches a client, directly or through a gateway.

Sources of the bodies: docs/reference/responses-api.md, "Finding the refused part".
"""

import json
from collections.abc import Mapping
from typing import Any

from simulator.fields import without_fields
from simulator.refusals import Refusal
from simulator.scenarios.scenario import Ending, HttpReply, Reply, make_reply

Fields = dict[str, Any]
FORMS: Mapping[str, str] = {
    "fields": "`param` and `code` are set",
    "message": "`param` and `code` are null, the message contains the path",
    "openrouter": "OpenRouter nests the body as a text in `metadata.raw`",
    "litellm": "LiteLLM puts the body into its own message",
    "id": "the message contains an id and no path",
    "phrase": "the message contains neither",
}
DELIVERIES: Mapping[str, str] = {
    "http": "as the status of the answer",
    "error": "as a nested `error` event, after `created` and `in_progress`",
    "error-flat": "as an `error` event that has the fields itself",
    "failed": "as `response.failed`, after `created` and `in_progress`",
    "both": "as an `error` event, then `response.failed`, as the API does (recorded)",
}


def build_error(refusal: Refusal, form: str) -> Fields:
    """Return the field ``error`` of a body in this form."""
    fields = refusal.fields()
    if form == "fields":
        return fields
    if form == "openrouter":
        raw = json.dumps({"error": fields}, indent=2)
        return {
            "message": "Provider returned error",
            "code": refusal.status,
            "metadata": {"raw": raw, "provider_name": "OpenAI", "is_byok": False},
        }
    if form == "litellm":
        inner = json.dumps({"error": fields}, indent=2)
        name = "NotFoundError" if refusal.status == 404 else "BadRequestError"
        text = f"litellm.{name}: OpenAIException - {inner}. Received Model Group=gpt"
        code = str(refusal.status)
        return {"message": text, "type": None, "param": None, "code": code}
    return {**fields, "param": None, "code": None}


def build_reply(refusal: Refusal, form: str, delivery: str) -> Reply | HttpReply:
    """Return the answer that delivers a refusal."""
    error = build_error(refusal, form)
    if delivery == "http":
        return HttpReply(refusal.status, json.dumps({"error": error}))
    error = _escape_dollars(error)
    endings = {
        "failed": Ending("response.failed", {"error": error}),
        "both": Ending(
            "response.failed",
            {"error": error},
            event_before={"type": "error", "error": error},
        ),
        "error": Ending("error", {"error": error}),
        "error-flat": Ending("error", {"param": None, **without_fields(error, "type")}),
    }
    return make_reply(ending=endings[delivery])


def _escape_dollars(value: Any) -> Any:
    """Double each ``$``, so that it does not begin a placeholder."""
    if isinstance(value, dict):
        return {name: _escape_dollars(inner) for name, inner in value.items()}
    return value.replace("$", "$$") if isinstance(value, str) else value
