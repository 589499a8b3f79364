"""Every call gets one answer, whatever its tool does."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event_loops.skipping_loop import run_skipping, skipped_seconds
from openai_responses.items import Item
from openai_responses.loop.tools import (
    Approval,
    Approver,
    AskedCall,
    CallKind,
    CallLimits,
    ToolResult,
    Toolset,
    pause_of_call,
    run_calls,
    tool_error,
)
from runs.sample import without
from runs.tools import (
    CANARY,
    Function,
    Json,
    MemoryTools,
    answers_of,
    breaking,
    calling,
    cancelling,
    endless,
    exiting,
    interrupting,
    out_of_time,
    panicking,
    stubborn,
    weather,
)

LIMITS = CallLimits(at_once=3, seconds=120.0, batch_seconds=600.0, characters=1_000)
RAIN = ToolResult("Rain in Bern.")


def answered(
    calls: Sequence[Item], tools: MemoryTools, **more: Any
) -> list[ToolResult]:
    """The answers of a batch, in a loop where waiting takes no time."""
    return run_skipping(answers_of(calls, Toolset(tools, limits=LIMITS, **more)))


def answer(tools: MemoryTools, call: Item, **more: Any) -> ToolResult:
    [only] = answered([call], tools, **more)
    return only


@pytest.mark.parametrize(
    "arguments",
    ['{"city": "Bern"}', '{"city": "Bern", "days": null}', {"city": "Bern"}],
    ids=["a text", "with the nulls that strict mode makes the model say", "an object"],
)
def test_tool_gets_its_arguments_and_the_model_its_output(arguments: Any) -> None:
    tools = MemoryTools()

    assert answer(tools, calling("get_weather", arguments=arguments)) == RAIN
    assert tools.called == [("get_weather", {"city": "Bern"})]


class Renamed(MemoryTools):
    """A tool that is sent under another name."""

    def resolve_call(self, name: str, arguments: Json) -> tuple[str, Json]:
        """Return its own name; its arguments are the same."""
        return "delete_all", arguments


@pytest.mark.parametrize("kind", [MemoryTools, Renamed])
@pytest.mark.parametrize(
    "rule", [("delete_*", "deny"), ("call_tool", "deny"), ("call_tool", "ask")]
)
def test_both_names_of_a_call_have_rules(
    kind: type[MemoryTools], rule: tuple[str, Approval]
) -> None:
    tools = kind(call_tool=weather, delete_all=weather)
    tools.stand_ins = {"call_tool": "delete_all"}
    result = answer(tools, calling("call_tool"), approver=Approver([rule]))
    assert "delete_all. " in str(result.output)
    assert tools.called == []


def test_call_of_a_stand_in_is_checked_as_the_tool_it_names() -> None:
    """Its arguments and questions are those of what really runs."""
    tools = MemoryTools(call_tool=weather, delete_all=weather)
    tools.stand_ins = {"call_tool": "delete_all"}
    assert answer(tools, calling("call_tool")) == RAIN
    assert tools.called == [("delete_all", {"city": "Bern"})]

    tools.schemas["delete_all"] = {"type": "object", "required": ["reason"]}

    result = answer(tools, calling("call_tool"))

    assert str(result.output).startswith("Error: delete_all was not called: ")
    assert "reason" in str(result.output)
    assert len(tools.called) == 1


@pytest.mark.parametrize("given", [None, " ", "null"])
def test_null_is_no_argument(given: Any) -> None:
    """A tool without parameters is called with none."""
    tools = MemoryTools()
    tools.schemas["get_weather"] = {"type": "object", "properties": {}}
    answer(tools, calling("get_weather", arguments=given))
    assert tools.called == [("get_weather", {})]


@pytest.mark.parametrize("arguments", ["", "{}"])
@pytest.mark.parametrize("properties", [{}, {"city": {"type": "string"}}])
def test_call_whose_arguments_did_not_arrive_is_made_if_its_tool_takes_none(
    arguments: str, properties: Json
) -> None:
    """Arguments that may be left out may have been meant."""
    tools = MemoryTools()
    tools.schemas["get_weather"] = {"type": "object", "properties": properties}
    call = calling("get_weather", arguments=arguments, status="incomplete")

    result = answer(tools, call)

    assert bool(tools.called) == (properties == {})
    assert ("its arguments did not arrive" in str(result.output)) == bool(properties)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (calling("teleport"), "There is no tool named teleport. Use one that is "),
        (without(calling(""), "name"), "There is no tool named ."),
        (
            calling("get_weather", arguments='{"city": "Zür'),
            "get_weather was not called: its arguments are not valid JSON.",
        ),
        (calling("get_weather", arguments="[]"), "must be a JSON object"),
        (calling("get_weather", arguments='{"city": 7}'), "The argument city "),
        (calling("nowhere"), "nowhere was not called: it names no tool to call."),
    ],
    ids=["unknown", "nameless", "no JSON", "no object", "kind", "nothing"],
)
def test_call_that_cannot_be_made(call: Item, message: str) -> None:
    tools = MemoryTools(nowhere=weather)
    tools.stand_ins = {"nowhere": None}

    result = answer(tools, call)

    assert result.failed
    assert str(result.output).startswith("Error: ")
    assert message in str(result.output)
    assert tools.called == []


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        (breaking, "ValueError"),
        (exiting, "SystemExit"),
        (interrupting, "KeyboardInterrupt"),
        (panicking, "PanicException"),
        (cancelling, "CancelledError"),
        (out_of_time, "TimeoutError"),
    ],
)
def test_the_model_reads_what_a_tool_raised(bad: Function, name: str) -> None:
    """So it can correct its call; what only the server may know is taken out."""
    lines: list[str] = []

    result = answer(
        MemoryTools(bad=bad),
        calling("bad"),
        log=lines.append,
        redacted=lambda text: text.replace("hunter2", "..."),
    )

    told = CANARY.replace("hunter2", "...")
    assert result == tool_error(f"bad failed: {name}: {told}")
    assert lines == [f"the tool bad raised {name}: {CANARY}"]


class WordlessError(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        """Fail like the tool."""
        raise RuntimeError("no words")


class ExitingError(Exception):
    """An exception that ends the process when it is to be told."""

    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize("error", [ValueError, WordlessError, ExitingError])
def test_exception_without_a_text_is_told_by_its_type(error: type[Exception]) -> None:
    """An empty error would tell the model nothing."""

    async def bad(_: Json) -> str:
        raise error

    result = answer(MemoryTools(bad=bad), calling("bad"))

    assert result == tool_error(f"bad failed: {error.__name__}")


SECRET = "Zq7-very-secret-value-0123456789"


def told_of(words: str) -> str:
    """What the model reads of an exception with these words."""

    async def bad(_: Json) -> str:
        raise ValueError(words)

    def redacted(text: str) -> str:
        return text.replace(SECRET, "[redacted]")

    result = answer(MemoryTools(bad=bad), calling("bad"), redacted=redacted)
    return str(result.output)


def test_long_exception_is_cut() -> None:
    """Its secrets are taken out before; half of one would be none that is known."""
    text = told_of("x" * 470 + SECRET + "y" * 50_000)

    assert "characters are cut here" in text
    assert "x[redacted]y" in text
    assert len(text) < 1_100


@pytest.mark.parametrize("last", range(9_900, 10_100, 28))
def test_exception_shows_no_half_of_a_secret(last: int) -> None:
    """Whoever asks chooses the words that an address has in front of its key."""
    text = told_of("x" * (last - len(SECRET)) + SECRET + "y" * 50_000)

    assert "Zq7-" not in text


def test_batch_that_takes_too_long_is_stopped() -> None:
    """As one: none of those that waited begins in the place of one that was stopped."""
    tools = MemoryTools(endless=endless)
    limits = CallLimits(at_once=3, seconds=120, batch_seconds=550)
    calls = [calling("endless", n) for n in range(18)]

    results = run_skipping(answers_of(calls, Toolset(tools, limits=limits)))

    late = tool_error("endless did not finish within 120 s.")
    stopped = tool_error("endless was stopped: the tools took over 550 s.")
    assert results == [late] * 12 + [stopped] * 6
    assert tools.left == ["endless"] * len(tools.called) == ["endless"] * 15


@pytest.mark.parametrize(
    ("limits", "other_ends", "last"),
    [
        pytest.param(
            CallLimits(seconds=120, batch_seconds=600, own=[("End*", 3_600)]),
            "other did not finish within 120 s.",
            RAIN,
            id="by the limit of the others",
        ),
        pytest.param(
            CallLimits(at_once=2, batch_seconds=100, own=[("endless", 3_600)]),
            "other was stopped: the tools took over 100 s.",
            tool_error("get_weather was stopped: the tools took over 100 s."),
            id="by that of all together",
        ),
    ],
)
def test_tool_with_a_time_of_its_own_is_not_cut_before(
    limits: CallLimits, other_ends: str, last: ToolResult
) -> None:
    """The calls of others are stopped, and none begins any more; this one goes on."""
    tools = MemoryTools(endless=endless, other=endless)
    calls = [calling("other", 1), calling("endless", 2), calling("get_weather", 3)]

    results = run_skipping(answers_of(calls, Toolset(tools, limits=limits)))

    assert results == [
        tool_error(other_ends),
        tool_error("endless did not finish within 3600 s."),
        last,
    ]


def test_calls_that_need_no_consent_do_not_wait_for_people() -> None:
    """They have ended before anybody answers; the outputs keep their order.

    About the others there is one question, with an answer for each of them.
    """
    log: list[str] = []

    async def ask(calls: Sequence[AskedCall]) -> list[bool]:
        log.append(" ".join(["asked about", *[call.call_id for call in calls]]))
        await asyncio.sleep(86_400)
        return [call.call_id != "call_2" for call in calls]

    async def note(arguments: Json) -> str:
        log.append(arguments["city"])
        return str(arguments["city"])

    approver = Approver([("delete", "ask")], ask=ask)
    names = ["delete", "note", "delete", "note", "delete"]
    calls = [
        calling(name, n, json.dumps({"city": str(n)})) for n, name in enumerate(names)
    ]
    tools = MemoryTools(note=note, delete=note)

    results = answered(calls, tools, approver=approver)

    assert sorted(log[:3]) == ["1", "3", "asked about call_0 call_2 call_4"]
    assert log[3:] == ["0", "4"]
    assert [done.output for done in results if not done.failed] == ["0", "1", "3", "4"]
    assert "did not approve" in str(results[2].output)


def test_question_that_cancels_itself_approves_nothing() -> None:
    """The host gave the dialog up; what needs no consent has run all the same."""

    async def ask(calls: Sequence[AskedCall]) -> list[bool]:
        raise asyncio.CancelledError

    tools = MemoryTools(delete=weather)
    approver = Approver([("delete", "ask")], ask=ask)
    calls = [calling("delete", 1), calling("get_weather", 2)]

    denied, made = answered(calls, tools, approver=approver)

    assert "did not approve this call of delete" in str(denied.output)
    assert made == RAIN
    assert [name for name, _ in tools.called] == ["get_weather"]


def test_answers_to_several_calls_are_in_their_order() -> None:
    """A person may allow one and not the other; too few answers allow nothing more."""

    async def ask(calls: Sequence[AskedCall]) -> list[bool]:
        return [False, True]

    approver = Approver(default_rule="ask", ask=ask)
    calls = [calling("get_weather", n) for n in range(3)]

    first, second, third = answered(calls, MemoryTools(), approver=approver)

    assert second == RAIN
    assert "did not approve" in str(first.output)
    assert third == first


def lasting(name: str, days: int) -> Item:
    return calling(name, days, json.dumps({"city": "x", "days": days}))


def test_time_of_a_batch_stands_still_while_a_person_is_asked() -> None:
    """What runs meanwhile keeps what it had left; a tool's own limit goes on."""
    ended: list[float] = []

    async def ask(calls: Sequence[AskedCall]) -> list[bool]:
        await asyncio.sleep(1_000)
        return [True for _ in calls]

    async def slow(arguments: Json) -> str:
        await asyncio.sleep(arguments["days"])
        ended.append(skipped_seconds())
        return "done"

    toolset = Toolset(
        MemoryTools(slow=slow, delete=slow),
        Approver([("delete", "ask")], ask=ask),
        CallLimits(seconds=2_000, batch_seconds=600),
    )
    calls = [lasting("slow", 900), lasting("delete", 500), lasting("slow", 1_700)]

    results = run_skipping(answers_of(calls, toolset))

    assert [result.failed for result in results] == [False, False, True]
    assert "the tools took over 600 s" in str(results[2].output)
    assert ended == [900, 1_500]


