"""Items of the input: ids, pairs, kinds."""

from typing import Any

from live_cases.case import ASSUMED, SERVER, TYPES, Case, make_function, say

CALL_ID = "call_1"


def call(**more: Any) -> dict[str, Any]:
    """Return a function call."""
    return {
        "type": "function_call",
        "call_id": CALL_ID,
        "name": "look_up",
        "arguments": "{}",
        **more,
    }


def output(id: str = CALL_ID, **more: Any) -> dict[str, Any]:
    """Return the output of a call."""
    item = {"type": "function_call_output", "call_id": id, "output": "yes"}
    return {**item, **more}


ID = "input[0].call_id"
MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
}
TEXT: dict[str, Any] = {"type": "output_text", "text": "yes", "annotations": []}
REASONING: dict[str, Any] = {"type": "reasoning", "id": f"rs_{'0' * 48}", "summary": []}
SEALED: dict[str, Any] = {
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAAABx",
}
DRAWN: dict[str, Any] = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
}
ADDED: dict[str, Any] = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [make_function()],
}
UPDATE: dict[str, Any] = {
    "type": "configuration_update",
    "reasoning": {"effort": "low"},
}
RAN: dict[str, Any] = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "1",
    "container_id": f"cntr_68e{'0' * 34}404",
    "outputs": None,
}
ASKED: dict[str, Any] = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "one",
    "name": "f",
    "arguments": "{}",
}


ITEM_CASES = (
    Case(
        "an unknown field of an item",
        say({"role": "user", "content": "x", "surprise": 1}),
        "jcode 1028, litellm 13420",
        param="input[0].surprise",
        code="unknown_parameter",
    ),
    Case(
        "an item of an unknown type",
        say({"type": "telescope_call"}),
        TYPES,
        param="input[0].type",
        code="invalid_value",
    ),
    Case(
        "an empty call_id",
        say(call(call_id=""), output("")),
        "CodexPlusPlus 315",
        param=ID,
        code="empty_string",
        message="minimum length 1",
    ),
    Case(
        "a call_id of 65 characters",
        say(call(call_id="c" * 65), output("c" * 65)),
        "ungate 26",
        param=ID,
        code="string_above_max_length",
    ),
    Case(
        "a call of a name with a dot",
        say(call(name="functions.look_up"), output()),
        "reports of OpenAI's users",
        param="input[0].name",
        code="invalid_value",
        message="does not match pattern",
    ),
    Case(
        "a call without its output",
        say(call()),
        "GhidrAssist 78, CLIProxyAPI 2368",
        param="input",
        message=f"No tool output found for function call {CALL_ID}",
    ),
    Case(
        "an output without its call",
        say(output()),
        "continue 10092, vscode 320060",
        param="input",
        message="No tool call found for function call output with call_id",
    ),
    Case("a call of a tool that is not declared", say(call(), output()), ASSUMED, 200),
    Case(
        "a call twice",
        say(call(), output(), call(), output()),
        "assumed for calls; OpenRouterTeam/ai-sdk-provider 254 for ids",
        param="input",
        message="(?i)duplicate",
    ),
    Case(
        "an id of another kind",
        say({**MESSAGE, "id": "rs_1", "content": [TEXT]}),
        "cockpit-tools 2090, langchainjs 11044",
        param="input[0].id",
        code="invalid_value",
        message="begins with 'msg'",
    ),
    Case(
        "input_text of the assistant",
        say({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        "ai-dial-adapter-openai 511",
        param="input[0].content[0]",
        code="invalid_value",
        message="'output_text' and 'refusal'",
    ),
    Case(
        "reasoning that is not stored",
        say(REASONING),
        "can1357/oh-my-pi 41, opencode 7724",
        status=404,
        param="input",
        message="Items are not persisted",
    ),
    Case(
        "content that was not encrypted there",
        say(SEALED),
        "openai/codex 8145",
        code="invalid_encrypted_content",
        message="could not be verified",
    ),
    Case(
        "reasoning without a summary",
        say({"type": "reasoning", "encrypted_content": "gAAAAABx"}),
        "newo-ether/Agora 141",
        param="input[0].summary",
        code="missing_required_parameter",
    ),
    Case(
        "a picture that was drawn before",
        say({**DRAWN, "result": "aGk="}),
        "pydantic-ai 2.68.0",
        status=404,
        param="input",
        message="not found",
    ),
    Case(
        "a call in an unknown namespace",
        {**say(call(namespace="erp"), output()), "tools": [make_function()]},
        ASSUMED,
        param="input[0].namespace",
    ),
    Case(
        "tools that are added later", say(ADDED), "guide Keep the prefix unchanged", 200
    ),
    Case("an effort that changes later", say(UPDATE), "pydantic-ai 2.68.0", 200),
    Case(
        "code whose container is dead",
        say(RAN),
        "OpenAI's community 1321773, pydantic/pydantic-ai 7461",
        message="(?i)container",
        untried="it needs a container that was idle for 20 minutes",
    ),
    Case(
        "an approval that nobody gave",
        {**say(ASKED), "tools": [SERVER]},
        "reports of OpenAI's users",
        param="input",
        message="do not have an approval",
    ),
)
