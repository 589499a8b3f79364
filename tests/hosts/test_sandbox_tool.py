"""The sandbox as a tool of the real Open WebUI, as the file of a release brings it."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import OpenWebUIError
from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.sandbox_tool import (
    BUILT_TOOL,
    TOOL,
    import_tools,
    output_of,
    release_file,
    sandbox_installed,
    sandbox_options,
    use,
)
from marking import require_mark
from releasing.contents import READABLE, SANDBOX_ID
from releasing.packed import pack, unpack, without_comments
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.usefixtures("pipe"),
]


@pytest_asyncio.fixture(scope="module")
async def sandbox_tool(admin: User) -> AsyncIterator[None]:
    """The file of a release, imported, with access for everybody."""
    require_mark("sandbox")
    async with sandbox_installed(admin):
        yield


@pytest.mark.asyncio
@pytest.mark.usefixtures("sandbox_tool")
async def test_import_stores_the_packed_file(admin: User, member: User) -> None:
    """Unchanged, with its eight tools; only who is granted access may use it."""
    stored = await admin.call("GET", TOOL)
    [exported] = [
        tool
        for tool in await admin.call("GET", "/api/v1/tools/export")
        if tool["id"] == SANDBOX_ID
    ]
    [entry] = json.loads(release_file())
    private = {**entry, "id": "private_sandbox"}
    await import_tools(admin, json.dumps([private]))
    try:
        with pytest.raises(OpenWebUIError):
            await member.call("GET", "/api/v1/tools/id/private_sandbox")
    finally:
        await admin.call("DELETE", "/api/v1/tools/id/private_sandbox/delete")

    code = without_comments(BUILT_TOOL.read_text("utf-8"))
    assert unpack(stored["content"], READABLE[SANDBOX_ID]) == code
    assert exported["content"] == entry["content"]
    assert {spec["name"] for spec in exported["specs"]} == {
        "python_execute",
        "shell_execute",
        "sandbox_fs_edit",
        "sandbox_fs_list",
        "sandbox_fs_mkdir",
        "sandbox_fs_read",
        "sandbox_fs_remove",
        "sandbox_fs_write",
    }
    assert stored["meta"]["manifest"]["title"] == "Sandbox"
    assert (await member.call("GET", TOOL))["id"] == SANDBOX_ID


@pytest.mark.asyncio
@pytest.mark.usefixtures("sandbox_tool")
async def test_update_keeps_settings_and_workspaces(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The next version replaces the text; what chats have stays."""
    stored = await admin.call("GET", TOOL)
    source = BUILT_TOOL.read_text("utf-8")
    newer = source.replace("Replaced the passage.", "Exchanged the passage.")
    assert newer != source
    writing = {"path": "a.txt", "content": "one two"}
    first = await use(tab, "sandbox_fs_write", writing)
    form = {key: stored[key] for key in ("id", "name", "meta")}
    async with sandbox_options(admin, {"seconds": 20}):
        for text in (newer, source):
            form["content"] = pack(text, READABLE[SANDBOX_ID])
            await admin.call("POST", f"{TOOL}/update", form)
            edit = {"path": "a.txt", "old": "one", "new": "one"}
            await use(tab, "sandbox_fs_edit", edit, chat_id=first.chat_id)
            if text is newer:
                assert output_of(simulator).startswith("Exchanged the passage.")
        valves = await admin.call("GET", f"{TOOL}/valves")

    assert output_of(simulator).startswith("Replaced the passage.")
    assert valves["SANDBOX_OPTIONS"] == '{"seconds": 20}'


@pytest.mark.asyncio
@pytest.mark.usefixtures("sandbox_tool")
async def test_files_go_into_the_workspace_and_come_back_to_the_person(
    tab: Tab, member: User, admin: User, simulator: Simulator
) -> None:
    """Stored for whoever asked, at the answer, and in the chat's workspace alone.

    What is attached is there once: what the code then makes of it stays.
    """
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

    table = await attach(member, "sales.csv", b"Atlantis,4711", "text/csv")
    change = {"command": "cat sales.csv; echo changed > sales.csv"}
    first = await use(tab, "shell_execute", change, files=[table])
    before = json.loads(output_of(simulator))
    look = {"command": "cat sales.csv"}
    await use(tab, "shell_execute", look, files=[table], chat_id=first.chat_id)
    after = json.loads(output_of(simulator))

    assert before["stdout"] == "Atlantis,4711"
    assert after["stdout"] == "changed\n"


