"""What valves and a request come to."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.sample import WeatherTool
from calls.valves import expert
from gpt5_agent.ports import Tool
from gpt5_agent.request import AgentRequest, PipelineCaller
from gpt5_agent.shell.call import (
    PipelineCall,
    SharedState,
    build_agent_request,
    build_endpoint,
    build_limits,
)
from gpt5_agent.shell.inlet import AttachedToChat, read_caller
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import OwnToolOffer
from gpt5_agent.shell.valves import Valves, read_valve_settings
from gpt5_agent.tools.host_calls import HostToolNames
from openai_responses.errors import InvalidRequest
from strategies.parameters import StrategyParameters

KEY = "sk-simulator-12345"
MESSAGES = [{"role": "user", "content": "hello"}]


def question(body: dict[str, Any] | None = None, **valves: Any) -> PipelineCall:
    """A question with these keys in its body, under these valves."""
    given = {"API_KEY": KEY, **valves}
    settings = read_valve_settings(Valves(**given))
    shared = SharedState()
    log = AgentLog("ID")
    body = body or {}
    caller = read_caller(body)
    return PipelineCall("gpt5_react", MESSAGES, body, settings, shared, log, caller)


def requested(call: PipelineCall, *tools: Tool) -> AgentRequest:
    """What the agent is asked then, with tools that run here."""
    endpoint = build_endpoint(call.valves, call.log)
    return build_agent_request(call, endpoint, OwnToolOffer(tools))


def asked(body: dict[str, Any] | None = None, **valves: Any) -> AgentRequest:
    return requested(question(body, **valves))


def test_the_valves_hold_where_the_request_is_silent() -> None:
    request = asked(
        MODEL="gpt-5.2-high",
        INSTRUCTION="Sell shoes.",
        PROMPT_POLICY_OVERRIDES="Answer in French.",
        POLICY_STYLE="lean",
        CONTEXT="Open 9 to 17.",
        MAXIMUM_ITERATIONS=3,
        MAXIMUM_SECONDS=60,
        MAXIMUM_TOKENS=1000,
        TOOL_APPROVAL="delete_*=ask",
    )

    assert request.strategy == "gpt5_react"
    assert request.messages == MESSAGES
    assert request.parameters == StrategyParameters(
        model="gpt-5.2-high",
        instruction="Sell shoes.",
        prompt_policy_overrides="Answer in French.",
        context="Open 9 to 17.",
        policy_style="lean",
        maximum_iterations=3,
        maximum_seconds=60,
        maximum_tokens=1000,
    )
    assert request.own_tools.approver.rules == [("delete_*", "ask")]


def test_the_request_wins() -> None:
    request = asked(
        {
            "model": "gpt5_agent_strategies.gpt5_react",
            "agent_model": "o3",
            "instruction": "Sell hats.",
            "prompt_policy_overrides": {"extra_policy": "Be brief."},
            "context": [{"content": "one"}],
            "query": "and today?",
            "maximum_iterations": "9",
        },
        INSTRUCTION="Sell shoes.",
        PROMPT_POLICY_OVERRIDES="Answer in French.",
        CONTEXT="Open 9 to 17.",
    )

    parameters = request.parameters
    assert parameters.model == "o3"
    assert parameters.instruction == "Sell hats."
    overrides = json.loads(parameters.prompt_policy_overrides)
    assert overrides == {"extra_policy": "Be brief."}
    assert parameters.context == [{"content": "one"}]
    assert request.messages == [{"role": "user", "content": "and today?"}]
    assert parameters.maximum_iterations == 9


def test_a_query_is_the_question_of_a_chat() -> None:
    """Pictures stay with it; the prompt of a task is the host's own."""
    picture = {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}
    texts = [{"type": kind, "text": "?"} for kind in ("text", "input_text")]
    asked_before = {"role": "user", "content": [*texts, picture]}
    answer = {"role": "assistant", "content": "Yes."}
    chat = question({"query": "Why?"})._replace(messages=[asked_before, answer])
    task = chat._replace(caller=PipelineCaller(task="title_generation"))

    said = {"type": "text", "text": "Why?"}
    replaced = {"role": "user", "content": [said, picture]}
    assert requested(chat).messages == [replaced, answer]
    assert requested(task).messages == [asked_before, answer]
    assert requested(chat._replace(messages=[answer])).messages == [
        answer,
        {"role": "user", "content": "Why?"},
    ]
    unread: Any = ["x"]
    assert requested(chat._replace(messages=unread)).messages == unread


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_person_is_asked_only_where_there_is_a_chat(is_asked: bool) -> None:
    page = PipelineCaller(chat_id="c-1", message_id="m-1", streams=True)
    caller = page if is_asked else PipelineCaller()

    own_tools = requested(question()._replace(caller=caller)).own_tools

    assert own_tools.asks_in_chat is is_asked
    assert own_tools.approver.ask is None


