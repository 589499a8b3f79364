"""Tools, their names, and the choice among them."""

from typing import Any

from live_cases.case import ASSUMED, SERVER, TYPES, Case, make_function

NAME = "tools[0].name"
ALLOWED: dict[str, Any] = {
    "type": "allowed_tools",
    "mode": "auto",
    "tools": [{"type": "function", "name": "other"}],
}
STORES = "tools[0].vector_store_ids"

TOOL_CASES = (
    Case(
        "tool name with a dot",
        {"tools": [make_function("users.list")]},
        "openai/codex 1289",
        param=NAME,
        code="invalid_value",
        message="does not match pattern",
    ),
    Case(
        "tool name of 65 characters",
        {"tools": [make_function("n" * 65)]},
        "openai/codex 1289",
        param=NAME,
        code="string_above_max_length",
        message="maximum length 64",
    ),
    Case(
        "empty tool name",
        {"tools": [make_function("")]},
        ASSUMED,
        param=NAME,
        code="empty_string",
    ),
    Case(
        "two tools of one name",
        {"tools": [make_function(), make_function()]},
        ASSUMED,
        param="tools",
        message="(?i)duplicate|unique",
    ),
    Case(
        "129 tools",
        {"tools": [make_function(f"f{n}") for n in range(129)]},
        "Chat Completions: tools4ai/Tools4AI 16; assumed for Responses",
        param="tools",
        code="array_above_max_length",
        message="maximum length 128",
    ),
    Case(
        "128 tools",
        {"tools": [make_function(f"f{n}") for n in range(128)]},
        ASSUMED,
        200,
    ),
    Case(
        "required choice without tools",
        {"tool_choice": "required"},
        "OpenAI's agents SDK",
        param="tool_choice",
    ),
    Case(
        "choice of a function that is not there",
        {
            "tool_choice": {"type": "function", "name": "other"},
            "tools": [make_function()],
        },
        "pydantic-ai 2.68.0",
        param="tool_choice",
        message="Tool choice '.*' not found in 'tools' parameter",
    ),
    Case(
        "allowed tools that are not there",
        {"tool_choice": ALLOWED, "tools": [make_function()]},
        "pydantic-ai 2.68.0",
        param="tool_choice",
        message="not found in 'tools' parameter",
    ),
    Case(
        "file search without stores",
        {"tools": [{"type": "file_search", "vector_store_ids": []}]},
        ASSUMED,
        param=STORES,
        code="empty_array",
    ),
    Case(
        "a vector store that is no id",
        {"tools": [{"type": "file_search", "vector_store_ids": ["harbour"]}]},
        "openai/openai-support-agent-demo 1",
        param=f"{STORES}[0]",
        code="invalid_value",
        message="matches the pattern 'vs_",
    ),
    Case(
        "a tool of an unknown type",
        {"tools": [{"type": "telescope"}]},
        TYPES,
        param="tools[0].type",
        code="invalid_value",
    ),
    Case(
        "an unknown container",
        {"tools": [{"type": "code_interpreter", "container": f"cntr_{'0' * 40}"}]},
        "litellm 30936 and assumed",
        status=404,
        param="tools[0].container",
        message="(?i)container.*not found",
    ),
    Case(
        "a container without a word on it",
        {"tools": [{"type": "code_interpreter"}]},
        "new-api 1305",
        param="tools[0].container",
        code="missing_required_parameter",
    ),
    Case(
        "a container with an unknown file",
        {
            "tools": [
                {
                    "type": "code_interpreter",
                    "container": {"type": "auto", "file_ids": [f"file-{'0' * 22}"]},
                }
            ]
        },
        ASSUMED,
        status=404,
        message="(?i)file.*not found",
    ),
    Case(
        "a web search with all options",
        {
            "tools": [
                {
                    "type": "web_search",
                    "external_web_access": False,
                    "filters": {"blocked_domains": ["example.org"]},
                    "return_token_budget": "unlimited",
                }
            ],
            "tool_choice": "none",
        },
        'guide "Web search"',
        200,
    ),
    Case(
        "a budget for a model that does not reason",
        {
            "tools": [{"type": "web_search", "return_token_budget": "unlimited"}],
            "tool_choice": "none",
            "reasoning": {},
        },
        ASSUMED,
        200,
        model="gpt-4.1",
    ),
    Case(
        "two servers of one label",
        {"tools": [SERVER, SERVER]},
        "reports of OpenAI's users",
        param="tools",
        message="Duplicate server_label",
    ),
)
