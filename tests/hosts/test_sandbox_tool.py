"""The sandbox as a tool of the real Open WebUI."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import EVERYBODY_READS, User
from hosts.sent import chat_bodies
from hosts.servers.open_webui import OpenWebUI
from marking import require_mark
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "sandbox_tool")]

BUILT_TOOL = Path(__file__).parents[2] / "pipes/openai_responses_sandbox.py"
MODEL = "openai_responses.gpt-6.2-sol"


@pytest_asyncio.fixture(scope="module")
async def sandbox_tool(admin: User) -> AsyncIterator[None]:
    """The built file, imported as a tool for everybody."""
    require_mark("sandbox")
    form = {
        "id": "sandbox",
        "name": "Sandbox",
        "content": BUILT_TOOL.read_text(),
        "meta": {"description": "tests"},
        "access_grants": [EVERYBODY_READS],
    }
    await admin.call("POST", "/api/v1/tools/create", form)
    yield
    await admin.call("DELETE", "/api/v1/tools/id/sandbox/delete")


async def use(
    tab: Tab,
    tool: str,
    arguments: dict[str, Any],
    *,
    files: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Turn:
    """Let the model call a tool with these arguments."""
    choice = {"type": "function", "function": {"name": tool}}
    body: dict[str, Any] = {"tool_ids": ["sandbox"], "tool_choice": choice}
    if files:
        body["files"] = files  # the page names them beside those of the message
        more["files"] = files
    return await tab.send(MODEL, f"sim:tool {json.dumps(arguments)}", body=body, **more)


def output_of(simulator: Simulator) -> str:
    """What the last tool answered."""
    items = chat_bodies(simulator)[-1]["input"]
    outputs = [i["output"] for i in items if i["type"] == "function_call_output"]
    return str(outputs[-1])


@pytest.mark.asyncio
async def test_a_file_comes_back_to_the_person(
    tab: Tab, member: User, admin: User, simulator: Simulator
) -> None:
    """Stored for whoever asked, below the answer, and in the chat's workspace alone."""
    code = "open('table.csv', 'w').write('a,b')"
    first = await use(tab, "python_execute", {"code": code})
    written = json.loads(output_of(simulator))
    [file] = (await tab.message(first))["files"]
    path = f"/api/v1/files/{file['id']}"
    stored = await member.call("GET", path)

    again = {"command": "cat table.csv"}
    await use(tab, "shell_execute", again, chat_id=first.chat_id)
    same_chat = json.loads(output_of(simulator))
    await use(tab, "shell_execute", {"command": "ls"})
    other_chat = json.loads(output_of(simulator))
    async with Tab(admin) as other:
        await use(other, "shell_execute", {"command": "ls"})
    other_user = json.loads(output_of(simulator))

    assert first.error is None
    assert written["result"] == 3
    assert written["files"] == ["table.csv"]
    assert file["name"] == "table.csv"
    assert stored["user_id"] == member.id
    assert first.of_type("chat:message:files")[0]["data"]["files"] == [file]
    assert same_chat["stdout"] == "a,b"
    assert other_chat["stdout"] == other_user["stdout"] == ""


@pytest.mark.asyncio
async def test_attached_files_are_in_the_workspace(
    tab: Tab, member: User, simulator: Simulator
) -> None:
    """Once: what the code then makes of them stays."""
    table = await attach(member, "sales.csv", b"Atlantis,4711", "text/csv")
    change = {"command": "cat sales.csv; echo changed > sales.csv"}
    first = await use(tab, "shell_execute", change, files=[table])
    before = json.loads(output_of(simulator))
    look = {"command": "cat sales.csv"}
    await use(tab, "shell_execute", look, files=[table], chat_id=first.chat_id)
    after = json.loads(output_of(simulator))

    assert before["stdout"] == "Atlantis,4711"
    assert after["stdout"] == "changed\n"


ATTACKS = {
    "network": (
        "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
        "PermissionError: [Errno 1] Operation not permitted",
    ),
    "database": ("open('{home}/data/webui.db', 'rb')", "FileNotFoundError"),
    "environment": ("import os; os.environ['WEBUI_SECRET_KEY']", "KeyError"),
    "environment of the server": (
        "{{}}[b'WEBUI_SECRET_KEY' in open('/proc/1/environ', 'rb').read()]",
        "KeyError: False",
    ),
}
"""Code, and the error that stops it."""


@pytest.mark.asyncio
@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_fail(
    tab: Tab, server: OpenWebUI, simulator: Simulator, attack: str
) -> None:
    """Through the page, the pipe and the tool."""
    code, error = ATTACKS[attack]
    code = code.format(port=server.port, home=server.home)

    await use(tab, "python_execute", {"code": code})

    assert error in json.loads(output_of(simulator))["stderr"]
