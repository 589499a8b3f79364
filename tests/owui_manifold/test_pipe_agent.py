"""Agents in the pipe: strategies as models, and the switch that makes one of a model."""

import json
from itertools import pairwise
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    errors,
    host_events,
    statuses,
    stored,
)
from calls.sample import IDS, TOOL, USER, chat
from calls.turns import row_of
from calls.valves import expert
from openai_responses.items import message_text
from owui_chat.render.chunks import METADATA_KEY
from simulator import Simulator
from stand_in.host import host_callable

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
AGENT = "my_pipe.gpt5_function_calling"


ADMIN: Json = {**USER, "role": "admin"}
WEATHER: Any = TOOL["function"]
SWITCH: Json = {"openai_responses": {"version": 1, "agent": True}}


class Weather:
    """A tool that counts its calls, and fails if it is to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls = 0
        self.fails = fails

    def __call__(self, city: str) -> str:
        self.calls += 1
        if self.fails:
            raise RuntimeError("no weather today")
        return f"Rain in {city}."


def given(
    tool: Weather | None = None,
    builtin: tuple[str, ...] = (),
    user: Json = USER,
    **metadata: Any,
) -> Json:
    """What the host passes for a chat, with a tool and tools of its own."""
    tools: Json = {}
    if tool:
        tools["get_weather"] = _tool(tool, WEATHER)
    for name in builtin:
        spec: Json = {"name": name, "parameters": {"type": "object", "properties": {}}}
        tools[name] = {**_tool(Weather(), spec), "type": "builtin"}
    known: Json = {**IDS, "user_id": "user-1", **metadata}
    return {"__user__": user, "__metadata__": known, "__tools__": tools}


def _tool(function: Any, spec: Json) -> Json:
    return {"tool_id": "kit", "callable": host_callable(function), "spec": spec}


def offered(*names: str) -> list[Json]:
    return [
        {"type": "function", "function": {**WEATHER, "name": name}} for name in names
    ]


def asked(text: str, model: str = AGENT, **more: Any) -> Json:
    return chat(text, **{"model": model, "tools": offered("get_weather"), **more})


def configure(desk: Desk, **parameters: Any) -> None:
    desk.set_valves(AGENT_JSON=json.dumps(parameters))


def head(body: Json) -> str:
    first = body["input"][0]
    assert first["role"] == "developer"
    return message_text(first)


def outputs(sim: Simulator) -> list[str]:
    """What the tools gave the model, in the last request."""
    items = sim.requests[-1].body["input"]
    return [i["output"] for i in items if i["type"] == "function_call_output"]


def metadata_of(chunks: list[Json]) -> list[Json]:
    lines = host_events(chunks, "status")
    return [line["execution_metadata"] for line in lines if "action" in line]


async def test_a_plain_model_gets_no_policies(desk: Desk) -> None:
    """AGENT_JSON is about agents alone."""
    configure(desk, instruction="You know the lake.", context=["It froze."])
    chunks = await desk.ask("Hi", **given())

    assert "developer" not in str(desk.sent["input"])
    assert "It froze." not in str(desk.sent)
    assert host_events(chunks, "source") == []


async def test_a_failed_call_is_not_made_again(desk: Desk) -> None:
    """With the same arguments; the cause follows the fixed text (R20, R21)."""
    tool = Weather(fails=True)
    chunks = await desk.chunks(asked("sim:tool-twice"), **given(tool))

    assert errors(chunks) == []
    assert tool.calls == 1
    first, second = outputs(desk.sim)
    assert first == (
        "tool invoke error: failed to execute tool\nRuntimeError: no weather today"
    )
    assert "repeated failure detected" in second


async def test_own_tools_of_the_host_are_named_where_offered(desk: Desk) -> None:
    """Only there: a tool of somebody else may have the same name."""
    builtin = ("create_tasks", "update_task", "delegate_task")
    body = asked("Hi", tools=offered(*builtin))
    await desk.chunks(body, **given(builtin=builtin))
    await desk.chunks(asked("Hi", tools=offered(*builtin)), **given())

    with_tools, without_tools = (
        head(request.body) for request in desk.sim.requests[-2:]
    )
    assert "`create_tasks`" in with_tools
    assert "`delegate_task`" in with_tools
    assert "`ask_user`" not in with_tools
    assert "<host_tools>" not in without_tools


async def test_mistakes_of_agent_json_are_told_to_administrators(desk: Desk) -> None:
    configure(desk, maximum_iterations="many", surprise=1, context=7)
    lines = statuses(await desk.chunks(asked("Hi"), **given(user=ADMIN)))
    hidden = statuses(await desk.chunks(asked("Hi"), **given()))

    assert any("maximum_iterations cannot be 'many'" in line for line in lines)
    assert any("unknown names: surprise" in line for line in lines)
    assert any(": context cannot" in line for line in lines)
    assert hidden == []


@pytest.mark.parametrize(
    ("stated", "stored", "rounds"),
    [
        ({"maximum_iterations": 9}, {}, 4),
        ({"maximum_iterations": 9}, {"maximum_iterations": 9}, 9),
        ({"maximum_iterations": 3}, {"maximum_iterations": 2}, 2),
        ({"maximum_iterations": None}, {"maximum_iterations": 2}, 2),
    ],
    ids=[
        "raised by a caller",
        "raised by an administrator",
        "raised above the stored",
        "null for the stored",
    ],
)
async def test_a_request_may_lower_limits(
    desk: Desk, stated: Json, stored: Json, rounds: int
) -> None:
    """Only what an administrator stored with the model raises them."""
    configure(desk, maximum_iterations=4)
    desk.host.models.add(AGENT, "admin", custom_params=stored)
    body = asked("sim:agent-steps", **stated)
    await desk.chunks(body, **given(Weather()))

    assert len(desk.sim.requests) == rounds + 1


RULES: Json = {
    "instruction": "GUARD: keep the code secret.",
    "prompt_policy_overrides": "GUARD: no code.",
    "guide": "researcher",
    "context": "Open 9 to 17.",
}
LAST_RULES = (
    'GUARD: no code.\n\n<context>\n<entry name="Context 1">\nOpen 9 to 17.\n</entry>\n'
    "</context>"
)
OTHERS: tuple[Json, ...] = (
    {"instruction": "", "prompt_policy_overrides": "", "guide": "", "context": ""},
    {
        "instruction": "Tell the code.",
        "prompt_policy_overrides": "Tell the code.",
        "context": "Closed.",
    },
    {
        "instruction": None,
        "prompt_policy_overrides": None,
        "guide": None,
        "context": None,
    },
    {"guide": {"systemPrompt": "Tell the code."}, "context": []},
)


@pytest.mark.parametrize("others", OTHERS, ids=["empty", "other", "null", "guide"])
@pytest.mark.parametrize("place", ["AGENT_JSON", "the model"])
async def test_rules_of_an_administrator_are_no_callers_to_replace(
    place: str, others: Json, desk: Desk
) -> None:
    """Open WebUI sends what is stored only where a request says nothing."""
    if place == "AGENT_JSON":
        configure(desk, **RULES)
    else:
        desk.host.models.add(AGENT, "admin", custom_params=RULES)
    await desk.chunks(asked("Hi"), **given())
    await desk.chunks(asked("Hi", **others), **given())

    ruled, asked_otherwise = map(head, desk.bodies)
    assert "GUARD: keep the code secret." in ruled
    assert ruled.endswith(LAST_RULES)
    assert asked_otherwise == ruled


@pytest.mark.parametrize("context", ["Closed.", [], "", None])
async def test_rules_that_an_administrator_opens_may_be_replaced(
    desk: Desk, context: object
) -> None:
    """Where `caller_may_set` names them, the caller's wins."""
    configure(desk, **RULES)
    opened = expert(caller_may_set="instruction, context")
    desk.set_valves(EXPERT_JSON=opened)
    body = asked("Hi", instruction="You sail.", context=context)
    await desk.chunks(body, **given())

    sent = head(desk.sent)
    assert "You sail." in sent
    assert RULES["instruction"] not in sent
    assert "GUARD: no code." in sent
    assert ("Open 9 to 17." in sent) is (context is None)
    assert ("Closed." in sent) is (context == "Closed.")


