"""The words that the demo prints."""

from contextlib import AsyncExitStack, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

import demo
import tour
from gpt5_agent.pipeline import Pipeline
from simulator.__main__ import main
from simulator.options import NAMES
from simulator.scenarios.catalog import ALL_SCENARIOS, SCENARIOS


def test_ten_words_with_a_line_each() -> None:
    """Each is a scenario; what stands behind it is an option."""
    printed = list(tour.describe_words())

    assert len(printed) == len(tour.WORDS) == 10
    assert max(map(len, printed)) <= 79
    for entry in tour.WORDS:
        name, *options = entry.word.split(",")
        assert name in SCENARIOS
        assert {option.partition("=")[0] for option in options} <= NAMES


def test_words_for_the_agents_are_scenarios() -> None:
    """Each with a line of its own."""
    for words in (tour.AGENT_WORDS, tour.SERVER_AGENT_WORDS):
        printed = list(tour.describe_words(words))
        assert len(printed) == len(words)
        assert max(map(len, printed)) <= 79
        for word in words:
            assert word.word.partition(",")[0] in SCENARIOS


class AgentServer:
    """A Pipelines server that is there at once, with its two models."""

    def __init__(self, env: object = None) -> None:
        """Need no process."""

    async def __aenter__(self) -> "AgentServer":
        """Start nothing."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End nothing."""

    async def models(self) -> list[dict[str, str]]:
        """The models, by the names that the pipeline gives them."""
        return Pipeline().pipelines()


@pytest.mark.parametrize("checkout", ["", "/srv/pipelines"])
@pytest.mark.asyncio
async def test_demo_says_which_models_run_on_which_server(
    checkout: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stand-in is called so."""

    async def install(_server: object, _valves: object) -> None:
        """Install nothing."""

    monkeypatch.setenv("PIPELINES_SERVER", checkout)
    monkeypatch.setattr(demo, "PipelinesServer", AgentServer)
    monkeypatch.setattr(demo, "install_pipeline", install)
    monkeypatch.setattr(demo, "connected", lambda *_: nullcontext())
    admin: Any = None

    async with AsyncExitStack() as running:
        await demo.start_agents(running, admin, demo.Upstream("", {}))

    printed = capsys.readouterr().out
    assert "the models GPT-5 Function Calling and GPT-5 ReAct." in printed
    assert (f"in {checkout}." if checkout else "a stand-in of the") in printed


def test_the_simulator_lists_what_it_can_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every scenario and every option, without starting anything."""
    monkeypatch.setattr("sys.argv", ["simulator", "--list"])

    main()

    printed = capsys.readouterr().out
    assert all(f"{scenario.name} " in printed for scenario in ALL_SCENARIOS)
    assert all(f"``{name}" in printed for name in NAMES)


class Server:
    """Takes what an administrator asks for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def call(self, method: str, path: str, form: dict[str, object]) -> None:
        """Note a request."""
        self.asked.append((method, path, str(form)))


class ToldTab:
    """A tab in which every answer is there at once."""

    def __init__(self, _admin: object) -> None:
        """Need no server."""

    async def __aenter__(self) -> "ToldTab":
        """Connect to nothing."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""

    async def send(self, *_: object, **__: object) -> SimpleNamespace:
        """Answer a word."""
        return SimpleNamespace(chat_id="c-1")


@pytest.mark.asyncio
async def test_chat_of_the_tour_has_a_title(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator writes none that anybody would recognize."""
    monkeypatch.setattr(tour, "Tab", ToldTab)
    server: Any = Server()

    assert await tour.take_tour(server, "m", say=print) == "c-1"

    title = str({"chat": {"title": "A tour of the pipe"}})
    assert server.asked == [("POST", "/api/v1/chats/c-1", title)]
