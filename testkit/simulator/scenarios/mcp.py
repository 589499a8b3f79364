"""Replies that call tools of remote MCP servers."""

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
    """Return the labels of the servers in the request; without any, two of our own."""
    labels = [tool["server_label"] for tool in request.tools("mcp")]
    return labels or [CLOCKS, ATLAS]


def _missing_tool_lists(request: ValidRequest, *labels: str) -> list[Item]:
    """Return the lists of tools that the input does not contain."""
    listed = {
        item["server_label"]
        for item in request.items
        if item.get("type") == "mcp_list_tools"
    }
    return [
        build_mcp_list_tools(label, "now", "zones")
        for label in labels
        if label not in listed
    ]


def _reply_after_lists(*items: Item, servers: int = 1) -> ComposeReply:
    """Return a reply of lists of tools, where they are missing, then some items.

    The items get the labels of the request's servers, of which the first ones are used.
    """

    def compose(request: ValidRequest, _options: Options) -> Reply:
        labels = _labels(request)[:servers]
        relabeled = [_with_label(item, labels) for item in items]
        return make_reply(*_missing_tool_lists(request, *labels), *relabeled)

    return compose


def _with_label(item: Item, labels: list[str]) -> Item:
    """Return an item of one of our own servers as one of a server of the request."""
    new_labels = {CLOCKS: labels[0], ATLAS: labels[-1]}
    label = item.get("server_label")
    if label not in new_labels:
        return item
    return {**item, "server_label": new_labels[label]}


def _fail_to_list(request: ValidRequest, _options: Options) -> Reply:
    tool_list = build_mcp_list_tools(_labels(request)[0])
    failed = {**tool_list, "error": UNLISTED}
    return make_reply(failed, LOOKING, build_message("I cannot reach the clocks."))


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
    """Make the approved calls, then say how many they were."""
    approval_requests = find_approved_calls(request.items)
    calls = [_build_approved_call(approval) for approval in approval_requests]
    count = f"{len(calls)} of the calls were made."
    outcome = f"It said: {NOON}." if calls else "I go on without."
    return make_reply(*calls, build_message(f"{count} {outcome}"))


def _build_approved_call(approval_request: Any) -> Item:
    """Return the call that an approval request asked for."""
    call = build_mcp_call(
        approval_request["server_label"],
        approval_request["name"],
        approval_request["arguments"],
        NOON,
    )
    return {**call, "approval_request_id": approval_request["id"]}


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
        _fail_to_list,
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
        "an approval request, then the approved call",
        _reply_after_lists(LOOKING, QUESTION),
        _run_approved,
    ),
    make_scenario(
        "mcp-approvals",
        "two approval requests and a function call at once, then the approved calls",
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
        "an approval request after every answer",
        _reply_after_lists(LOOKING, QUESTION),
    ),
)