async def asking(arguments: Json) -> str:
    """Work for a minute, ask a person for so many seconds, work for a minute."""
    await asyncio.sleep(60)
    with pause_of_call()():
        await asyncio.sleep(arguments["days"])
    await asyncio.sleep(59)
    return "done"


async def asking_twice(arguments: Json) -> str:
    """Work for 20 seconds, ask a person two things at once, and work on."""
    await asyncio.sleep(20)
    pause = pause_of_call()

    async def ask(seconds: float) -> None:
        with pause():
            await asyncio.sleep(seconds)

    await asyncio.gather(ask(arguments["days"]), ask(2 * arguments["days"]))
    await asyncio.sleep(arguments["days"])
    return "done"


def test_time_in_which_a_tool_asks_a_person_counts_for_no_limit() -> None:
    """Neither for its own, nor for that of the batch; others keep theirs."""
    tools = MemoryTools(asking=asking, endless=endless)
    calls = [lasting("asking", 5_000), calling("endless", 2)]
    limits = CallLimits(seconds=120, batch_seconds=125)

    results = run_skipping(answers_of(calls, Toolset(tools, limits=limits)))

    late = tool_error("endless did not finish within 120 s.")
    assert results == [ToolResult("done"), late]


def test_two_questions_of_a_tool_at_once_stop_its_time_once() -> None:
    """Until the second has an answer; then it goes on where it was."""
    tools = MemoryTools(asking_twice=asking_twice)

    results = answered([lasting("asking_twice", days) for days in (99, 101)], tools)

    late = tool_error("asking_twice did not finish within 120 s.")
    assert results == [ToolResult("done"), late]


