"""What the model says when it calls tools of remote servers."""

import json
from typing import Any

from simulator.asked import Asked
from simulator.builders import (
    Item,
    function_call,
    mcp_approval_request,
    mcp_call,
    mcp_list_tools,
    message,
    reasoning,
)
from simulator.disorder import interleave
from simulator.mcp_check import approved_calls
from simulator.options import Options
from simulator.scenario import (
    Compose,
    HttpReply,
    Reply,
    Scenario,
    reply,
    scenario,
)

LOOKING = reasoning("**Choosing a tool**\n\nThis has to be looked up.")
CLOCKS, ATLAS = "clocks", "atlas"
UTC = '{"zone":"UTC"}'
MANY = '{"zone": "Europe/Zurich", "format": "%H:%M"}'
NOON = "12:00"
FAILURE = {
    "type": "mcp_tool_execution_error",
    "content": [{"type": "text", "text": "The zone Atlantis is not known."}],
}
UNLISTED = "Http status code: 401 (Unauthorized)"


def _labels(asked: Asked) -> list[str]:
    """Return the labels of the offered servers, else two to show what they look like."""
    return [tool["server_label"] for tool in asked.tools("mcp")] or [CLOCKS, ATLAS]


def _lists(asked: Asked, *labels: str) -> list[Item]:
    """Return the lists of tools that the input does not hold yet."""
    known = {
        item["server_label"]
        for item in asked.items
        if item.get("type") == "mcp_list_tools"
    }
    return [mcp_list_tools(one, "now", "zones") for one in labels if one not in known]


def _after_lists(*items: Item, servers: int = 1) -> Compose:
    """Return a reply of `items`, whose label `$server` is that of the first server."""

    def compose(asked: Asked, options: Options) -> Reply:
        del options
        labels = _labels(asked)[:servers]
        named = [_named(item, labels) for item in items]
        return reply(*_lists(asked, *labels), *named)

    return compose


def _named(item: Item, labels: list[str]) -> Item:
    places = {CLOCKS: labels[0], ATLAS: labels[-1]}
    label = item.get("server_label")
    return {**item, "server_label": places[label]} if label in places else item


def _unlisted(asked: Asked, options: Options) -> Reply:
    del options
    broken: Item = {**mcp_list_tools(_labels(asked)[0]), "error": UNLISTED}
    return reply(broken, LOOKING, message("I cannot reach the clocks."))


def _unreached(asked: Asked, options: Options) -> Reply | HttpReply:
    """Refuse the request as long as it names a server."""
    del options
    servers = asked.tools("mcp")
    if not servers:
        return reply(LOOKING, message("I have no clock here."))
    error = {
        "message": "Error retrieving tool list from MCP server: "
        f"'{servers[0]['server_label']}'. Http status code: 424 (Failed Dependency)",
        "type": "external_connector_error",
        "param": "tools",
        "code": "http_error",
    }
    return HttpReply(424, json.dumps({"error": error}))


def _decided(asked: Asked, options: Options) -> Reply:
    """Make the calls that were allowed, then say what came of all."""
    del options
    calls = [_allowed(request) for request in approved_calls(asked.items)]
    made = f"{len(calls)} of the calls were made."
    heard = f" It said: {NOON}." if calls else " I go on without."
    return reply(*calls, message(made + heard))


def _allowed(request: Any) -> Item:
    call = mcp_call(
        request["server_label"], request["name"], request["arguments"], NOON
    )
    return {**call, "approval_request_id": request["id"]}


CALL = mcp_call(CLOCKS, "now", UTC, NOON)
QUESTION = mcp_approval_request(CLOCKS, "now", UTC)
SECOND_QUESTION = mcp_approval_request(CLOCKS, "zones", "{}")
FAILED_CALL = {
    **mcp_call(CLOCKS, "now", '{"zone":"Atlantis"}', ""),
    "output": None,
    "error": FAILURE,
    "status": "failed",
}

MCP_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "mcp",
        "the list of a remote server's tools, a call there, then the answer",
        _after_lists(LOOKING, CALL, message("It is noon.")),
    ),
    scenario(
        "mcp-two",
        "two servers, a call to each, with reasoning and a word between them",
        _after_lists(
            LOOKING,
            CALL,
            message("It is noon. Now the map.", phase="commentary"),
            reasoning("**Looking at the map**\n\nWhere is noon?"),
            mcp_call(ATLAS, "zones", "{}", "UTC\nCET\n"),
            message("Noon is in two zones.", phase="final_answer"),
            servers=2,
        ),
    ),
    scenario(
        "mcp-parallel",
        "two remote calls whose events arrive mixed, then the answer",
        reply(
            mcp_list_tools(CLOCKS, "now"),
            LOOKING,
            CALL,
            mcp_call(CLOCKS, "now", MANY, "13:00"),
            message("It is noon, or one."),
            disorder=interleave,
        ),
    ),
    scenario(
        "mcp-error",
        "a remote call that fails, then the answer",
        _after_lists(LOOKING, FAILED_CALL, message("That zone is not known.")),
    ),
    scenario(
        "mcp-unlisted",
        "a remote server whose tools cannot be listed, then the answer",
        _unlisted,
    ),
    scenario(
        "mcp-unreachable",
        "a refusal because a remote server is down; without it an answer",
        _unreached,
    ),
    scenario(
        "mcp-then-tool",
        "a remote call beside a function call, then an answer from both outputs",
        _after_lists(LOOKING, CALL, function_call("$tool", "$arguments")),
        reply(message("They said: $output")),
    ),
    scenario(
        "mcp-approval",
        "a question whether a remote call may be made, then what came of it",
        _after_lists(LOOKING, QUESTION),
        _decided,
    ),
    scenario(
        "mcp-approvals",
        "two such questions and a function call at once, then what came of them",
        _after_lists(
            LOOKING, QUESTION, SECOND_QUESTION, function_call("$tool", "$arguments")
        ),
        _decided,
    ),
    scenario(
        "mcp-approval-forever",
        "the same question after every answer",
        _after_lists(LOOKING, QUESTION),
    ),
)
