"""What the project assumes of the Responses API: a request, and what comes back.

Each case says where the assumption comes from, or that it is one. The tests hold the
simulator against all of them, `scripts/live` the real API.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]
ASSUMED = "assumed"
TYPES = "types of openai 3.54.0"
CHEAPEST = "gpt-6-luna"
CALL_ID = "call_1"
TOO_LARGE = "the request is too large to be sent"


@dataclass(frozen=True)
class Case:
    """One request, and the answer that it is assumed to get."""

    name: str
    body: Body
    source: str
    status: int = 400
    param: str | None = None
    code: str | None = None
    message: str = ""
    """A pattern that the message of the refusal holds."""
    model: str = CHEAPEST
    first: Body = field(default_factory=dict)
    """A request whose output is sent back in front of the body's input."""
    edit: str = "bare"
    """How that output is changed before: a name in `live.EDITS`."""
    fee: float = 0.0
    """US dollars for the hosted tools of the case, at most."""
    untried: str = ""
    """Why the case is not tried against the real API."""


def make_function(name: str = "look_up", **more: Any) -> dict[str, Any]:
    """Return a function tool."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = {"type": "function", "name": name, "parameters": schema, "strict": False}
    return {**tool, **more}


def with_property(schema: Any, *, strict: bool = False) -> Body:
    """Return a body with a function whose one argument has a schema."""
    root = {"type": "object", "properties": {"a": schema}}
    closed = {"required": ["a"], "additionalProperties": False} if strict else {}
    tool = make_function(parameters={**root, **closed}, strict=strict)
    return {"tools": [tool]}


def nest(levels: int) -> Body:
    """Return closed objects within each other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        closed = {"required": ["a"], "additionalProperties": False}
        schema = {"type": "object", "properties": {"a": schema}, **closed}
    return schema


def say(*items: Body, text: str = "Say yes.") -> Body:
    """Return a body whose input ends with a question."""
    return {"input": [*items, {"role": "user", "content": text}]}


def call(**more: Any) -> dict[str, Any]:
    """Return a function call."""
    item = {"type": "function_call", "call_id": CALL_ID, "name": "look_up"}
    return {**item, "arguments": "{}", **more}


def output(id: str = CALL_ID, **more: Any) -> dict[str, Any]:
    """Return the output of a call."""
    item = {"type": "function_call_output", "call_id": id, "output": "yes"}
    return {**item, **more}


def show(url: str) -> Body:
    """Return a body with a picture."""
    part = {"type": "input_image", "image_url": url, "detail": "low"}
    return {"input": [{"role": "user", "content": [part]}]}


def format_text(name: str = "answer", schema: Any = None) -> Body:
    """Return a body that asks for JSON of a schema."""
    schema = schema or {"type": "object", "properties": {"a": {"type": "string"}}}
    format = {"type": "json_schema", "name": name, "schema": schema, "strict": False}
    return {"text": {"format": format}}


LOOKAROUND = {"type": "string", "pattern": "^(?!x)[a-z]+$"}
SPACE = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers",
    "tools": [make_function()],
}
SCHEMA_CODE = "invalid_function_parameters"
SCHEMA_PARAM = "tools[0].parameters"
SERVER = {
    "type": "mcp",
    "server_label": "one",
    "server_url": "https://mcp.example.com/mcp",
    "require_approval": "never",
}


def list_cases() -> tuple[Case, ...]:
    """Return all cases."""
    return (*_tools(), *_schemas(), *_parameters(), *_items(), *_parts(), *_replays())