def test_question_of_a_tool_counts_for_no_limit_of_the_run() -> None:
    stopped: list[str] = []

    @contextmanager
    def pause() -> Iterator[None]:
        stopped.append("began")
        yield
        stopped.append("ended")

    async def run() -> None:
        toolset = Toolset(MemoryTools(asking=asking), limits=LIMITS)
        async for _ in run_calls([lasting("asking", 1)], toolset, pause):
            pass

    run_skipping(run())

    assert stopped == ["began", "ended"]


def test_question_that_outlives_its_call_changes_nothing() -> None:
    """A tool may leave a task behind, which asks on."""
    left: list[asyncio.Task[None]] = []

    async def leaving(_: Json) -> str:
        pause = pause_of_call()

        async def ask() -> None:
            with pause():
                await asyncio.sleep(50)

        left.append(asyncio.create_task(ask()))
        await asyncio.sleep(1)
        return "done"

    async def run() -> list[ToolResult]:
        toolset = Toolset(MemoryTools(leaving=leaving), limits=LIMITS)
        results = await answers_of([calling("leaving")], toolset)
        await left[0]
        return results

    assert run_skipping(run()) == [ToolResult("done")]


def test_result_waits_for_no_question_of_another_tool() -> None:
    """Where the time of the batch is over but for the question."""
    shown_at: list[float] = []

    async def run() -> None:
        calls = [calling("working", 1), lasting("asking", 5_000)]
        tools = MemoryTools(asking=asking, working=lambda _: asyncio.sleep(110, "done"))
        limits = CallLimits(seconds=1_000, batch_seconds=100)
        async for _ in run_calls(calls, Toolset(tools, limits=limits)):
            shown_at.append(skipped_seconds())

    run_skipping(run())

    assert shown_at == [110, 5_100]


