"""The fields of a request, and how they are built for a model.

The caller's own keys have priority over the settings. Keys that the API does not have
are dropped, and so are parameters that the model rejects
(docs/reference/responses-api.md, "Parameters" and "Sampling and effort").

Other servers are stricter: an unknown key or `include` is an error there, a reasoning
item or a call needs an id, and a message of the assistant must be plain text
(docs/reference/responses-api.md, "Other servers").
"""

import json
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError

from openai_responses.appended import APPENDED, lower_payload
from openai_responses.errors import InvalidParameter, InvalidRequest
from openai_responses.items import (
    Item,
    answer_as_text,
    item_type,
    tool_kind,
    with_item_id,
)
from openai_responses.json_input import (
    JsonObject,
    as_text,
    clamp_number,
    parse_json_object,
)
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.chat_repairs import ChatRepair
from openai_responses.repairs.refusal import SentRequest
from openai_responses.repairs.request_repairs import (
    LeaveOutBackground,
    Repair,
    repair_request,
    sent_request,
)
from openai_responses.requests.parameters import (
    ACCOUNT_KEYS,
    ANSWER_KEYS,
    check_depth,
    read_parameters,
    with_known_keys,
)
from openai_responses.requests.tools import fit_calls

SAMPLING = {"temperature", "top_p", "top_logprobs"}
"""What reasoning models reject, or accept only with the effort `none`."""

_LOGPROBS = "message.output_text.logprobs"
"""What a request includes if it asks for `logprobs`, as in Chat Completions."""

_MAX_OUTPUT_TOKENS = 128_000
"""For models of which it is not known."""

_Positive = Annotated[int, Field(gt=0)]
_ShortText = Annotated[str, Field(max_length=64)]
_LongerText = Annotated[str, Field(max_length=512)]
_Metadata = Annotated[dict[_ShortText, _LongerText], Field(max_length=16)]
_ServiceTier = Literal[
    "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"
]


class ResponsesRequest(BaseModel):
    """The body of `POST /responses`, with the API's field names and values."""

    # JSON has no NaN and no infinity.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,  # repairs are no models
    )

    model: str
    input: SkipValidation[list[Item]]  # it may be very large
    instructions: str | None = None
    stream: bool = True
    store: bool | None = False  # the API's default keeps a response for 30 days or more
    background: bool | None = None
    background_options: dict[str, Any] | None = None
    include: list[str] | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Item] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: _Positive | None = None
    max_tool_calls: _Positive | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: _ServiceTier | None = None
    prompt_cache_key: _ShortText | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: Annotated[str, Field(max_length=128)] | None = None
    context_management: list[dict[str, Any]] | None = None
    metadata: _Metadata | None = None
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None
    cache_control: dict[str, Any] | None = None  # OpenRouter's, of its Responses API
    repairs: tuple[Repair, ...] = ()
    """What earlier refusals showed; no field of the API."""

    @property
    def runs_in_background(self) -> bool:
        """Whether the answer goes on at the server when the connection breaks."""
        return bool(self.background) and LeaveOutBackground() not in self.repairs

    def payload(self) -> dict[str, Any]:
        """Return the JSON object to send, repaired, without fields that are not set."""
        return repair_request(self._unrepaired(), self.repairs)

    def sent(self) -> SentRequest:
        """Return what is sent, with a name of each item."""
        return sent_request(self._unrepaired(), self.repairs)

    def frame(self) -> list[Any]:
        """Return what is asked for, whatever the chat and whoever asks."""
        fields = [value for name, value in self if name not in _OF_ONE_CHAT]
        changes = [
            repr(repair)
            for repair in self.repairs
            if not isinstance(repair, ChatRepair)
        ]
        return [fields, changes]

    def _unrepaired(self) -> dict[str, Any]:
        """Return the fields that are set, as they are before any repair."""
        fields = {name: value for name, value in self if value is not None}
        del fields["repairs"]
        # Names and ids of calls become what the API accepts.
        fields["input"] = fit_calls(self.input)
        return fields


