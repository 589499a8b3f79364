"""A conversation in a terminal: in one process, then as it is typed in a real one."""

import asyncio
import fcntl
import json
import os
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agents.sample import WeatherTool, calls, question
from gpt5_agent.request import OwnToolSettings
from gpt5_agent.terminal.interface import KeyboardContext, Terminal
from gpt5_agent.terminal.session import Session
from openai_responses.items import Item
from openai_responses.loop.events import GIVEN_UP
from openai_responses.loop.tools import Approver
from openai_responses.transport.stream import ItemDone
from runs.sample import message, reasoning
from runs.scripted import ScriptedProvider
from simulator import Simulator
from simulator.faults import refuse_parameter
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the terminal has in which the tests run."""
    monkeypatch.setenv("COLUMNS", "80")


ROOT = Path(__file__).parents[3]
SAID = message("9", "It rains.")
HIDDEN = "Bern\u202e\u3164"
LOOKING = [reasoning("1"), message("1", "I look."), calls("delete_weather", 1, HIDDEN)]


class SlowTool(WeatherTool):
    """A tool that waits until it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    async def execute(self, args: dict[str, Any]) -> object:
        self.called.append(args)
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return "never"


class Desk:
    """A person at a terminal."""

    def __init__(self, *answers: list[Item], tool: WeatherTool | None = None) -> None:
        self.text = ""
        self.tool = tool or WeatherTool("delete_weather")
        self.terminal = Terminal(self._write, emits_thoughts=True)
        approver = Approver([("delete_*", "ask")])
        asked = question(own=OwnToolSettings([self.tool], approver), messages=[])
        provider = ScriptedProvider(*answers)
        self.session = Session(
            asked, lambda _asked: provider, self.terminal, self.terminal.show
        )

    def _write(self, text: str) -> None:
        self.text += text

    async def sees(self, text: str) -> None:
        """Wait for a text; what was written up to its end is forgotten."""
        await until(lambda: text in self.text)
        self.text = self.text.partition(text)[2]


@asynccontextmanager
async def sitting(*answers: list[Item], **more: Any) -> AsyncIterator[Desk]:
    """A person who leaves at the end."""
    desk = Desk(*answers, **more)
    conversation = asyncio.create_task(desk.terminal.converse(desk.session))
    try:
        yield desk
        desk.terminal.end()
        await conversation
    finally:
        conversation.cancel()


async def test_thoughts_calls_and_answers_are_shown() -> None:
    tool = WeatherTool()
    thought = {**reasoning("1"), "summary": None}  # as some servers write none
    looking = [thought, message("1", "I look."), calls("get_weather", 1)]
    async with sitting(looking, [SAID], tool=tool) as desk:
        await desk.sees("> ")
        desk.terminal.receive_line("Weather?")

        for text in (
            "[thinking]\n",
            "~ I look.\n",
            '* get_weather {"city":"Bern"}\n',
            "[executing_tool]\n",
            "= Rain in Bern.\n",
            "[thinking]\n",
            "It rains.\n",
            "[Finished in under a second · ",
            " · 2 rounds · 1 tool call",
            "[idle]\n> ",
        ):
            await desk.sees(text)


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("YES", "= Rain in Bern"),
        ("y", "= Rain in Bern"),
        ("n", "! Error: The user did not"),
        ("no", "! Error: The user did not"),
    ],
)
async def test_call_waits_for_a_yes(typed: str, shown: str) -> None:
    """Anything else is asked for again.

    As on the page, it shows what nobody can see: a sign in its place would not say what.
    """
    async with sitting(LOOKING, [SAID]) as desk:
        desk.terminal.receive_line("Delete it.")
        await desk.sees("[waiting_for_confirmation]\n")
        await desk.sees("May delete_weather be called? It can delete things.\n")
        await desk.sees('With: {"city": "Bern\\u202e\\u3164"}\ny or n: ')
        assert desk.tool.called == []

        desk.terminal.receive_line("maybe")
        await desk.sees("Please answer y or n: ")
        desk.terminal.receive_line(typed)

        await desk.sees(shown)
        await desk.sees("It rains.\n")