def _tools() -> Iterator[Case]:
    name = "tools[0].name"
    yield Case(
        "tool name with a dot",
        {"tools": [make_function("users.list")]},
        "openai/codex 1289",
        param=name,
        code="invalid_value",
        message="does not match pattern",
    )
    yield Case(
        "tool name of 65 characters",
        {"tools": [make_function("n" * 65)]},
        "openai/codex 1289",
        param=name,
        code="string_above_max_length",
        message="maximum length 64",
    )
    yield Case(
        "empty tool name",
        {"tools": [make_function("")]},
        ASSUMED,
        param=name,
        code="empty_string",
    )
    yield Case(
        "two tools of one name",
        {"tools": [make_function(), make_function()]},
        ASSUMED,
        param="tools",
        message="(?i)duplicate|unique",
    )
    yield Case(
        "129 tools",
        {"tools": [make_function(f"f{n}") for n in range(129)]},
        "Chat Completions: tools4ai/Tools4AI 16; assumed for Responses",
        param="tools",
        code="array_above_max_length",
        message="maximum length 128",
    )
    yield Case(
        "128 tools",
        {"tools": [make_function(f"f{n}") for n in range(128)]},
        ASSUMED,
        200,
    )
    yield Case(
        "required choice without tools",
        {"tool_choice": "required"},
        "OpenAI's agents SDK",
        param="tool_choice",
    )
    yield Case(
        "choice of a function that is not there",
        {
            "tool_choice": {"type": "function", "name": "other"},
            "tools": [make_function()],
        },
        "pydantic-ai 2.68.0",
        param="tool_choice",
        message="Tool choice '.*' not found in 'tools' parameter",
    )
    allowed = {"type": "allowed_tools", "mode": "auto"}
    allowed["tools"] = [{"type": "function", "name": "other"}]  # type: ignore[assignment]
    yield Case(
        "allowed tools that are not there",
        {"tool_choice": allowed, "tools": [make_function()]},
        "pydantic-ai 2.68.0",
        param="tool_choice",
        message="not found in 'tools' parameter",
    )
    stores = "tools[0].vector_store_ids"
    yield Case(
        "file search without stores",
        {"tools": [{"type": "file_search", "vector_store_ids": []}]},
        ASSUMED,
        param=stores,
        code="empty_array",
    )
    yield Case(
        "a vector store that is no id",
        {"tools": [{"type": "file_search", "vector_store_ids": ["harbour"]}]},
        "openai/openai-support-agent-demo 1",
        param=f"{stores}[0]",
        code="invalid_value",
        message="matches the pattern 'vs_",
    )
    yield Case(
        "a tool of an unknown type",
        {"tools": [{"type": "telescope"}]},
        TYPES,
        param="tools[0].type",
        code="invalid_value",
    )
    yield Case(
        "an unknown container",
        {"tools": [{"type": "code_interpreter", "container": f"cntr_{'0' * 40}"}]},
        "litellm 30936 and assumed",
        status=404,
        param="tools[0].container",
        message="(?i)container.*not found",
    )
    yield Case(
        "a container without a word on it",
        {"tools": [{"type": "code_interpreter"}]},
        "new-api 1305",
        param="tools[0].container",
        code="missing_required_parameter",
    )
    yield Case(
        "two servers of one label",
        {"tools": [SERVER, SERVER]},
        "reports of OpenAI's users",
        param="tools",
        message="Duplicate server_label",
    )


