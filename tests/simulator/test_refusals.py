"""What the simulator refuses, and in which words: one table of requests and error bodies.

`scripts/live_cases` is the other half: what the real API can be asked for. Each row is a
rule that no case of it meets. `test_live.py` holds those.
"""

from typing import Any

import pytest

from chats.pictures import BMP, GIF, JPEG, MOVING_GIF, PDF, PIXEL, PNG, WEBP, data_url
from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import RequestOrigin, Responder
from simulator.refusals import Refusal

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "Hello"}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "x"}
SAID: Json = {"type": "output_text", "text": "x"}
UPDATE: Json = {"type": "configuration_update", "reasoning": {"effort": "low"}}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION: Json = {
    "type": "function",
    "name": "f",
    "parameters": SCHEMA,
    "strict": False,
}
OF_CHAT: Json = {"type": "function", "name": "f", "function": FUNCTION}
ADDED: Json = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}
FORMAT: Json = {"type": "json_schema", "name": "a", "schema": SCHEMA}
SERVER: Json = {"type": "mcp", "server_label": "a", "server_url": "https://a.example"}
DRIVE: Json = {"type": "mcp", "server_label": "a", "connector_id": "connector_dropbox"}
ASKED: Json = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "a",
    "name": "now",
    "arguments": "{}",
}
ANSWERED: Json = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
SEARCHED: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}
SEARCH: Json = {"type": "web_search"}
STORES: Json = {"type": "file_search", "vector_store_ids": ["vs_1"]}
RUN: Json = {"type": "code_interpreter", "container": {"type": "auto"}}
DRAW: Json = {"type": "image_generation"}
PICTURE: Json = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
FILE: Json = {
    "type": "input_file",
    "filename": "a.pdf",
    "file_data": data_url(PDF, "application/pdf"),
}
NEW = "gpt-6.1-sol"


def asking(*items: Json, **fields: Any) -> Json:
    return {"input": [*items, USER], **fields}


def at(model: str, **fields: Any) -> Json:
    return {"model": model, **fields}


def saying(*parts: Json) -> Json:
    return {"input": [{"role": "user", "content": [*parts]}]}


