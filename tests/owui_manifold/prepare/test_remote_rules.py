"""A rule holds for the tools of remote MCP servers, also for those never approved."""

import json
from typing import Any

import pytest

from calls.sample import call_of, chat
from openai_responses.loop.tools import Approval
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.remote_rules import default_remote_rule, put_under_rules

CRM: dict[str, Any] = {
    "type": "mcp",
    "server_label": "crm",
    "server_url": "https://crm.example/mcp",
    "require_approval": "never",
}


@pytest.mark.parametrize(
    ("given", "rules", "is_asked"),
    [
        ({}, [], False),
        ({}, [("crm_*", "auto")], False),
        ({}, [("crm_delete", "deny")], True),
        # It may have a tool of any name.
        ({}, [("delete_*", "deny")], True),
        ({"allowed_tools": ["read"]}, [("delete_*", "deny")], False),
        ({"allowed_tools": ["read"]}, [("crm_*", "ask")], True),
        ({"allowed_tools": ["delete_all"]}, [("delete_*", "deny")], True),
        ({"allowed_tools": {"tool_names": ["read"]}}, [("delete_*", "deny")], False),
        ({"allowed_tools": {"read_only": True}}, [("delete_*", "deny")], True),
    ],
)
def test_server_asks_where_a_rule_may_be_about_it(
    given: dict[str, Any], rules: list[tuple[str, Approval]], *, is_asked: bool
) -> None:
    """OpenAI makes an unasked call without telling anybody."""
    server = {**CRM, **given}

    setting = put_under_rules(server, rules)["require_approval"]

    assert setting == ("always" if is_asked else "never")
    own = {"type": "web_search"}
    assert put_under_rules(own, rules) == own


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("never", "auto"),
        ("always", "ask"),
        (None, "ask"),
        ({"never": {"tool_names": ["read"]}}, "auto"),
        ({"never": {"tool_names": ["write"]}}, "ask"),
        ({"never": {"read_only": True}}, "ask"),
    ],
)
def test_call_that_no_rule_is_about(setting: object, rule: str) -> None:
    """It is answered as the server's description says."""
    server = {**CRM, "require_approval": setting}
    request = {"server_label": "crm", "name": "read"}

    other = {**CRM, "server_label": "other"}
    assert default_remote_rule([CRM, server, other], request) == rule
    assert default_remote_rule([], request) == "ask"


@pytest.mark.asyncio
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("is_callers", [False, True])
async def test_rule_holds_for_a_server_that_asks_nobody(*, is_callers: bool) -> None:
    """One of the valve, and one that a caller may offer."""
    body = chat("Hi")
    valves = {
        "API_KEY": "sk-1",
        "TOOL_APPROVAL": "crm_delete=deny",
        "EXPERT_JSON": '{"caller_may_set": "mcp, mcp.authorization"}',
    }
    if is_callers:
        body["tools"] = [CRM]
    else:
        valves["REMOTE_MCP_SERVERS_JSON"] = json.dumps([CRM])

    prepared = await build_chat_request(call_of(body, Valves.model_validate(valves)))

    [server] = prepared.request.tools or []
    assert server["require_approval"] == "always"
    assert prepared.toolset
    approver = prepared.toolset.approver
    assert approver.rule_for("crm_delete", "delete") == "deny"
    assert approver.remote_default({"server_label": "crm", "name": "read"}) == "auto"
