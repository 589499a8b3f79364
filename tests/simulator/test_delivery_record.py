"""What the stand-in remembers, writes down, prints."""

import asyncio
import sys
from pathlib import Path

import pytest

import simulator
from simulator import Simulator
from simulator.sealing import rewrite_seal
from simulator.transcripts import build_transcripts, write_transcripts
from upstream.simulated import Client

PACKAGE = Path(simulator.__file__).parent


@pytest.mark.asyncio
async def test_a_request_is_recorded(client: Client) -> None:
    """Path, body, answer and times are kept; the key is not."""
    reply = await client.ask("Hello")
    (record,) = client.simulator.requests

    assert record.path == "/v1/responses"
    assert record.headers["Authorization"] == "***"
    assert record.body == client.body("Hello")
    assert (record.status, record.scenario) == (200, "chat")
    assert record.response == reply.body
    assert record.ended_at
    assert record.started_at <= record.ended_at


@pytest.mark.asyncio
async def test_the_final_response_of_a_stream_is_recorded(client: Client) -> None:
    """The record holds what the last event said, with the seals of the items."""
    events = await client.stream()
    (record,) = client.simulator.requests
    final = events.events[-1]["response"]
    for item in final["output"]:
        if item["type"] == "reasoning":
            item["encrypted_content"] = rewrite_seal(item["encrypted_content"])

    assert record.response == final
    assert record.events_sent == len(events.events)


@pytest.mark.asyncio
async def test_stopping_lets_stalled_streams_go(client: Client) -> None:
    """The end of a simulator is not taken for a client that left."""
    async with Simulator() as other:
        url = f"{other.base_url}/responses"
        headers = {"Authorization": f"Bearer {other.api_key}"}
        body = client.body("sim:stall", stream=True)
        answer = await client.session.post(url, json=body, headers=headers)
        await answer.content.readuntil(b"output_text.delta")
    answer.close()

    assert other.requests[0].closed_by_client is False
    assert other.open_streams == 0


@pytest.mark.asyncio
async def test_running_it_by_hand() -> None:
    """python -m simulator prints address, key, scenarios, and serves."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "simulator",
        "--port",
        "0",
        cwd=PACKAGE.parent,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines: list[str] = []
    while not any(line.startswith("error-nested ") for line in lines):
        lines.append((await process.stdout.readline()).decode())
    process.terminate()
    await process.communicate()

    assert lines[0].startswith("base URL  http://127.0.0.1:")
    assert lines[1].split() == ["key", "sk-simulator-1"]


def test_transcripts_are_written(tmp_path: Path) -> None:
    """Every run writes the same bytes."""
    number = write_transcripts(tmp_path)
    written = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*.sse")
    }

    assert number > 100
    assert len(written) == number
    assert written == dict(build_transcripts())
