"""Programs that are no good MCP servers: each fails alone, and none outlives the run."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcp_fake import OPENED, TOOL, only_tool
from toolbox.mcp.client import McpClient
from toolbox.remote_tools import RemoteError
from toolbox.server_entries import ServerEntry

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A server in a few lines; what a test adds runs when a tool is called.
GOOD = f"""
import json, os, socket, subprocess, sys, time

def say(number, result):
    print(json.dumps({{"jsonrpc": "2.0", "id": number, "result": result}}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            say(message["id"], {OPENED!r})
        case "tools/list":
            say(message["id"], {{"tools": [{TOOL!r}]}})
        case "tools/call":
            number = message["id"]
"""

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def program(*lines: str) -> str:
    """A server that does these lines when its tool is called."""
    return GOOD + "\n".join(f"            {line}" for line in lines)


@asynccontextmanager
async def running(code: str, *arguments: str) -> AsyncIterator[McpClient]:
    """A client of a program in Python."""
    command = (sys.executable, "-c", code, *arguments)
    server = McpClient(ServerEntry("local", command=command, seconds=120.0))
    try:
        yield server
    finally:
        await server.close()


DEADLY = {
    "lines without end": ("while True: print('{}')", "wrote too much and was ended"),
    "a line without end": ("while True: print('x' * 99_999, end='')", "has ended"),
    "pings without end": (
        "while True: print(json.dumps({'id': 1, 'method': 'ping'}))",
        "wrote too much and was ended",
    ),
    "an end": ("sys.exit(3)", "has ended"),
    "a closed stdout": ("os.close(1); time.sleep(999)", "has ended"),
}


@pytest.mark.parametrize("case", DEADLY)
async def test_program_that_goes_wrong_ends(case: str) -> None:
    """The call fails in a sentence; so do those that come after it."""
    line, why = DEADLY[case]
    async with running(program(line)) as server:
        tool = await only_tool(server)

        for _ in range(2):
            with pytest.raises(RemoteError) as failed:
                await tool.execute({})
            assert str(failed.value) == f"The MCP server local {why}."


SENTENCES = {
    "a program that is not there": ("/nonexistent/program",),
    "a folder": ("/",),
    "a name with a zero in it": ("a\0b",),
}


@pytest.mark.parametrize("case", SENTENCES)
async def test_program_that_cannot_be_started_fails(case: str) -> None:
    """The sentence does not quote the command."""
    server = McpClient(ServerEntry("local", command=SENTENCES[case]))

    with pytest.raises(RemoteError, match=r"^The MCP server local cannot be started"):
        await server.list_tools()

    await server.close()


async def test_words_that_are_no_messages_are_passed_over() -> None:
    """Many programs greet on stdout."""
    greeting = 'print("Hello!\\n[1]\\n7", flush=True)\n'
    answer = "say(number, {'content': [{'type': 'text', 'text': 'Done.'}]})"
    async with running(greeting + program("print('[1, 2')", answer)) as server:
        told = await (await only_tool(server)).execute({})

    assert told["content"][0]["text"] == "Done."


async def test_answers_in_another_order_find_their_calls() -> None:
    """Two calls at once; the second is answered first."""
    lines = (
        "text = message['params']['arguments']['text']",
        "held = globals().setdefault('held', [])",
        "held.insert(0, (number, text))",
        "for one, said in held if len(held) == 2 else []:",
        "    say(one, {'content': [{'type': 'text', 'text': said}]})",
    )
    async with running(program(*lines)) as server:
        tool = await only_tool(server)
        answers = await asyncio.gather(
            tool.execute({"text": "first"}), tool.execute({"text": "second"})
        )

    assert [one["content"][0]["text"] for one in answers] == ["first", "second"]


@pytest.mark.parametrize("ending", ["run", "program"])
async def test_what_a_program_started_ends_with_it(ending: str, tmp_path: Path) -> None:
    """Its own children hold a connection, which breaks when they are gone."""
    connected: asyncio.Queue[Connected] = asyncio.Queue()
    place = str(tmp_path / "socket")
    listening = await asyncio.start_unix_server(
        lambda *both: connected.put_nowait(both), place
    )
    child = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); "
        "s.connect(sys.argv[1]); print('connected', flush=True); time.sleep(999)"
    )
    started = (
        f"one = subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[1]], "
        "stdout=subprocess.PIPE); one.stdout.readline()"
    )
    then = "sys.exit(0)" if ending == "program" else "time.sleep(999)"
    async with listening, running(program(started, then), place) as server:
        tool = await only_tool(server)
        call = asyncio.create_task(tool.execute({}))
        reader, writer = await connected.get()
        if ending == "program":
            with pytest.raises(RemoteError):
                await call
        else:
            call.cancel()
            await server.close()

        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_handshake_that_fails_leaves_no_program_behind(tmp_path: Path) -> None:
    """Each try starts a program of its own; the last one ended when it came."""
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x')\n" + GOOD.replace(
        "2025-06-18", "1999-01-01"
    )
    async with running(code + "            pass") as server:
        for _ in range(2):
            with pytest.raises(RemoteError, match="speaks another version"):
                await server.list_tools()

    assert starts.read_text("utf-8") == "xx"


async def test_program_may_listen_to_nobody() -> None:
    """What is written to it waits; the run ends all the same."""
    code = "import time\ntime.sleep(999)"
    command = (sys.executable, "-c", code)
    server = McpClient(ServerEntry("local", command=command, seconds=0.2))

    with pytest.raises(RemoteError, match=r"did not answer within 0\.2 s"):
        await server.list_tools()

    await server.close()


async def test_secret_of_the_environment_is_taken_out_of_answers() -> None:
    """The program got it, the model does not."""
    line = "say(number, {'content': [{'type': 'text', 'text': os.environ['KEY']}]})"
    entry = ServerEntry(
        "local",
        command=(sys.executable, "-c", program(line)),
        environment=(("KEY", 'a"canary'),),
        secrets=('a"canary',),
    )
    server = McpClient(entry)

    told = await (await only_tool(server)).execute({})

    await server.close()
    assert json.dumps(told["content"]) == '[{"type": "text", "text": "[redacted]"}]'
