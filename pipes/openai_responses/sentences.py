"""The sentence that a person sees for every ending.

Each says what happened and what can be done. `{code}`, `{param}` and `{status}` are
words of the API, `{model}` the id that was asked for.
"""

from collections.abc import Mapping

_PICTURE = (
    "The model's server could not use a picture of this chat{code}. Remove it, or "
    "attach it again as PNG, JPEG, WEBP or GIF of a moderate size."
)
_POLICY = (
    "OpenAI stopped this answer under its usage policies{code}. Put the question in "
    "other words."
)
_NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to look at its billing."
)
_OVERLOADED = "OpenAI is overloaded at the moment. Try again shortly."
_SERVER_ERROR = "OpenAI had an error of its own. Try again in a moment."
_RATE_LIMIT = (
    "OpenAI's rate limit for this key is reached. Wait a minute, then try again."
)

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer stops here because it reached its length "
        "limit. Raise the maximum of output tokens, or ask to continue.",
        "content_filter": "The answer stops here because OpenAI's content filter cut "
        "it off. Put the question in other words.",
        "max_messages": "The answer stops here because it reached the limit of "
        "messages in one answer. Ask to continue.",
        "cancelled": "The answer stops here because it was cancelled at OpenAI. "
        "Regenerate it, or ask to continue.",
        "steered": "The answer stops here because the request was steered away. Ask "
        "again.",
        "": "The answer is not complete{code}. Ask to continue.",
    },
    "failed": {
        "server_error": _SERVER_ERROR,
        "rate_limit_exceeded": _RATE_LIMIT,
        "slow_down": _RATE_LIMIT,
        "insufficient_quota": _NO_CREDIT,
        "credit_balance_exhausted": _NO_CREDIT,
        "organization_spend_limit_exceeded": _NO_CREDIT,
        "project_spend_limit_exceeded": _NO_CREDIT,
        "organization_usage_limit_exceeded": _NO_CREDIT,
        "project_usage_limit_exceeded": _NO_CREDIT,
        "server_is_overloaded": _OVERLOADED,
        "context_length_exceeded": "This chat is longer than the model can read. "
        "Start a new chat, or choose a model with a larger context.",
        "invalid_prompt": "OpenAI refused this prompt under its usage policies. Put "
        "the question in other words.",
        "bio_policy": _POLICY,
        "misalignment_policy_violation": _POLICY,
        "image_content_policy_violation": _POLICY,
        "data_residency_mismatch": "This model is not served in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(
            (
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
            ),
            _PICTURE,
        ),
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, or is no longer there, "
        "or this API key may not use it. Choose another model.",
        "invalid_encrypted_content": "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        "401": "OpenAI does not accept the API key. An administrator has to check "
        "API_KEY in the valves of this pipe.",
        "403": "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key's project.",
        "404": "There is no Responses API at BASE_URL. An administrator has to check "
        "BASE_URL in the valves of this pipe.",
        "407": "The proxy on the way to the model's server does not let us through. An "
        "administrator has to check PROXY in the valves of this pipe.",
        "413": "This chat is too large for the model's server. Start a new chat, or "
        "leave out large files and pictures.",
        "429": _RATE_LIMIT,
        "503": _OVERLOADED,
        "5": "OpenAI had an error of its own (HTTP {status}). Try again shortly.",
        "": "The model's server refused the request with HTTP {status}{code}{param}. "
        "An administrator finds the details in the log.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was finished. What "
        "arrived is kept; regenerate the answer, or ask to continue.",
        "lost": "The connection to the model broke, and the rest of the answer could "
        "not be fetched. What arrived is kept; regenerate the answer, or ask to "
        "continue.",
    },
    "unreadable": {
        "": "The server at BASE_URL answered, but not as the Responses API does. An "
        "administrator has to check BASE_URL in the valves of this pipe.",
    },
    "malformed": {
        "": "The model's server sent something that cannot be read, so the answer "
        "ends here. Regenerate it, or ask to continue.",
    },
    "first_event_timeout": {
        "": "The model's server accepted the request and then said nothing for too "
        "long. Try again, perhaps with less effort.",
    },
    "idle_timeout": {
        "": "The model's server fell silent in the middle of the answer. What arrived "
        "is kept; regenerate the answer, or ask to continue.",
    },
    "total_timeout": {
        "": "The answer took longer than an administrator allows. What arrived is "
        "kept; ask to continue, or choose less effort.",
    },
}
"""The sentences, by kind of ending, then by code or HTTP status; the empty one is for
all others, and "5" for every other status from 500 up. The kinds that are not here
carry the sentence of the exception that they come from."""
