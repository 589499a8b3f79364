"""The demo: the proof that the README names."""

import asyncio
import os
from pathlib import Path

import pytest

from hosts.people.users import User
from hosts.servers.offline import host_python
from two_turns import check_two_turns

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


@pytest.mark.usefixtures("pipe")
async def test_check_reads_the_chat_where_requests_cannot_be_seen(
    admin: User, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server is another process's; which one a key leads to: test_demo_server.py."""
    status = await check_two_turns(admin, "openai_responses.gpt-6.2-sol", None)

    printed = capsys.readouterr().out
    assert "the chat keeps 1 reasoning item(s) of turn 1" in printed
    assert "cannot be seen from here" in printed
    assert printed.endswith("Replayed.\n")
    assert status == 0
