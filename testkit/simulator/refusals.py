"""All refusals with the API's own messages.

Wording, status, code, type: docs/reference/responses-api.md, "Refusals of input items"
and "Errors". Where the rules are, they say which words are assumed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OVERLOADED_TEXT = "Our servers are currently overloaded. Please try again later."


@dataclass(frozen=True)
class _Row:
    """A refusal; words in braces are filled in."""

    message: str
    code: str = ""
    param: str = ""
    status: int = 400
    type: str = "invalid_request_error"


REFUSALS: Mapping[str, _Row] = {
    # Keys, models and servers.
    "missing_key": _Row(
        "You didn't provide an API key. You need to provide your API key in an "
        "Authorization header using Bearer auth (i.e. Authorization: Bearer "
        "YOUR_KEY). You can obtain an API key from "
        "https://platform.openai.com/account/api-keys.",
        status=401,
    ),
    "wrong_key": _Row(
        "Incorrect API key provided: {key}. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
        code="invalid_api_key",
        status=401,
    ),
    "unknown_model": _Row(
        "The requested model '{model}' does not exist.",
        code="model_not_found",
        param="model",
    ),
    "chat_model": _Row(
        "The requested model '{model}' is not supported with the Responses API.",
        code="model_not_found",
        param="model",
    ),
    "retired_model": _Row(
        "The model `{model}` has been deprecated, learn more here: "
        "https://platform.openai.com/docs/deprecations",
        code="model_not_found",
        status=404,
    ),
    "forbidden_model": _Row(
        "Project `{project}` does not have access to model `{model}`",
        code="model_not_found",
        status=403,
    ),
    "unverified": _Row(
        "Your organization must be verified to {action}. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on "
        "Verify Organization. If you just verified, it can take up to 15 minutes "
        "for access to propagate.",
        code="unsupported_value",
        param="{param}",
    ),
    "overload": _Row(
        OVERLOADED_TEXT,
        code="server_is_overloaded",
        status=503,
        type="service_unavailable_error",
    ),
    "not_json": _Row(
        "We could not parse the JSON body of your request. (HINT: This likely "
        "means you aren't using your HTTP library correctly. The OpenAI API "
        "expects a JSON payload, but what was sent was not valid JSON.)"
    ),
    "unknown_url": _Row("Invalid URL ({method} {path})", status=404),
    # Fields.
    "unknown_parameter": _Row(
        "Unknown parameter: '{path}'.", code="unknown_parameter", param="{path}"
    ),
    "missing_parameter": _Row(
        "Missing required parameter: '{path}'.",
        code="missing_required_parameter",
        param="{path}",
    ),
    "no_input": _Row(
        'One of "input" or "previous_response_id" or \'prompt\' or '
        "'conversation_id' must be provided.",
        code="missing_required_parameter",
        param="input",
    ),
    "type": _Row(
        "Invalid type for '{path}': expected {expected}, but got {got} instead.",
        code="invalid_type",
        param="{path}",
    ),
    "value": _Row(
        "Invalid value: '{value}'. Supported values are: {supported}.",
        code="invalid_value",
        param="{path}",
    ),
    "pattern": _Row(
        "Invalid '{path}': string does not match pattern. Expected a string that "
        "matches the pattern '^{pattern}$'.",
        code="invalid_value",
        param="{path}",
    ),
    "exclusive_fields": _Row(
        "Mutually exclusive parameters: '{path}.{first}' and '{path}.{second}'. "
        "Ensure you are only providing one of them.",
        code="mutually_exclusive_parameters",
        param="{path}",
    ),
    "empty": _Row(
        "Invalid '{path}': empty string. Expected a string with minimum length "
        "1, but got an empty string instead.",
        code="empty_string",
        param="{path}",
    ),
    "empty_array": _Row(
        "Invalid '{path}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead.",
        code="empty_array",
        param="{path}",
    ),
    "length": _Row(
        "Invalid '{path}': string too long. Expected a string with maximum "
        "length {limit}, but got a string with length {length} instead.",
        code="string_above_max_length",
        param="{path}",
    ),
    "array_length": _Row(
        "Invalid '{path}': array too long. Expected an array with maximum length "
        "{limit}, but got an array with length {length} instead.",
        code="array_above_max_length",
        param="{path}",
    ),
    "below_min": _Row(
        "Invalid '{path}': {kind} below minimum value. Expected a value {bound}, "
        "but got {got} instead.",
        code="{kind}_below_min_value",
        param="{path}",
    ),
    "above_max": _Row(
        "Invalid '{path}': {kind} above maximum value. Expected a value {bound}, "
        "but got {got} instead.",
        code="{kind}_above_max_value",
        param="{path}",
    ),
    "metadata_size": _Row(
        "Invalid 'metadata': too many properties. Expected an object with at "
        "most 16 properties, but got an object with {count} properties instead.",
        code="object_above_max_properties",
        param="metadata",
    ),
    "json_word": _Row(
        "Response input messages must contain the word 'json' in some form to "
        "use 'text.format' of type 'json_object'.",
        param="input",
    ),
    # Parameters that depend on the model or on each other.
    "unsupported_parameter": _Row(
        "Unsupported parameter: '{path}' is not supported with this model.",
        code="unsupported_parameter",
        param="{path}",
    ),
    "unsupported_value": _Row(
        "Unsupported value: '{value}' is not supported with the '{model}' model. "
        "Supported values are: {supported}.",
        code="unsupported_value",
        param="{path}",
    ),
    "encrypted_content": _Row(
        "Encrypted content is not supported with this model.", param="include"
    ),
    "reasoning_of_plain_model": _Row(
        "Reasoning input items can only be provided to a reasoning or computer "
        "use model. Remove reasoning items from your input and try again.",
        param="input",
    ),
    "logprobs": _Row(
        "logprobs are not supported with reasoning models.",
        code="unsupported_parameter",
        param="top_logprobs",
    ),
    "stream_options": _Row(
        "The 'stream_options' parameter is only allowed when 'stream' is " "enabled.",
        param="stream_options",
    ),
    "completion_window": _Row(
        "The completion windows '2h' and '8h' require 'background' to be true, the "
        "default service tier, and no stream.",
        param="background_options.completion_window",
    ),
    "format_of_model": _Row(
        "Invalid parameter: 'text.format' of type '{kind}' is not supported with "
        "this model.",
        param="text.format",
    ),
    "service_tier": _Row("Unsupported service_tier: {name}"),
    "lookaround": _Row(
        "Invalid JSON schema: regex lookaround is not supported. Found at " "{path}."
    ),
    "update_of_old_model": _Row(
        "The 'configuration_update' item type is not supported with this model.",
        param="{path}",
    ),
    "update_in_pro_mode": _Row(
        "The 'configuration_update' item type is not supported with pro or "
        "tournament models.",
        param="input",
    ),
    "update_with_truncation": _Row(
        "The 'configuration_update' item type is not supported with 'truncation' "
        "set to 'auto'.",
        param="truncation",
    ),
    "updates_in_a_row": _Row(
        "Consecutive 'configuration_update' items are not supported.",
        param="input[{index}]",
    ),
    "unknown_previous": _Row(
        "Previous response with id '{id}' not found.",
        code="previous_response_not_found",
        param="previous_response_id",
    ),
    "response_id": _Row(
        "Invalid '{path}': '{id}'. Expected an ID that begins with 'resp'.",
        code="invalid_value",
        param="{path}",
    ),
    "full_context": _Row(
        "Your input exceeds the context window of this model. Please adjust your "
        "input and try again.",
        code="context_length_exceeded",
        param="input",
    ),
    # Tools.
    "function_schema": _Row(
        "Invalid schema for function '{name}': {message}",
        code="invalid_function_parameters",
        param="{path}[{index}].parameters",
    ),
    "format_schema": _Row(
        "Invalid schema for response_format '{name}': {message}",
        code="invalid_json_schema",
        param="{path}.schema",
    ),
    "duplicate_tool": _Row(
        "Duplicate tool name found: {name}. Please provide a unique name for "
        "each tool.",
        param="tools",
    ),
    "duplicate_hosted_tool": _Row("Duplicate tool found: {kind}.", param="tools"),
    "duplicate_label": _Row(
        "Duplicate server_label found: {label}. Please provide a unique "
        "identifier for each MCP server.",
        param="tools",
    ),
    "choice_without_tools": _Row(
        "Tool choice 'required' must be specified with 'tools' parameter.",
        param="tool_choice",
    ),
    "choice_of_no_tool": _Row(
        "Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
    ),
    "hosted_tool": _Row(
        "Hosted tool '{kind}' is not supported with {id}.", param="tools"
    ),
    "research_tools": _Row(
        "Deep research models only support the {names} tools.", param="tools"
    ),
    "tools_at_minimal": _Row(
        "The following tools cannot be used with reasoning.effort 'minimal': "
        "{names}.",
        param="tools",
    ),
    "tool_container": _Row(
        "Container with id '{id}' not found.", param="{path}.container", status=404
    ),
    "store_count": _Row("There is a maximum of {limit} vector stores allowed."),
    "store_id": _Row(
        "Invalid '{path}[{index}]': string does not match pattern. Expected a "
        "string that matches the pattern 'vs_*'",
        code="invalid_value",
        param="{path}[{index}]",
    ),
    "server_address": _Row(
        "Invalid '{path}.server_url'. Expected a valid URL, but got a value with "
        "an invalid format.",
        code="invalid_value",
        param="{path}.server_url",
    ),
    "transparent_preview": _Row(
        "Transparent background is not supported for this model.",
        code="invalid_value",
        type="image_generation_user_error",
    ),
    "missing_namespace": _Row(
        "Missing namespace for {type} '{name}'. It does not exist in the default "
        "namespace. Round-trip the model's function_call item with its namespace "
        "field included.",
        param="{path}",
    ),
    "unknown_namespace": _Row(
        "Unknown namespace '{namespace}' for {type} '{name}'.", param="{path}"
    ),
    # Items.
    "item_id": _Row(
        "Invalid '{path}.id': '{id}'. {message}",
        code="invalid_value",
        param="{path}.id",
    ),
    "duplicate_item": _Row(
        "Duplicate item found with id {id}. Remove duplicate items from your "
        "input and try again.",
        param="input",
    ),
    "unknown_item": _Row("Item with id '{id}' not found.", param="input", status=404),
    "unstored_item": _Row(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to "
        "false. Try again with `store` set to true, or remove this item from your "
        "input.",
        param="input",
        status=404,
    ),
    "reasoning_without_item": _Row(
        "Item '{id}' of type 'reasoning' was provided without its required "
        "following item.",
        param="input",
    ),
    "item_without_reasoning": _Row(
        "Item '{id}' of type '{kind}' was provided without its required "
        "'reasoning' item: '{reasoning}'.",
        param="input",
    ),
    "call_without_output": _Row(
        "No tool output found for {words} {id}.", param="input"
    ),
    "output_without_call": _Row(
        "No tool call found for {words} output with call_id {id}.", param="input"
    ),
    "open_approvals": _Row(
        "The following MCP approval requests do not have an approval: {names}.",
        param="input",
    ),
    "unknown_approval": _Row(
        "No open MCP approval request found for the response with "
        "approval_request_id {id}.",
        param="input",
    ),
    "unverifiable": _Row(
        "The encrypted content {content} could not be verified. Reason: {reason}",
        code="invalid_encrypted_content",
    ),
    # Pictures and files.
    "image_count": _Row(
        "Too many images in request: {count}. The maximum is {limit}.",
        code="invalid_value",
        param="input",
    ),
    "image_size": _Row(
        "The image is too large: {count} bytes. The maximum is {limit} bytes.",
        code="image_file_too_large",
        param="input",
    ),
    "image_format": _Row(
        "The image data you provided does not represent a valid image. Please "
        "check your input and try again with one of the following image formats: "
        "['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
        code="invalid_image_format",
        param="input",
    ),
    "part_value": _Row(
        "Invalid '{path}'. Expected {wanted}, but got {got}.",
        code="invalid_value",
        param="{path}",
    ),
    "file_type": _Row(
        "Invalid file data: '{path}'. Expected a base64-encoded data URL with a "
        "valid file MIME type (e.g. "
        "'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got {got}. Please "
        "see "
        "https://platform.openai.com/docs/assistants/tools/file-search#supported-files "
        "for supported file types.",
        code="invalid_value",
        param="{path}",
    ),
    "file_content": _Row(
        "The file '{name}' is empty or could not be read.",
        code="invalid_file",
        param="{path}",
    ),
    "files_size": _Row(
        "The total size of the files in this request exceeds the maximum of 50 " "MB.",
        code="invalid_value",
        param="input",
    ),
    # Containers and uploads.
    "expired_container": _Row("Container is expired."),
    "expired_container_of_item": _Row(
        "Container is expired. Expected container_id: {id}."
    ),
    "expired_file_container": _Row("Container is expired.", status=404),
    "unknown_container": _Row("Container with id '{id}' not found.", status=404),
    "unknown_file": _Row("File with id '{id}' not found.", status=404),
    "missing_file": _Row("Missing required parameter: 'file'.", param="file"),
    "anchor": _Row("Invalid anchor: '{anchor}'.", param="expires_after"),
    "purpose": _Row("'{purpose}' is not one of {purposes} - 'purpose'"),
    "empty_upload": _Row("The uploaded file is empty.", param="file"),
    "upload_count": _Row("Too many files: a container takes {limit}.", param="tools"),
    # Stored responses.
    "unknown_response": _Row("Response with id '{id}' not found.", status=404),
    "cancel_of_synchronous": _Row("Cannot cancel a synchronous response."),
    "not_streamed": _Row(
        "This response was not created with 'stream' set to true.", param="stream"
    ),
    "old_response": _Row(
        "This response can no longer be streamed because it is more than 5 "
        "minutes old."
    ),
    "start_without_stream": _Row(
        "'starting_after' is only allowed when 'stream' is true.",
        param="starting_after",
    ),
    "start_type": _Row(
        "Invalid type for 'starting_after': expected an integer, got '{after}'",
        code="invalid_type",
        param="starting_after",
    ),
    "encrypted_retrieval": _Row(
        "Encrypted content cannot be retrieved.", param="include"
    ),
}
"""All refusals of the API by their rules: their words, and the fields of the error.

