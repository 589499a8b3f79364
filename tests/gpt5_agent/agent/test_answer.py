"""The loop: rounds, limits, endings."""

import asyncio
import json
from contextlib import aclosing
from itertools import pairwise

import pytest

from agents.sample import (
    PICTURE,
    REPEATED,
    KeptLog,
    WeatherTool,
    answered,
    calls,
    ending_of,
    events_of,
    host_tool,
    metadata_of,
    question,
    states,
)
from chats.pictures import PIXEL
from event_loops.skipping_loop import run_skipping
from gpt5_agent.agent.answer import run_agent
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    StepEnded,
    StepStarted,
)
from gpt5_agent.pictures import PictureMemory
from gpt5_agent.request import AgentRequest, OwnToolSettings
from measures.kept_memory import kept_container
from openai_responses.endpoint import DEFAULT_BASE_URL as OPENAI
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call_output
from openai_responses.loop.events import RunDone, Status
from openai_responses.loop.tools import CallLimits
from openai_responses.models.usage import Usage
from openai_responses.requests.replay import replay_output
from openai_responses.transport.stream import ItemAdded
from runs.sample import message, reasoning
from runs.scripted import ScriptedProvider
from strategies.guard import TOOL_FAILED_TEXT
from strategies.guide import Guide

SAID = message("9", "It rains.")


def looking(number: int, city: str = "") -> list[Item]:
    """An answer that thinks, then calls a tool with arguments of its own."""
    return [
        reasoning(str(number)),
        calls("get_weather", number, city or f"Bern {number}"),
    ]


def told(
    asked: AgentRequest, *answers: list[Item], is_cut: bool = False
) -> list[AgentEvent]:
    """All that the agent reports whose model gives these answers."""
    provider = ScriptedProvider(*answers, is_cut=is_cut)
    return run_skipping(events_of(asked, provider))


def test_r9_answer_without_calls_ends_the_loop() -> None:
    provider = ScriptedProvider([SAID])

    events = run_skipping(events_of(question(WeatherTool()), provider))

    assert len(provider.asked) == 1
    assert [e for e in events if isinstance(e, NewMessage)] == [NewMessage("It rains.")]
    assert isinstance(events[-1], ReadyForInput)
    assert states(events) == ["thinking", "idle"]
    assert ending_of(events).kind == "completed"


def test_answer_of_which_nothing_is_seen_says_so() -> None:
    """Small models think, and end. After a tool it is no failure: nobody tries again."""
    nothing = [reasoning("1")]

    events = told(question(), nothing)

    message = ending_of(events).message
    assert message.startswith("The model ended without an answer.")
    assert states(events)[-1] == "failed"
    after_a_tool = told(question(WeatherTool()), looking(1), nothing)
    assert ending_of(after_a_tool).kind == "completed"


def test_calls_are_answered_and_next_round_gets_their_outputs() -> None:
    tool = WeatherTool()
    provider = ScriptedProvider(looking(1), looking(2), [SAID])

    events = run_skipping(events_of(question(tool), provider))

    assert tool.called == [{"city": "Bern 1"}, {"city": "Bern 2"}]
    histories = [history for history, _ in provider.asked]
    for number, (before, after) in enumerate(pairwise(histories), 1):
        back = replay_output(looking(number), with_reasoning=True)
        assert after[: len(before) + 2] == [*before, *back]
        [output] = after[len(before) + 2 :]
        assert output["output"] == f"Rain in Bern {number}."
    assert states(events) == [*["thinking", "executing_tool"] * 2, "thinking", "idle"]


def test_r13_outputs_keep_the_order_of_their_calls() -> None:
    slow, fast = WeatherTool("slow", seconds=5), WeatherTool("fast")
    requested = [calls("slow", 1), calls("nobody", 2), calls("fast", 3, "Basel")]
    provider = ScriptedProvider(requested, [SAID])

    events = run_skipping(events_of(question(slow, fast), provider))

    assert answered(events) == [
        "Rain in Bern.",
        "there is not a tool named nobody",
        "Rain in Basel.",
    ]
    outputs = [item for item in provider.asked[1][0] if is_call_output(item)]
    assert [item["call_id"] for item in outputs] == ["call_1", "call_2", "call_3"]


