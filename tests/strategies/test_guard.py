"""Calls that are not made: fail-closed arguments, options, repeated failures."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agents.sample import REPEATED
from event_loops.skipping_loop import run_skipping
from openai_responses.items import Item
from openai_responses.loop.tools import (
    CallLimits,
    Judgment,
    ToolResult,
    Toolset,
    Verdict,
)
from runs.tools import (
    CANARY,
    CITY,
    Json,
    MemoryTools,
    answers_of,
    breaking,
    calling,
    cancelling,
    endless,
    exiting,
    out_of_time,
    panicking,
)
from strategies.guard import TOOL_FAILED_TEXT, GuardedTools
from strategies.parameters import StrategyParameters

PARSE = "tool arguments parse error: "
VALIDATION = "tool arguments validation error: "
COLORS: Json = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"enum": [1, 2]},
        "loud": {"enum": [True]},
        "shape": {"options": [{"value": "round"}, {"value": "flat"}]},
        "free": {"type": "string"},
    },
}


SCHEMAS = {"get_weather": CITY, "paint": COLORS, "anything": {}}


def guarded() -> GuardedTools:
    tools = MemoryTools(paint=breaking, anything=breaking)
    tools.schemas = SCHEMAS
    tools.peoples = {"paint"}
    tools.stand_ins = {"call_tool": "paint"}
    return GuardedTools(tools)


def refusal(arguments: object, name: str = "get_weather", **more: Any) -> str | None:
    call = calling(name, **more)
    return guarded().refusal({**call, "arguments": arguments})


def painted(**arguments: object) -> str | None:
    return refusal(json.dumps(arguments), "paint")


@pytest.mark.parametrize("empty", ["", "  \n", "null", None, {}])
def test_r17_no_arguments_are_an_empty_object(empty: object) -> None:
    """A tool that needs none can be called so, any other says what is missing."""
    assert refusal(empty, "paint") is None
    assert refusal({"city": "Bern"}) is None
    assert str(refusal(empty)).endswith("The argument city is missing.")


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        ('{"city": "Ber', PARSE),
        ("[]", PARSE),
        ('"Bern"', PARSE),
        ("7", PARSE),
        ([], PARSE),
        ("[" * 99999, PARSE),
        # The tool would fail on these.
        ("{}", f"{VALIDATION}The argument city "),
        ('{"city": 7}', f"{VALIDATION}The argument city "),
        ('{"city": null}', f"{VALIDATION}The argument city "),
    ],
)
def test_r17_arguments_that_are_no_json_object_are_refused(
    arguments: object, begin: str
) -> None:
    reason = refusal(arguments) or ""

    assert reason.startswith(begin)
    assert reason != begin


def test_r18_unknown_tool_is_refused() -> None:
    assert refusal("{", "surprise") == "there is not a tool named surprise"
    assert guarded().refusal({"arguments": "{}"}) == "there is not a tool named "


@pytest.mark.parametrize(
    ("name", "value", "shown", "options"),
    [
        ("color", "green", "green", ["red", "blue"]),
        ("size", 3, "3", ["1", "2"]),
        ("loud", False, "false", ["true"]),
        ("shape", "square", "square", ["round", "flat"]),
        ("shape", {"v": 1}, "{'v': 1}", ["round", "flat"]),
    ],
)
def test_r19_value_that_is_no_option_is_refused(
    name: str, value: object, shown: str, options: list[str]
) -> None:
    assert painted(**{name: value}) == (
        f"{VALIDATION}parameter '{name}' value {shown!r} not in options {options}"
    )


def test_r19_value_that_is_an_option_passes() -> None:
    assert painted(color="red", size=2, loud=True, shape="flat", free="x") is None
    assert painted(color=None) is None
    assert painted(size=2.0) is None  # the same number in JSON Schema
    assert painted(size=2.5) is not None
    assert painted(unknown=1) is None
    assert refusal('{"color": "green"}', "anything") is None


def test_input_of_a_custom_call_need_not_be_json() -> None:
    """A custom tool takes any text."""
    call = {"type": "custom_tool_call", "call_id": "1", "name": "paint", "input": "{"}

    assert guarded().refusal(call) is None


class FailingTools(MemoryTools):
    """Tools of which one answers that it failed."""

    async def call(self, name: str, arguments: Json) -> ToolResult:
        answer = await super().call(name, arguments)
        return ToolResult(answer.output, failed=name == "failing")


class Bench:
    """Guarded tools, with what they log."""

    def __init__(self, **limits: Any) -> None:
        async def failing(_: Json) -> str:
            return "it failed, said the tool"

        self.inner = FailingTools(
            breaking=breaking,
            exiting=exiting,
            panicking=panicking,
            cancelling=cancelling,
            out_of_time=out_of_time,
            endless=endless,
            failing=failing,
        )
        self.logged: list[str] = []
        self.guard = GuardedTools(self.inner)
        self.toolset = Toolset(
            self.guard,
            limits=CallLimits(**limits),
            log=self.logged.append,
            texts=StrategyParameters().call_texts(),
        )

    async def answer(self, call: Item) -> ToolResult:
        """What a call gets, as the strategy makes it."""
        refused = self.guard.refusal(call)
        if refused is not None:
            return ToolResult(refused, failed=True)
        [answer] = await answers_of([call], self.toolset)
        return answer


def answers_to(name: str, *arguments: str) -> list[ToolResult]:
    """What calls get one after the other; each that says REPEATED was not made."""
    bench = Bench(seconds=5.0)
    calls = [calling(name, number, given) for number, given in enumerate(arguments)]

    async def work() -> list[ToolResult]:
        return [await bench.answer(call) for call in calls]

    answers = run_skipping(work())
    refused = [str(a.output).startswith((REPEATED, VALIDATION)) for a in answers]
    assert len(bench.inner.called) == refused.count(False)
    return answers


@pytest.mark.parametrize("name", ["breaking", "exiting", "cancelling", "out_of_time"])
def test_r20_any_exception_has_the_same_first_line(name: str) -> None:
    """What it says follows, so that the model can correct its call."""
    bench = Bench()

    answer = run_skipping(bench.answer(calling(name)))

    first, cause = str(answer.output).split("\n")
    assert (first, answer.failed) == (TOOL_FAILED_TEXT, True)
    assert TOOL_FAILED_TEXT == "tool invoke error: failed to execute tool"
    assert cause.endswith(f"Error: {CANARY}") or cause == f"SystemExit: {CANARY}"
    assert CANARY in bench.logged[0]


@pytest.mark.parametrize("name", ["breaking", "exiting", "panicking"])
def test_r21_call_that_raised_is_not_made_again(name: str) -> None:
    """In any order of its arguments; a null that stands for nothing makes no other."""
    once = '{"city": "Bern", "days": 2}'
    other_order = ' {"days": 2, "city": "Bern"}'

    first, again, other = answers_to(
        name, once, other_order, '{"city": "Bern", "days": 3}'
    )

    assert again.output == REPEATED
    assert REPEATED not in (first.output, other.output)
    _, same = answers_to(name, '{"city": "Bern", "days": null}', '{"city": "Bern"}')
    assert same.output == REPEATED


@pytest.mark.parametrize("name", ["failing", "endless", "out_of_time", "cancelling"])
def test_r21_call_that_may_succeed_later_is_made_again(name: str) -> None:
    """An error that a tool returned may ask for that; a time-out is one, too."""
    same = '{"city": "Bern"}'

    first, again = answers_to(name, same, same)

    assert first.failed
    assert again == first


def test_r21_call_that_raised_in_an_earlier_round_is_not_made_again() -> None:
    """A later round gets it in any form in which a chat can have stored it."""
    later = guarded()
    for call in ({"name": "breaking"}, {"name": "paint", "arguments": "{"}, {}):
        later.record_failed_call(call)

    given = '{"color": "red", "free": null}'
    later.record_failed_call({"name": "paint", "arguments": given})
    assert later.refusal(calling("paint", 1, '{"color": "red"}')) == REPEATED
    assert later.refusal(calling("paint", 1, '{"color": "blue"}')) is None
    assert later.refusal(calling("anything", 1, '{"color": "red"}')) is None


def test_r21_call_that_succeeded_may_be_made_again() -> None:
    """So may one that was refused for its arguments, once they are right."""
    right = '{"city": "Bern"}'

    first, second, wrong, again = answers_to("get_weather", right, right, "{}", "{}")

    assert first.output == second.output == "Rain in Bern."
    assert wrong.output == again.output
    assert str(wrong.output).startswith(VALIDATION)


def test_r21_same_call_side_by_side_waits_for_the_failure_of_the_first() -> None:
    """The second waited for its turn."""
    bench = Bench(at_once=1)
    calls = [calling("breaking", n) for n in (1, 2)]

    answers = run_skipping(answers_of(calls, bench.toolset))

    first, second = answers
    assert str(first.output).startswith(f"{TOOL_FAILED_TEXT}\n")
    assert second == ToolResult(REPEATED, failed=True)


def test_stop_passes_through() -> None:
    """A stop is no result that the guard could judge."""

    async def work() -> None:
        task = asyncio.create_task(bench.answer(calling("endless")))
        for _ in range(9):  # its turn comes
            await asyncio.sleep(0)
        assert bench.inner.called
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    bench = Bench()

    run_skipping(work())

    assert bench.inner.left == ["endless"]


def test_tools_are_those_that_are_guarded() -> None:
    tools = guarded()

    assert tools.call_kind("get_weather") == "limited"
    assert tools.call_kind("paint") == "question"
    assert tools.resolve_call("call_tool", {"a": 1}) == ("paint", {"a": 1})
    assert tools.parameters("get_weather") == CITY
    assert tools.parameters("surprise") is None


def test_guard_is_the_judge_of_calls() -> None:
    """It refuses what may not be made, asks no one, and leaves nothing to a host."""
    calls = [calling("surprise", 1), calling("get_weather", 2)]

    judgment = run_skipping(guarded().judge(calls))

    assert not guarded().holds_calls
    assert not judgment.is_open
    unknown, known = judgment.verdicts
    assert (unknown.call, known.call) == tuple(calls)
    assert unknown.refusal == ToolResult("there is not a tool named surprise", True)
    assert known.is_made


class Leaves:
    """A judge that leaves the last of the calls that it is given to the host."""

    holds_calls = False

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        last = calls[-1:]
        return Judgment([Verdict(call, is_left=call in last) for call in calls])


def test_calls_that_may_be_made_are_left_to_the_next_judge() -> None:
    """All at once, without those that are refused, whose places stay."""
    tools = GuardedTools(guarded(), Leaves())
    names = ("get_weather", "surprise", "get_weather")
    calls = [calling(name, number) for number, name in enumerate(names, 1)]
    calls.append(calling("get_weather", 4, "{"))

    verdicts = run_skipping(tools.judge(calls)).verdicts

    assert [verdict.call for verdict in verdicts] == calls
    assert [verdict.is_left for verdict in verdicts] == [0, 0, 1, 0]
    refused = [bool(verdict.refusal) for verdict in verdicts]
    assert refused == [False, True, False, True]