DOWNLOADED = "application/octet-stream"
PAGES = ("report.html", "report.html.gz", "picture.svg", "page")
"""A browser would run scripts in some of them, in the origin of Open WebUI."""
NAMES = {
    "a\nb.png": "a_b.png",
    "\\..\\x": "x.bin",
    "$(id)": "$(id).bin",
    "\x1b[31m": "_[31m.bin",
    "x" * 255: f"{'x' * 200}.bin",
}
"""Names that the code gives, and those under which Open WebUI keeps the files."""
PAGE = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
WRITING = f"""
for name in {(*PAGES, *NAMES)!r}:
    open(name, 'w').write({PAGE!r})
open(b'half-\\xff.txt', 'w').write('x')
'half-\\ud800'
"""


@pytest.mark.asyncio
@pytest.mark.usefixtures("sandbox_tool")
async def test_files_of_the_sandbox_are_no_pages_and_their_names_only_names(
    admin: User, simulator: Simulator
) -> None:
    """Whoever asks is an administrator, whose files the host shows in its own origin.

    Half of a character, which no database stores, does not end the answer.
    """
    async with Tab(admin) as tab:
        turn = await use(tab, "python_execute", {"code": WRITING})
        files = {file["name"]: file for file in (await tab.message(turn))["files"]}

    assert turn.error is None
    assert json.loads(output_of(simulator))["result"] == "half-?"
    stored = {*(f"{name}.bin" for name in PAGES), *NAMES.values()}
    assert files.keys() == stored | {"half-_.txt"}
    for name in stored:
        address = f"{admin.url}{files[name]['url']}"
        async with admin.http.get(f"{address}/html", headers=admin.headers) as answer:
            assert await answer.text() == PAGE
            kind = answer.headers["Content-Type"]
            assert kind == ("image/png" if name == "a_b.png" else DOWNLOADED)


FORKS = """
import os, signal
children = []
try:
    for _ in range(100):
        children.append(os.fork() or signal.pause())
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""
ATTACKS = {
    "network": "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
    "database": "open('{home}/data/webui.db', 'rb')",
    "environment": "import os; os.environ['WEBUI_SECRET_KEY']",
    "environment of the server": (
        "b'WEBUI_SECRET_KEY' in open('/proc/1/environ', 'rb').read() or [][0]"
    ),
    "link to the database": (
        "import os; os.symlink('{home}/data/webui.db', 'link'); open('link', 'rb')"
    ),
    "workspaces of others": (
        "import os; os.listdir('{home}/data/openai_responses_sandbox')"
    ),
    "folders of the server": (
        "import os; [p for p in ('/etc/passwd', '/root', '/home', '/proc/1/root/etc/passwd')"
        " if os.path.lexists(p)] or [][0]"
    ),
    "memory": "len(bytearray(4_000_000_000))",
    "processes": FORKS,
}
"""Code that fails; more of it is in tests/sandbox.

The process of the server around the sandbox could change what it inherits: files,
environment, and the limits of memory and processes.
"""
BLOCKED = {
    "network": "PermissionError: [Errno 1] Operation not permitted",
    "database": "FileNotFoundError",
    "environment": "KeyError",
    "environment of the server": "IndexError",
    "link to the database": "FileNotFoundError",
    "workspaces of others": "FileNotFoundError",
    "folders of the server": "IndexError",
    "memory": "MemoryError",
    "processes": "BlockingIOError",
}
"""The error that stops each."""
ATTACKING = """
import json
errors = dict()
for name, code in {attacks!r}.items():
    try:
        exec(code)
        errors[name] = ""
    except Exception as error:
        errors[name] = type(error).__name__ + ": " + str(error)
print(json.dumps(errors))
"""


@pytest.mark.asyncio
@pytest.mark.usefixtures("sandbox_tool")
async def test_sandbox_blocks_each_attack(
    tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """Through the page, the pipe and the tool."""
    places = {"port": server.port, "home": server.home}
    attacks = {name: code.format(**places) for name, code in ATTACKS.items()}

    await use(tab, "python_execute", {"code": ATTACKING.format(attacks=attacks)})

    errors = json.loads(json.loads(output_of(simulator))["stdout"])
    assert errors.keys() == BLOCKED.keys()
    for name, error in BLOCKED.items():
        assert errors[name].startswith(error), name
