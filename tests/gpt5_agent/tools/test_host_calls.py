"""Names of Open WebUI's tools."""

import hashlib
import json
from typing import Any

import pytest

from gpt5_agent.tools.host_calls import HostToolNames, names_no_tool, resolve_host_call

PASSED_ON: list[tuple[Any, tuple[str, Any] | None]] = [
    ({"tool_name": "delete", "params": '{"id": 1}'}, ("delete", '{"id": 1}')),
    ({"tool_name": "delete", "params": '{"id": 1}', "more": 1}, None),
    ({"tool_name": "delete"}, None),
    ({"params": "{}"}, None),
    ({"tool_name": 7, "params": "{}"}, None),
    ({"tool_name": "delete", "params": 7}, None),
    ([], None),
]
"""Arguments of `call_tool`; the name and the arguments of the call that is made."""


@pytest.mark.parametrize(("arguments", "made"), PASSED_ON)
def test_rules_see_the_call_that_the_host_makes(
    arguments: Any, made: tuple[str, Any] | None
) -> None:
    """What the host would not pass on stays a call of `call_tool`."""
    call = {"name": "call_tool", "call_id": "c", "arguments": json.dumps(arguments)}

    resolved = resolve_host_call(call)

    if made is None:
        assert resolved is call
    else:
        assert resolved == {**call, "name": made[0], "arguments": made[1]}
    assert names_no_tool(call) is (made is None)
    other = {**call, "name": "other"}
    assert resolve_host_call(other) is other
    assert not names_no_tool(other)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("files_delete", {"delete"}),
        ("files_files_files_delete", {"delete"}),
        ("files_files_delete", {"delete", "files_delete"}),
        ("my_files_list", {"list"}),
        ("my_files_my_files_list", {"list"}),
        ("c++_delete", {"delete"}),
        ("delete_files", set()),
        ("filesdelete", set()),
        ("files", set()),
    ],
)
def test_own_name_of_a_tool_that_the_host_renamed(name: str, own: set[str]) -> None:
    """The id may be in front several times, and the name may begin like it."""
    ids = frozenset({"files", "my_files", "server", "c++"})

    names = set(HostToolNames(mcp_ids=ids).other_names(name))

    assert own <= names
    assert bool(own) == bool(names)


def test_longer_name_that_a_tool_had() -> None:
    """In a chat with two tools of that name; a user can name any id next to it.

    Tools of MCP servers always have the longer name.
    """
    toolkits = frozenset({"files", "delete"})
    names = HostToolNames(toolkits, mcp_ids=frozenset({"files", "docs"}))

    assert "files_delete_it" in names.other_names("delete_it")
    assert "docs_delete_it" not in names.other_names("delete_it")


def test_own_tool_of_the_agent_has_no_other_name() -> None:
    """Open WebUI renames none of them."""
    names = HostToolNames(frozenset({"files"}), own_tools=frozenset({"delete_it"}))

    assert names.other_names("delete_it") == []


def test_long_name_grows_no_list_of_names() -> None:
    name = "a_" * 50_000 + "delete"
    names = HostToolNames(mcp_ids=frozenset({"a"}))

    assert names.other_names(name) == ["delete", "a_delete"]


def cut_name(name: str) -> str:
    """The name of an MCP server's tool as Open WebUI 0.12 sends it."""
    if len(name) <= 64:
        return name
    return f"{name[:55]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


LONG = "generate_the_quarterly_report_of_one_customer_and_delete_it"
LONG_ID = "the_server_of_the_department_for_customers_and_contracts"


@pytest.mark.parametrize(
    ("pattern", "server", "tool", "matches"),
    [
        ("*_delete_it", "reports", LONG, True),
        ("*delete*", "reports", LONG, True),
        ("generate_*_and_[a-e]elete_it", "reports", LONG, True),
        (LONG, "reports", LONG, True),
        (f"reports_{LONG}", "reports", LONG, True),
        (f"reports_{LONG}", LONG_ID, LONG, False),
        (LONG.upper(), "reports", LONG, True),
        (LONG.upper().replace("DELETE", "REMOVE"), "reports", LONG, False),
        ("*_Delete_it", "reports", LONG, True),
        ("Reports_generate_*", "reports", LONG, True),
        (LONG.replace("delete", "remove"), "reports", LONG, False),
        ("generate_the_yearly_*", "reports", LONG, False),
        ("reports_generate_*", "reports", LONG, True),
        ("Generate_*_Delete_It", "reports", LONG, True),
        ("reports_generate_*", "Reports", LONG, True),
        (f"reports_{LONG}", "Reports", LONG, True),
        ("reports_send_*", "reports", LONG, False),
        ("send_*", "reports", LONG, False),
        ("send_*", LONG_ID, LONG, True),  # nothing of its own name is left
        (LONG, LONG_ID, LONG, True),
        (f"{LONG_ID}_*", LONG_ID, LONG, True),
        ("*delete*", "reports", "delete_it", False),  # it is whole: others compare it
    ],
)
def test_rule_may_be_about_a_name_that_was_cut(
    pattern: str, server: str, tool: str, matches: bool
) -> None:
    """The beginning has to fit; a pattern without wildcards is compared by its hash.

    Both in upper and lower case, as rules to ask or to deny hold (`Approver`).
    """
    ids = frozenset({server, "other"})
    sent = cut_name(f"{server}_{tool}")

    assert HostToolNames(mcp_ids=ids).may_match(sent, pattern) is matches


def test_only_names_of_mcp_servers_are_cut() -> None:
    """Any other name that looks like it is whole."""
    sent = cut_name(f"reports_{LONG}")
    names = HostToolNames(frozenset({"reports"}))

    assert not names.may_match(sent, "*delete*")
    more = HostToolNames(has_more=True)  # of servers that are not known
    assert more.may_match(sent, "*delete*")


def test_id_of_hundreds_of_characters_is_none() -> None:
    """The model chooses the name, so not all of it is looked at."""
    names = HostToolNames(mcp_ids=frozenset({"x" * 300, "files"}))

    assert names.other_names("x" * 300 + "_delete") == []
    assert names.other_names("files_delete") == ["delete", "files_delete"]