def test_r12_calls_merge_by_id_and_those_without_name_are_dropped() -> None:
    """The last of two with one id counts; a call without an id gets one."""
    tool = WeatherTool()
    again = {**calls("get_weather", 1, "Basel"), "id": "fc_other"}
    nameless = {**calls("", 2), "id": "fc_nameless"}
    lost = {**calls("get_weather", 3), "call_id": ""}
    provider = ScriptedProvider(
        [calls("get_weather", 1, "Bern"), again, nameless, lost], [SAID]
    )

    events = run_skipping(events_of(question(tool), provider))

    assert tool.called == [{"city": "Basel"}, {"city": "Bern"}]
    started = [event for event in events if isinstance(event, ItemAdded)]
    assert len(started) == 3
    sent = [item["type"] for item in provider.asked[1][0] if item.get("call_id")]
    assert sent == ["function_call"] * 2 + ["function_call_output"] * 2


def test_r21_failure_is_remembered_over_the_rounds() -> None:
    tool = WeatherTool(failing=True)
    same = [looking(number, city="Bern") for number in (1, 2)]
    events = told(question(tool), *same, looking(3, city="Basel"), [SAID])

    failed = f"{TOOL_FAILED_TEXT}\nValueError: the password is hunter2"
    assert answered(events) == [failed, REPEATED, failed]
    assert len(tool.called) == 2


def test_r20_what_only_the_server_may_know_is_not_told() -> None:
    """A secret in a tool's error reaches neither the model nor the page."""
    asked = question(WeatherTool(failing=True), log=KeptLog("hunter2"))

    events = told(asked, looking(1), [SAID])

    [failed] = answered(events)
    assert str(failed).endswith("the password is [redacted]")
    assert "hunter2" not in repr(events)


def test_own_tool_replaces_host_tool_of_same_name() -> None:
    tool = WeatherTool()
    provider = ScriptedProvider(looking(1), [SAID])
    asked = question(tool, body={"tools": [host_tool("get_weather")]})

    events = run_skipping(events_of(asked, provider))

    assert answered(events) == ["Rain in Bern 1."]
    assert provider.asked[0][1] == ["get_weather"]


@pytest.mark.parametrize(
    ("limits_", "words"),
    [
        (CallLimits(seconds=0.5), "did not finish within 0.5 s"),
        (CallLimits(characters=10), "characters are cut here"),
    ],
)
def test_r22_tools_have_a_time_and_a_size(limits_: CallLimits, words: str) -> None:
    tool = WeatherTool(seconds=1, result="rain " * 100)
    own = OwnToolSettings(tools=[tool], limits=limits_)

    events = told(question(own=own), looking(1), [SAID])

    assert words in str(answered(events))
    assert NewMessage("It rains.") in events


def test_r15_metadata_come_once_also_after_an_error() -> None:
    """They tell what was used until then; text that was cut is no whole message."""
    events = told(question(WeatherTool()), looking(1), [SAID], is_cut=True)

    metadata = metadata_of(events)
    assert metadata.ending == "cut"
    assert (metadata.rounds, metadata.tool_calls) == (2, 1)
    assert metadata.usage == Usage(20, 10, 30)
    assert states(events)[-1] == "failed"
    assert not any(isinstance(event, NewMessage) for event in events)


@pytest.mark.parametrize(
    ("model", "address", "price"),
    [
        pytest.param(
            "gpt-5", OPENAI, (20 * 1.25 + 10 * 10) / 1_000_000, id="the catalog's"
        ),
        pytest.param("gpt-5", "http://127.0.0.1:8080/v1", 0.0, id="another server"),
        pytest.param("my-own-model", OPENAI, 0.0, id="unknown"),
    ],
)
def test_r15_metadata_tell_what_an_answer_took(
    model: str, address: str, price: float
) -> None:
    """Tokens and price are those of all rounds; a price is never guessed."""
    endpoint = Endpoint(address, "sk-1")
    asked = question(WeatherTool(), model=model, endpoint=endpoint)
    asked = asked._replace(strategy="gpt5_react")

    events = told(asked, looking(1), [SAID])

    metadata = metadata_of(events)
    assert (metadata.model, metadata.ending) == (model, "completed")
    assert metadata.strategy == "gpt5_react"
    assert (metadata.rounds, metadata.tool_calls) == (2, 1)
    assert metadata.usage == Usage(20, 10, 30)
    assert metadata.wire()["total_price"] == pytest.approx(price)
    assert metadata.latency >= 0
    assert metadata.wire()["total_tokens"] == 30
    places = [type(event) for event in events]
    assert places.index(ExecutionEnded) < places.index(RunDone)


