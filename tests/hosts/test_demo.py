"""The demo: the proof that the README names, and the words for its agent."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import demo
import tour
from hosts.people.tabs import Tab
from hosts.servers.offline import host_python
from hosts.servers.open_webui import OpenWebUI
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio]

ROOT = Path(__file__).parents[2]


async def run_demo(*options: str, **variables: str) -> tuple[int, str]:
    """Run the demo to its end; return its exit status and all that it printed."""
    clean = {name: text for name, text in os.environ.items() if "OPENAI" not in name}
    process = await asyncio.create_subprocess_exec(
        host_python(),
        ROOT / "scripts/demo.py",
        *options,
        env={**clean, "PYTHONPATH": str(ROOT / "testkit"), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode()


async def test_check_without_a_key_compares_the_bytes() -> None:
    """What it says about the chat agrees with what it says about the request."""
    status, printed = await run_demo("--check")

    assert "note" not in printed, "a repair in the first answer of all"
    assert "the chat keeps 1 reasoning item(s) of turn 1" in printed
    assert "turn 2 sent 1 reasoning item(s) before turn 1's answer" in printed
    assert "encrypted_content is turn 1's, byte for byte" in printed
    assert printed.endswith("Replayed.\n")
    assert status == 0


async def test_check_with_a_key_reads_the_chat(running_simulator: Simulator) -> None:
    """The server is another process's: what was sent to it cannot be seen."""
    status, printed = await run_demo(
        "--check",
        OPENAI_API_KEY=running_simulator.api_key,
        OPENAI_BASE_URL=running_simulator.base_url,
    )

    assert "OPENAI_API_KEY is set" in printed
    assert "the chat keeps 1 reasoning item(s) of turn 1" in printed
    assert "cannot be seen from here" in printed
    assert printed.endswith("Replayed.\n")
    assert status == 0


async def test_words_for_the_agent_work() -> None:
    """On the agent that people find first, in Open WebUI's own list of models."""
    async with AsyncExitStack() as running:
        upstream = await demo.choose_upstream(running)
        server = await running.enter_async_context(OpenWebUI())
        admin = server.admin
        models = await demo.install_release(admin, upstream.valves)
        names = {model["id"]: model["name"] for model in await admin.models()}
        agent = next(model for model in models if names[model] == demo.AGENT_NAME)
        tab = await running.enter_async_context(Tab(admin))
        turns = {
            word.word: await tab.send(
                agent, f"{word.question} {word.typed}", body={"tool_ids": [tour.LAKE]}
            )
            for word in tour.AGENT_WORDS
        }
        chat = await admin.chat(turns["agent-crew"].chat_id)

    output = chat["history"]["messages"][turns["agent-crew"].message_id]["output"]
    called = {item.get("name") for item in output}
    assert {"create_tasks", "delegate_task", "update_task"} <= called
    assert "August" in turns["agent-crew"].text
    for word, turn in turns.items():
        assert bool(turn.error) is (word == "failed")
        assert turn.statuses
