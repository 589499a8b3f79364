"""The error bodies with the API's own messages.

Wording, status, code, type: docs/reference/responses-api.md, "Refusals of input items"
and "Errors".
"""

from collections.abc import Sequence
from typing import Any

ACCOUNT = "https://platform.openai.com/account/api-keys"
ORGANIZATION = "https://platform.openai.com/settings/organization/general"
OVERLOADED_TEXT = "Our servers are currently overloaded. Please try again later."


class Refusal(Exception):
    """A request that the API answers with an error."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        type: str = "invalid_request_error",
    ) -> None:
        """Keep the four fields of the body beside the status."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.type = type

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the answer."""
        return {"error": self.fields()}

    def fields(self) -> dict[str, Any]:
        """Return the four fields inside ``error``."""
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }


def enumerate_values(values: Sequence[str]) -> str:
    """Join values as the API does: ``'a', 'b', and 'c'``."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def refuse_missing_key() -> Refusal:
    """Refuse a request that carries no key."""
    return Refusal(
        "You didn't provide an API key. You need to provide your API key in an "
        "Authorization header using Bearer auth (i.e. Authorization: Bearer "
        f"YOUR_KEY). You can obtain an API key from {ACCOUNT}.",
        status=401,
    )


def refuse_wrong_key(key: str) -> Refusal:
    """Refuse a key that nobody has."""
    hidden = "*" * len(key[3:-4])
    shown = f"{key[:3]}{hidden}{key[-4:]}"
    return Refusal(
        f"Incorrect API key provided: {shown}. You can find your API key at {ACCOUNT}.",
        status=401,
        code="invalid_api_key",
    )


def refuse_unknown_model(model: str) -> Refusal:
    """Refuse an id that never named a model; recorded in November 2026."""
    return Refusal(
        f"The requested model '{model}' does not exist.",
        code="model_not_found",
        param="model",
    )


def refuse_chat_model(model: str) -> Refusal:
    """Refuse a model that only Chat Completions had (recorded)."""
    return Refusal(
        f"The requested model '{model}' is not supported with the Responses API.",
        code="model_not_found",
        param="model",
    )


def refuse_retired_model(model: str) -> Refusal:
    """Refuse an id whose model has been shut down."""
    return Refusal(
        f"The model `{model}` has been deprecated, learn more here: "
        "https://platform.openai.com/docs/deprecations",
        status=404,
        code="model_not_found",
    )


def refuse_forbidden_model(project: str, model: str) -> Refusal:
    """Refuse a model that the key's project may not use."""
    return Refusal(
        f"Project `{project}` does not have access to model `{model}`",
        status=403,
        code="model_not_found",
    )


def refuse_unknown_parameter(path: str) -> Refusal:
    """Refuse a field the API does not have."""
    return Refusal(
        f"Unknown parameter: '{path}'.", code="unknown_parameter", param=path
    )


def refuse_missing_parameter(path: str) -> Refusal:
    """Refuse the absence of a required field."""
    return Refusal(
        f"Missing required parameter: '{path}'.",
        code="missing_required_parameter",
        param=path,
    )


def refuse_type(path: str, expected: str, got: str) -> Refusal:
    """Refuse a value of the wrong JSON type."""
    return Refusal(
        f"Invalid type for '{path}': expected {expected}, but got {got} instead.",
        code="invalid_type",
        param=path,
    )


def refuse_value(path: str, value: object, supported: Sequence[str]) -> Refusal:
    """Refuse a value outside of a closed list."""
    return Refusal(
        f"Invalid value: '{value}'. Supported values are: "
        f"{enumerate_values(supported)}.",
        code="invalid_value",
        param=path,
    )


def refuse_pattern(path: str, pattern: str) -> Refusal:
    """Refuse a string that is not of the form it has to have."""
    return Refusal(
        f"Invalid '{path}': string does not match pattern. Expected a string that "
        f"matches the pattern '^{pattern}$'.",
        code="invalid_value",
        param=path,
    )


def refuse_exclusive_fields(path: str, names: Sequence[str]) -> Refusal:
    """Refuse the first two of the fields of which there may be one."""
    return Refusal(
        f"Mutually exclusive parameters: '{path}.{names[0]}' and '{path}.{names[1]}'. "
        "Ensure you are only providing one of them.",
        code="mutually_exclusive_parameters",
        param=path,
    )


def refuse_unsupported_parameter(path: str) -> Refusal:
    """Refuse a parameter that this model rejects."""
    return Refusal(
        f"Unsupported parameter: '{path}' is not supported with this model.",
        code="unsupported_parameter",
        param=path,
    )


def refuse_unsupported_value(
    path: str, value: str, model: str, supported: Sequence[str]
) -> Refusal:
    """Refuse a value that this model rejects."""
    return Refusal(
        f"Unsupported value: '{value}' is not supported with the '{model}' model. "
        f"Supported values are: {enumerate_values(supported)}.",
        code="unsupported_value",
        param=path,
    )


def refuse_unverified(action: str, param: str) -> Refusal:
    """Refuse what only a verified organization may have."""
    return Refusal(
        f"Your organization must be verified to {action}. Please go to: "
        f"{ORGANIZATION} and click on Verify Organization. If you just verified, it "
        "can take up to 15 minutes for access to propagate.",
        code="unsupported_value",
        param=param,
    )


def refuse_length(path: str, limit: int, length: int) -> Refusal:
    """Refuse a string above its maximum length."""
    return Refusal(
        f"Invalid '{path}': string too long. Expected a string with maximum length "
        f"{limit}, but got a string with length {length} instead.",
        code="string_above_max_length",
        param=path,
    )


def refuse_empty(path: str) -> Refusal:
    """Refuse a string that must not be empty."""
    return Refusal(
        f"Invalid '{path}': empty string. Expected a string with minimum length 1, but "
        "got an empty string instead.",
        code="empty_string",
        param=path,
    )


def refuse_empty_array(path: str) -> Refusal:
    """Refuse a list that must not be empty."""
    return Refusal(
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, but "
        "got an empty array instead.",
        code="empty_array",
        param=path,
    )


def refuse_array_length(path: str, limit: int, length: int) -> Refusal:
    """Refuse a list above its maximum length."""
    return Refusal(
        f"Invalid '{path}': array too long. Expected an array with maximum length "
        f"{limit}, but got an array with length {length} instead.",
        code="array_above_max_length",
        param=path,
    )


def refuse_range(path: str, kind: str, bound: str, got: object) -> Refusal:
    """Refuse a number beyond its bound, such as ``>= 16``."""
    below = bound.startswith(">")
    side = "below minimum" if below else "above maximum"
    return Refusal(
        f"Invalid '{path}': {kind} {side} value. Expected a value {bound}, but got "
        f"{got} instead.",
        code=f"{kind}_{'below_min' if below else 'above_max'}_value",
        param=path,
    )


def check_range(
    path: str, kind: str, value: float | None, low: float, high: float | None
) -> None:
    """Raise the refusal of a number outside its range; None means no upper end."""
    if value is None:
        return
    if value < low:
        raise refuse_range(path, kind, f">= {low}", value)
    if high is not None and value > high:
        raise refuse_range(path, kind, f"<= {high}", value)


def refuse_overload() -> Refusal:
    """Refuse because the servers have too much to do."""
    return Refusal(
        OVERLOADED_TEXT,
        status=503,
        code="server_is_overloaded",
        type="service_unavailable_error",
    )
