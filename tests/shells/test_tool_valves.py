"""The valves for tools: TOOL_APPROVAL and TOOL_TIMEOUTS."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.loop.tools import Approval, Approver
from shells.tool_valves import read_rules, read_timeouts
from shells.valve_messages import PIPE_SHELL


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (" \n , ", []),
        ("shell=DENY", [("shell", "deny")]),
        ("shell", [("shell", "ask")]),
        ("shell=", [("shell", "ask")]),
        (
            "delete_*=ask, shell = deny\n*=auto",
            [("delete_*", "ask"), ("shell", "deny"), ("*", "auto")],
        ),
    ],
)
def test_rules_are_read(text: str, rules: list[tuple[str, Approval]]) -> None:
    assert read_rules(text, PIPE_SHELL) == (rules, "")


@pytest.mark.parametrize(
    "entry",
    [
        *("delete_*:ask", "delete_*: deny", "shell=maybe", "=ask", "a=ask=deny"),
        *("=yes", "deny", "ask=deny", "delete_* deny", "delete_*->deny", "delete_[ab"),
        *('"delete_*"=deny', "a=deny; b=ask", "delete " + "x" * 40),
    ],
)
def test_entry_that_cannot_be_read_lets_nothing_run_unasked(entry: str) -> None:
    """It may be meant to deny anything; what is denied elsewhere stays denied."""
    rules, problem = read_rules(f"read_*=auto, {entry}, shell=deny", PIPE_SHELL)

    approver = Approver(rules)
    assert approver.rule_for("read_file") == "ask"
    assert approver.rule_for("delete_file") == "ask"
    assert approver.rule_for("shell") == "deny"
    assert repr(entry[:40]) in problem  # they may paste anything
    assert "An administrator has to correct it in the valves of this pipe" in problem


@given(st.text(alphabet="ab*=,:\n askdenyuto"))
def test_any_text_is_read(text: str) -> None:
    rules, problem = read_rules(text, PIPE_SHELL)

    assert all(pattern for pattern, _ in rules)
    assert {answer for _, answer in rules} <= {"auto", "ask", "deny"}
    entries = [entry for entry in re.split("[,\n]", text) if entry.strip()]
    assert problem or len(rules) == len(entries)


@pytest.mark.parametrize(
    ("text", "default", "limits"),
    [
        ("", 120, []),
        ("a: 5\n\n crawl_*:600,", 120, [("a", 5), ("crawl_*", 600)]),
        ("ask: 60, deny: 5", 120, [("ask", 60), ("deny", 5)]),
        # As a line of a text begins; else it would be the limit of no tool.
        ("Default: 7\nx: 5", 7, [("x", 5)]),
    ],
)
def test_times_of_tools_are_read(
    text: str, default: float, limits: list[tuple[str, float]]
) -> None:
    assert read_timeouts(text, PIPE_SHELL) == ((default, limits), "")


@pytest.mark.parametrize(
    "entry",
    [
        *("crawl_*", "a: 0", "a: -1", "a: 1e9", "a: nan", ": 5", "a b: 5", "a: 5: 6"),
        "a" * 50,
    ],
)
def test_unreadable_timeout_is_reported_and_others_apply(entry: str) -> None:
    text = f"default: 7, x: 5, {entry}"
    limits, problem = read_timeouts(text, PIPE_SHELL)

    assert limits == (7, [("x", 5)])
    assert "TOOL_TIMEOUTS" in problem
    assert repr(entry[:40]) in problem
    assert "in the valves of this pipe" in problem