@pytest.mark.parametrize("kind", ["question", "task"])
@pytest.mark.parametrize("places", [(0,), (0, 1, 2, 3), (4,)])
def test_question_to_a_person_has_no_limit_and_takes_no_place(
    places: tuple[int, ...], kind: CallKind
) -> None:
    """Nor has a task for another agent. All tools next to it end, however long it takes."""

    async def ask_user(_: Json) -> str:
        await asyncio.sleep(86_400)
        return "yes"

    async def slow(_: Json) -> str:
        await asyncio.sleep(100)
        return "done"

    class Tools(MemoryTools):
        def call_kind(self, name: str) -> CallKind:
            return kind if name == "ask_user" else "limited"

    tools = Tools(ask_user=ask_user, slow=slow)
    names = ["ask_user" if index in places else "slow" for index in range(8)]

    results = answered([calling(name, n) for n, name in enumerate(names)], tools)

    expected = {"ask_user": "yes", "slow": "done"}
    assert [result.output for result in results] == [expected[name] for name in names]


def test_closing_in_the_middle_cancels_what_runs() -> None:
    tools = MemoryTools(endless=endless)
    calls = [calling("get_weather", 0), *(calling("endless", n) for n in range(1, 9))]

    async def leave() -> None:
        async with aclosing(run_calls(calls, Toolset(tools, limits=LIMITS))) as answers:
            await anext(answers)
            await asyncio.sleep(0)

    run_skipping(leave())

    assert tools.left == ["endless"] * (len(tools.called) - 1)
    assert tools.left


async def stopped(
    calls: Sequence[Item], toolset: Toolset, has_begun: asyncio.Event
) -> None:
    """Stop a batch as soon as something has begun."""
    task = asyncio.create_task(answers_of(calls, toolset))
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_call_that_nobody_runs_any_more_has_not_failed() -> None:
    """Python closes what an event loop has left behind."""
    logged: list[str] = []

    async def leave() -> None:
        running: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def long(arguments: Json) -> str:
            running.set_result(asyncio.current_task())
            return await endless(arguments)

        toolset = Toolset(MemoryTools(long=long), limits=LIMITS, log=logged.append)
        batch = asyncio.create_task(answers_of([calling("long")], toolset))
        call = await running
        call.get_coro().close()
        batch.cancel()
        await asyncio.wait([batch, call])
        assert isinstance(call.exception(), RuntimeError)

    run_skipping(leave())

    assert logged == []