def _schemas() -> Iterator[Case]:
    def refused(name: str, body: Body, source: str, message: str, **more: Any) -> Case:
        more = {"param": SCHEMA_PARAM, "code": SCHEMA_CODE, **more}
        return Case(name, body, source, message=message, **more)

    array = {"type": "array"}
    yield refused(
        "a schema that is no object",
        {"tools": [make_function(parameters=array)]},
        "reports of OpenAI's users",
        "must be a JSON Schema of 'type: \"object\"'",
    )
    bare = {"tools": [make_function(parameters={"type": "object"})]}
    source = "Chat Completions: forgecode 1359; assumed for Responses"
    yield refused("an object without properties", bare, source, "missing properties")
    yield Case(
        "an inner object without properties",
        with_property({"type": "object"}),
        ASSUMED,
        200,
    )
    yield refused(
        "an array without items",
        with_property(array),
        "reports of OpenAI's users",
        "array schema missing items",
    )
    yield refused(
        "a type that does not exist",
        with_property({"type": "date"}),
        "the words of Python's jsonschema",
        "not valid under any of the given schemas",
    )
    yield refused(
        "a duplicate in required",
        {
            "tools": [
                make_function(
                    parameters={
                        "type": "object",
                        "properties": {},
                        "required": ["a", "a"],
                    }
                )
            ]
        },
        "the words of Python's jsonschema",
        "non-unique",
    )
    yield refused(
        "a boolean in required",
        with_property({"type": "string", "required": True}),
        "FoundationAgents/OpenManus 1162",
        "not of type 'array'",
    )
    yield refused(
        "a pattern that Python does not compile",
        with_property({"type": "string", "pattern": r"^\p{L}+$"}),
        "free-claude-code 1730, pleaseai/shunt 488",
        "is not a 'regex'",
    )
    yield refused(
        "a reference that leads nowhere",
        with_property({"$ref": "#/$defs/lost"}),
        "known of strict mode, assumed without it",
        "(?i)reference",
    )
    yield refused(
        "a strict object that is open",
        {"tools": [make_function(strict=True)]},
        "guide Structured outputs",
        "'additionalProperties' is required",
    )
    yield refused(
        "a strict schema with oneOf",
        with_property({"oneOf": [{"type": "string"}]}, strict=True),
        "guide Structured outputs",
        "'oneOf' is not permitted",
    )
    yield refused(
        "a strict schema of eleven levels",
        with_property(nest(10), strict=True),
        "guide Structured outputs; the words of its earlier limit",
        "levels of nesting exceeds limit",
    )
    yield Case(
        "a strict schema of ten levels",
        with_property(nest(9), strict=True),
        "guide Structured outputs",
        200,
    )
    yield refused(
        "a strict schema with 1,001 values of enums",
        with_property(
            {"type": "string", "enum": [str(n) for n in range(1001)]}, strict=True
        ),
        "guide Structured outputs",
        "1000 enum values",
    )
    yield Case(
        "a pattern that looks around, on gpt-5.6",
        with_property(LOOKAROUND),
        "opencode 32073, vercel/ai 20021",
        message=r"regex lookaround is not supported. Found at \$\.properties\.a\.pattern",
        model="gpt-5.6-luna",
    )
    yield Case(
        "a pattern that looks around, on gpt-5.4",
        {**with_property(LOOKAROUND), "stream": True},
        "vercel/ai 16021",
        status=200,
        code="server_error",
        message="error occurred while processing",
        model="gpt-5.4-mini",
    )
    yield Case(
        "a pattern that looks around, on gpt-6", with_property(LOOKAROUND), ASSUMED, 200
    )
    yield Case(
        "a schema of the answer that is none",
        format_text(schema={"type": "object", "properties": {"a": {"type": "date"}}}),
        "reports of OpenAI's users",
        param="text.format.schema",
        code="invalid_json_schema",
    )


def _parameters() -> Iterator[Case]:
    def refused(
        name: str, value: Any, code: str, source: str = TYPES, **more: Any
    ) -> Case:
        title = more.pop("title", f"{name}: {value}"[:60])
        return Case(title, {name: value}, source, param=name, code=code, **more)

    yield refused("seed", 1, "unknown_parameter", "jcode 1028, litellm 13420")
    yield refused("service_tier", "gold", "invalid_value")
    above, below = "above_max_value", "below_min_value"
    yield refused("temperature", 99, f"decimal_{above}", "reports of OpenAI's users")
    yield refused("top_p", 2, f"decimal_{above}", "reports of OpenAI's users")
    yield refused(
        "max_output_tokens", 15, f"integer_{below}", "reports of OpenAI's users"
    )
    yield refused("max_output_tokens", 128_001, f"integer_{above}", ASSUMED)
    yield refused("top_logprobs", 21, f"integer_{above}", ASSUMED)
    long = "string_above_max_length"
    yield refused(
        "safety_identifier", "u" * 129, long, title="safety_identifier of 129"
    )
    yield refused(
        "prompt_cache_key", "k" * 65, long, ASSUMED, title="prompt_cache_key of 65"
    )
    many = {f"k{n}": "v" for n in range(17)}
    yield refused("metadata", many, "object_above_max_properties", title="17 metadata")
    yield Case(
        "temperature beside an effort",
        {"temperature": 0.5, "reasoning": {"effort": "low"}},
        "guide Deployment checklist",
        param="temperature",
        code="unsupported_parameter",
    )
    yield Case(
        "an effort that the model lacks",
        {"reasoning": {"effort": "minimal"}},
        "inspect_ai 5254",
        param="reasoning.effort",
        code="unsupported_value",
        message="Supported values are",
    )
    yield Case(
        "a verbosity that does not exist",
        {"text": {"verbosity": "endless"}},
        TYPES,
        param="text.verbosity",
        code="invalid_value",
    )
    yield Case(
        "an include that does not exist",
        {"include": ["everything"]},
        TYPES,
        param="include[0]",
        code="invalid_value",
    )
    yield Case(
        "background that is not stored",
        {"background": True},
        "guide Background mode; the words are assumed",
        param="store",
    )
    yield Case(
        "stream options without a stream",
        {"stream_options": {"include_obfuscation": False}},
        "reports of OpenAI's users",
        param="stream_options",
    )
    yield Case(
        "a format name with a dot",
        format_text("a.b"),
        "reports of OpenAI's users",
        param="text.format.name",
        code="invalid_value",
        message="does not match pattern",
    )
    yield Case(
        "a format name of 65 characters",
        format_text("n" * 65),
        TYPES,
        param="text.format.name",
        code=long,
    )
    yield Case(
        "json_object without the word",
        {"text": {"format": {"type": "json_object"}}},
        "reports of OpenAI's users",
        param="input",
        message="must contain the word 'json'",
    )
    yield Case(
        "a model that does not exist",
        {},
        "reports of OpenAI's users",
        status=404,
        code="model_not_found",
        model="gpt-99-unheard-of",
    )
    yield Case(
        "no input",
        {"input": []},
        "reports of OpenAI's users",
        param="input",
        code="missing_required_parameter",
    )