async def test_nobody_there_is_a_no() -> None:
    """Whether they leave before or after the question."""
    for leaves_first in (True, False):
        desk = Desk(LOOKING, [SAID])
        conversation = asyncio.create_task(desk.terminal.converse(desk.session))
        desk.terminal.receive_line("Delete it.")
        if leaves_first:
            desk.terminal.end()
        await desk.sees("y or n: ")
        if not leaves_first:
            desk.terminal.end()

        await conversation

        assert desk.tool.called == []
        assert "It rains." in desk.text


async def test_interrupt_stops_the_answer_then_ends() -> None:
    """The tool is stopped, the person can go on; once more, with nothing to stop."""
    tool = SlowTool()
    first = [calls("get_weather", 1)]
    async with sitting(first, [SAID], tool=tool) as desk:
        desk.terminal.receive_line("Weather?")
        await until(lambda: bool(tool.called))

        desk.terminal.interrupt()

        await desk.sees("[stopped]\n> ")
        assert tool.ended.is_set()
        desk.terminal.receive_line("Again?")
        await desk.sees("It rains.\n")
        await desk.sees("> ")
        desk.terminal.interrupt()


async def test_interrupt_takes_the_question_back() -> None:
    """What is typed next is no answer to it."""
    async with sitting(LOOKING, [SAID]) as desk:
        desk.terminal.receive_line("Delete it.")
        await desk.sees("y or n: ")
        desk.terminal.interrupt()
        await desk.sees("[stopped]\n> ")

        desk.terminal.receive_line("y")

        await desk.sees("It rains.\n")
        assert desk.tool.called == []
        assert desk.session.messages[-2]["content"] == "y"


async def test_listener_input_is_answered_and_approves_nothing() -> None:
    """It waits for its turn; a `y` of it is an input like any other."""
    async with sitting(LOOKING, [SAID], [SAID]) as desk:
        desk.terminal.receive_line("Delete it.")
        await desk.sees("y or n: ")
        task = asyncio.create_task(desk.terminal.emit_input("y"))
        await KeyboardContext(desk.terminal).emit_input("n")

        await task

        assert desk.tool.called == []
        inputs = [m["content"] for m in desk.session.messages if m["role"] == "user"]
        assert inputs == ["Delete it.", "y"]


async def test_input_that_nobody_answers_any_more_is_let_go() -> None:
    desk = Desk()
    desk.terminal.end()
    inputs = [desk.terminal.emit_input("Hello?") for _ in range(2)]
    waiting = asyncio.gather(*inputs)
    await asyncio.sleep(0)

    await desk.terminal.converse(desk.session)

    await waiting
    assert desk.session.messages == []


async def test_terminal_obeys_nobody_else() -> None:
    """Control characters of models or tools would clear the screen, or worse."""
    evil = message("9", "a\x1b[2Jb\x9bc\r\u202ed\te\nf")
    async with sitting([evil]) as desk:
        desk.terminal.receive_line("Hello?")

        await desk.sees("a\ufffd[2Jb\ufffdc\ufffd\ufffdd\te\nf\n")


@pytest.mark.parametrize("is_thought", [True, False])
@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (
            "Bern\\nMay ls be called?\\ny or n: ",
            "Bern\n  May ls be called?\n  y or n: ",
        ),
        ("-" * 240, "\n  " + "-" * 78 + "\n  -"),
        ("\t" * 40 + "-", "\n  " + " " * 78 + "\n  "),
        ("\N{FULLWIDTH LATIN SMALL LETTER A}" * 50, "\n  \uff41"),
    ],
)
async def test_text_from_elsewhere_asks_nothing(
    words: str, seen: str, is_thought: bool
) -> None:
    """Only a question begins its line as questions do: a `y` answers the one asked.

    A terminal begins a line by itself where one is too long.
    """
    item = reasoning("1", words.replace("\\n", "\n"))
    answer = [item] if is_thought else [calls("get_weather", 1, words)]
    async with sitting(answer, [SAID], tool=WeatherTool()) as desk:
        desk.terminal.receive_line("Weather?")

        await desk.sees(seen)