def test_cancelling_in_the_middle_cancels_what_runs() -> None:
    """Whoever waits for an answer is let go at once; the tool has not failed."""
    tools = MemoryTools()
    logged: list[str] = []

    async def leave() -> float:
        began = asyncio.Event()

        async def long(arguments: Json) -> str:
            began.set()
            return await endless(arguments)

        tools.functions["endless"] = long
        toolset = Toolset(tools, limits=LIMITS, log=logged.append)
        await stopped([calling("endless")], toolset, began)
        return skipped_seconds()

    assert run_skipping(leave()) == 0
    assert tools.left == ["endless"]
    assert logged == []


def test_cancelling_during_a_question_runs_nothing_more() -> None:
    """Neither the call in question nor those that would be asked about next."""
    tools = MemoryTools(other=weather)

    async def leave() -> None:
        asked = asyncio.Event()

        async def ask(calls: Sequence[AskedCall]) -> list[bool]:
            asked.set()
            await asyncio.Event().wait()
            return [True for _ in calls]

        approver = Approver([("get_weather", "auto")], "ask", ask)
        names = ["other", "get_weather", "other"]
        calls = [calling(name, n) for n, name in enumerate(names)]
        await stopped(calls, Toolset(tools, approver, LIMITS), asked)

    run_skipping(leave())

    assert [name for name, _ in tools.called] in ([], ["get_weather"])


KINDS: dict[str, Callable[[Json], Any]] = {
    "breaking": breaking,
    "cancelling": cancelling,
    "endless": endless,
    "exiting": exiting,
    "out_of_time": out_of_time,
    "stubborn": stubborn,
    "denied": weather,
    "asked": weather,
}
names = st.sampled_from(["get_weather", "unknown", *KINDS])
texts = st.sampled_from(['{"city": "Bern"}', '{"city"', "[]", "{}", '{"city": 1}'])
batches = st.lists(st.tuples(names, texts), max_size=12)


@given(
    batch=batches,
    at_once=st.integers(1, 4),
    seconds=st.sampled_from([1.0, 100_000.0]),
    batch_seconds=st.sampled_from([0.5, 3.0, 1_000.0]),
)
def test_every_call_of_every_batch_is_answered_once(
    batch: list[tuple[str, str]], at_once: int, seconds: float, batch_seconds: float
) -> None:
    """In order, without what is hidden of an exception, and nothing is left running."""
    tools = MemoryTools(**KINDS)
    calls = [calling(name, n, text) for n, (name, text) in enumerate(batch)]
    toolset = Toolset(
        tools,
        Approver([("denied", "deny"), ("asked", "ask")]),
        CallLimits(at_once, seconds, batch_seconds, 1_000),
        redacted=lambda text: text.replace(CANARY, "[redacted]"),
    )

    results = run_skipping(answers_of(calls, toolset))

    assert len(results) == len(calls)
    assert CANARY not in repr(results)
    for (name, text), result in zip(batch, results, strict=True):
        good = name == "get_weather" and text == '{"city": "Bern"}'
        assert result == RAIN or not good or "was stopped" in str(result.output)
        assert good or name == "stubborn" or result.failed


@given(st.text(max_size=60), st.integers(0, 40))
def test_long_text_keeps_its_head_and_its_tail(text: str, characters: int) -> None:
    async def say(_: Json) -> str:
        return text

    limits = LIMITS._replace(characters=characters)
    toolset = Toolset(MemoryTools(say=say), limits=limits)
    [capped] = [a.output for a in run_skipping(answers_of([calling("say")], toolset))]

    half = characters // 2
    if len(text) <= characters:
        assert capped == text
    else:
        cut = f"[... {len(text) - 2 * half} characters are cut here ...]"
        assert capped == f"{text[:half]}\n{cut}\n{text[len(text) - half :]}"


def test_output_is_capped_in_every_part() -> None:
    picture = {"type": "input_image", "image_url": "data:" + "x" * 5_000}

    class Pictures(MemoryTools):
        async def call(self, name: str, arguments: Json) -> ToolResult:
            text = {"type": "input_text", "text": "a" * 5_000}
            return ToolResult([text, picture], card={"files": ["f"]})

    result = answer(Pictures(), calling("get_weather"))

    assert isinstance(result.output, list)
    assert result.output[1] == picture
    assert "4000 characters are cut" in result.output[0]["text"]
    assert result.card == {"files": ["f"]}
