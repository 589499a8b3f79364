"""The proof that the README names, as a process of its own."""

import asyncio
import os
from pathlib import Path

import pytest

from hosts.servers.offline import host_python
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
        env={**clean, "PYTHONPATH": str(ROOT / "tests"), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode()


async def test_check_without_a_key_compares_the_bytes() -> None:
    """What it says about the chat agrees with what it says about the request."""
    status, printed = await run_demo("--check")

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