UNKNOWN = "unknown_parameter, {0}: Unknown parameter: '{0}'."
MISSING = "missing_required_parameter, {0}: Missing required parameter: '{0}'."
TYPE = "invalid_type, {0}: Invalid type for '{0}': expected {1}, but got {2} instead."
VALUE = "invalid_value, {0}: Invalid value: '{1}'. Supported values are: {2}."
TOO_LONG = (
    "string_above_max_length, {0}: Invalid '{0}': string too long. Expected a string with "
    "maximum length {1}, but got a string with length {2} instead."
)
TOO_LOW = (
    "integer_below_min_value, {0}: Invalid '{0}': integer below minimum value. Expected a "
    "value >= {1}, but got {2} instead."
)
TOO_HIGH = (
    "integer_above_max_value, {0}: Invalid '{0}': integer above maximum value. Expected a "
    "value <= {1}, but got {2} instead."
)
TOO_MANY = (
    "array_above_max_length, {0}: Invalid '{0}': array too long. Expected an array with "
    "maximum length {1}, but got an array with length {2} instead."
)
PATTERN = (
    "invalid_value, {0}: Invalid '{0}': string does not match pattern. Expected a string "
    "that matches the pattern '{1}'."
)
FILE_DATA = (
    "invalid_value, {0}: Invalid file data: '{0}'. Expected a base64-encoded data URL with "
    "a valid file MIME type (e.g. 'data:text/plain;base64,SGVsbG8sIFdvcmxkIQ=='), but got "
    "{1}. Please see https://platform.openai.com/docs/assistants/tools/"
    "file-search#supported-files for supported file types."
)
UNSUPPORTED = (
    "unsupported_parameter, {0}: Unsupported parameter: '{0}' is not supported with this "
    "model."
)
OF_MODEL = (
    "unsupported_value, {0}: Unsupported value: '{1}' is not supported with the '{2}' "
    "model. Supported values are: {3}."
)
REFUSED: dict[str, Json] = {
    # Fields and their types.
    UNKNOWN.format("messages"): {"messages": []},
    UNKNOWN.format("input[0].action.sources"): asking(
        {**SEARCHED, "action": {**SEARCHED["action"], "sources": []}}
    ),
    UNKNOWN.format("tools[0].mood"): {
        "tools": [{"type": "custom", "name": "n", "mood": 1}]
    },
    MISSING.format("input[0].call_id"): asking(
        {"type": "function_call_output", "output": ""}
    ),
    MISSING.format("input[0].type"): asking({"content": "x"}),
    MISSING.format("input[0].content[0].type"): saying({"text": "x"}),
    MISSING.format("tools[0].type"): {"tools": [{"name": "f"}]},
    TYPE.format("temperature", "a decimal", "a string"): {"temperature": "hot"},
    TYPE.format("input", "one of an array or a string", "an integer"): {"input": 5},
    TYPE.format("input[0]", "an object", "a string"): {"input": ["x"]},
    TYPE.format("input[0].arguments", "a string", "an object"): asking(
        {**CALL, "arguments": {}}
    ),
    TYPE.format("input[0].content", "one of a string or an array", "null"): asking(
        {"role": "user", "content": None}
    ),
    VALUE.format("tool_choice", "perhaps", "'none', 'auto', and 'required'"): {
        "tool_choice": "perhaps"
    },
    VALUE.format(
        "input[0].content[0]", "text", "'input_text', 'input_image', and 'input_file'"
    ): saying({"type": "text", "text": "x"}),
    MISSING.format("input[0].content[0].text"): asking(
        {"role": "assistant", "content": [{"type": "output_text"}]}
    ),
    # Limits.
    TOO_LONG.format("metadata.k", "512", "513"): {"metadata": {"k": "v" * 513}},
    TOO_LONG.format("metadata", "64", "65"): {"metadata": {"k" * 65: "v"}},
    TOO_LOW.format("max_tool_calls", 1, 0): {"max_tool_calls": 0},
    TOO_LONG.format("instructions", "10485760", "10485761"): {
        "instructions": "x" * 10_485_761
    },
    TOO_LONG.format("input[0].arguments", "1048576", "1048577"): asking(
        {**CALL, "arguments": "x" * 1_048_577}
    ),
    TOO_MANY.format("input", 16384, 16385): at("gpt-4.1", input=[USER] * 16_385),
    TOO_LOW.format("context_management[0].compact_threshold", 1000, 999): {
        "context_management": [{"type": "compaction", "compact_threshold": 999}]
    },
    VALUE.format("context_management[0].type", "forgetting", "'compaction'"): {
        "context_management": [{"type": "forgetting"}]
    },
    MISSING.format("context_management[0].type"): {"context_management": [{}]},
    "context_length_exceeded, input: Your input exceeds the context window of this "
    "model. Please adjust your input and try again.": at(
        "gpt-5.2", input="word " * 250_000
    ),
    # Models.
    "404 model_not_found, None: The model `gpt-5-codex` has been deprecated, learn "
    "more here: https://platform.openai.com/docs/deprecations": {
        "model": "gpt-5-codex"
    },
    UNSUPPORTED.format("temperature"): {"model": "o3", "temperature": 0.5},
    UNSUPPORTED.format("top_p"): {"model": "gpt-6.2-sol", "top_p": 0.9},
    UNSUPPORTED.format("include[message.output_text.logprobs]"): {
        "include": ["message.output_text.logprobs"]
    },
    "unsupported_parameter, top_logprobs: logprobs are not supported with reasoning"
    " models.": {"top_logprobs": 2},
    OF_MODEL.format(
        "reasoning.effort", "low", "gpt-5.2-pro", "'medium', 'high', and 'xhigh'"
    ): {"model": "gpt-5.2-pro", "reasoning": {"effort": "low"}},
    UNSUPPORTED.format("reasoning.effort"): at("gpt-4.1", reasoning={"effort": "low"}),
    "None, include: Encrypted content is not supported with this model.": at(
        "gpt-4.1", include=["reasoning.encrypted_content"]
    ),
    OF_MODEL.format("text.verbosity", "low", "gpt-4.1", "'medium'"): at(
        "gpt-4.1", text={"verbosity": "low"}
    ),
    "None, input: Reasoning input items can only be provided to a reasoning or "
    "computer use model. Remove reasoning items from your input and try again.": {
        "model": "gpt-4.1",
        **asking({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAx"}),
    },
    OF_MODEL.format(
        "reasoning.summary", "concise", "gpt-5", "'auto' and 'detailed'"
    ): at("gpt-5", reasoning={"summary": "concise"}),
    UNSUPPORTED.format("reasoning.mode"): at("gpt-5.2", reasoning={"mode": "pro"}),
    OF_MODEL.format("reasoning.mode", "pro", "gpt-6.2-sol", "'standard'"): at(
        "gpt-6.2-sol", reasoning={"mode": "pro"}
    ),
    UNSUPPORTED.format("reasoning.context"): at(
        "gpt-5.2", reasoning={"context": "all_turns"}
    ),
    UNSUPPORTED.format("prompt_cache_options"): at(
        "gpt-5.2", prompt_cache_options={"ttl": "30m"}
    ),
    OF_MODEL.format("prompt_cache_retention", "in_memory", "gpt-5.6-sol", "'24h'"): {
        "prompt_cache_retention": "in_memory"
    },
    "invalid_value, prompt_cache_options.comparison_response_id: Invalid "
    "'prompt_cache_options.comparison_response_id': 'msg_1'. Expected an ID that "
    "begins with 'resp'.": {
        "prompt_cache_options": {"comparison_response_id": "msg_1"}
    },
    "previous_response_not_found, previous_response_id: Previous response with id "
    "'resp_1' not found.": {"previous_response_id": "resp_1"},
    "None, None: Unsupported service_tier: ultrafast": {"service_tier": "ultrafast"},
    "None, text.format: Invalid parameter: 'text.format' of type 'json_schema' is "
    "not supported with this model.": at("gpt-5.2-pro", text={"format": FORMAT}),
    "None, tools: Hosted tool 'web_search' is not supported with gpt-5-nano.": at(
        "gpt-5-nano", tools=[SEARCH]
    ),
    "None, tools: The following tools cannot be used with reasoning.effort "
    "'minimal': web_search.": at(
        "gpt-5", reasoning={"effort": "minimal"}, tools=[SEARCH]
    ),
    "unsupported_value, reasoning.summary: Your organization must be verified to "
    "generate reasoning summaries. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify "
    "Organization. If you just verified, it can take up to 15 minutes for access to"
    " propagate.": {"profile": "unverified", "reasoning": {"summary": "auto"}},
    UNSUPPORTED.format("context_management"): {
        "profile": "azure",
        "context_management": [{"type": "compaction"}],
    },
    UNKNOWN.format("background_options"): {
        "profile": "azure",
        "background_options": {"completion_window": "soonest"},
    },
    # Tools.
    "None, tools: Duplicate tool found: image_generation.": {"tools": [DRAW, DRAW]},
    "None, tools: Duplicate tool name found: f. Please provide a unique name for "
    "each tool.": {"tools": [FUNCTION], **asking(ADDED)},
    "None, tool_choice: Tool choice 'function' not found in 'tools' parameter.": {
        "model": "gpt-5.5",
        "tool_choice": {"type": "function", "name": "f"},
        **asking(ADDED),
    },
    "empty_array, tool_choice.tools: Invalid 'tool_choice.tools': empty array. "
    "Expected an array with minimum length 1, but got an empty array instead.": {
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        "tools": [FUNCTION],
    },
    PATTERN.format("tools[0].name", "^[a-zA-Z0-9_-]+$"): {
        "tools": [{**FUNCTION, "name": "a b"}]
    },
    "invalid_function_parameters, tools[0].parameters: Invalid schema for function "
    "'f': None is not of type 'object', 'boolean'.": {
        "tools": [{**FUNCTION, "parameters": {**SCHEMA, "properties": {"a": None}}}]
    },
    "invalid_function_parameters, tools[0].parameters: Invalid schema for function "
    "'f': In context=(), 'required' is required to be supplied and to be an array "
    "including every key in properties. Missing 'a'.": {
        "tools": [
            {
                **FUNCTION,
                "strict": True,
                "parameters": {**SCHEMA, "additionalProperties": False},
            }
        ]
    },
    TOO_HIGH.format("tools[0].max_num_results", 50, 51): {
        "tools": [{**STORES, "max_num_results": 51}]
    },
    "None, None: There is a maximum of 2 vector stores allowed.": {
        "tools": [{**STORES, "vector_store_ids": ["vs_1", "vs_2", "vs_3"]}]
    },
    PATTERN.format("tools[0].user_location.country", "^[A-Za-z]{2}$"): {
        "tools": [
            {**SEARCH, "user_location": {"type": "approximate", "country": "Bern"}}
        ]
    },
    PATTERN.format("tools[0].filters.allowed_domains[0]", r"^[^\s/:]+(?:/\S*)?$"): {
        "tools": [{**SEARCH, "filters": {"allowed_domains": ["https://a.org"]}}]
    },
    TOO_MANY.format("tools[0].filters.blocked_domains", 100, 101): {
        "tools": [{**SEARCH, "filters": {"blocked_domains": ["a.org"] * 101}}]
    },
    VALUE.format("tools[0].return_token_budget", "much", "'default' and 'unlimited'"): {
        "tools": [{**SEARCH, "return_token_budget": "much"}]
    },
    "None, tools: Too many files: a container takes 50.": {
        "tools": [{**RUN, "container": {"type": "auto", "file_ids": ["file-1"] * 51}}]
    },
    TOO_HIGH.format("tools[0].output_compression", 100, 101): {
        "tools": [{**DRAW, "output_compression": 101}]
    },
    "404 model_not_found, None: The model `gpt-image-1` has been deprecated, learn "
    "more here: https://platform.openai.com/docs/deprecations": {
        "tools": [{**DRAW, "model": "gpt-image-1"}]
    },
    "image_generation_user_error invalid_value, None: Transparent background is not"
    " supported for this model.": {
        "tools": [{**DRAW, "model": "gpt-image-2", "background": "transparent"}]
    },
    PATTERN.format("tools[0].server_label", "^[a-zA-Z][a-zA-Z0-9_-]{0,63}$"): {
        "tools": [{**SERVER, "server_label": "1st"}]
    },
    "mutually_exclusive_parameters, tools[0]: Mutually exclusive parameters: "
    "'tools[0].server_url' and 'tools[0].connector_id'. Ensure you are only "
    "providing one of them.": {
        "tools": [{**SERVER, **DRIVE, "authorization": "token"}]
    },
    "invalid_value, tools[0].server_url: Invalid 'tools[0].server_url'. Expected a "
    "valid URL, but got a value with an invalid format.": {
        "tools": [{**SERVER, "server_url": "a.example"}]
    },
    MISSING.format("tools[0].authorization"): {"tools": [DRIVE]},
    MISSING.format("tools[0].server_url"): {
        "tools": [{"type": "mcp", "server_label": "a"}]
    },
    VALUE.format("tools[0].require_approval", "sometimes", "'always' and 'never'"): {
        "tools": [{**SERVER, "require_approval": "sometimes"}]
    },
    TYPE.format("tools[0].allowed_tools", "one of an array or an object", "a string"): {
        "tools": [{**SERVER, "allowed_tools": "now"}]
    },
    # Items.
    "None, input: No tool call found for function call output with call_id c.": asking(
        OUTPUT, CALL
    ),
    "None, input: No tool call found for custom tool call output with call_id c.": asking(
        CALL, {**OUTPUT, "type": "custom_tool_call_output"}
    ),
    "404 None, input: Item with id 'rs_1' not found.": {
        "store": True,
        **asking({"type": "item_reference", "id": "rs_1"}),
    },
    "404 None, input: Item with id 'msg_1' not found.": asking({"id": "msg_1"}),
    "invalid_value, input[0].id: Invalid 'input[0].id': 'xx_1'. Expected an ID that"
    " begins with 'fc'.": asking({**CALL, "id": "xx_1"}, OUTPUT),
    TOO_LONG.format("input[0].id", "64", "65"): asking(
        {**CALL, "id": "fc_" + "x" * 62}, OUTPUT
    ),
    "invalid_value, input[0].id: Invalid 'input[0].id': 'fc_ä'. Expected an ID that"
    " contains letters, numbers, underscores, or dashes, but this value contained "
    "additional characters.": asking({**CALL, "id": "fc_ä"}, OUTPUT),
    "invalid_encrypted_content, None: The encrypted content  could not be verified."
    " Reason: Encrypted content could not be decrypted or parsed.": asking(
        {"type": "reasoning", "summary": []}
    ),
    "invalid_encrypted_content, None: The encrypted content é could not be "
    "verified. Reason: Encrypted content could not be decrypted or parsed.": asking(
        {"type": "reasoning", "summary": [], "encrypted_content": "é"}
    ),
    "None, input[0]: The 'configuration_update' item type is not supported with "
    "this model.": asking(UPDATE),
    MISSING.format("input[0].reasoning"): asking(
        {"type": "configuration_update"}, model=NEW
    ),
    OF_MODEL.format(
        "input[0].reasoning.effort",
        "none",
        "gpt-6.1-sol",
        "'low', 'medium', 'high', 'xhigh', and 'max'",
    ): asking({**UPDATE, "reasoning": {"effort": "none"}}, model=NEW),
    VALUE.format(
        "input[0].text.format.type", "json_object", "'text' and 'json_schema'"
    ): asking({**UPDATE, "text": {"format": {"type": "json_object"}}}, model=NEW),
    "None, input[1]: Consecutive 'configuration_update' items are not supported.": asking(
        UPDATE, UPDATE, model=NEW
    ),
    "None, input: The 'configuration_update' item type is not supported with pro or"
    " tournament models.": asking(UPDATE, model=NEW, reasoning={"mode": "pro"}),
    "None, truncation: The 'configuration_update' item type is not supported with "
    "'truncation' set to 'auto'.": asking(UPDATE, model=NEW, truncation="auto"),
    VALUE.format(
        "input[0].type",
        "configuration_update",
        "'message', 'file_search_call', 'computer_call', 'computer_call_output', "
        "'web_search_call', 'function_call', 'function_call_output', "
        "'tool_search_call', 'tool_search_output', 'reasoning', 'compaction', "
        "'image_generation_call', 'code_interpreter_call', 'local_shell_call', "
        "'local_shell_call_output', 'shell_call', 'shell_call_output', "
        "'apply_patch_call', 'apply_patch_call_output', 'mcp_list_tools', "
        "'mcp_approval_request', 'mcp_approval_response', 'mcp_call', "
        "'custom_tool_call_output', 'custom_tool_call', 'compaction_trigger', "
        "'item_reference', 'program', and 'program_output'",
    ): {"profile": "azure", **asking(UPDATE)},
    "None, input[1].namespace: Missing namespace for function_call 'f'. It does not"
    " exist in the default namespace. Round-trip the model's function_call item "
    "with its namespace field included.": asking(
        ADDED, {**CALL, "name": "f"}, OUTPUT, model=NEW
    ),
    VALUE.format("input[0].role", "user", "'developer'"): asking(
        {**ADDED, "role": "user"}, model=NEW
    ),
    # Recorded (905, 967; docs/reference/recordings.md), and a role of Chat Completions.
    FILE_DATA.format(
        "input[1].output[0].file_data", "unsupported MIME type 'audio/mpeg'"
    ): asking(
        CALL,
        {**OUTPUT, "output": [{**FILE, "file_data": data_url(b"ID3", "audio/mpeg")}]},
    ),
    "decimal_below_min_value, temperature: Invalid 'temperature': decimal below minimum "
    "value. Expected a value >= 0, but got -1 instead.": at("gpt-4o", temperature=-1),
    VALUE.format(
        "input[0]", "tool", "'assistant', 'system', 'developer', and 'user'"
    ): (asking({"role": "tool", "content": "x"})),
    # Pictures and files.
    "invalid_value, input[0].content[0].image_url: Invalid "
    "'input[0].content[0].image_url'. Expected base64-encoded data, but got a value"
    " that is not.": saying({**PICTURE, "image_url": "data:image/png;base64,###"}),
    MISSING.format("input[0].content[0].image_url"): saying(
        {"type": "input_image", "detail": "auto"}
    ),
    "invalid_value, input: Too many images in request: 1501. The maximum is 1500.": saying(
        *[PICTURE] * 1501
    ),
    FILE_DATA.format(
        "input[0].content[0].file_data", "a value without the 'data:' prefix"
    ): saying({**FILE, "file_data": "SGVsbG8="}),
    FILE_DATA.format(
        "input[0].content[0].file_data", "unsupported MIME type 'application/zip'"
    ): saying({**FILE, "file_data": data_url(b"PK", "application/zip")}),
    "invalid_file, input[0].content[0].file_data: The file 'a.pdf' is empty or "
    "could not be read.": saying(
        {**FILE, "file_data": data_url(b"no PDF", "application/pdf")}
    ),
    MISSING.format("input[0].content[0].file_data"): saying(
        {"type": "input_file", "filename": "a.pdf"}
    ),
    MISSING.format("input[0].content[0].filename"): saying(
        {"type": "input_file", "file_data": FILE["file_data"]}
    ),
    "invalid_value, input: The total size of the files in this request exceeds the "
    "maximum of 50 MB.": saying(
        *[{**FILE, "file_data": data_url(bytes(25_000_001), "text/plain")}] * 2
    ),
}

SAME_WORDS: dict[str, list[Json]] = {
    # Recorded (28:351 to 28:370): a function in the form of Chat Completions, then two
    # models that have no Responses API. Their tools are not looked at, a length is.
    "None, tools: Deep research models only support the 'web_search_preview', "
    "'code_interpreter', 'mcp', and 'file_search' tools.": [
        at(model, tools=[{"type": "web_search_preview"}, OF_CHAT])
        for model in ("o3-deep-research", "o4-mini-deep-research-2025-06-26")
    ],
    "model_not_found, model: The requested model 'o1-mini' is not supported with the "
    "Responses API.": [
        at("o1-mini"),
        at("o1-mini", tools=[{**FUNCTION, "parameters": {}, "strict": True}]),
    ],
    TOO_LOW.format("max_output_tokens", 16, 10): [
        at(model, max_output_tokens=10) for model in ("o1-mini", "gpt-0")
    ],
    UNKNOWN.format("input[0].id"): [
        asking({"role": role, "content": "x", "id": "msg_1"})
        for role in ("system", "assistant")
    ],
    "None, background_options.completion_window: The completion windows '2h' and "
    "'8h' require 'background' to be true, the default service tier, and no stream.": [
        {
            "background": True,
            "stream": True,
            "background_options": {"completion_window": "2h"},
        },
        {
            "background": True,
            "service_tier": "flex",
            "background_options": {"completion_window": "2h"},
        },
    ],
    "None, input: No open MCP approval request found for the response with "
    "approval_request_id mcpr_1.": [
        asking(ANSWERED),
        asking(ANSWERED, ASKED),
        asking(ASKED, ANSWERED, ANSWERED),
    ],
    "invalid_image_format, input: The image data you provided does not represent a "
    "valid image. Please check your input and try again with one of the following "
    "image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].": [
        saying({**PICTURE, "image_url": data_url(BMP, "image/png")}),
        saying({**PICTURE, "image_url": "data:image/png;base64,"}),
        saying({**PICTURE, "image_url": data_url(MOVING_GIF, "image/gif")}),
        asking(
            CALL,
            {
                **OUTPUT,
                "output": [{**PICTURE, "image_url": data_url(BMP, "image/bmp")}],
            },
        ),
    ],
}

ACCEPTED: list[Json] = [
    asking({"type": "message", "role": "developer", "content": "x"}),
    asking({"role": "assistant", "content": "x", "phase": "commentary"}),
    asking({"role": "assistant", "phase": None, "content": [SAID]}),
    asking(CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "x"}, PICTURE]}),
    asking({**SEARCHED, "id": "ws_1"}),
    {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "f"}},
    {"text": {"format": {"type": "json_object"}}, "input": "Answer in JSON"},
    {"metadata": {"k" * 64: "v" * 512}, "service_tier": "fast", "truncation": "auto"},
    {"prompt_cache_options": {"ttl": "12h"}, "prompt_cache_key": "k" * 64},
    {"reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"}},
    {"instructions": "Be kind.", "include": ["reasoning.encrypted_content"]},
    {"reasoning": {"effort": "none"}, "temperature": 0.5, "top_p": 0.5},
    {"model": "gpt-4.1", "temperature": 0.5},
    {"model": "gpt-6.2-sol", "temperature": 1, "top_p": 1.0},
    {"model": "gpt-6.2-sol", "service_tier": "ultrafast"},
    {"profile": "unverified", "stream": True},
    {"tools": [STORES, {**SEARCH, "filters": {"blocked_domains": ["a.org"]}}]},
    {"tools": [{**SEARCH, "user_location": {"type": "approximate", "country": "CH"}}]},
    {"tools": [{**DRAW, "output_format": "webp", "output_compression": 50}]},
    {"tools": [{**SERVER, "allowed_tools": ["now"], "headers": {"X-Key": "secret"}}]},
    {"tools": [{**SERVER, "allowed_tools": {"tool_names": ["now"]}}]},
    {"tools": [{**SERVER, "require_approval": {"never": {"tool_names": ["now"]}}}]},
    {"tools": [{**DRIVE, "authorization": "token"}]},
    saying(PICTURE, {**PICTURE, "image_url": "https://example.com/cat.png"}),
    saying({**PICTURE, "image_url": data_url(JPEG, "image/jpeg")}),
    saying({**PICTURE, "image_url": data_url(WEBP, "image/webp")}),
    saying({**PICTURE, "image_url": data_url(GIF, "image/gif")}),
    saying({**PICTURE, "image_url": data_url(PNG + bytes(1_100_000), "image/png")}),
    saying(FILE, {**FILE, "file_data": data_url(b"a,b", "text/csv")}),
    saying({"type": "input_file", "file_url": "https://example.com/a.pdf"}),
]


def answer(fields: Json) -> None:
    body: Json = {"model": "gpt-5.6-sol", "input": "Hello", **fields}
    profile = PROFILES[body.pop("profile", "strictest")]
    Responder().answer(body, RequestOrigin(ACCOUNTS[KEY], profile, None, "chat"))


def write(refusal: Refusal) -> str:
    """Return a refusal as the table has it, without what most of them share."""
    error = refusal.body()["error"]
    status = f"{refusal.status} " if refusal.status != 400 else ""
    kind = f"{error['type']} " if error["type"] != "invalid_request_error" else ""
    return f"{status}{kind}{error['code']}, {error['param']}: {error['message']}"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        *REFUSED.items(),
        *((words, fields) for words, rows in SAME_WORDS.items() for fields in rows),
    ],
)
def test_request_is_refused_in_the_words_of_the_api(words: str, fields: Json) -> None:
    with pytest.raises(Refusal) as raised:
        answer(fields)
    assert write(raised.value) == words


@pytest.mark.parametrize("fields", ACCEPTED)
def test_valid_request_is_accepted(fields: Json) -> None:
    """The simulator is strict, not stubborn."""
    answer(fields)
