"""The forms in which a refusal reaches a client, with and without a gateway between.

Sources of the bodies: docs/reference/responses-api.md, "Finding the refused part".
"""

import json
from collections.abc import Mapping
from typing import Any

from simulator.refusals import Refusal
from simulator.scenarios.scenario import Ending, HttpReply, Reply, make_reply

Fields = dict[str, Any]
FORMS: Mapping[str, str] = {
    "fields": "`param` and `code` are set",
    "message": "`param` and `code` are null, the message quotes the place",
    "openrouter": "OpenRouter nests the body as a text in `metadata.raw`",
    "litellm": "LiteLLM puts the body into its own message",
    "id": "the message names an id and no place",
    "phrase": "the message names neither",
}
DELIVERIES: Mapping[str, str] = {
    "http": "as the status of the answer",
    "error": "as an `error` event, nested, behind `created` and `in_progress`",
    "error-flat": "as an `error` event whose fields stand in the event itself",
    "failed": "as `response.failed` behind `created` and `in_progress`",
    "both": "as an `error` event, then `response.failed`: so the API does it (recorded)",
}


def build_error(refusal: Refusal, form: str) -> Fields:
    """Return what stands under ``error`` in the body of this form."""
    whole = refusal.fields()
    if form == "openrouter":
        raw = json.dumps({"error": whole}, indent=2)
        metadata = {"raw": raw, "provider_name": "OpenAI", "is_byok": False}
        return {
            "message": "Provider returned error",
            "code": refusal.status,
            "metadata": metadata,
        }
    if form == "litellm":
        inner = json.dumps({"error": whole}, indent=2)
        name = "NotFoundError" if refusal.status == 404 else "BadRequestError"
        text = f"litellm.{name}: OpenAIException - {inner}. Received Model Group=gpt"
        fields = {"type": None, "param": None, "code": str(refusal.status)}
        return {"message": text, **fields}
    return whole if form == "fields" else {**whole, "param": None, "code": None}


def build_reply(refusal: Refusal, form: str, delivery: str) -> Reply | HttpReply:
    """Return the answer that tells of a refusal."""
    error = build_error(refusal, form)
    if delivery == "http":
        return HttpReply(refusal.status, json.dumps({"error": error}))
    return make_reply(ending=_build_ending(_keep_dollars(error), delivery))


def _build_ending(error: Fields, delivery: str) -> Ending:
    if delivery == "failed":
        return Ending("response.failed", {"error": error})
    if delivery == "both":
        error_event = {"type": "error", "error": error}
        return Ending("response.failed", {"error": error}, before=error_event)
    if delivery == "error":
        return Ending("error", {"error": error})
    flat = {name: value for name, value in error.items() if name != "type"}
    return Ending("error", {"param": None, **flat})


def _keep_dollars(value: Any) -> Any:
    """Double each ``$``: else it is taken for a word that a transcript leaves open."""
    if isinstance(value, dict):
        return {name: _keep_dollars(inner) for name, inner in value.items()}
    return value.replace("$", "$$") if isinstance(value, str) else value