async def stopped(asked: AgentRequest, provider: ScriptedProvider) -> None:
    """Let the agent work until it waits, then stop it; nothing of it goes on."""

    async def read() -> None:
        async with aclosing(run_agent(asked, lambda _asked: provider)) as events:
            async for _ in events:
                pass

    task = asyncio.create_task(read())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert len(asyncio.all_tasks()) == 1


def test_r15_metadata_are_told_once_after_a_cancel() -> None:
    """To who asked; the reader has left. Closing the generator stops the tool."""
    tool = WeatherTool(seconds=1e6)
    log = KeptLog()

    run_skipping(stopped(question(tool, log=log), ScriptedProvider(looking(1))))

    assert len(tool.called) == 1
    [metadata] = log.metadata
    assert (metadata["ending"], metadata["rounds"]) == ("cancelled", 1)


def test_r16_steps_nest_and_end_with_time_and_tokens() -> None:
    """ROUND n > model Thought > CALL tool; each that begins also ends."""
    log = KeptLog()
    asked = question(WeatherTool(), log=log)

    events = told(asked, looking(1), [SAID])

    began = {e.id: e for e in events if isinstance(e, StepStarted)}
    ended = [e for e in events if isinstance(e, StepEnded)]
    assert sorted(began) == sorted(e.step.id for e in ended)
    thought, call = "gpt-5 Thought", "CALL get_weather"
    assert [(e.label, began.get(e.parent, e).label) for e in began.values()] == [
        *((label, "ROUND 1") for label in ("ROUND 1", thought, call)),
        *((label, "ROUND 2") for label in ("ROUND 2", thought)),
    ]
    labels = [e.step.label for e in ended]
    assert labels == [thought, call, "ROUND 1", thought, "ROUND 2"]
    assert [e.usage.total for e in ended if e.usage] == [15, 15]
    # What tools used belongs to a response, and later rounds only add up.
    noted = [event.notes["usage"] for event in events if isinstance(event, RoundEnded)]
    assert [counts["total"] for counts in noted] == [15, 15]
    assert not any({"searches", "images"} & counts.keys() for counts in noted)
    assert log.lines[0].startswith("ROUND 1 > gpt-5 Thought: ")
    assert log.lines[0].endswith(" s, 15 tokens")


@pytest.mark.parametrize("debug", [True, False])
def test_r16_log_says_what_was_given_only_for_debugging(debug: bool) -> None:
    log = KeptLog()
    asked = question(WeatherTool(), text="a prompt", log=log, debug=debug)

    events = told(asked, looking(1, city="Atlantis"), [SAID])

    steps = [e for e in events if isinstance(e, StepStarted | StepEnded)]
    assert ("Atlantis" in repr([*steps, *log.lines])) is debug
    assert "a prompt" not in repr([*steps, *log.lines])


def test_memory_policy_that_drops_turns_adds_a_note() -> None:
    memories = ("The boat is red.",)
    guide = Guide(
        system_prompt="", memory_policy="sliding-window:1", initial_memories=memories
    )
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": f"{n}?"} for n, role in enumerate(roles)]
    provider = ScriptedProvider([SAID])

    events = run_skipping(events_of(question(messages=messages, guide=guide), provider))

    [note] = [event for event in events if isinstance(event, Status)]
    assert "1 earlier turn was left out" in note.message
    [(history, _)] = provider.asked
    assert len(history) == 2
    assert "The boat is red." in repr(history[0])
    assert "2?" in repr(history[1])


def test_pictures_of_an_answer_are_forgotten_with_its_end() -> None:
    """Memory would grow with every answer otherwise.

    Those of another model stay, which answers in the same chat at the same time.
    """
    pictures = PictureMemory()
    part = {"type": "input_image", "image_url": PIXEL}
    plot = WeatherTool("own_plot", result=[PICTURE])
    asked = question(plot, chat="u-1/c-1", pictures=pictures)
    other = asked.caller._replace(message_id="m-2").answer
    pictures.keep(other, {"call_id": "call_1", "output": [part]})
    provider = ScriptedProvider([calls("own_plot")], [message("9", "Here it is.")])

    run_skipping(events_of(asked, provider))

    assert PIXEL in json.dumps(provider.asked[-1][0])
    assert [kept.answer for kept in kept_container(pictures)] == [other]
