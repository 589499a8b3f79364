"""What an error of the API is about, as a word: its own code, or one of ours.

Other servers, and some of OpenAI's refusals, have no code, one for many causes, or a
wrong one; then a status, a place in the request or certain words tell the cause. The
message for each word is in `endings`.
"""

import re

from openai_responses.errors import (
    CODES_FOR_ANYTHING,
    CONTENT_FILTER,
    UNREAD_REASONING,
    ApiError,
)

MISALIGNMENT = "misalignment_policy_violation"
"""OpenAI's monitoring stopped what a model was about to do: nothing of it may go on,
neither by another attempt nor elsewhere nor without its reasoning."""
FLEX_UNAVAILABLE = "flex_unavailable"
REQUEST_TOO_LARGE = "request_above_rate_limit"
"""Our word for a `rate_limit_exceeded` that no wait removes: the request alone is larger
than the limit of a minute (recorded in a stream that tells of a limit of 1)."""
WRONG_KEY = "invalid_api_key"
MISSING_SCOPE = "missing_scope"
UNSUPPORTED_COUNTRY = "unsupported_country_region_territory"
UNVERIFIED = "unverified_organization"
"""Our word: OpenAI says so with a code that other causes have, too, or with none."""
DENIED_MODEL = "denied_model"
"""Our word for a 401 or 403 whose `param` is the model."""
FIREWALL_PAGE = "firewall_page"
GATEWAY_PAGE = "gateway_page"
"""Our words for a page that came in place of the API's answer."""
NO_RESPONSES_API = "no_responses_api"
"""Our word for a server that answers at every address, and says so with a status of 200."""
REFUSED_SAFEGUARD = "refused_safeguard"
"""Our word for a server that refuses one of `STRICT_LACKS`."""
STRICT_LACKS = ("safety_identifier", "prompt_cache_retention")
"""Safeguards that are never left out after a refusal, and are not in strict requests."""
FORBIDDEN_PROVIDERS = "forbidden_providers"
"""Our word for an account whose own settings leave no provider of a model."""
TOO_MANY_TOOLS = "too_many_tools"
"""Our word: the API's code for it is that of any list that is too long."""
NO_MEMORY = "out_of_memory"
"""Our word for a server whose computer has no room for the model."""
LOADING_MODEL = "loading_model"
"""Our word for what llama.cpp says until it can answer."""
STREAM_CUT = "stream_cut"
"""Our word for a stream that broke between a gateway and the server behind it."""
_CUT_CODES = frozenset(
    {
        "stream_read_error",  # sub2api (its issue 6506)
        "upstream_disconnect",  # Kilo's gateway, as the type
        "upstream_stream_interrupted",  # grok2api, and others
        "upstream_stream_incomplete",
        "provider_disconnected",  # macprovider
        "stream_truncated",
    }
)
"""Codes and types of gateways for that."""
REJECTED = "rejected"
"""Our word for a stream that says that the request cannot be answered."""

SAFETY_STOPS = frozenset(
    {
        MISALIGNMENT,
        "cyber_policy",
        "bio_policy",
        "invalid_prompt",
        "image_content_policy_violation",
        "content_policy_violation",
        "moderation_blocked",
        CONTENT_FILTER,
    }
)
"""Codes of refusals for what a chat is about. No other server is asked instead."""

_POLICY_SUFFIXES = ("_policy", "_policy_violation")
"""Ends of such codes, also of those that nobody listed."""

FINAL_CODES = SAFETY_STOPS | {
    FLEX_UNAVAILABLE,
    REQUEST_TOO_LARGE,
    WRONG_KEY,
    NO_RESPONSES_API,
    NO_MEMORY,
    TOO_MANY_TOOLS,
}
"""Codes of refusals that neither a second attempt nor a repair of the request removes."""

