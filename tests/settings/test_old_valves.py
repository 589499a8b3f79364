"""What a server has stored for earlier pipes of this name can be read and saved again.

A value that cannot be read would make Open WebUI refuse the update of the pipe, drop all
settings of a user, and refuse each save (docs/reference/open-webui.md, "Valves").
"""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from calls.old_valves import OLD_USER_VALVES, OLD_VALVES
from gpt5_agent.shell.valves import Valves as AgentValves
from gpt5_agent.shell.valves import read_valve_settings
from owui_manifold.call.config import read_config
from owui_manifold.call.expert import PipeExpertKeys, WebSearchOptions
from owui_manifold.call.valves import UserValves, Valves
from sandbox.options import SandboxOptions
from settings.expert_keys import AgentExpertKeys
from settings.table import StoredValves


def test_old_valves_are_read() -> None:
    """Each at once, as the host does it; those with the same name keep their value."""
    valves = Valves.model_validate(OLD_VALVES)

    assert valves.BASE_URL == "https://gateway.example/v1"
    assert valves.PERSIST_REASONING_TOKENS == "response"
    assert valves.PROMPT_CACHE_KEY == "user"
    assert valves.LOG_LEVEL == "WARNING"
    assert (valves.MAX_TOOL_CALLS, valves.MAX_FUNCTION_CALL_LOOPS) == (1, 1)
    config = read_config(valves)
    assert config.problems == ()
    assert [tool["server_label"] for tool in config.remote.tools] == ["deepwiki"]
    assert config.prices is not None
    assert config.prices["gpt-5"].cached == 0.125


@pytest.mark.parametrize("level", ["INHERIT", "inherit", "Inherit"])
def test_inherit_is_read_in_any_case(level: str) -> None:
    """A user's other settings would be dropped with it."""
    valves = UserValves.model_validate({"LOG_LEVEL": level, "VERBOSITY": "low"})

    assert (valves.LOG_LEVEL, valves.VERBOSITY) == ("inherit", "low")


def test_old_valves_can_be_saved_again() -> None:
    for form, old in ((Valves, OLD_VALVES), (UserValves, OLD_USER_VALVES)):
        saved = form.model_validate(old).model_dump(exclude_unset=True)
        assert saved.keys() <= form.model_fields.keys()
        assert form.model_validate(saved).model_dump(exclude_unset=True) == saved


def test_a_stored_setting_without_effect_is_known_until_the_valves_are_saved() -> None:
    """A search is billed, so an old value does not turn it on.

    What the host stores when the valves are saved has only names of this pipe.
    """
    valves = Valves.model_validate(OLD_VALVES)
    saved = Valves.model_validate(valves.model_dump(exclude_unset=True))

    assert not valves.ENABLE_WEB_SEARCH
    assert {*valves.without_effect()} == OLD_VALVES.keys() - Valves.model_fields
    assert valves.model_copy().without_effect() == valves.without_effect()
    assert Valves.model_validate(valves).without_effect() == valves.without_effect()
    assert saved.without_effect() == {}


def test_a_stored_setting_that_agrees_with_the_default_has_lost_nothing() -> None:
    """Nor has a name that no earlier pipe had: another program may use it."""
    stored = {
        "ENABLE_WEB_SEARCH_TOOL": False,
        "WEB_SEARCH_CONTEXT_SIZE": "medium",
        "WEB_SEARCH_USER_LOCATION": None,
        "FETCH_MODELS": True,
        "MAX_RETRIES": 2,
        "SOMETHING_ELSE": True,
    }
    assert Valves.model_validate(stored).without_effect() == {}
    assert Valves().without_effect() == {}


@pytest.mark.parametrize(
    ("valves", "forms"),
    [
        (Valves, (PipeExpertKeys, WebSearchOptions)),
        (AgentValves, (AgentExpertKeys, SandboxOptions)),
    ],
)
def test_an_old_name_says_what_took_its_place(
    valves: type[StoredValves], forms: tuple[type[BaseModel], ...]
) -> None:
    """It is no valve, and what it tells to set can be set at the same door."""
    keys = {"default"}.union(
        valves.model_fields, *(form.model_fields for form in forms)
    )
    for name, old in valves.old_names.items():
        assert name not in valves.model_fields
        if old.instead.startswith("Set"):
            assert set(re.findall(r"`(\w+)`", old.instead)) <= keys, name