The stand-in's own errors, such as an unknown scenario, and the refusals that a fault
makes (`simulator.faults`) are not the API's.
"""


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
        """Keep the status and the four fields of the body."""
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


def refuse(rule: str, /, **words: object) -> Refusal:
    """Return the refusal of a rule, with the words of this case."""
    row = REFUSALS[rule]
    return Refusal(
        row.message.format(**words),
        status=row.status,
        code=row.code.format(**words) or None,
        param=row.param.format(**words) or None,
        type=row.type,
    )


def refuse_wrong_key(key: str) -> Refusal:
    """Refuse an unknown key; it is not repeated whole."""
    hidden = "*" * len(key[3:-4])
    return refuse("wrong_key", key=f"{key[:3]}{hidden}{key[-4:]}")


def refuse_value(path: str, value: object, supported: Sequence[str]) -> Refusal:
    """Refuse a value outside of a closed list."""
    names = enumerate_values(supported)
    return refuse("value", path=path, value=value, supported=names)


def refuse_exclusive_fields(path: str, names: Sequence[str]) -> Refusal:
    """Refuse the first two of the fields of which there may be one."""
    return refuse("exclusive_fields", path=path, first=names[0], second=names[1])


def refuse_unsupported_value(
    path: str, value: str, model: str, supported: Sequence[str]
) -> Refusal:
    """Refuse a value that this model rejects."""
    names = enumerate_values(supported)
    return refuse(
        "unsupported_value", path=path, value=value, model=model, supported=names
    )


def refuse_range(path: str, kind: str, bound: str, got: object) -> Refusal:
    """Refuse a number beyond its bound, such as ``>= 16``."""
    rule = "below_min" if bound.startswith(">") else "above_max"
    return refuse(rule, path=path, kind=kind, bound=bound, got=got)


def check_length(value: str | None, limit: int, path: str) -> None:
    """Raise the refusal of a text that is too long."""
    if value is not None and len(value) > limit:
        raise refuse("length", path=path, limit=limit, length=len(value))


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
