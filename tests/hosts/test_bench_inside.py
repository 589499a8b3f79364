"""The benchmarks inside the real Open WebUI measure what they say."""

import pytest

from bench import beside, first
from bench.cost import ask_both, plan, spent
from bench.crowd import agents, ask_crowd, crowd_lines, install_agent, streams
from bench.host import Address
from bench.inside import NATIVE, PIPE, answer, both_connections
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from simulator import Simulator

pytestmark = pytest.mark.host


@pytest.mark.asyncio
async def test_both_connections_are_measured_alike(
    server: OpenWebUI, admin: User, toolkit: None, simulator: Simulator
) -> None:
    """Whole answers, waits, work and a crowd; afterwards no model is left.

    The native connection sends an event for each delta, the pipe joins them. The second
    question of each connection goes on in its chat.
    """
    before = await admin.models(refresh=True)
    address = Address(simulator.base_url, simulator.api_key)
    async with both_connections(admin, address), Tab(admin) as tab:
        native = await answer(server, tab, NATIVE, 100)
        pipe = await answer(server, tab, PIPE, 100)
        assert native.events > 100 > pipe.events
        assert min(native.cpu, pipe.cpu) > 0

        simulator.forget()
        chats = [first.new_chat(model, "2 turns") for model in (NATIVE, PIPE)]
        for native_first in (True, False):
            pair = await first.ask_both(tab, chats, True, native_first)
            for wait in pair:
                assert first.READY_MS < wait.first < wait.end
        assert questions_in(simulator) == [1, 1, 2, 2]

        simulator.forget()
        asker = beside.Asker(server, tab)
        pairs = await asker.ask_in_turns(beside.TOOLS, 2, goes_on=True)
        sizes = asker.row_sizes()
        assert questions_in(simulator) == [1] * 6 + [2] * 6
        assert all(spent.end > 0 and spent.sent > 0 for both in pairs for spent in both)
        assert min(sizes) > 1000

        simulator.forget()
        crowd = await ask_crowd([server], [tab], streams(PIPE, 30), 3)
    after = await admin.models(refresh=True)

    # One more question is answered while they run, and the server stays well.
    assert crowd.faults == []
    assert len(simulator.requests) == 3 + 1
    assert crowd.running == 3
    assert min(*crowd.firsts, crowd.late, crowd.gap.milliseconds) > 0
    assert crowd.size.memory >= crowd.size.memory_before > 0
    assert crowd.size.threads >= crowd.size.threads_before > 1
    assert {model["id"] for model in after} == {model["id"] for model in before}


def questions_in(simulator: Simulator) -> list[int]:
    bodies = (request.body for request in simulator.requests)
    return [str(body["input"]).count("sim:") for body in bodies]


@pytest.mark.asyncio
async def test_agents_at_once_give_whole_answers(
    server: OpenWebUI, admin: User, toolkit: None, simulator: Simulator
) -> None:
    """Each makes six calls before it; memory, threads and CPU are the server's."""
    await install_agent(admin, Address(simulator.base_url, simulator.api_key))
    try:
        async with Tab(admin) as tab:
            crowd = await ask_crowd([server], [tab], agents(), 2)
    finally:
        await admin.delete_function("bench")

    assert crowd.faults == []
    assert len(simulator.requests) == 2 * 7 + 1
    assert min(crowd.firsts) > 0
    assert crowd.cpu > 0
    assert "2 agents at once" in crowd_lines(crowd, "agents")


@pytest.mark.asyncio
async def test_both_connections_have_the_same_chat(
    admin: User, toolkit: None, simulator: Simulator
) -> None:
    """Only the pipe sends reasoning back, and keeps its prefix when the time changes."""
    turns = await ask_both(plan(2), admin, simulator, ticks=True)

    native = [spent(requests) for requests in turns[NATIVE]]
    pipe = [spent(requests) for requests in turns[PIPE]]
    assert [turn.requests for turn in native + pipe] == [1] * 4
    assert [turn.replayed for turn in native + pipe] == [0, 0, 0, 64]
    first = pipe[0].usage
    assert pipe[1].usage.cached > 0.95 * first.input > native[1].usage.cached
    output = [turn.usage.output for turn in native]
    assert [turn.usage.output for turn in pipe] == output
