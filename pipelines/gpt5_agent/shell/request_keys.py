"""What a request may set; everything else is the administrator's.

Whoever may chat writes the body of a request: a person on Open WebUI's page through
custom parameters, or any client of the Pipelines server.
"""

from collections.abc import Mapping
from typing import Any

from gpt5_agent.shell.settings import CONTEXT_KEY
from openai_responses.errors import unknown_words
from openai_responses.requests.build import ResponsesRequest

_CHAT_KEYS = frozenset(
    {
        *("model", "messages", "stream", CONTEXT_KEY),
        # The sender runs these tools: only functions are offered to the model.
        *("tools", "tool_choice"),
        *("response_format", "json_schema", "stop"),
        *("temperature", "top_p", "top_logprobs"),
        # The model's own limit is the default, so these only make an answer shorter.
        *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    }
)
"""What every client of chats needs; it costs nothing more and changes no rule."""

_FIELDS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields of the API's objects, with the keys that mean the same."""

_SETTINGS = {
    *("agent_model", "instruction", "prompt_policy_overrides", "maximum_iterations"),
    *("context", "query", "emit_intermediate_thoughts"),
    *("reasoning_effort", "reasoning_summary", "verbosity"),
    *ResponsesRequest.model_fields,
}
"""The keys that mean something here or to the API; others are dropped anyway."""


_NEVER = frozenset({"store", "background", "instructions", "input", "include"})
"""Keys of the API that no setting opens."""


def opening_error(may_set: str) -> str:
    """Return the sentence about words of REQUEST_MAY_SET that name nothing, if any."""
    words = map(str.strip, may_set.lower().split(","))
    known = {"", *_SETTINGS, *_CHAT_KEYS} - _NEVER
    return unknown_words("REQUEST_MAY_SET", words, known, _NO_NAME)


_NO_NAME = "No key that requests may set has such a name."


def select_keys(
    body: Mapping[str, Any], may_set: str
) -> tuple[dict[str, Any], list[str]]:
    """Return what a request may set, and the names of the settings left out.

    `may_set` is the valve REQUEST_MAY_SET.
    """
    allowed = _CHAT_KEYS | {word.strip() for word in may_set.lower().split(",")}
    kept: dict[str, Any] = {}
    refused: set[str] = set()
    for key, value in body.items():
        fields = _FIELDS.get(key, {})
        if key in allowed:
            kept[key] = value
        elif fields and isinstance(value, Mapping):
            kept[key] = {f: v for f, v in value.items() if fields.get(f) in allowed}
            refused |= {fields.get(f, key) for f in value.keys() - kept[key].keys()}
        elif value is not None:
            refused.add(key)
    return kept, sorted(refused & _SETTINGS)