NO_CREDIT = "insufficient_quota"
NO_CREDIT_CODES = frozenset(
    {
        NO_CREDIT,
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
        "billing_not_active",
        "billing_hard_limit_reached",
        # LiteLLM's type, also of a 400 (BerriAI/litellm 4606, 37000)
        "budget_exceeded",
        # Codex's own server: a limit of hours or days
        "usage_limit_reached",
        "usage_not_included",
        "exceeded_current_quota_error",  # Moonshot
        "insufficient_credits",  # Helicone
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of such codes, also of those that nobody listed."""

FILE_CODES = frozenset({"unsupported_file"})
IMAGE_CODES = FILE_CODES | frozenset(
    {
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
"""Codes of refusals of an image, or of another file in the chat."""


def is_final(error: ApiError) -> bool:
    """Say whether neither a second attempt nor a repair of the request helps."""
    return any(code in FINAL_CODES for code in _list_codes(error))


def has_no_credit(error: ApiError) -> bool:
    """Say whether an account is empty, which no wait fills."""
    code = error.code or ""
    is_known = code.endswith(_NO_CREDIT_SUFFIXES) or error.is_any_of(NO_CREDIT_CODES)
    return is_known or find_certain_cause(error) == NO_CREDIT


_REJECTED_CODE = re.compile(
    r"(?:bad|invalid|unknown|unsupported|missing)[_-]?(?:required_)?"
    r"(?:request|argument|parameter|type|value)(?:_?error|_value)?",
    re.IGNORECASE,
)
"""Codes and types that say that the request itself cannot be answered, at OpenAI and at
others (`BadRequestError` at vLLM, `InvalidParameter` at DashScope and Volcengine)."""
_SAYS_REJECTED = re.compile(r"Invalid (?:argument|parameter|request)", re.IGNORECASE)
"""The words for it without a code: xAI's of a schema."""


def failure_words(error: ApiError) -> list[str]:
    """Return the words that a message can be found by without a status."""
    words = [*_list_codes(error), _find_attachment(error)]
    names = (error.code or "", error.type or "")
    if any(map(_REJECTED_CODE.fullmatch, names)) or _SAYS_REJECTED.match(error.message):
        words.append(REJECTED)
    return words


_FIREWALL_STATUSES = (403, 429)
"""A page with one of these comes from a firewall, which knows no key; those from 500 on
come from a gateway."""
_TOO_SLOW = (504, 524)
"""Statuses of a gateway, the second one Cloudflare's, that waited for a server."""
_ABOUT_KEYS = (MISSING_SCOPE, DENIED_MODEL, UNREAD_REASONING, *NO_CREDIT_CODES)
_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def refusal_words(status: int, error: ApiError, *, is_streamed: bool) -> list[str]:
    """Return the words that a message can be found by, the most certain first.

    An error that `is_streamed` came from a Responses API.
    """
    if status < 400:
        return ["3"]
    if error.is_relayed and error.status:  # of the server behind a gateway
        status = error.status
    own_word = str(status)
    if error.is_page:
        page = FIREWALL_PAGE if status < 500 else GATEWAY_PAGE
        is_gateways = status >= 500 and status not in _TOO_SLOW
        is_uncertain = status in _FIREWALL_STATUSES or is_gateways
        return [page] if is_uncertain else [own_word, page]
    codes = [code for code in _list_codes(error) if code != own_word]
    if status in (401, 403) and error.param == "model":
        # LiteLLM: type `key_model_access_denied`, and others for teams and users
        # (BerriAI/litellm 39660).
        codes.append(DENIED_MODEL)
    if status == 401:
        # Only what is about keys, or is certain: a type like `server_error` tells nothing.
        about_keys = {error.code, find_certain_cause(error), *_ABOUT_KEYS}
        return [*(code for code in codes if code in about_keys), own_word]
    words = [*codes, _find_attachment(error)]
    if error.param in STRICT_LACKS:
        words.append(REFUSED_SAFEGUARD)
    if status in (400, 422) and error.param == "model":
        words.append("model_not_found")
    if status == 404:
        # Gateways send no code: "The model `x` does not exist"; Azure: "The API
        # deployment for this resource does not exist".
        if _ABOUT_A_MODEL.search(error.message):
            words.append("model_not_found")
        if is_streamed or error.is_relayed or not is_about_address(error):
            own_word = ""
    words.append(own_word)
    if status >= 500:
        words.append("5")
    return words


NO_ROUTE = "No endpoints found"
"""What OpenRouter says, with a status of 404, of the providers that are up now; others may
be tomorrow."""
_UNKNOWN_ADDRESS = "Invalid URL"
"""How OpenAI's 404 for an unknown path begins; that of an unknown response has the same
type and names no place, either."""


def is_about_address(error: ApiError) -> bool:
    """Say whether a 404 may mean that there is no Responses API."""
    if error.param or error.names_a_place or error.message.startswith(NO_ROUTE):
        return False
    is_of_the_api = error.type == "invalid_request_error"
    return not is_of_the_api or error.message.startswith(_UNKNOWN_ADDRESS)


_ATTACHMENT = re.compile(
    r"input\[\d{1,6}\]\.(?:content|output)\[\d{1,6}\]"
    r"\.(?:(?P<image>image_url)|file_data|file_url|filename)(?:\.\w{1,64})?"
)
"""The `param` of a refused image or file: only such parts have these fields."""
_UNKNOWN_FIELD_CODES = ("unknown_parameter", "unsupported_parameter")


def _find_attachment(error: ApiError) -> str:
    """Return the code for the kind of attachment that `param` names; empty for none."""
    match = _ATTACHMENT.fullmatch(error.param or "")
    if match is None or error.is_any_of(_UNKNOWN_FIELD_CODES):
        return ""
    return "invalid_image" if match["image"] else "unsupported_file"


_PHRASES = (
    (r"\bmissing scopes?:|insufficient permissions for this operation", MISSING_SCOPE),
    (r"country, region, or territory not supported", UNSUPPORTED_COUNTRY),
    (r"\borganization must be verified to", UNVERIFIED),
    (
        # LiteLLM's `ContextWindowExceededError`; of more than 16,384 items, or of a text
        # above 10,485,760 characters: "Invalid 'input': array too long".
        r"context (size|window|length)|ContextWindow"
        # Z.AI, Anthropic, Ollama, Bedrock; xAI, vLLM; Google; Kimi; Copilot; TGI, Z.AI.
        r"|(prompt|input) (is )?too long|maximum (prompt|model|input) length"
        r"|exceeds the maximum number of tokens|exceeded model token limit"
        r"|prompt token count of \d+ exceeds|prompt tokens \(\d+\) exceed"
        r"|`inputs` tokens \+ `max_new_tokens` must|prompt exceeds max length"
        # Anthropic, of input and output together; DashScope; TGI.
        r"|exceeds? context limit|range of input length should be"
        r"|`inputs` must have less than"
        # Volcengine; Cohere; gateways (anomalyco/opencode 27519, cita-777/metapi 582).
        r"|exceed max message tokens|too many tokens: size limit exceeded"
        r"|tokens in request more than max tokens|input token limit is \d"
        r"|'input([^\s']*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (
        r"\bmodel\b.{0,200}(does not exist|not found)"
        # Google, also behind a gateway that streams it
        r"|\bmodels/\S{1,100} is not found for API version"
        # OpenClaw quotes the name of the field.
        r"|invalid [`'\"]?model\b"
        # Snowflake, GitHub; Cloudflare; Azure; Codex's own server.
        r"|\bunknown model\b|\bno such model\b|does not work with the specified model"
        r"|model is not supported when using Codex"
        # DeepSeek; DashScope; OpenRouter.
        r"|\bsupported API model names are\b"
        r"|\bmodel [`'\"]?[\w./:-]{1,100}[`'\"]? is not supported\.?\Z"
        r"|\bunsupported model\b|is not a valid model ID\b"
        # OpenRouter; new-api; a model that only has another API, at OpenAI, Bedrock,
        # Databricks, Copilot and Ollama; also other than the one of a gateway.
        r"|no endpoints found for|no available channel for model"
        r"|not (?:supported )?in (?:the )?v1/(?:responses|chat/completions)"
        r"|support the '\S{0,20}/(?:responses|chat/completions)' API"
        r"|v1/responses is not supported for"
        r"|\bmodel( \S{1,100})? (is|does) not support(ed by)?( the)? Responses API"
        r"|not accessible via the /responses|does not support chat\b"
        # Bedrock
        r"|model identifier is invalid|with on-demand throughput isn.t supported"
        # xAI and OpenRouter, of a model that only draws.
        r"|is an image model and is therefore not available"
        r"|support the requested output modalities"
        # NVIDIA, which names a model's server and the account in place of the model.
        r"|\bhas reached its end of life\b|\AFunction '[\w-]+': Not found for account",
        "model_not_found",
    ),
    (
        # DeepSeek, Z.AI and Kimi; Anthropic; xAI, with a status of 403 or 429.
        r"insufficient (balance|credits|funds)|credit balance is too low"
        r"|doesn't have any credits|used all available credits"
        # Fireworks, with a status of 412; Cloudflare.
        r"|reaching the monthly spending limit|used up your daily free allocation"
        # OpenRouter, of a day
        r"|free-models-per-day"
        # SiliconFlow; Ollama's cloud, of hours or a week.
        r"|balance is insufficient|reached your (\w+ )?usage limit",
        NO_CREDIT,
    ),
    # Azure's API Management, of a quota that its administrator has set
    (r"\bquota will be replenished in\b", "usage_limit_reached"),
    (r"RateLimitError", "rate_limit_exceeded"),
    # LiteLLM; Azure, of other services
    (
        r"ContentPolicyViolationError|triggering Azure OpenAI's content management",
        CONTENT_FILTER,
    ),
    # Codex's own server, in a stream
    (r"\bmodel is at capacity\b", "server_is_overloaded"),
)
"""What other servers say instead of a code, and LiteLLM of the servers behind it."""

_CERTAIN_PHRASES = (
    (
        # "Request too large for ... Limit 1, Requested 30." (recorded in a stream)
        r"request too large for .{1,500}"
        r"\blimit (?P<most>\d{1,12}), requested (?P<asked>\d{1,12})",
        REQUEST_TOO_LARGE,
    ),
    # OpenAI; Google, with a status of 400; Bedrock, AWS and Google, with 403
    (
        r"\A(Incorrect API key provided|API key not valid|Bearer Token has expired"
        r"|The security token included in the request is"
        r"|Your API key was reported as leaked)",
        WRONG_KEY,
    ),
    # OpenRouter
    (r"\ANo endpoints .{1,80} data policy\b", FORBIDDEN_PROVIDERS),
    # Azure, with a status of 401: a role of Entra ID
    (r"lacks the required data action", MISSING_SCOPE),
    (r"\AAccess denied due to Virtual Network/Firewall rules", FIREWALL_PAGE),
    (
        # Azure, of a dated version in the address
        r"Responses API is enabled only for api-version|\AAPI version not supported"
        # LM Studio (lmstudio-ai/lmstudio-bug-tracker 618)
        r"|\AUnexpected endpoint or method\."
        # Shepherd Model Gateway (1.13.0), in front of Anthropic, with a status of 501
        r"|\AResponses endpoint not implemented\Z",
        NO_RESPONSES_API,
    ),
    # Bedrock, as a 403
    (r"\AYou don't have access to the model with the specified model", DENIED_MODEL),
    # As a 429: xAI (continuedev/continue 10373); Z.AI, behind a gateway (vercel/ai 9290). As
    # a 401 or 403: OpenCode's gateway (anomalyco/opencode 37161); OpenRouter, of a key
    # (gptme/gptme 1449); one-api
    (
        r"\AYour team \S{1,64} has either used all available credits or reached its"
        r"|\AInsufficient (balance|credits|funds)\b"
        r"|\ANo payment method\b|\AKey limit exceeded \(|\A该令牌额度已用尽",
        NO_CREDIT,
    ),
    (r"\ALoading model\b", LOADING_MODEL),
    # CLIProxyAPI, with the type of a wrong request (its issues 5931, 2986), also through
    # LiteLLM (earendil-works/pi 9736); sub2api (its issue 2250), LLM-Rosetta (its issue
    # 481); LiteLLM (1.106.2, 1.110.2), and aiohttp, which it quotes
    (
        r"\A(?:litellm\.\w{1,40}: )?(?:stream error: |empty_stream: )?"
        r"(?:(?:upstream )?stream (?:disconnected|closed|ended) (?:before|without)\b"
        r"|\S{1,40} closed the responses stream before any terminal event"
        r"|Response payload is not completed\b)",
        STREAM_CUT,
    ),
    # OpenAI; Groq
    (
        r"\AInvalid 'tools': array too long|\A'tools' : maximum number of items",
        TOO_MANY_TOOLS,
    ),
    # llama.cpp and vLLM, of a call that their model wrote, as a 500
    (
        r"\AFailed to parse input at pos \d|\Aunexpected tokens remaining in message",
        "output_parse_failed",
    ),
    # llama.cpp, of a chat that its model's template does not take, as a 500
    (r"\bJinja Exception: ", REJECTED),
    # As a 429, of trouble that all their users have: OpenRouter, of its own key at a
    # provider; Azure; Workers AI; new-api; Novita; Z.AI; Google. As a 502 of gateways, or in
    # a stream: Codex's own server (openai/codex 43368, 44441), xAI
    (
        r"\bis temporarily rate-limited upstream\b|system is currently experiencing high "
        r"demand\b|\bcapacity temporarily exceeded\b|上游负载已饱和"
        r"|\A(?:server overload\b|The service may be temporarily overloaded\b"
        r"|No capacity available for model\b|We're currently experiencing high demand\b"
        r"|(?:Our servers are|Selected model is|The model is)(?: currently)? "
        r"(?:overloaded|at capacity)\b)",
        "server_is_overloaded",
    ),
    # Ollama, LM Studio
    (
        r"\bmodel requires more system memory\b|\binsufficient system resources",
        NO_MEMORY,
    ),
    (
        # 403, code "The caller does not have permission to execute the specified
        # operation" (theopenco/llmgateway 1785)
        r"\AContent violates usage guidelines"
        # Anthropic, as a 400 (anthropics/claude-code 50008)
        r"|\AOutput blocked by content filtering policy"
        # DeepSeek, MiniMax, Moonshot: with the code of any refusal, or with none
        r"|\A(Content Exists Risk\b|(input|output) new_sensitive\b)"
        r"|\brequest was rejected because it was considered high risk\b"
        # LiteLLM's guardrails (`guardrail_hooks`), as a 400
        r"|\AViolated (.{1,40} )?(guardrail|moderation|content safety|tool) policy",
        CONTENT_FILTER,
    ),
    # OpenAI's 403 and 404 of an unverified organization can have `model_not_found`,
    # its 400 has `unsupported_value` (openai/codex 1982, continuedev/continue 9948)
    (r"\AYour organization must be verified to", UNVERIFIED),
)
"""Words that say more than the code: xAI's of a wrong key is `invalid-argument`."""


def find_certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says.

    A policy that is not known here is one all the same.
    """
    code = error.code or ""
    if code.endswith(_POLICY_SUFFIXES) and code not in SAFETY_STOPS:
        return "invalid_prompt"
    if error.is_any_of(_CUT_CODES):
        return STREAM_CUT
    text = error.beginning
    for phrase, code in _CERTAIN_PHRASES:
        match = re.search(phrase, text, re.IGNORECASE | re.DOTALL)
        numbers = match.groupdict() if match else {}
        # Others use up a minute's limit, too: then a small request may pass later.
        is_small = bool(numbers) and int(numbers["asked"]) <= int(numbers["most"])
        if match and not is_small:
            return code
    return None


def _list_codes(error: ApiError) -> list[str]:
    """Return the codes of an error, the most certain first."""
    text = error.beginning
    codes = [find_certain_cause(error), error.code, error.type]
    for phrase, code in _PHRASES:
        if re.search(phrase, text, re.IGNORECASE):
            codes.append(code)
    codes.sort(key=lambda code: code in CODES_FOR_ANYTHING)  # which say the least
    # "3" and "5" are words for many statuses, which no server sends.
    return [code for code in codes if code and len(code) > 1]
