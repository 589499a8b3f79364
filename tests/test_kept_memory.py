"""docs/reference/attacks.md lists all that outlives a request; none of it grows for ever.

What is kept is found in the objects themselves: a new memory needs a line of the table.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from agents.sample import SIMULATORS
from calls.sample import USER, chat, valves_for
from gpt5_agent.pipeline import Pipeline
from measures.kept_memory import caches, deep_size, global_containers, kept_containers
from owui_administration.endpoints import EndpointChoice
from owui_administration.filter import Filter
from owui_manifold.call.valves import UserValves
from owui_manifold.pipe import Pipe
from sandbox.backend import SandboxLimits
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.runs import Sandbox
from sandbox.tools import SandboxTools
from sandbox.workspaces import Workspace, WorkspacePool
from shells.administration import UNKNOWN_CALL, CallFacts, ResponseCounts
from simulator import Simulator
from stand_in.host import StandInHost, close_connections
from stand_in.usage_database import UsageDatabase

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
PAGE = (Path(__file__).resolve().parents[1] / "docs/reference/attacks.md").read_text()
RUNNING = "none"
"""Stands in the table for what is there only while something runs."""
FEW = 40
MANY = 110
LONG = 9_000
"""Characters of each name, key and word that somebody sends."""
GROWTH = 500
"""Bytes that a request may leave: hashes, in containers with a bound."""


class Bound(NamedTuple):
    """A line of the table: how many entries, and the bytes of each."""

    number: int
    entry: int


def read_bounds() -> dict[str, Bound]:
    """Return the bounds of the page, by the code that keeps something."""
    section = PAGE.split("## What is kept between requests")[1].split("\n## ")[0]
    bounds = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0].startswith("`"):
            bounds[cells[0].strip("`")] = Bound(amount(cells[2]), amount(cells[3]))
    return bounds


def amount(cell: str) -> int:
    """Return the number that a cell begins with; 0 for what no idle user keeps."""
    word = cell.split(maxsplit=1)[0].replace(",", "")
    return 0 if word == RUNNING else int(word)


BOUNDS = read_bounds()


def bound_of(name: str) -> str:
    if name in BOUNDS:
        return name
    return name.rpartition(".")[0]


def assert_bounded(containers: Mapping[str, list[Any]]) -> None:
    for name, held in containers.items():
        bound = BOUNDS[bound_of(name)]
        for container in held:
            assert len(container) <= bound.number, name
            size = deep_size(container) - sys.getsizeof(container)
            assert size <= bound.number * bound.entry, name


@pytest.fixture
def filter_(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Filter:
    """The filter of the administration, with rules and two accounts."""
    UsageDatabase(monkeypatch, StandInHost(monkeypatch, tmp_path))
    made = Filter()
    made.valves = made.Valves(
        USER_LIMITS_JSON='[{"tokens": 100000000, "per": "day"}]',
        ENDPOINTS_JSON='[{"api_key": "sk-1"}, {"api_key": "sk-2"}]',
    )
    return made


@pytest_asyncio.fixture
async def pipe(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Pipe]:
    """The pipe, in which users may have a key of their own."""
    StandInHost(monkeypatch, tmp_path)
    made = Pipe()
    made.valves = valves_for(sim, USER_API_KEYS="allowed", USER_MAY_CHANGE="all")
    yield made
    await close_connections(made)


@pytest_asyncio.fixture
async def pipeline(
    sim: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Pipeline]:
    monkeypatch.setenv("PIPELINES_DIR", str(tmp_path))
    monkeypatch.setenv("GPT5_AGENT_ALLOW", SIMULATORS)
    made = Pipeline()
    made.valves = made.Valves(BASE_URL=sim.base_url, API_KEY=sim.api_key)
    yield made
    await made.on_shutdown()


async def test_table_lists_all_that_is_kept(
    pipe: Pipe, pipeline: Pipeline, filter_: Filter, tmp_path: Path
) -> None:
    """And nothing else; a line may be about all attributes of a class."""
    await ask_pipe(pipe, 0)
    await asyncio.to_thread(ask_pipeline, pipeline, 0)
    await ask_filter(filter_, 0)
    sandboxes = SandboxTools(WorkspacePool()), Workspace(tmp_path)
    runs = Sandbox(BubblewrapBackend(Path("python")), SandboxLimits())
    kept = kept_containers(pipe, pipeline, filter_, sandboxes, runs)

    listed = {bound_of(name) for name in kept} | caches().keys()
    assert sorted(listed - BOUNDS.keys()) == []
    assert sorted(BOUNDS.keys() - listed) == []


async def test_functions_remember_as_many_results_as_the_table_says() -> None:
    for name, function in caches().items():
        assert function.cache_parameters()["maxsize"] == BOUNDS[name].number


async def ask_pipe(pipe: Pipe, number: int) -> None:
    """Ask as was never asked before: each name, key, id and word is new, and long."""
    new = f"{number:03}" + "x" * LONG
    key = f"sk-{new[:1_990]}" if number % 2 else ""
    tool = {
        "type": "function",
        "function": {"name": new, "description": new, "parameters": {new: new}},
    }
    model = "my_pipe.gpt-5.6-sol" if number % 3 else f"my_pipe.{new}"
    refused: list[Json] = [
        {"text": {new: new}},
        {"reasoning": {new: new}},
        {"prompt_cache_options": {new: new}},
        {"tools": [tool, {"type": "custom", "name": "own", new: new}]},
        {"tools": [tool], new: new, "service_tier": new, "metadata": {new: new}},
    ]
    body = chat(f"{new} sim:short", **{**refused[number % 5], "model": model})
    user = {**USER, "id": new, "valves": UserValves(API_KEY=key)}
    ids = {"chat_id": f"temporary:{new}", "message_id": new, "session_id": new}
    given: Json = {"__user__": user, "__metadata__": ids}
    if number % 10 == 9:
        await pipe.pipe({**body, "stream": False}, __task__=new, **given)
        return
    answer = await pipe.pipe(body, **given)
    assert not isinstance(answer, dict)
    async for _ in answer:
        pass


def ask_pipeline(pipeline: Pipeline, number: int) -> None:
    new = f"{number:03}" + "x" * LONG
    messages = [{"role": "user", "content": f"{new} sim:short"}]
    body: Json = {"model": new, "messages": messages, "stream": True, "user": {}}
    ids = {"chat_id": new, "message_id": new, "user_id": new}
    metadata = {**ids, "files": [{"id": new, "name": new}]}
    user = {"id": new, "name": new}
    context = asyncio.run(pipeline.inlet({**body, "metadata": metadata}, user))
    del context["metadata"]
    context |= {new: new, "reasoning_effort": new, "agent_model": new}
    for _ in pipeline.pipe(None, "gpt5_function_calling", messages, context):
        pass
    pipeline._bridge.run(asyncio.sleep(0))  # then it has noted the end


async def ask_filter(filter_: Filter, number: int) -> None:
    """A call of a new user, which fails at its first endpoint."""
    new = f"{number:03}" + "x" * LONG
    facts: CallFacts = {
        **UNKNOWN_CALL,
        "user_id": new,
        "email": new,
        "role": "admin",
        "model": new,
        "base_url": f"https://{number}.example",
    }
    account = await filter_.begin(facts)
    account.count_responses(new, ResponseCounts(1, 10, 0, 10), 0.1)
    assert isinstance(account.endpoints, EndpointChoice)
    account.endpoints.mark_failed("unreachable", new, 0)
    filter_._words.known_or_other(new)


async def assert_settles(
    ask: Callable[[int], Awaitable[None]], asked: object, few: int, many: int
) -> None:
    """After some requests, further ones leave next to nothing."""
    sizes = []
    for numbers in (range(few), range(few, many)):
        for number in numbers:
            await ask(number)
        containers = kept_containers(asked)
        assert_bounded(containers)
        sizes.append(sum(map(deep_size, containers.values())))

    assert sizes[1] - sizes[0] < GROWTH * (many - few)


async def test_pipe_keeps_no_more_of_many_requests(pipe: Pipe) -> None:
    """Of refused keys, unknown models and parameters, tools, tasks and users."""
    await assert_settles(partial(ask_pipe, pipe), pipe, FEW, MANY)

    assert not [key for key in re._cache if "x" * 1_000 in str(key)]  # type: ignore[attr-defined]


async def test_agents_keep_no_more_of_many_requests(pipeline: Pipeline) -> None:
    """What clients write into a body is remembered by hashes alone."""

    async def ask(number: int) -> None:
        await asyncio.to_thread(ask_pipeline, pipeline, number)

    await assert_settles(ask, pipeline, FEW // 2, FEW)


async def test_filter_keeps_no_more_of_many_requests(filter_: Filter) -> None:
    """Failures of accounts and words of servers have an end."""
    for number in range(MANY):
        await ask_filter(filter_, number)
        await filter_._usage.flush()
    containers = kept_containers(filter_)

    assert_bounded(containers)


async def test_modules_keep_nothing(pipe: Pipe) -> None:
    """What they hold in names of their own are constants."""
    before = {name: deep_size(value) for name, value in global_containers().items()}
    for number in range(5):
        await ask_pipe(pipe, number)

    after = {name: deep_size(value) for name, value in global_containers().items()}
    assert after == before