_OF_ONE_CHAT = frozenset(
    {
        "input",
        "instructions",
        "metadata",
        "prompt_cache_key",
        "repairs",
        "safety_identifier",
    }
)
_PASSED_ON = {*ANSWER_KEYS, *ACCOUNT_KEYS}
"""Keys of a caller that are sent unchanged; no others may store something, or name
something stored, at the server. `user` is deprecated."""


class Settings(NamedTuple):
    """What the administrator and the user chose; the caller's keys have priority.

    None means that nothing was chosen. `defaults` are further parameters by name.
    """

    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    stream: bool = True
    background: bool = False
    background_store: bool | None = True
    """`store` of a background request; None: it is not sent."""
    completion_window: str = ""
    """How long a background answer may take, for less money; empty: not at all."""
    encrypted_reasoning: bool = True
    tools: Sequence[Item] = ()
    defaults: JsonObject = MappingProxyType({})


def build_request(
    model: ResolvedModel,
    instructions: str,
    items: Sequence[Item],
    body: JsonObject,
    settings: Settings,
) -> ResponsesRequest:
    """Return the request for a chat; raises InvalidRequest for one without a message.

    `body` holds the caller's keys, with the names of Chat Completions or of the API;
    values that no API takes are left out. The effort is the caller's, else the user's,
    else the one in the model's name.
    """
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    given, _ = read_parameters(body)
    passed_on, _ = _check_passed_on(given)
    facts = model.facts

    asked_effort = given["reasoning"].get("effort") or settings.effort
    effort = model.fit_effort(asked_effort or model.effort)
    effort_in_use = effort or facts.default_effort
    # "logprobs are not supported with reasoning models." (recorded, 630)
    takes_sampling = facts.sampling == "always"
    if facts.sampling == "with_none":
        takes_sampling = effort_in_use == "none"

    tools = list(settings.tools)
    if effort_in_use == "minimal":
        tools = [tool for tool in tools if not tool_kind(tool).refused_at_minimal]

    # An unknown model reasons if an effort is set.
    reasons = facts.reasoning or effort is not None
    includes = [tool_kind(tool).include for tool in tools]
    if reasons and settings.encrypted_reasoning:
        includes.insert(0, "reasoning.encrypted_content")
    if given.get("logprobs") is True and takes_sampling:
        includes.append(_LOGPROBS)

    text: dict[str, Any] = with_known_keys("text", given["text"])
    verbosity = text.pop("verbosity", None) or settings.verbosity
    if verbosity and facts.verbosity:
        text["verbosity"] = verbosity

    fields: dict[str, Any] = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream and given.get("enable_stream", True),
        "text": text or None,
        "tools": tools or None,
        "include": [name for name in includes if name] or None,
        **settings.defaults,
        **passed_on,
    }
    if settings.background:
        fields |= {"background": True, "store": settings.background_store}
        window = settings.completion_window
        if window and fields.get("service_tier") in (None, "auto", "default"):
            fields["background_options"] = {"completion_window": window}
            fields["stream"] = False  # "stream: false or omitted" (SDK 3.57.0)
    if reasons:
        fields["reasoning"] = _build_reasoning(model, effort, given, settings)
    if not takes_sampling:
        for name in SAMPLING:
            fields.pop(name, None)
    length = fields.get("max_output_tokens")
    if length is not None:
        # Below 16, or above the model's maximum, the API refuses the request.
        longest = facts.max_output_tokens or _MAX_OUTPUT_TOKENS
        fields["max_output_tokens"] = clamp_number(length, 16, longest, longest)
    return ResponsesRequest(**fields)