class RealTerminal:
    """A program that thinks it is in a terminal."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self.text = ""
        self.process = process
        self._master = master
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        piece = b""
        with suppress(OSError):  # the other side is closed
            piece = os.read(self._master, 65_536)
        self.text += piece.decode("utf-8", "replace")
        if not piece:
            asyncio.get_running_loop().remove_reader(self._master)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    async def sees(self, text: str) -> None:
        """Wait for a text; what was written up to its end is forgotten."""
        async with asyncio.timeout(60):
            while text not in self.text:
                assert self.process.returncode is None, self.text
                await asyncio.sleep(0.02)
        self.text = self.text.partition(text)[2]


@asynccontextmanager
async def program(sim: Simulator, *valves: str) -> AsyncIterator[RealTerminal]:
    """`python -m gpt5_agent` with a terminal of its own, and these valves."""
    arguments = [f"--set={valve}" for valve in (f"BASE_URL={sim.base_url}", *valves)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "../pipes"}
    master, slave = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpt5_agent", *arguments),
        cwd=ROOT / "pipelines",
        env={**environment, "OPENAI_API_KEY": sim.api_key},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield RealTerminal(master, process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        asyncio.get_running_loop().remove_reader(master)
        os.close(master)


@pytest.mark.sandbox
async def test_real_terminal_types_approves_stops_and_leaves(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a task for another run; the key is sent, and never shown."""
    delegates = ("TOOL_APPROVAL=delegate=ask", "DELEGATION=true", "SANDBOX=true")
    task = json.dumps({"task": "Think."})
    async with program(sim, "MODEL=gpt-5", *delegates) as terminal:
        await terminal.sees("> ")
        terminal.types(f"sim:tool {task}\n")
        await terminal.sees("~ **Choosing a tool**")
        await terminal.sees("May delegate be called?")
        await terminal.sees("y or n: ")
        with monkeypatch.context() as slow:
            slow.setattr(sim, "default_scenario", "chat,stall=0")
            terminal.types("y\n")
            await sim.requested(2)
            terminal.types("\x03")
            await terminal.sees("[stopped]")
            await sim.closed_early()
        terminal.types("Who are you?\n")
        await terminal.sees("[idle]")
        terminal.types("\x04")
        await terminal.process.wait()
        shown = terminal.text

    assert terminal.process.returncode == 0
    assert sim.api_key not in shown


async def test_terminal_remembers_refused_parameter(sim: Simulator) -> None:
    sim.faults.append(refuse_parameter("reasoning.context"))
    async with program(sim) as terminal:
        for count in (2, 3):
            await terminal.sees("> ")
            terminal.types("sim:short Hi\n")
            await terminal.sees("[idle]")
            assert len(sim.requests) == count
        terminal.types("\x04")
        await terminal.process.wait()


async def test_long_output_is_cut() -> None:
    """The model reads all of it."""
    tool = WeatherTool(result="x" * 2_001)
    async with sitting([calls("get_weather", 1)], [SAID], tool=tool) as desk:
        desk.terminal.receive_line("Weather?")
        rows = ["= " + "x" * 76, *["x" * 78] * 24, "x" * 52 + " [...]\n"]
        await desk.sees("\n  ".join(rows))


async def test_call_that_a_retry_gives_up_is_taken_back() -> None:
    desk = Desk()
    for item in (calls("look", 1), GIVEN_UP, GIVEN_UP):
        desk.terminal.show(ItemDone(1, item))

    assert desk.text.splitlines()[1:] == ["* look is not called"]


async def test_call_of_an_earlier_answer_is_not_taken_back() -> None:
    """The items of each answer are numbered from the beginning."""
    async with sitting([calls("get_weather", 1)], [SAID]) as desk:
        desk.terminal.receive_line("Weather?")
        await desk.sees("[idle]")
        desk.terminal.show(ItemDone(0, GIVEN_UP))

    assert "is not called" not in desk.text