KEYS_AT_BOTH_DOORS = {
    "CALLER_MAY_SET": "",
    "REQUEST_MAY_SET": "",
    "MAX_RETRIES": 2,
    "CONNECT_TIMEOUT_SECONDS": 30,
    "FIRST_EVENT_TIMEOUT_SECONDS": 300,
    "IDLE_TIMEOUT_SECONDS": 300,
    "AUDIT_LOG": False,
}
PIPE = KEYS_AT_BOTH_DOORS | {
    "FETCH_MODELS": True,
    "STABLE_INSTRUCTIONS": "auto",
    "PROMPT_CACHE_DIAGNOSTICS": False,
    "ENABLE_STRICT_TOOL_CALLING": False,
    "USER_KEYS_GET": "nothing",
    "AUTH_SCOPE": "",
    "MAX_RETRY_WAIT_SECONDS": 60,
    "TOTAL_TIMEOUT_SECONDS": 0,
    "ENABLE_WEB_SEARCH_TOOL": False,
    "WEB_SEARCH_CONTEXT_SIZE": "medium",
    "WEB_SEARCH_USER_LOCATION": "",
    "WEB_SEARCH_ALLOWED_DOMAINS": "",
    "SHOW_USAGE_COST": False,
    "AUTO_ENABLE_NATIVE_FUNCTION_CALLING": False,
    "MODEL_ICON_URL": "",
}
AGENTS = KEYS_AT_BOTH_DOORS | {
    "CALLER_MAY_SET": "context, query, emit_intermediate_thoughts",
    "REQUEST_MAY_SET": "context, query, emit_intermediate_thoughts",
    "MAX_RETRIES": 1,
    "SANDBOX_SECONDS": 30,
    "SANDBOX_MEMORY_MB": 512,
    "SANDBOX_DISK_MB": 64,
    "SANDBOX_WHEELS": "",
    "MCP_SERVERS_JSON": "",
    "OPENAPI_SERVERS_JSON": "",
    "ALLOW_STDIO": False,
    "FILES_ROOT": "",
    "AUTH": "key",
    "AUTH_SCOPE": "",
    "FORWARD_USER_INFO": "never",
}
ALWAYS_TOLD = {
    Valves: {"TOOL_TIMEOUT_SECONDS", "TOOL_EXECUTION", "MODEL_FETCH_TTL_SECONDS"},
    AgentValves: {"TOOL_TIMEOUT_SECONDS"},
}
"""They had no value with which nothing is lost."""


@pytest.mark.parametrize(
    ("valves", "harmless"), [(Valves, PIPE), (AgentValves, AGENTS)]
)
def test_each_old_valve_is_told_unless_nothing_is_lost(
    valves: type[StoredValves], harmless: dict[str, object]
) -> None:
    others = dict.fromkeys([*harmless, *ALWAYS_TOLD[valves]], "something")

    assert valves.model_validate(harmless).without_effect() == {}
    assert valves.model_validate(others).without_effect().keys() == others.keys()
    assert valves.old_names.keys() == others.keys()


def test_agents_tell_their_old_valves_until_the_valves_are_saved() -> None:
    """The Pipelines server has no `/check`: the log and a notice say it."""
    stored = {"MAX_RETRIES": 4, "SANDBOX_SECONDS": 30, "MCP_SERVERS_JSON": "[{}]"}
    valves = AgentValves.model_validate(stored)

    assert read_valve_settings(valves).problems == (
        "The stored valve MAX_RETRIES has no effect. Set `max_retries` in "
        "`EXPERT_JSON` instead.",
        "The stored valve MCP_SERVERS_JSON has no effect. Connect the servers to Open "
        "WebUI: the agents use its tools.",
    )
    saved = AgentValves.model_validate(valves.model_dump())
    assert read_valve_settings(saved).problems == ()


def test_page_says_what_becomes_of_each_old_valve() -> None:
    """One that is kept is a valve; `/check` says the same of another."""
    page = (Path(__file__).parents[2] / "docs/install.md").read_text("utf-8")
    section = page.partition("### Stored settings")[2]
    row = re.compile(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| ([^|]+) \|$", re.MULTILINE)
    fates: dict[str, str] = {}
    for names, fate in row.findall(section):
        fates |= dict.fromkeys(re.findall(r"`([A-Z_]+)`", names), fate)

    assert fates.keys() == {*OLD_VALVES, *OLD_USER_VALVES}
    for name, fate in fates.items():
        kept = name in {**Valves.model_fields, "LOG_LEVEL": 0}
        assert fate.startswith("Kept") is kept, name
        assert kept or fate == Valves.old_names[name].instead
