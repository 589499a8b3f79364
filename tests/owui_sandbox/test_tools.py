"""The sandbox as a tool of Open WebUI, in front of a real sandbox."""

import asyncio
import inspect
import json
import os
import re
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marking import require_mark
from owui_host.lookup import HostTooOld
from owui_sandbox import host as host_module
from owui_sandbox import tools as tools_module
from owui_sandbox.host import private_paths
from owui_sandbox.stored_workspaces import StoredWorkspaces
from owui_sandbox.tools import Tools
from sandbox.workspaces import WorkspaceKey
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

SANDBOXED = [
    "python_execute",
    "sandbox_fs_edit",
    "sandbox_fs_list",
    "sandbox_fs_mkdir",
    "sandbox_fs_read",
    "sandbox_fs_remove",
    "sandbox_fs_write",
    "shell_execute",
]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """The tools of a server whose data folder is empty."""
    require_mark("sandbox")
    monkeypatch.setattr(tools_module, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(tools_module, "private_paths", lambda: {"DATA_DIR": tmp_path})
    return Tools()


@pytest.fixture
def host(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> StandInHost:
    """Open WebUI with its files, whose folder is not that of the workspaces."""
    return StandInHost(monkeypatch, tmp_path_factory.mktemp("files"))


def asked(user: str = "ada", chat: str = "chat") -> dict[str, Any]:
    metadata = {"chat_id": chat, "message_id": "message"}
    return {"__user__": {"id": user}, "__metadata__": metadata}


def files_below(folder: Path, pattern: str) -> list[Path]:
    return list(folder.rglob(pattern))


async def test_open_webui_reads_each_parameter() -> None:
    """Only the tools are public, and each parameter of the model is described."""
    public = [name for name in dir(Tools) if not name.startswith("_")]
    assert [name for name in public if name not in ("Valves", "valves")] == SANDBOXED
    for name in SANDBOXED:
        method = getattr(Tools, name)
        described = re.findall(r":param (\w+): \S", method.__doc__)
        parameters = list(inspect.signature(method).parameters)[1:]
        assert described == [name for name in parameters if not name.startswith("__")]


async def test_the_tools_share_the_workspace_of_a_chat(tools: Tools) -> None:
    who = asked()
    made = await tools.sandbox_fs_mkdir("data", **who)
    await tools.sandbox_fs_write("data/a.txt", "one two\n", **who)
    edited = await tools.sandbox_fs_edit("data/a.txt", "two", "three", **who)
    shell = await tools.shell_execute("cat data/a.txt | wc -w; pwd", **who)
    code = await tools.python_execute("open('data/a.txt').read()", **who)

    assert made == "The folder is there."
    assert edited == "Replaced the passage. The file has 10 bytes now."
    assert json.loads(shell)["stdout"] == "2\n/work\n"
    assert json.loads(code)["result"] == "one three\n"
    assert await tools.sandbox_fs_remove("data", **who) == "Removed."
    assert await tools.sandbox_fs_list(".", **who) == "[]"


async def test_failed_command_returns_its_stderr(tools: Tools) -> None:
    """And no packages are installed by default: only those of `wheels` (R40)."""
    command = "ls -d /packages; no-such-program"

    told = json.loads(await tools.shell_execute(command, **asked()))

    assert "/packages: No such file" in told["stderr"].replace("'", "")
    assert "no-such-program: not found" in told["stderr"]
    assert told["status"] == "failed"


async def test_workspaces_are_apart_and_outlive_the_process(tools: Tools) -> None:
    await tools.sandbox_fs_write("a", "mine", **asked())

    nobody = asked(user="")
    await tools.sandbox_fs_write("a", "nobody's", **nobody)
    others = [asked(user="bob"), asked(chat="other"), asked(chat=""), nobody]
    listed = [await tools.sandbox_fs_list(".", **other) for other in others]
    reloaded = await Tools().sandbox_fs_read("a", **asked())

    assert listed == ["[]"] * 4
    assert reloaded == "mine"


async def test_two_workers_take_turns(tools: Tools) -> None:
    workers = [tools, Tools()]
    writing = [
        worker.sandbox_fs_write(f"{number}", "", **asked())
        for number, worker in enumerate(workers * 3)
    ]
    await asyncio.gather(*writing)

    listed = json.loads(await tools.sandbox_fs_list(".", **asked()))

    assert [entry["name"] for entry in listed] == ["0", "1", "2", "3", "4", "5"]


async def test_without_a_chat_nothing_stays(tools: Tools, tmp_path: Path) -> None:
    await tools.sandbox_fs_write("a", "secret", **asked(chat=""))

    assert files_below(tmp_path, "*/*/*/*") == []


@pytest.mark.parametrize("hours", [24, 26])
async def test_unused_workspaces_are_removed(
    tools: Tools, tmp_path: Path, hours: int
) -> None:
    if hours > 24:
        tools.valves.SANDBOX_OPTIONS = json.dumps({"hours": hours})
    await tools.sandbox_fs_write("a", "old", **asked())
    [archive] = files_below(tmp_path, "archive.*")
    day_ago = time.time() - 25 * 3600
    os.utime(archive.parent, (day_ago, day_ago))

    await tools.sandbox_fs_list(".", **asked(chat="other"))

    assert archive.exists() == (hours > 25)


async def test_options_that_do_not_work_are_logged(
    tools: Tools, caplog: pytest.LogCaptureFixture
) -> None:
    tools.valves.SANDBOX_OPTIONS = '{"hours": 0, "wheels": " /nowhere "}'
    assert await tools.sandbox_fs_list(".", **asked()) == "[]"
    assert "hours" in caplog.text
    assert "No such file or directory: '/nowhere'" in caplog.text


ATTACKS = {
    "host files": ("open({secret!r}).read()", "FileNotFoundError"),
    "environment": ("os.environ['API_KEY']", "KeyError"),
    "environment of the first process": (
        "{{}}[b'CANARY' in open('/proc/1/environ', 'rb').read()]",
        "KeyError: False",
    ),
    "setuid programs": ("subprocess.check_output(['su', '-c', 'id'])", "CalledProcess"),
    "a namespace": ("subprocess.check_output(['unshare', '-U', 'true'])", "CalledPro"),
    "system folders": ("open('/usr/bin/mine', 'w')", "Read-only file system"),
}
"""Code, and the error that stops it."""


async def test_sandbox_blocks_each_attack(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the system's programs in the sandbox."""
    monkeypatch.setenv("API_KEY", "CANARY")
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    codes = {
        name: code.format(secret=str(secret)) for name, (code, _) in ATTACKS.items()
    }
    code = f"""
import os, socket, subprocess
def error_of(code):
    try:
        exec(code)
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"
{{name: error_of(code) for name, code in {codes!r}.items()}}
"""
    errors = json.loads(await tools.python_execute(code, **asked()))["result"]

    for name, (_, error) in ATTACKS.items():
        assert error in errors[name], name


LIMITS = {
    "seconds": ({"seconds": 1}, "while True: pass", "1 s"),
    "memory": ({"memory_mb": 64}, "len(bytearray(200_000_000))", "MemoryError"),
    "disk": (
        {"disk_mb": 1},
        "for n in range(4): open(f'{n}', 'wb').write(bytes(500_000))",
        "disk_mb",
    ),
    "output": ({}, "print('x' * 1_000_000)", "50000 bytes"),
    "processes": (
        {},
        "import os\nfor _ in range(100):\n    os.fork() or os._exit(0 * os.wait()[0])",
        "BlockingIOError",
    ),
}
"""Options of the valve, code, and the word in the answer that says which limit ended it."""


async def test_each_sandbox_limit_is_enforced(tools: Tools) -> None:
    """Those of the valve, and those that no one sets; the chat goes on (R36)."""
    for options, code, words in LIMITS.values():
        tools.valves = tools.Valves(SANDBOX_OPTIONS=json.dumps(options))
        assert words in await tools.python_execute(code, **asked())

    assert json.loads(await tools.python_execute("1 + 1", **asked()))["result"] == 2


async def test_what_only_the_server_may_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Open WebUI's own names of it, its key in the current folder, and the database."""
    monkeypatch.chdir(tmp_path)
    names = {
        "DATA_DIR": "/data",
        "STATIC_DIR": "/static",
        "UPLOAD_DIR": "/data/uploads",
        "CACHE_DIR": "/data/cache",
        "BASE_DIR": "/lib",
        "DATABASE_URL": "sqlite:////elsewhere/webui.db",
    }
    monkeypatch.setattr(host_module, "host_name", lambda _, name: names[name])

    private = private_paths()
    names["DATABASE_URL"] = "postgresql://somebody:password@server/database"

    assert {name: str(path) for name, path in private.items()} == {
        "DATA_DIR": "/data",
        "STATIC_DIR": "/static",
        "UPLOAD_DIR": "/data/uploads",
        "CACHE_DIR": "/data/cache",
        ".env": "/lib/.env",
        ".webui_secret_key": f"{tmp_path}/.webui_secret_key",
        "DATABASE_URL": "/elsewhere/webui.db",
    }
    assert "DATABASE_URL" not in private_paths()


async def test_files_without_a_page_are_not_shown(tools: Tools, tmp_path: Path) -> None:
    answer = await tools.python_execute("open('a', 'w').write('x')", **asked())

    assert "There is no page" in answer
    assert files_below(tmp_path, "run-*") == []


async def test_files_of_a_call_that_is_stopped_are_removed(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(tools_module, "give_files", stop)
    with pytest.raises(asyncio.CancelledError):
        await tools.python_execute("open('a', 'w').write('x')", **asked())

    assert files_below(tmp_path, "run-*") == []


def asked_with_file(file_id: str) -> dict[str, Any]:
    who = asked(user="user-1")
    who["__metadata__"]["files"] = [{"type": "file", "id": file_id, "name": "a.csv"}]
    return who


async def test_attached_file_is_in_the_workspace(
    tools: Tools, host: StandInHost
) -> None:
    """A file that fills the limit of a chat to the last byte is still read."""
    tools.valves.SANDBOX_OPTIONS = '{"disk_mb": 1}'
    who = asked_with_file(host.files.add(bytes(1024 * 1024), "a.csv"))

    answer = await tools.shell_execute("wc -c < a.csv", **who)

    assert json.loads(answer)["stdout"] == "1048576\n"


@pytest.mark.parametrize(
    "size", [None, "40 MB", 40 * 1024 * 1024], ids=["unknown", "no number", "known"]
)
async def test_too_large_attached_file_is_not_read_whole(
    tools: Tools, host: StandInHost, size: object
) -> None:
    """One byte above the limit says enough; the model is told."""
    tools.valves.SANDBOX_OPTIONS = '{"disk_mb": 1}'
    file_id = host.files.add(bytes(40 * 1024 * 1024), "a.csv", size=size)
    tracemalloc.start()

    answer = await tools.shell_execute("ls", **asked_with_file(file_id))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    reason = "It is larger than 1 MB, the limit of a workspace."
    assert f"a.csv is not in the workspace. {reason}" in answer
    assert peak_bytes < 8 * 1024 * 1024


async def test_chat_that_names_many_files_costs_no_more_than_one(
    tools: Tools, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workspace is lent once for all of them, and only the last 50 are read."""
    lent: list[WorkspaceKey] = []
    acquire = StoredWorkspaces.acquire

    def counted(workspaces: StoredWorkspaces, key: WorkspaceKey) -> Any:
        lent.append(key)
        return acquire(workspaces, key)

    monkeypatch.setattr(StoredWorkspaces, "acquire", counted)
    who = asked(user="user-1")
    file_id = host.files.add(b"rain", "last.csv")
    named = [
        {"type": "file", "id": f"gone-{n}", "name": f"{n}.csv"} for n in range(600)
    ]
    last = {"type": "file", "id": file_id, "name": "last.csv"}
    who["__metadata__"]["files"] = [*named, last]

    answer = await tools.shell_execute("cat last.csv", **who)

    result, *notes = answer.splitlines()
    assert json.loads(result)["stdout"] == "rain"
    assert notes[0] == ("Only the last 50 of 601 attached files are in the workspace.")
    assert notes[1:] == [
        f"{n}.csv is not in the workspace. It cannot be read." for n in range(551, 600)
    ]
    assert lent.count(WorkspaceKey("user-1", "chat")) == 2


@pytest.mark.parametrize("missing", ["bwrap is not installed", "Linux", "env.DATA_DIR"])
async def test_servers_without_a_sandbox_say_what_is_missing(
    tools: Tools, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack() -> Path:
        raise HostTooOld("This Open WebUI has no env.DATA_DIR.")

    if missing == "Linux":
        monkeypatch.setattr(tools_module, "sys", SimpleNamespace(platform="darwin"))
    elif missing == "env.DATA_DIR":
        monkeypatch.setattr(tools_module, "data_folder", lack)
    else:
        monkeypatch.setenv("PATH", "/nowhere")

    answer = await tools.shell_execute("true", **asked())

    assert answer.startswith("Error: The sandbox does not run on this server")
    assert missing in answer
    assert "\n" not in answer
