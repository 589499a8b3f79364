"""What the model says when it calls tools of remote servers."""

import json
from typing import Any

from simulator.checks.mcp import find_approved_calls
from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.builders import (
    Item,
    build_function_call,
    build_mcp_approval_request,
    build_mcp_call,
    build_mcp_list_tools,
    build_message,
    build_reasoning,
)
from simulator.scenarios.scenario import (
    ComposeReply,
    HttpReply,
    Reply,
    Scenario,
    interleave_calls,
    make_reply,
    make_scenario,
)

LOOKING = build_reasoning("**Choosing a tool**\n\nThis has to be looked up.")
CLOCKS = "clocks"
ATLAS = "atlas"
UTC = '{"zone":"UTC"}'
TIME_ARGUMENTS = '{"zone": "Europe/Zurich", "format": "%H:%M"}'
NOON = "12:00"
FAILURE = {
    "type": "mcp_tool_execution_error",
    "content": [{"type": "text", "text": "The zone Atlantis is not known."}],
}
GATEWAY_TIMEOUT = {"type": "http_error", "code": 504, "message": "Gateway Timeout"}
UNLISTED = "Http status code: 401 (Unauthorized)"


def _labels(request: ValidRequest) -> list[str]:
    """Return the labels of the offered servers, else two to show what they look like."""
    return [tool["server_label"] for tool in request.tools("mcp")] or [CLOCKS, ATLAS]


def _missing_tool_lists(request: ValidRequest, *labels: str) -> list[Item]:
    """Return the lists of tools that the input does not hold yet."""
    known = {
        item["server_label"]
        for item in request.items
        if item.get("type") == "mcp_list_tools"
    }
    return [
        build_mcp_list_tools(label, "now", "zones")
        for label in labels
        if label not in known
    ]


def _reply_after_lists(*items: Item, servers: int = 1) -> ComposeReply:
    """Return a reply of `items`, whose label `$server` is that of the first server."""

    def compose(request: ValidRequest, _options: Options) -> Reply:
        labels = _labels(request)[:servers]
        named = [_name_tools(item, labels) for item in items]
        return make_reply(*_missing_tool_lists(request, *labels), *named)

    return compose


def _name_tools(item: Item, labels: list[str]) -> Item:
    places = {CLOCKS: labels[0], ATLAS: labels[-1]}
    label = item.get("server_label")
    return {**item, "server_label": places[label]} if label in places else item


def _call_unlisted(request: ValidRequest, _options: Options) -> Reply:
    broken: Item = {**build_mcp_list_tools(_labels(request)[0]), "error": UNLISTED}
    return make_reply(broken, LOOKING, build_message("I cannot reach the clocks."))


def _refuse_unreachable(request: ValidRequest, _options: Options) -> Reply | HttpReply:
    """Refuse the request as long as it names a server."""
    servers = request.tools("mcp")
    if not servers:
        return make_reply(LOOKING, build_message("I have no clock here."))
    error = {
        "message": "Error retrieving tool list from MCP server: "
        f"'{servers[0]['server_label']}'. Http status code: 424 (Failed Dependency)",
        "type": "external_connector_error",
        "param": "tools",
        "code": "http_error",
    }
    return HttpReply(424, json.dumps({"error": error}))


def _run_approved(request: ValidRequest, _options: Options) -> Reply:
    """Make the calls that were allowed, then say what came of all."""
    calls = [
        _build_approved_call(approval)
        for approval in find_approved_calls(request.items)
    ]
    made = f"{len(calls)} of the calls were made."
    outcome = f"It said: {NOON}." if calls else "I go on without."
    return make_reply(*calls, build_message(f"{made} {outcome}"))


def _build_approved_call(approval: Any) -> Item:
    """Return the call that an approval request asked for."""
    call = build_mcp_call(
        approval["server_label"], approval["name"], approval["arguments"], NOON
    )
    return {**call, "approval_request_id": approval["id"]}


CALL = build_mcp_call(CLOCKS, "now", UTC, NOON)
QUESTION = build_mcp_approval_request(CLOCKS, "now", UTC)
SECOND_QUESTION = build_mcp_approval_request(CLOCKS, "zones", "{}")
FAILED_CALL = {
    **build_mcp_call(CLOCKS, "now", '{"zone":"Atlantis"}', ""),
    "output": None,
    "error": FAILURE,
    "status": "failed",
}

MCP_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "mcp",
        "the list of a remote server's tools, a call there, then the answer",
        _reply_after_lists(LOOKING, CALL, build_message("It is noon.")),
    ),
    make_scenario(
        "mcp-two",
        "two servers, a call to each, with reasoning and a word between them",
        _reply_after_lists(
            LOOKING,
            CALL,
            build_message("It is noon. Now the map.", phase="commentary"),
            build_reasoning("**Looking at the map**\n\nWhere is noon?"),
            build_mcp_call(ATLAS, "zones", "{}", "UTC\nCET\n"),
            build_message("Noon is in two zones.", phase="final_answer"),
            servers=2,
        ),
    ),
    make_scenario(
        "mcp-parallel",
        "two remote calls whose events arrive mixed, then the answer",
        make_reply(
            build_mcp_list_tools(CLOCKS, "now"),
            LOOKING,
            CALL,
            build_mcp_call(CLOCKS, "now", TIME_ARGUMENTS, "13:00"),
            build_message("It is noon, or one."),
            fault=interleave_calls,
        ),
    ),
    make_scenario(
        "mcp-error",
        "a remote call that fails, then the answer",
        _reply_after_lists(
            LOOKING, FAILED_CALL, build_message("That zone is not known.")
        ),
    ),
    make_scenario(
        "mcp-http-error",
        "a remote call whose server answers with an HTTP error",
        _reply_after_lists(
            LOOKING,
            {**FAILED_CALL, "error": GATEWAY_TIMEOUT},
            build_message("The clocks do not answer."),
        ),
    ),
    make_scenario(
        "mcp-unlisted",
        "a remote server whose tools cannot be listed, then the answer",
        _call_unlisted,
    ),
    make_scenario(
        "mcp-unreachable",
        "a refusal because a remote server is down; without it an answer",
        _refuse_unreachable,
    ),
    make_scenario(
        "mcp-then-tool",
        "a remote call beside a function call, then an answer from both outputs",
        _reply_after_lists(LOOKING, CALL, build_function_call("$tool", "$arguments")),
        make_reply(build_message("They said: $output")),
    ),
    make_scenario(
        "mcp-approval",
        "a question whether a remote call may be made, then what came of it",
        _reply_after_lists(LOOKING, QUESTION),
        _run_approved,
    ),
    make_scenario(
        "mcp-approvals",
        "two such questions and a function call at once, then what came of them",
        _reply_after_lists(
            LOOKING,
            QUESTION,
            SECOND_QUESTION,
            build_function_call("$tool", "$arguments"),
        ),
        _run_approved,
    ),
    make_scenario(
        "mcp-approval-forever",
        "the same question after every answer",
        _reply_after_lists(LOOKING, QUESTION),
    ),
)
