"""All refusals with the API's own messages.

Wording, status, code, type: docs/reference/responses-api.md, "Refusals of input items"
and "Errors". Where the rules are, they say which words are assumed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_TABLE = """
# Rule, status, code, param; the type where it is another than `invalid_request_error`.
# Below them the message; words in braces are filled in.
# Keys, models and servers.
missing_key 401
    You didn't provide an API key. You need to provide your API key in an
    Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).
    You can obtain an API key from https://platform.openai.com/account/api-keys.
wrong_key 401 invalid_api_key
    Incorrect API key provided: {key}. You can find your API key at
    https://platform.openai.com/account/api-keys.
unknown_model 400 model_not_found model
    The requested model '{model}' does not exist.
chat_model 400 model_not_found model
    The requested model '{model}' is not supported with the Responses API.
retired_model 404 model_not_found
    The model `{model}` has been deprecated, learn more here:
    https://platform.openai.com/docs/deprecations
forbidden_model 403 model_not_found
    Project `{project}` does not have access to model `{model}`
unverified 400 unsupported_value {param}
    Your organization must be verified to {action}. Please go to:
    https://platform.openai.com/settings/organization/general and click on Verify
    Organization. If you just verified, it can take up to 15 minutes for access to
    propagate.
overload 503 server_is_overloaded - service_unavailable_error
    Our servers are currently overloaded. Please try again later.
not_json 400
    We could not parse the JSON body of your request. (HINT: This likely means you
    aren't using your HTTP library correctly. The OpenAI API expects a JSON payload,
    but what was sent was not valid JSON.)
unknown_url 404
    Invalid URL ({method} {path})
# Fields.
unknown_parameter 400 unknown_parameter {path}
    Unknown parameter: '{path}'.
missing_parameter 400 missing_required_parameter {path}
    Missing required parameter: '{path}'.
no_input 400 missing_required_parameter input
    One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must
    be provided.
type 400 invalid_type {path}
    Invalid type for '{path}': expected {expected}, but got {got} instead.
value 400 invalid_value {path}
    Invalid value: '{value}'. Supported values are: {supported}.
pattern 400 invalid_value {path}
    Invalid '{path}': string does not match pattern. Expected a string that matches
    the pattern '^{pattern}$'.
exclusive_fields 400 mutually_exclusive_parameters {path}
    Mutually exclusive parameters: '{path}.{first}' and '{path}.{second}'. Ensure
    you are only providing one of them.
empty 400 empty_string {path}
    Invalid '{path}': empty string. Expected a string with minimum length 1, but got
    an empty string instead.
empty_array 400 empty_array {path}
    Invalid '{path}': empty array. Expected an array with minimum length 1, but got
    an empty array instead.
length 400 string_above_max_length {path}
    Invalid '{path}': string too long. Expected a string with maximum length
    {limit}, but got a string with length {length} instead.
array_length 400 array_above_max_length {path}
    Invalid '{path}': array too long. Expected an array with maximum length {limit},
    but got an array with length {length} instead.
below_min 400 {kind}_below_min_value {path}
    Invalid '{path}': {kind} below minimum value. Expected a value {bound}, but got
    {got} instead.
above_max 400 {kind}_above_max_value {path}
    Invalid '{path}': {kind} above maximum value. Expected a value {bound}, but got
    {got} instead.
metadata_size 400 object_above_max_properties metadata
    Invalid 'metadata': too many properties. Expected an object with at most 16
    properties, but got an object with {count} properties instead.
json_word 400 - input
    Response input messages must contain the word 'json' in some form to use
    'text.format' of type 'json_object'.
# Parameters that depend on the model or on each other.
unsupported_parameter 400 unsupported_parameter {path}
    Unsupported parameter: '{path}' is not supported with this model.
unsupported_value 400 unsupported_value {path}
    Unsupported value: '{value}' is not supported with the '{model}' model.
    Supported values are: {supported}.
encrypted_content 400 - include
    Encrypted content is not supported with this model.
