"""What a caller may set; the rest is the administrator's.

Whoever may chat writes the body of a request: a user on Open WebUI's page through
custom parameters, or any client of the Pipelines server.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.requests.parameters import ACCOUNT_KEYS, ANSWER_KEYS
from shells.caller import MAY_SET_KEY
from shells.valve_texts import comma_list, unknown_words
from strategies.parameters import PARAMETERS

_CHAT_KEYS = frozenset(
    {
        "model",
        "messages",
        "stream",
        # The sender runs these tools: only functions are offered to the model.
        "tools",
        "tool_choice",
        "response_format",
        "json_schema",
        "stop",
        "temperature",
        "top_p",
        "logprobs",
        "top_logprobs",
        # The model's own limit is the default, so these only make an answer shorter.
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
    }
)
"""What every client of chats needs; it costs nothing more and changes no rule."""

_FIELD_KEYS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields of the API's objects, with the keys that mean the same."""

_SETTINGS = frozenset(
    {
        *(row.request_key for row in PARAMETERS.values() if row.request_key),
        "query",
        "reasoning_effort",
        "reasoning_summary",
        "verbosity",
    }
).union(ANSWER_KEYS, ACCOUNT_KEYS, _FIELD_KEYS)
"""The keys that mean something here if they are opened. Others, such as `store`, are
dropped whatever the setting says, so the log does not name it for them."""


def find_unknown_keys(may_set: str) -> str:
    """Return the message about words of `caller_may_set` that name no key, if any."""
    known = _SETTINGS | _CHAT_KEYS
    advice = "No key that requests may set has such a name."
    return unknown_words(MAY_SET_KEY, comma_list(may_set.lower()), known, advice)


def select_keys(
    body: Mapping[str, Any], may_set: str
) -> tuple[dict[str, Any], list[str]]:
    """Return what a request may set, and the names of the settings left out.

    `may_set` is `caller_may_set` of EXPERT_JSON.
    """
    allowed = _CHAT_KEYS.union(comma_list(may_set.lower()))
    kept: dict[str, Any] = {}
    refused: set[str] = set()
    for key, value in body.items():
        if key in allowed:
            kept[key] = value
        elif key in _FIELD_KEYS and isinstance(value, Mapping):
            fields: dict[str, Any] = {}
            for field, field_value in value.items():
                setting = _FIELD_KEYS[key].get(field, key)
                if setting in allowed:
                    fields[field] = field_value
                else:
                    refused.add(setting)
            kept[key] = fields
        elif value is not None:
            refused.add(key)
    return kept, sorted(refused & _SETTINGS)
