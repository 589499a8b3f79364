"""Parameters in, one payload out.

What is sent is decided here alone: the caller's own keys win over the settings, keys
that the API does not have are left out, and so are parameters that the model rejects
(responses-api.md §0.8, §1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models import ResolvedModel

_SAMPLING = ("temperature", "top_p", "top_logprobs")

_PASSED_ON = frozenset(
    {
        "access_programs",
        "context_management",
        "image",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "moderation",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
"""Keys of a caller that go to the API as they are. Those that would store something
there or name what is stored (`store`, `background`, `conversation`,
`previous_response_id`, `prompt`) are not the caller's to set; `user` is deprecated."""

_RENAMED: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""Chat Completions' names for what the API calls otherwise."""


class ResponsesRequest(BaseModel):
    """What is sent to `POST /responses`, in the API's own words."""

    # JSON has no NaN and no infinity.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: str
    input: list[Item]
    instructions: str | None = None
    stream: bool = True
    store: bool = False
    include: list[str] | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Item] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    truncation: str | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    context_management: list[dict[str, Any]] | None = None
    metadata: dict[str, str] | None = None
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """Return the JSON object to send; what was not set is not in it."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator and the user chose, for requests that say nothing.

    `effort`, `summary` and `verbosity` are None when nothing was chosen.
    """

    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    stream: bool = True
    encrypted_reasoning: bool = True
    tools: Sequence[Item] = field(default=())
    parallel_tool_calls: bool | None = None


def build_request(
    model: ResolvedModel,
    instructions: str,
    items: Sequence[Item],
    body: Mapping[str, Any],
    settings: Settings,
) -> ResponsesRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent.

    `body` holds the caller's keys, in the names of Chat Completions or of the API.
    The effort is the caller's, else the user's, else the one that the alias names.
    """
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    effort = _effort(model, body, settings)
    passed = {k: v for k, v in _renamed(body).items() if k in _PASSED_ON}
    if not _takes_sampling(model, effort):
        passed = {k: v for k, v in passed.items() if k not in _SAMPLING}
    fields = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream,
        "include": _include(model, effort, settings),
        "reasoning": _reasoning(model, effort, body, settings) or None,
        "text": _text_object(model, body, settings) or None,
        "tools": list(settings.tools) or None,
        "parallel_tool_calls": settings.parallel_tool_calls,
        **passed,
    }
    try:
        return ResponsesRequest(**fields)
    except ValidationError as error:
        raise InvalidRequest(_first_complaint(error)) from None


def _effort(
    model: ResolvedModel, body: Mapping[str, Any], settings: Settings
) -> str | None:
    """Return the effort to send, or None to leave it to the model."""
    asked = _own(body, "reasoning").get("effort") or body.get("reasoning_effort")
    chosen = asked or settings.effort or model.effort
    if not isinstance(chosen, str):
        return None
    return chosen if model.takes_effort(chosen) else None


def _takes_sampling(model: ResolvedModel, effort: str | None) -> bool:
    """Say whether temperature, top_p and top_logprobs may be sent."""
    if model.facts.sampling == "with_none":
        return (effort or model.facts.default_effort) == "none"
    return model.facts.sampling == "always"


def _reasoning(
    model: ResolvedModel,
    effort: str | None,
    body: Mapping[str, Any],
    settings: Settings,
) -> dict[str, Any]:
    """Return the `reasoning` object: the caller's own keys, then ours."""
    if not _reasons(model, effort):
        return {}
    own = {k: v for k, v in _own(body, "reasoning").items() if k != "effort"}
    resolved = effort or model.facts.default_effort
    if settings.summary and model.facts.summary and resolved != "none":
        own.setdefault("summary", settings.summary)
    return {"effort": effort, **own} if effort else own


def _text_object(
    model: ResolvedModel, body: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """Return the `text` object: the caller's own keys, then the verbosity."""
    own = _own(body, "text")
    verbosity = own.pop("verbosity", None) or body.get("verbosity")
    verbosity = verbosity or settings.verbosity
    if verbosity and model.facts.verbosity:
        own["verbosity"] = verbosity
    return own


def _include(
    model: ResolvedModel, effort: str | None, settings: Settings
) -> list[str] | None:
    """Ask for the reasoning itself: without a store there is no other way back."""
    wanted = _reasons(model, effort) and settings.encrypted_reasoning
    return ["reasoning.encrypted_content"] if wanted else None


def _reasons(model: ResolvedModel, effort: str | None) -> bool:
    """Say whether the model reasons; one that nobody knows does if it is told to."""
    return model.facts.reasoning or effort is not None


def _renamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the caller's keys in the API's names; null means not given.

    The API has no `stop`; as in the seed it only asks for `truncation: "disabled"`.
    """
    given = {key: value for key, value in body.items() if value is not None}
    for theirs, ours in _RENAMED.items():
        if theirs in given:
            given.setdefault(ours, given.pop(theirs))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    return given


def _own(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the caller's object of that name; null in it means not given, too."""
    value = body.get(key)
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: given for name, given in pairs if given is not None}


def _first_complaint(error: ValidationError) -> str:
    """Return the first complaint as a sentence, without the value it is about."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[
        0
    ]
    place = ".".join(str(step) for step in first["loc"])
    return f"The setting {place} cannot be sent: {first['msg']}."