reasoning_of_plain_model 400 - input
    Reasoning input items can only be provided to a reasoning or computer use model.
    Remove reasoning items from your input and try again.
logprobs 400 unsupported_parameter top_logprobs
    logprobs are not supported with reasoning models.
stream_options 400 - stream_options
    The 'stream_options' parameter is only allowed when 'stream' is enabled.
completion_window 400 - background_options.completion_window
    The completion windows '2h' and '8h' require 'background' to be true, the
    default service tier, and no stream.
format_of_model 400 - text.format
    Invalid parameter: 'text.format' of type '{kind}' is not supported with this
    model.
service_tier 400
    Unsupported service_tier: {name}
lookaround 400
    Invalid JSON schema: regex lookaround is not supported. Found at {path}.
update_of_old_model 400 - {path}
    The 'configuration_update' item type is not supported with this model.
update_in_pro_mode 400 - input
    The 'configuration_update' item type is not supported with pro or tournament
    models.
update_with_truncation 400 - truncation
    The 'configuration_update' item type is not supported with 'truncation' set to
    'auto'.
updates_in_a_row 400 - input[{index}]
    Consecutive 'configuration_update' items are not supported.
unknown_previous 400 previous_response_not_found previous_response_id
    Previous response with id '{id}' not found.
response_id 400 invalid_value {path}
    Invalid '{path}': '{id}'. Expected an ID that begins with 'resp'.
full_context 400 context_length_exceeded input
    Your input exceeds the context window of this model. Please adjust your input
    and try again.
# Tools.
function_schema 400 invalid_function_parameters {path}[{index}].parameters
    Invalid schema for function '{name}': {message}
format_schema 400 invalid_json_schema {path}.schema
    Invalid schema for response_format '{name}': {message}
duplicate_tool 400 - tools
    Duplicate tool name found: {name}. Please provide a unique name for each tool.
duplicate_hosted_tool 400 - tools
    Duplicate tool found: {kind}.
duplicate_label 400 - tools
    Duplicate server_label found: {label}. Please provide a unique identifier for
    each MCP server.
choice_without_tools 400 - tool_choice
    Tool choice 'required' must be specified with 'tools' parameter.
choice_of_no_tool 400 - tool_choice
    Tool choice '{name}' not found in 'tools' parameter.
hosted_tool 400 - tools
    Hosted tool '{kind}' is not supported with {id}.
research_tools 400 - tools
    Deep research models only support the {names} tools.
tools_at_minimal 400 - tools
    The following tools cannot be used with reasoning.effort 'minimal': {names}.
tool_container 404 - {path}.container
    Container with id '{id}' not found.
store_count 400
    There is a maximum of {limit} vector stores allowed.
store_id 400 invalid_value {path}[{index}]
    Invalid '{path}[{index}]': string does not match pattern. Expected a string that
    matches the pattern 'vs_*'
server_address 400 invalid_value {path}.server_url
    Invalid '{path}.server_url'. Expected a valid URL, but got a value with an
    invalid format.
transparent_preview 400 invalid_value - image_generation_user_error
    Transparent background is not supported for this model.
missing_namespace 400 - {path}
    Missing namespace for {type} '{name}'. It does not exist in the default
    namespace. Round-trip the model's function_call item with its namespace field
    included.
unknown_namespace 400 - {path}
    Unknown namespace '{namespace}' for {type} '{name}'.
# Items.
item_id 400 invalid_value {path}.id
    Invalid '{path}.id': '{id}'. {message}
duplicate_item 400 - input
    Duplicate item found with id {id}. Remove duplicate items from your input and
    try again.
unknown_item 404 - input
    Item with id '{id}' not found.
unstored_item 404 - input
    Item with id '{id}' not found. Items are not persisted when `store` is set to
    false. Try again with `store` set to true, or remove this item from your input.
reasoning_without_item 400 - input
    Item '{id}' of type 'reasoning' was provided without its required following
    item.
