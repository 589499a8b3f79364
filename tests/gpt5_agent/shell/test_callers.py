"""What a request may set, and what is left out."""

import re
from pathlib import Path
from typing import Any

import pytest

from gpt5_agent.shell.callers import find_unknown_keys, select_keys
from settings.expert_keys import AgentExpertKeys

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/agent-requests.md"
OPEN = AgentExpertKeys().caller_may_set

CASES: list[tuple[dict[str, Any], str, dict[str, Any], list[str]]] = [
    ({"model": "a", "messages": []}, OPEN, {"model": "a", "messages": []}, []),
    ({"query": "q", "context": [1]}, OPEN, {"query": "q", "context": [1]}, []),
    (
        {"query": "q", "emit_intermediate_thoughts": False},
        "",
        {},
        ["emit_intermediate_thoughts", "query"],
    ),
    ({"agent_model": "o3"}, OPEN, {}, ["agent_model"]),
    ({"agent_model": "o3"}, " Agent_Model ,", {"agent_model": "o3"}, []),
    ({"service_tier": None, "nonsense": 1, "seed": 2}, OPEN, {}, []),
    ({"reasoning": {"effort": "high"}}, OPEN, {"reasoning": {}}, ["reasoning_effort"]),
    (
        {"reasoning": {"effort": "high", "mode": "pro"}},
        "reasoning_effort",
        {"reasoning": {"effort": "high"}},
        ["reasoning"],
    ),
    (
        {"reasoning": {"effort": "high", "mode": "pro"}},
        "reasoning",
        {"reasoning": {"effort": "high", "mode": "pro"}},
        [],
    ),
    (
        {"text": {"verbosity": "low", "format": {}}},
        OPEN,
        {"text": {"format": {}}},
        ["verbosity"],
    ),
    ({"reasoning": "high", "text": 7}, OPEN, {}, ["reasoning", "text"]),
    ({"store": True, "previous_response_id": "r"}, OPEN, {}, []),
    (
        {"service_tier": "flex", "repairs": [], "tools": []},
        OPEN,
        {"tools": []},
        ["service_tier"],
    ),
]


@pytest.mark.parametrize(("body", "may_set", "kept", "refused"), CASES, ids=repr)
def test_only_keys_opened_by_the_valve_are_kept(
    body: dict[str, Any], may_set: str, kept: dict[str, Any], refused: list[str]
) -> None:
    """Fields of the API's objects count by their own names; nonsense is not told."""
    assert select_keys(body, may_set) == (kept, refused)


@pytest.mark.parametrize(
    ("may_set", "words"),
    [
        ("", ""),
        (OPEN, ""),
        ("Agent_Model, reasoning, service_tier, messages,", ""),
        ("agent-model, verbosity", "agent-model"),
        ("store, zzz, include", "include, store, zzz"),
        ("repairs, background_options, truncation", "background_options, repairs"),
    ],
)
def test_words_that_open_nothing(may_set: str, words: str) -> None:
    """They include what no one may set."""
    message = find_unknown_keys(may_set).partition("unknown names: ")[2]
    assert message.partition(".")[0] == words


def test_the_document_has_the_same_keys() -> None:
    """Each row of its table is kept, open, or left out as it says."""
    text = DOCUMENT.read_text("utf-8")
    table = text.partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (\w+) \|", table, re.MULTILINE)
    keys = {key: how for cell, how in rows for key in re.findall(r"`(\w+)`", cell)}
    body = dict.fromkeys(keys, "x")

    kept, _ = select_keys(body, OPEN)
    without, _ = select_keys(body, "")

    assert len(keys) > 25
    never = {key for key, how in keys.items() if how == "never"}
    assert not any(find_unknown_keys(key) for key in keys.keys() - never)
    assert all(find_unknown_keys(key) for key in never)
    assert {key for key, how in keys.items() if how == "always"} == without.keys()
    assert {key for key, how in keys.items() if how in ("always", "open")} == (
        kept.keys()
    )