def test_rules_hold_for_other_names_of_the_host_s_tools() -> None:
    """By the ids that are attached to the chat; our own tools have one name."""
    attached = AttachedToChat(HostToolNames(frozenset({"kit"}), frozenset({"docs"})))
    call = question(TOOL_APPROVAL="kit_*=deny, *_everything=ask")._replace(
        attached=attached
    )

    request = requested(call, WeatherTool("own_weather"))

    rule_for = request.own_tools.approver.rule_for
    cut = f"{'docs_search_':a<55}_0123abcd"
    assert rule_for("look") == "deny"
    assert rule_for("own_weather") == "auto"
    without_kit = replace(request.own_tools.approver, rules=[("*_everything", "ask")])
    assert without_kit.rule_for(cut) == "ask"
    assert without_kit.rule_for("docs_search") == "auto"


@pytest.mark.parametrize(
    ("delegation", "rules", "rule"),
    [
        pytest.param(False, "kit_*=deny", "deny", id="a tool of the kit"),
        pytest.param(True, "kit_*=deny", "auto", id="our own"),
        pytest.param(True, "kit_*=deny, own_*=ask", "deny", id="no tool for tasks"),
    ],
)
def test_delegate_is_our_own_tool_only_where_there_are_tasks(
    delegation: bool, rules: str, rule: str
) -> None:
    """Else a toolkit may have one of that name, for which the longer name holds."""
    attached = AttachedToChat(HostToolNames(frozenset({"kit"})))
    call = question(TOOL_APPROVAL=rules, DELEGATION=delegation)

    request = requested(call._replace(attached=attached), WeatherTool("own_weather"))

    rule_for = request.own_tools.approver.rule_for
    assert rule_for("delegate") == rule
    assert rule_for("own_weather") == ("ask" if "own_" in rules else "auto")


def test_unreadable_approval_rule_asks_and_is_reported() -> None:
    """Every call is asked about; administrators read why in the chat."""
    expert = f'{{"sk-proj-{"a1" * 12}": 1}}'  # others may read the chat
    call = question(TOOL_APPROVAL="read_*=auto, delete_*:deny", EXPERT_JSON=expert)
    of_admin = call._replace(caller=PipelineCaller(is_admin=True))
    readable = question()._replace(caller=PipelineCaller(is_admin=True))

    for_user, for_admin, silent = map(requested, (call, of_admin, readable))

    approver = for_user.own_tools.approver
    assert [approver.rule_for(name) for name in ("read_x", "other")] == ["ask"] * 2
    # An empty one would hide other lines.
    assert [*for_user.take_notices(), *silent.take_notices()] == []
    told = "".join(for_admin.take_notices())
    assert "'delete_*:deny'" in told
    assert "the valves of this pipeline" in told
    assert "unknown names: [redacted]." in told
    assert for_admin.take_notices() == []  # it was shown