def _items() -> Iterator[Case]:
    yield Case(
        "an unknown field of an item",
        say({"role": "user", "content": "x", "surprise": 1}),
        "jcode 1028, litellm 13420",
        param="input[0].surprise",
        code="unknown_parameter",
    )
    yield Case(
        "an item of an unknown type",
        say({"type": "telescope_call"}),
        TYPES,
        param="input[0].type",
        code="invalid_value",
    )
    id = "input[0].call_id"
    yield Case(
        "an empty call_id",
        say(call(call_id=""), output("")),
        "CodexPlusPlus 315",
        param=id,
        code="empty_string",
        message="minimum length 1",
    )
    yield Case(
        "a call_id of 65 characters",
        say(call(call_id="c" * 65), output("c" * 65)),
        "ungate 26",
        param=id,
        code="string_above_max_length",
    )
    yield Case(
        "a call of a name with a dot",
        say(call(name="functions.look_up"), output()),
        "reports of OpenAI's users",
        param="input[0].name",
        code="invalid_value",
        message="does not match pattern",
    )
    yield Case(
        "a call without its output",
        say(call()),
        "GhidrAssist 78, CLIProxyAPI 2368",
        param="input",
        message=f"No tool output found for function call {CALL_ID}",
    )
    yield Case(
        "an output without its call",
        say(output()),
        "continue 10092, vscode 320060",
        param="input",
        message="No tool call found for function call output with call_id",
    )
    yield Case(
        "a call of a tool that is not declared", say(call(), output()), ASSUMED, 200
    )
    yield Case(
        "a call twice",
        say(call(), output(), call(), output()),
        "assumed for calls; OpenRouterTeam/ai-sdk-provider 254 for ids",
        param="input",
        message="(?i)duplicate",
    )
    message = {"type": "message", "role": "assistant", "status": "completed"}
    text = {"type": "output_text", "text": "yes", "annotations": []}
    yield Case(
        "an id of another kind",
        say({**message, "id": "rs_1", "content": [text]}),
        "cockpit-tools 2090, langchainjs 11044",
        param="input[0].id",
        code="invalid_value",
        message="begins with 'msg'",
    )
    yield Case(
        "input_text of the assistant",
        say({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "ai-dial-adapter-openai 511",
        param="input[0].content[0]",
        code="invalid_value",
        message="'output_text' and 'refusal'",
    )
    reasoning = {"type": "reasoning", "id": f"rs_{'0' * 48}", "summary": []}
    yield Case(
        "reasoning that is not stored",
        say(reasoning),
        "can1357/oh-my-pi 41, opencode 7724",
        status=404,
        param="input",
        message="Items are not persisted",
    )
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABx"}
    yield Case(
        "content that was not encrypted there",
        say(sealed),
        "openai/codex 8145",
        code="invalid_encrypted_content",
        message="could not be verified",
    )
    yield Case(
        "reasoning without a summary",
        say({"type": "reasoning", "encrypted_content": "gAAAAABx"}),
        "newo-ether/Agora 141",
        param="input[0].summary",
        code="missing_required_parameter",
    )
    drawn = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    yield Case(
        "a picture that was drawn before",
        say({**drawn, "result": "aGk="}),
        "pydantic-ai 2.68.0",
        status=404,
        param="input",
        message="not found",
    )
    yield Case(
        "a call without its namespace",
        {**say(call(), output()), "tools": [SPACE]},
        "vercel/ai 15193, pi 7709",
        param="input[0].namespace",
        message="Missing namespace for function_call 'look_up'",
    )
    yield Case(
        "a call in an unknown namespace",
        {**say(call(namespace="erp"), output()), "tools": [SPACE]},
        ASSUMED,
        param="input[0].namespace",
    )
    added = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [make_function()],
    }
    yield Case(
        "tools that are added later", say(added), "guide Keep the prefix unchanged", 200
    )
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    yield Case("an effort that changes later", say(update), "pydantic-ai 2.68.0", 200)
    ran = {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": None}
    ran |= {"status": "completed", "container_id": f"cntr_68e{'0' * 34}404"}
    yield Case(
        "code whose container is dead",
        say(ran),
        "OpenAI's community 1321773, pydantic/pydantic-ai 7461",
        message="(?i)container",
        untried="it needs a container that was idle for 20 minutes",
    )
    asked = {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}"}
    asked |= {"name": "f", "server_label": "one"}
    yield Case(
        "an approval that nobody gave",
        {**say(asked), "tools": [SERVER]},
        "reports of OpenAI's users",
        param="input",
        message="do not have an approval",
    )


def _parts() -> Iterator[Case]:
    url = "input[0].content[0].image_url"
    yield Case(
        "a picture that is no address",
        show("cat.png"),
        "openai/codex 5346, opencode 23983",
        param=url,
        code="invalid_value",
    )
    yield Case(
        "a picture of an unsupported type",
        show("data:text/html;base64,aGk="),
        "openai/codex 5346",
        param=url,
        code="invalid_value",
        message="(?i)mime type",
    )
    yield Case(
        "a picture that cannot be read",
        show("data:image/png;base64,aGVsbG8="),
        "reports of OpenAI's users; the code is assumed",
        param="input",
        code="invalid_image_format",
        message="does not represent a valid image",
    )
    yield Case(
        "a picture above 20 MB",
        show(f"data:image/png;base64,{'A' * 26_700_000}"),
        ASSUMED,
        param="input",
        code="image_file_too_large",
        untried=TOO_LARGE,
    )
    yield Case(
        "a text of more than 10,485,760 characters",
        say({"role": "user", "content": "x" * 10_485_761}),
        "bluebox 31",
        param="input[0].content",
        code="string_above_max_length",
        untried=TOO_LARGE,
    )


def _replays() -> Iterator[Case]:
    thinking = {"input": "Think about 17 times 19.", "max_output_tokens": 400}
    first = {**thinking, "reasoning": {"effort": "low"}}
    source = "OpenAI's agents SDK 0.24.0"
    effort = {"reasoning": {"effort": "low"}}
    again = {**say(), **effort}
    yield Case("an output sent back without ids", again, source, 200, first=first)
    yield Case(
        "a message without its reasoning",
        again,
        "continue 12620, code_puppy 853",
        param="input",
        message="without its required 'reasoning' item",
        first=first,
        edit="ids without reasoning",
    )
    yield Case(
        "reasoning without what follows",
        again,
        "continue 8933, vercel/ai 7099",
        param="input",
        message="without its required following item",
        first=first,
        edit="only reasoning",
    )
    yield Case(
        "reasoning whose content was changed",
        again,
        "openai/codex 8145",
        code="invalid_encrypted_content",
        first=first,
        edit="broken content",
    )
    search = {"tools": [{"type": "web_search"}]}
    yield Case(
        "a web search sent back",
        {**say(), **search},
        "pydantic-ai 2.68.0",
        200,
        first={
            "input": "sim:web-search Search the web once: the weather in Zürich.",
            **search,
        },
        edit="with ids of hosted calls",
        fee=0.02,
    )
    code = {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}
    yield Case(
        "code sent back while its container lives",
        {**say(), **code},
        "pydantic-ai 2.68.0",
        200,
        first={"input": "sim:count Run Python: print(17 * 19).", **code},
        edit="with ids of hosted calls",
        fee=0.03,
    )
