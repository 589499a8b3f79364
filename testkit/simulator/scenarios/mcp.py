"""Replies that call tools of remote MCP servers."""

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
    Reply,
    Scenario,
    interleave_calls,
    make_reply,
    make_scenario,
)
from simulator.scenarios.tools import LOOKING

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


def _reply_after_lists(*items: Item, servers: int = 1) -> ComposeReply:
    """Return a reply of lists of tools, where they are missing, then some items.

    The items get the labels of the request's servers, of which the first ones are used.
    """

    def compose(request: ValidRequest, _options: Options) -> Reply:
        labels = _labels(request)[:servers]
        listed = {
            item["server_label"]
            for item in request.items
            if item.get("type") == "mcp_list_tools"
        }
        lists = [
            build_mcp_list_tools(label, "now", "zones")
            for label in labels
            if label not in listed
        ]
        new_labels = {CLOCKS: labels[0], ATLAS: labels[-1]}
        relabeled = [
            (
                {**item, "server_label": new_labels[item["server_label"]]}
                if "server_label" in item
                else item
            )
            for item in items
        ]
        return make_reply(*lists, *relabeled)

    return compose


def _fail_to_list(request: ValidRequest, _options: Options) -> Reply:
    tool_list = build_mcp_list_tools(_labels(request)[0])
    failed = {**tool_list, "error": UNLISTED}
    return make_reply(failed, LOOKING, build_message("I cannot reach the clocks."))


def _run_approved(request: ValidRequest, _options: Options) -> Reply:
    """Make the approved calls, then say how many they were."""
    calls = [
        {
            **build_mcp_call(
                approval["server_label"], approval["name"], approval["arguments"], NOON
            ),
            "approval_request_id": approval["id"],
        }
        for approval in find_approved_calls(request.items)
    ]
    count = f"{len(calls)} of the calls were made."
    outcome = f"It said: {NOON}." if calls else "I go on without."
    return make_reply(*calls, build_message(f"{count} {outcome}"))


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
        build_mcp_list_tools(CLOCKS, "now"),
        LOOKING,
        CALL,
        build_mcp_call(CLOCKS, "now", TIME_ARGUMENTS, "13:00"),
        build_message("It is noon, or one."),
        fault=interleave_calls,
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