item_without_reasoning 400 - input
    Item '{id}' of type '{kind}' was provided without its required 'reasoning' item:
    '{reasoning}'.
call_without_output 400 - input
    No tool output found for {words} {id}.
output_without_call 400 - input
    No tool call found for {words} output with call_id {id}.
open_approvals 400 - input
    The following MCP approval requests do not have an approval: {names}.
unknown_approval 400 - input
    No open MCP approval request found for the response with approval_request_id
    {id}.
unverifiable 400 invalid_encrypted_content
    The encrypted content {content} could not be verified. Reason: {reason}
# Pictures and files.
image_count 400 invalid_value input
    Too many images in request: {count}. The maximum is {limit}.
image_size 400 image_file_too_large input
    The image is too large: {count} bytes. The maximum is {limit} bytes.
image_format 400 invalid_image_format input
    The image data you provided does not represent a valid image. Please check your
    input and try again with one of the following image formats: ['image/jpeg',
    'image/png', 'image/gif', 'image/webp'].
part_value 400 invalid_value {path}
    Invalid '{path}'. Expected {wanted}, but got {got}.
file_type 400 invalid_value {path}
    Invalid file data: '{path}'. Expected a base64-encoded data URL with a valid
    file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got
    {got}. Please see
    https://platform.openai.com/docs/assistants/tools/file-search#supported-files
    for supported file types.
file_content 400 invalid_file {path}
    The file '{name}' is empty or could not be read.
files_size 400 invalid_value input
    The total size of the files in this request exceeds the maximum of 50 MB.
# Containers and uploads.
expired_container 400
    Container is expired.
expired_container_of_item 400
    Container is expired. Expected container_id: {id}.
expired_file_container 404
    Container is expired.
unknown_container 404
    Container with id '{id}' not found.
unknown_file 404
    File with id '{id}' not found.
missing_file 400 - file
    Missing required parameter: 'file'.
anchor 400 - expires_after
    Invalid anchor: '{anchor}'.
purpose 400
    '{purpose}' is not one of {purposes} - 'purpose'
empty_upload 400 - file
    The uploaded file is empty.
upload_count 400 - tools
    Too many files: a container takes {limit}.
# Stored responses.
unknown_response 404
    Response with id '{id}' not found.
cancel_of_synchronous 400
    Cannot cancel a synchronous response.
not_streamed 400 - stream
    This response was not created with 'stream' set to true.
old_response 400
    This response can no longer be streamed because it is more than 5 minutes old.
start_without_stream 400 - starting_after
    'starting_after' is only allowed when 'stream' is true.
start_type 400 invalid_type starting_after
    Invalid type for 'starting_after': expected an integer, got '{after}'
encrypted_retrieval 400 - include
    Encrypted content cannot be retrieved.
"""


class _Row(NamedTuple):
    status: int
    code: str
    param: str
    type: str
    message: str


def _read_table(text: str) -> Iterator[tuple[str, _Row]]:
    for head, words in re.findall(r"^(\w+ .*)\n((?:    .*\n)+)", text, re.MULTILINE):
        rule, status, *more = head.split()
        given = ["" if field == "-" else field for field in [*more, *"---"]]
        kind = given[2] or "invalid_request_error"
        message = " ".join(words.split())
        yield rule, _Row(int(status), given[0], given[1], kind, message)


REFUSALS: Mapping[str, _Row] = dict(_read_table(_TABLE))
"""All refusals of the API by their rules: their words, and the fields of the error.

The stand-in's own errors, such as an unknown scenario, and the refusals that a fault
makes (`simulator.faults`) are not the API's.
"""


OVERLOADED_TEXT = REFUSALS["overload"].message


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
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.type = type

    def body(self) -> dict[str, Any]:
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


def refuse_value(path: str, value: object, supported: Sequence[str]) -> Refusal:
    names = enumerate_values(supported)
    return refuse("value", path=path, value=value, supported=names)


def refuse_exclusive_fields(path: str, names: Sequence[str]) -> Refusal:
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