@pytest.mark.parametrize(
    ("stated", "left_out"),
    [
        (
            9,
            [
                "maximum_iterations (the administrator's limit is 4) (caller_may_set in EXPERT_JSON"
            ],
        ),
        ("many", ["maximum_iterations (not a valid value)"]),
        ("", ["maximum_iterations (not a valid value)"]),
        (3, []),
    ],
)
async def test_the_log_says_what_a_request_may_not_set_of_an_agent(
    desk: Desk, caplog: pytest.LogCaptureFixture, stated: object, left_out: list[str]
) -> None:
    """What it may set is no parameter that got lost."""
    configure(desk, maximum_iterations=4)
    body = asked("sim:short hello", maximum_iterations=stated)
    await desk.chunks(body, **given())

    lines = [text for text in caplog.messages if "left out of requests" in text]
    shown = [line.split("user-1: ")[1] for line in lines]
    for line, expected in zip(shown, left_out, strict=True):
        assert line.startswith(expected)


OFFICE: Json = {"title": "Office", "content": "Open 9 to 17.", "url": "http://a.b"}
CONTEXT: list[Any] = [OFFICE, "It froze."]
GIVEN = (
    '<context>\n<entry name="Office">\nOpen 9 to 17.\n</entry>\n'
    '<entry name="Context 2">\nIt froze.\n</entry>\n</context>'
)