def _check_passed_on(given: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys that the API takes, and what is wrong with others."""
    kept: dict[str, Any] = {}
    messages: list[str] = []
    for name, value in given.items():
        if name not in _PASSED_ON:
            continue
        try:
            check_depth(name, value)
            kept[name] = with_known_keys(name, value)
        except InvalidParameter as error:
            messages.append(str(error))
    try:
        ResponsesRequest(model="", input=[], **kept)
    except ValidationError as error:
        reasons = {str(row["loc"][0]): row["msg"] for row in error.errors()}
        for name, reason in reasons.items():
            del kept[name]
            messages.append(str(InvalidParameter(name, reason)))
    return kept, messages


def _build_reasoning(
    model: ResolvedModel, effort: str | None, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    """Return the `reasoning` of a request; the caller's own keys have priority."""
    facts = model.facts
    chosen: dict[str, str] = {}
    if effort:
        chosen["effort"] = effort
    # An effort of `none` has no reasoning to sum up.
    thinks = (effort or facts.default_effort) != "none"
    if settings.summary and facts.summary and thinks:
        chosen["summary"] = settings.summary
    # `auto` means `all_turns` on gpt-5.6 and gpt-6-astra, and the current turn before
    # (recorded).
    if facts.all_turns and settings.encrypted_reasoning:
        chosen["context"] = "all_turns"
    if model.pro:
        chosen["mode"] = "pro"
    own = with_known_keys("reasoning", given["reasoning"])
    own.pop("effort", None)
    return {**chosen, **own} or None


_READ_OTHERWISE = (
    "messages",
    "model",
    "stream",
    "enable_stream",
    "stream_options",
    "tools",
    "extra_tools",
)
"""Keys that are not parameters, or that are sent under other names."""

_MAX_PARAMETER_NAME = 40


def unsent_parameters(
    asked: JsonObject, request: ResponsesRequest
) -> tuple[list[str], list[str]]:
    """Return the caller's parameters that are not sent, and messages about values.

    The former are names like `reasoning.effort`, the latter a message for each value
    that no API takes.
    """
    given, errors = read_parameters(asked)
    if request.tool_choice is not None:
        given.pop("tool_choice", None)  # it may have been asked for by a bare name
    if _LOGPROBS in (request.include or ()):
        given.pop("logprobs", None)
    # Some items change settings. The rest of the input says nothing of them, and takes
    # long to prepare.
    appended = [item for item in request.input if item_type(item) in APPENDED]
    without_history = request.model_copy(update={"input": appended})
    sent = lower_payload(without_history.payload(), APPENDED)
    passed_on, messages = _check_passed_on(given)
    asked_length = passed_on.get("max_output_tokens")
    sent_length = request.max_output_tokens
    if asked_length and str(asked_length) != str(sent_length):
        error = InvalidParameter("max_output_tokens", f"{sent_length} is sent")
        messages.append(str(error))
    names: list[str] = []
    for key in ("reasoning", "text"):
        unsent = [name for name in given.pop(key) if name not in sent.get(key, {})]
        names += [f"{key}.{name}" for name in unsent]
    names += [key for key in given if key not in sent and key not in _READ_OTHERWISE]
    shown_names = sorted(name[:_MAX_PARAMETER_NAME] for name in names)
    return shown_names, errors + messages


def is_api_parameter(name: str) -> bool:
    """Say whether the API has a parameter; `name` may be that of a field in one."""
    key, _, field = name.partition(".")
    if key not in ResponsesRequest.model_fields or key == "repairs":
        return False
    return not field or bool(with_known_keys(key, {field: True}))


_OPENAI_ONLY = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt_cache_",
    "safety_identifier",
)
"""How the names begin."""


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` for other servers: without OpenAI's own keys, items with ids.

    Answers are plain texts there.
    """
    kept = {key: payload[key] for key in payload if not key.startswith(_OPENAI_ONLY)}
    kept["input"] = [answer_as_text(with_item_id(item)) for item in payload["input"]]
    return kept


def with_json_arguments(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` for other servers: with calls whose arguments they can read.

    A model's call may have been no JSON, or cut off, and its output says so. The API
    takes it back as it is; llama.cpp's templates, and LiteLLM for Anthropic, parse it
    and refuse the chat for good (OpenHands/OpenHands 13949).
    """
    items = list(payload["input"])
    for number, item in enumerate(items):
        arguments = as_text(item.get("arguments"))
        if item_type(item) == "function_call" and parse_json_object(arguments) is None:
            readable = {"arguments": arguments} if arguments.strip() else {}
            text = json.dumps(readable, ensure_ascii=False)
            items[number] = {**item, "arguments": text}
    return {**payload, "input": items}
