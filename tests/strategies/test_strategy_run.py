"""A strategy in the loop, as a shell without the agents' home runs one."""

from collections.abc import Sequence
from contextlib import aclosing

from event_loops.skipping_loop import run_skipping
from openai_responses.items import Item, message_text
from openai_responses.loop.events import ToolOutput
from openai_responses.loop.run import RoundEvent, RoundStarted, run_rounds
from openai_responses.loop.spending import Spending
from openai_responses.loop.tools import Toolset
from openai_responses.transport.stream import ItemDone
from runs.against_server import asking
from runs.sample import call, message
from runs.scripted import ScriptedProvider
from runs.tools import CANARY, CITY, MemoryTools, breaking
from strategies.guard import GuardedTools
from strategies.limits import build_budget, build_call_texts
from strategies.merged_calls import MergingProvider
from strategies.parameters import StrategyParameters
from strategies.thoughts import RunTexts

TOOLS: list[Item] = [{"type": "function", "name": "get_weather", "parameters": CITY}]


class Shell:
    """Runs a strategy with tools that run here; `texts` are the messages shown."""

    def __init__(self, tools: MemoryTools, **parameters: object) -> None:
        self.outputs: list[object] = []
        self.texts: list[str] = []
        self.parameters = StrategyParameters(**parameters)  # type: ignore[arg-type]
        self._guard = GuardedTools(tools)
        self._thoughts = RunTexts(are_shown=self.parameters.emit_intermediate_thoughts)

    async def run(self, *answers: Sequence[Item]) -> Spending:
        """Run until the answer; return what it took."""
        spending = Spending(build_budget(self.parameters))
        toolset = Toolset(
            self._guard,
            texts=build_call_texts(self.parameters),
            judge=self._guard,
        )
        provider = MergingProvider(ScriptedProvider(*answers))
        request = asking("Weather?").model_copy(update={"tools": TOOLS})
        events = run_rounds(request, provider, toolset, spending)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RoundStarted):
                    self._thoughts.begin_round(may_call=event.may_call)
                if isinstance(event, ToolOutput):
                    self.outputs.append(event.item["output"])
                if not isinstance(event, RoundEvent):
                    for shown in self._thoughts.feed(event):
                        if isinstance(shown, ItemDone):
                            self.texts.append(message_text(shown.item))
        return spending


def looking(name: str, number: int) -> list[Item]:
    """An answer that says something, then calls a tool."""
    remark = message(str(number), f"Look {number}.")
    return [remark, {**call(str(number)), "name": name}]


def test_strategy_needs_nothing_of_the_agents_home() -> None:
    """Guard, limit, thoughts and counts are those of the room and of the loop."""
    shell = Shell(
        MemoryTools(get_weather=breaking),
        maximum_iterations=4,
        emit_intermediate_thoughts=False,
    )
    answers = [
        looking("get_weather", 1),
        looking("get_weather", 2),
        looking("surprise", 3),
        looking("get_weather", 4),
        [message("5", "Nobody knows.")],
    ]

    spending = run_skipping(shell.run(*answers))

    assert shell.outputs == [
        f"tool invoke error: failed to execute tool\nValueError: {CANARY}",
        "tool invoke error: repeated failure detected; skipped duplicate call",
        "there is not a tool named surprise",
        "Maximum iteration limit (4) reached. Cannot call tool 'get_weather'. Please "
        "consider increasing the iteration limit.",
    ]
    assert [text for text in shell.texts if text] == ["Nobody knows."]
    assert (spending.rounds, spending.calls) == (5, 4)
    assert spending.total_usage.total == 75