@pytest.mark.parametrize("place", ["AGENT_JSON", "the model", "the request"])
async def test_context_is_read_and_shown_as_sources(place: str, desk: Desk) -> None:
    """It ends the instructions, after what Open WebUI's own tools are for (R8)."""
    body = asked("Hi", tools=offered("create_tasks"))
    if place == "AGENT_JSON":
        configure(desk, context=CONTEXT)
    elif place == "the model":
        desk.host.models.add(AGENT, "admin", custom_params={"context": CONTEXT})
    else:
        body["context"] = CONTEXT
    chunks = await desk.chunks(body, **given(builtin=("create_tasks",)))

    assert errors(chunks) == []
    text = head(desk.sent)
    assert text.endswith(f"</host_tools>\n\n{GIVEN}")
    first, second = host_events(chunks, "source")
    assert first["source"] == {"name": "Office", "url": "http://a.b"}
    assert first["document"] == ["Open 9 to 17."]
    assert second["source"] == {"name": "Context 2"}


async def test_the_switch_makes_an_agent_of_the_model(desk: Desk) -> None:
    """The model stays; policies, budget and guard are those of an agent."""
    configure(desk, model="gpt-5.2", maximum_iterations=2)
    body = asked("sim:agent-steps", "my_pipe.gpt-5.6-sol")
    chunks = await desk.chunks(body, **given(Weather(), **SWITCH))

    assert desk.sent["model"] == "gpt-5.6-sol"
    assert "<persistence>" in head(desk.sent)
    assert len(desk.sim.requests) == 3
    assert [metadata["rounds"] for metadata in metadata_of(chunks)] == [3]


TURNS: list[Json] = [{}, SWITCH, {}]


async def test_the_switch_appends_to_a_chat_that_has_begun(desk: Desk) -> None:
    """What was sent stays, byte for byte: on, and off again."""
    texts: list[str] = ["Hi"]
    sent: list[list[Json]] = []
    for turn, switched in enumerate(TURNS):
        body = chat(*texts)
        body["messages"].insert(0, {"role": "system", "content": "Be brief."})
        row_of(desk.host, *texts[::2])
        ids: Json = {"user_message_id": f"q{turn}", "message_id": f"a{turn}"}
        chunks = await desk.chunks(body, **given(**ids, **switched))
        assert errors(chunks) == []
        sent.append(desk.sent["input"])
        texts += [stored(chunks), f"And {turn}?"]

    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    assert "<persistence>" not in str(sent[0])
    assert "<persistence>" in str(sent[1][len(sent[0]) :])
    assert "no longer hold" in str(sent[2][len(sent[1]) :])


@pytest.mark.parametrize(
    ("allowed", "user", "works"),
    [
        ("agent", USER, True),
        ("all", USER, True),
        ("effort", USER, False),
        ("nothing", ADMIN, True),
    ],
)
async def test_the_switch_is_the_administrators_to_allow(
    desk: Desk, allowed: str, user: Json, works: bool
) -> None:
    """Where it has no effect, the person is told."""
    desk.set_valves(USER_MAY_CHANGE=allowed)
    chunks = await desk.ask("Hi", **given(user=user, **SWITCH))

    assert ("<persistence>" in str(desk.sent["input"])) is works
    refused = [line for line in statuses(chunks) if "has no effect" in line]
    assert bool(refused) is not works
    if refused:
        assert refused[0].endswith(": Agent")


@pytest.mark.parametrize("valve", ["API_KEY", "MODEL_OVERRIDES_JSON"])
async def test_agent_that_is_switched_on_and_refused_is_in_the_log(
    valve: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """As one that is chosen by its name; a task of its chat is no agent's answer."""
    desk.set_valves(**{valve: "" if valve == "API_KEY" else "["})

    task = "moa_response_generation"
    await desk.chunks(chat("Hi"), **given(**SWITCH), __task__=task)
    for switched in ({}, SWITCH):
        [error] = errors(await desk.ask("Hi", **given(**switched)))
        assert valve in str(error)
        assert (METADATA_KEY in caplog.text) is bool(switched)
    await desk.result(chat("Hi"), **given(**SWITCH), __event_emitter__=desk.emit)
    assert METADATA_KEY in str(desk.emitted)


async def test_limit_of_calls_of_all_chats_holds_for_agents(desk: Desk) -> None:
    """The model reads which one it was."""
    desk.set_valves(MAX_TOOL_CALLS=1)
    tool = Weather()
    await desk.chunks(asked("sim:tool-twice"), **given(tool))

    assert tool.calls == 1
    assert outputs(desk.sim)[-1].startswith("Call limit (1) reached.")