def test_end_of_the_model_is_told_once_in_each_chat(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And once in the log."""
    call = question(MODEL="gpt-5")
    callers = [PipelineCaller(chat_id=chat_id) for chat_id in ("a", "a", "b")]

    told = [requested(call._replace(caller=who)).take_notices() for who in callers]

    assert [len(lines) for lines in told] == [1, 0, 1]
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(("given", "meant"), [(99, 30), (None, 4), (2.9, 2)])
def test_iterations_of_a_request_are_clamped(given: object, meant: int) -> None:
    request = asked({"maximum_iterations": given}, MAXIMUM_ITERATIONS=4)

    assert request.parameters.maximum_iterations == meant


@pytest.mark.parametrize("nothing", ["  ", 7])
def test_empty_request_field_keeps_the_valve(nothing: object) -> None:
    """And a valve that is empty has its default."""
    body = {"instruction": nothing, "agent_model": nothing, "context": []}
    request = asked(body, INSTRUCTION="A", CONTEXT="B", MODEL="")

    assert (request.parameters.instruction, request.parameters.context) == ("A", "B")
    assert request.parameters.model == Valves().MODEL


def test_half_a_character_names_a_model_that_no_server_has() -> None:
    request = asked({"agent_model": "gpt\ud83d", "instruction": "Sell \ud83d."})

    assert request.model.id == "gpt?"
    assert request.parameters.instruction == "Sell ?."


def test_a_preset_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"systemPrompt": "You are mine."}')

    built_in = asked(PRESET="researcher").parameters.guide
    own = asked(PRESET="mine", PRESETS_DIR=f" {tmp_path}\n").parameters.guide

    assert built_in
    assert "sources" in built_in.system_prompt
    assert own
    assert own.system_prompt == "You are mine."
    with pytest.raises(InvalidRequest, match="PRESET") as refused:
        asked(PRESET="nobody")
    assert refused.value.remedy == "setup"


@pytest.mark.parametrize(
    ("given", "valve", "shown"),
    [
        (None, False, False),
        ("false", True, False),
        (False, True, False),
        (True, False, True),
    ],
)
def test_thoughts_are_shown_or_not(given: object, valve: bool, shown: bool) -> None:
    """The request's word counts, in every form of yes and no (R6)."""
    body = {"emit_intermediate_thoughts": given}

    request = asked(body, EMIT_INTERMEDIATE_THOUGHTS=valve)

    assert request.parameters.emit_intermediate_thoughts is shown


def test_valves_become_the_engines_settings() -> None:
    call = question(
        {"stream": True},
        REASONING_EFFORT="low",
        REASONING_SUMMARY="disabled",
        VERBOSITY="high",
        PARALLEL_TOOL_CALLS=False,
        EXPERT_JSON=expert(max_retries=4, idle_timeout_seconds=77),
        TOOL_TIMEOUTS="default: 5, slow_*: 9",
        TOOL_OUTPUT_CHARACTERS=2000,
    )

    request = requested(call)

    settings = request.settings
    assert settings.effort == "low"
    assert settings.summary is None
    assert settings.verbosity == "high"
    assert settings.stream is True
    assert not asked({"stream": True}, ENABLE_STREAM=False).settings.stream
    assert settings.defaults["parallel_tool_calls"] is False
    limits = build_limits(call, request)
    assert limits.retries.max_retries == 4
    assert limits.timeouts.idle == 77
    assert request.own_tools.limits.own_seconds("slow_one") == 9
    assert request.own_tools.limits.seconds == 5
    assert request.own_tools.limits.characters == 2000


@pytest.mark.parametrize(
    ("model", "most", "thresholds"),
    [
        ("gpt-6.1-sol-high", 2_000_000, [525_000]),
        ("gpt-6.1-sol-high", 200_000, [200_000]),
        ("gpt-6.1-sol-high", 0, []),
        ("somebody's", 200_000, [200_000]),
    ],
)
def test_long_work_is_compacted_at_half_of_the_window(
    model: str, most: int, thresholds: list[int]
) -> None:
    """An input that fills the window would be refused; the valve may say less."""
    defaults = asked(MODEL=model, COMPACTION_TOKENS=most).settings.defaults

    ways = defaults.get("context_management", [])
    assert ways == [
        {"type": "compaction", "compact_threshold": threshold}
        for threshold in thresholds
    ]


def test_the_endpoint_has_the_secrets_in_clear(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are revealed only on the way to the server; the log knows to hide them."""
    monkeypatch.setenv("TEAM_KEY", "team-secret")
    headers = {
        "X-Team": "env:TEAM_KEY",
        "X-Plain": "plain-secret",
        "X-Gate": "Token gate-secret",
    }
    valves = Valves(
        API_KEY=f'"Bearer {KEY}"',
        EXTRA_HEADERS=json.dumps(headers),
        PROXY="http://user:pass%20word@127.0.0.1:9",
        ORGANIZATION=" org ",
        COMPATIBILITY="strict",
        VERIFY_SSL=False,
    )

    log = AgentLog("ID")
    endpoint = build_endpoint(valves, log)

    assert endpoint.headers()["Authorization"] == f"Bearer {KEY}"
    assert endpoint.headers()["X-Team"] == "team-secret"
    assert endpoint.headers()["X-Plain"] == "plain-secret"
    assert endpoint.organization == "org"
    assert endpoint.compatibility == "strict"
    assert not endpoint.verify_ssl
    for secret in (KEY, "team-secret", "plain-secret", "pass word", "gate-secret"):
        log.warn(f"({secret})")
        assert log.redacted_for_model(f"({secret})") == "([redacted])"
    assert caplog.messages == ["ID ([redacted])"] * 5


@pytest.mark.asyncio
async def test_connections_are_closed_where_tools_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = SharedState()
    closed: list[str] = []

    async def fail() -> None:
        raise OSError("busy")

    async def note() -> None:
        closed.append("connections")

    monkeypatch.setattr(shared.own_tools, "close", fail)
    monkeypatch.setattr(shared.connections, "close", note)
    with pytest.raises(OSError, match="busy"):
        await shared.close()

    assert closed == ["connections"]
