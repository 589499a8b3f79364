"""Tasks that the agent gives to other runs of itself."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from agents.sample import (
    WeatherTool,
    answered,
    calls,
    ending_of,
    host_tool,
    metadata_of,
    question,
)
from event_loops.skipping_loop import run_skipping
from gpt5_agent.agent.answer import run_agent
from gpt5_agent.events import AgentEvent, RoundEnded, StepEnded, StepStarted
from gpt5_agent.pictures import PictureMemory
from gpt5_agent.request import AgentRequest, OwnToolSettings
from openai_responses.causes import MISALIGNMENT
from openai_responses.endings import ending_of_failure
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.loop.tools import Approver
from openai_responses.models.usage import Usage
from runs.sample import call, message
from runs.scripted import ScriptedProvider
from shells.tool_valves import read_rules
from shells.valve_messages import PIPELINE_SHELL

SAID = message("9", "All is done.")


def delegating(*tasks: dict[str, Any]) -> list[Item]:
    """An answer that gives tasks away."""
    return [
        {**call(f"d{number}", json.dumps(task)), "name": "delegate"}
        for number, task in enumerate(tasks)
    ]


NORTH = {"task": "north"}


class Slow(WeatherTool):
    """A tool that takes its time, and counts how many of its calls run."""

    def __init__(self, seconds: float = 1) -> None:
        super().__init__(seconds=seconds)
        self.running = 0
        self.most = 0

    async def execute(self, args: dict[str, Any]) -> object:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await super().execute(args)
        finally:
            self.running -= 1


def looking_then(answer: str, number: int = 1) -> list[list[Item]]:
    """What the model of a task says: it looks once, then answers."""
    return [[calls("get_weather", number)], [message(str(number), answer)]]


class Crew:
    """A model for the agent, and another one for each task, by its text."""

    def __init__(self, *answers: list[Item], **tasks: Sequence[list[Item]]) -> None:
        self.main = ScriptedProvider(*answers)
        self.providers = {
            name: ScriptedProvider(*script) for name, script in tasks.items()
        }
        self.requests: list[AgentRequest] = []

    def provide(self, asked: AgentRequest) -> ScriptedProvider:
        text = str(asked.messages[-1]["content"])
        self.requests.append(asked)
        return self.providers.get(text, self.main)

    def run(self, *tools: Any, rules: str = "", **more: Any) -> list[AgentEvent]:
        approver = Approver(read_rules(rules, PIPELINE_SHELL)[0])
        own = OwnToolSettings(
            tools=tools, delegates=True, approver=approver, asks_in_chat=True
        )

        async def work() -> list[AgentEvent]:
            async with aclosing(
                run_agent(question(own=own, **more), self.provide)
            ) as events:
                return [event async for event in events]

        return run_skipping(work())


def crew_of(*names: str) -> Crew:
    """An agent that gives tasks of these names away, each of which answers its name."""
    answers = {name: looking_then(name, n) for n, name in enumerate(names)}
    return Crew(delegating(*({"task": name} for name in names)), [SAID], **answers)


def test_task_is_a_run_of_its_own() -> None:
    tool = WeatherTool()
    other = WeatherTool("get_news")
    task = {**NORTH, "tools": ["get_weather"], "rounds": 2}
    crew = Crew(delegating(task), [SAID], north=looking_then("It rains."))

    events = crew.run(tool, other, pictures=PictureMemory())

    assert answered(events) == ["It rains."]
    assert tool.called == [{"city": "Bern"}]
    [(history, offered), _] = crew.providers["north"].asked
    assert [item["content"][0]["text"] for item in history] == ["north"]
    assert offered == ["get_weather"]
    _, asked = crew.requests
    assert not asked.own_tools.asks_in_chat
    assert asked.pictures is None  # nobody continues a task
    assert not asked.own_tools.delegates  # else one question could start any number
    [sent, _] = crew.providers["north"].requests
    assert "another agent" in str(sent.instructions)
    assert metadata_of(events).usage == Usage(40, 20, 60)
    assert metadata_of(events).rounds == 2
    assert ending_of(events).kind == "completed"


@pytest.mark.parametrize(
    ("more", "offered"),
    [({}, ["get_weather", "get_news"]), ({"tools": []}, [])],
)
def test_task_has_all_tools_unless_it_names_some(
    more: dict[str, list[str]], offered: list[str]
) -> None:
    crew = Crew(delegating({**NORTH, **more}), [SAID], north=[[SAID]])

    crew.run(WeatherTool(), WeatherTool("get_news"))

    [(_, given)] = crew.providers["north"].asked
    assert given == offered


@pytest.mark.parametrize(
    ("more", "rounds"), [({}, 6), ({"rounds": 1}, 1), ({"rounds": 7}, 6)]
)
def test_rounds_of_a_task_are_at_most_those_of_its_agent(
    more: dict[str, int], rounds: int
) -> None:
    crew = Crew(delegating({**NORTH, **more}), [SAID], north=looking_then("It rains."))

    crew.run(WeatherTool())

    _, asked = crew.requests
    assert asked.parameters.maximum_iterations == rounds


@pytest.mark.parametrize("name", ["delegate", "functions.delegate"])
def test_task_may_take_longer_than_a_call(name: str) -> None:
    twice = [[calls("get_weather", number)] for number in (1, 2)]
    [given] = delegating(NORTH)
    answers = [[{**given, "name": name}], [SAID]]
    crew = Crew(*answers, north=[*twice, [message("3", "It rains.")]])

    events = crew.run(Slow(100))

    assert answered(events) == ["It rains."]


def test_steps_of_a_task_are_shown_below_its_round() -> None:
    """While it runs, and under its number; each is taken once, by the answer's round.

    Of nothing else of it anybody hears.
    """
    events = crew_of("north", "b", "c").run(Slow())

    ended = [event.step for event in events if isinstance(event, StepEnded)]
    for number in (1, 2, 3):
        prefix = f"TASK {number} > "
        of_task = [step for step in ended if step.label.startswith(prefix)]
        assert [step.label.removeprefix(prefix) for step in of_task] == [
            *("gpt-5 Thought", "CALL get_weather", "ROUND 1", "gpt-5 Thought"),
            "ROUND 2",
        ]
        assert of_task[2].parent == "ROUND 1"
    assert [step.label for step in ended].count("CALL delegate") == 3
    began = [event.id for event in events if isinstance(event, StepStarted)]
    assert len(began) == len(set(began)) == len(ended)
    assert "north" not in [getattr(event, "content", "") for event in events]


def test_three_tasks_run_at_once_and_no_task_delegates() -> None:
    tool = Slow()
    crew = crew_of("a", "b", "c", "d", "e")

    events = crew.run(tool)

    assert answered(events) == ["a", "b", "c", "d", "e"]
    assert tool.most == 3
    for provider in crew.providers.values():
        assert provider.asked[0][1] == ["get_weather"]


def test_task_gets_no_tool_that_needs_an_approval() -> None:
    """A task cannot ask anyone."""
    crew = Crew(delegating(NORTH), [SAID], north=[[message("1", "Done.")]])

    crew.run(WeatherTool("ask_a"), WeatherTool("b"), rules="ask_*=ask, c=deny")

    assert crew.providers["north"].asked[0][1] == ["b"]


def test_tokens_of_a_task_count_in_the_limit_of_the_answer() -> None:
    tool = WeatherTool()
    crew = Crew(delegating(NORTH), [SAID], north=looking_then("No tokens left."))

    events = crew.run(tool, maximum_tokens=20)

    assert tool.called == []
    assert answered(events) == ["No tokens left."]
    task = crew.providers["north"]
    assert [names for _, names in task.asked] == [["get_weather"], []]
    assert crew.main.asked[-1][1] == []
    assert ending_of(events).kind == "completed"


@pytest.mark.parametrize(
    ("names", "is_offered"),
    [((), False), (("ask_a", "deny_b"), False), (("ask_a", "get_weather"), True)],
)
def test_tool_is_offered_where_a_task_has_tools_to_use(
    names: Sequence[str], is_offered: bool
) -> None:
    """A task without any could do nothing that the agent itself cannot."""
    crew = Crew([SAID])
    tools = [WeatherTool(name) for name in names]

    crew.run(*tools, rules="ask_*=ask, deny_*=deny")

    [(_, offered)] = crew.main.asked
    assert ("delegate" in offered) is is_offered


def test_tools_that_a_task_may_use_are_named() -> None:
    """The model knows which ones there are, and no task begins without those it names."""
    crew = Crew(delegating({**NORTH, "tools": ["ask_a"]}), [SAID])

    events = crew.run(WeatherTool("ask_a"), WeatherTool("b"), rules="ask_*=ask")

    assert "'b'" in str(answered(events))
    assert len(crew.requests) == 1


@pytest.mark.parametrize(
    ("seconds", "most"), [(0.0, 1200.0), (3600.0, 1200.0), (5.0, 5.0)]
)
def test_task_that_takes_too_long_is_ended(seconds: float, most: float) -> None:
    """Also one that waits for the three before it."""
    names = ("north", "south", "east", "west")
    answers = [[calls("get_weather", n)] for n in range(9)]
    tasks = delegating(*({"task": name} for name in names))
    crew = Crew(tasks, [SAID], **dict.fromkeys(names, answers))

    events = crew.run(Slow(100), maximum_iterations=30, maximum_seconds=seconds)

    assert answered(events) == ["Error: the time of the task is used up."] * 4
    assert ending_of(events).kind == "completed"
    assert metadata_of(events).latency == pytest.approx(most, abs=1)


def test_task_that_fails_is_told_to_the_model() -> None:
    crew = Crew(delegating(NORTH), [SAID], north=[[]])

    events = crew.run(WeatherTool())

    assert "Error: " in str(answered(events))
    assert ending_of(events).kind == "completed"


STOPPED = ending_of_failure("failed", ApiError(MISALIGNMENT))


def test_task_that_was_stopped_for_its_safety_ends_the_answer() -> None:
    """No model is asked again, no other task goes on, and the reason is the answer's.

    Nor does the host call again, which was left a call.
    """
    slow = [[calls("get_weather", n)] for n in range(3)]
    asked = [*delegating(NORTH, {"task": "south"}), calls("host_weather", 9)]
    crew = Crew(asked, [SAID], south=slow)
    crew.providers["north"] = ScriptedProvider([], break_off=STOPPED)

    events = crew.run(Slow(), body={"tools": [host_tool("host_weather")]})

    assert len(crew.main.asked) == 1
    assert len(crew.providers["south"].asked) == 1
    assert "Error: the task was stopped." in answered(events)
    assert ending_of(events) == STOPPED
    assert metadata_of(events).ending == "failed"


def test_answer_that_is_left_ends_its_tasks() -> None:
    tool = Slow(1e6)

    async def leave() -> None:
        own = OwnToolSettings(tools=(tool,), delegates=True)
        asked = run_agent(question(own=own), crew_of("north").provide)
        async with aclosing(asked) as events:
            async for event in events:
                if getattr(event, "label", "") == "TASK 1 > CALL get_weather":
                    await asyncio.sleep(1)
                    break
        await asyncio.sleep(1)
        assert len(asyncio.all_tasks()) == 1

    run_skipping(leave())

    assert (tool.most, tool.running, len(tool.called)) == (1, 0, 1)


def test_task_is_told_nothing_that_the_chat_knows() -> None:
    """Its text is all; the context would be shown as sources once more."""
    crew = crew_of("north")

    crew.run(WeatherTool(), context="It froze in 1963.")

    assert "1963" in str(crew.main.requests[0])
    assert "1963" not in str(crew.providers["north"].requests)


@pytest.mark.parametrize("is_beside", [False, True])
def test_tokens_of_tasks_are_noted_for_later_rounds(is_beside: bool) -> None:
    """Open WebUI runs the next tool, and the agent that goes on knows only notes.

    It may be called next to the task, which runs after the notes: they come again.
    """
    answers = [delegating(NORTH), [calls("host_weather", 5)]]
    if is_beside:
        answers = [[*delegating(NORTH), calls("host_weather", 5)]]
    crew = Crew(*answers, north=looking_then("It rains."))

    events = crew.run(WeatherTool(), body={"tools": [host_tool("host_weather")]})

    ends = [event for event in events if isinstance(event, RoundEnded)]
    # 15 tokens for each response, of which the task took two.
    assert [end.notes["usage"]["total"] for end in ends][:2] == [15, 45]
