"""Attacks of tests/toolbox, through a chat and the tool of a real Open WebUI.

The tests themselves are those of the sandbox: here their `chat` is one of Open WebUI.
All of them run there; here those run whose outcome the server could change.
The installed tool differs from the built one in its limits, which are as tight as there.
"""

import importlib.util
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.sandbox_tool import (
    BUILT_TOOL,
    output_of,
    release_file,
    sandbox_installed,
    sandbox_options,
    use,
)
from marking import require_mark
from sandboxes.real import TIGHT, Ran
from simulator import Simulator
from toolbox.sandbox.backend import MEBIBYTE
from toolbox.sandbox.tools import SandboxResult
from toolbox.sandbox.workspaces import SandboxFile

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "tight_tool"),
]

SUITE = Path(__file__).parents[1] / "toolbox/sandbox"
MODULES = ("test_bubblewrap_isolation", "test_tools_limits", "test_tools_paths")
CHOSEN = (
    "test_code_sees_the_sandbox_alone",
    "test_no_loopback_of_the_host",
    "test_processes_are_counted",
    "test_memory_of_one_process",
    "test_memory_of_empty_files",
    "test_all_files_are_limited",
    "test_flood_is_stopped",
    "test_pipe_of_the_code_does_not_block",
)
"""What the server around the sandbox could change: its process, and each limit."""
EQUAL_LIMITS = {
    "processes: int = 32": f"processes: int = {TIGHT.processes}",
    "output: int = 50_000": f"output: int = {TIGHT.output}",
}
"""What no setting of the tool can change."""


def load(name: str) -> ModuleType:
    """Return a module of the suite, which has no package."""
    spec = importlib.util.spec_from_file_location(name, SUITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attacks(modules: list[ModuleType]) -> Iterator[tuple[str, Any]]:
    """Yield the chosen tests of modules, and the fixtures they use."""
    found = {name: value for module in modules for name, value in vars(module).items()}
    for name in (*CHOSEN, "trapped", "listener"):
        yield name, found[name]


globals().update(attacks([load(name) for name in MODULES]))


@dataclass
class HostedChat:
    """A chat of Open WebUI, used like the chats of the suite."""

    tab: Tab
    simulator: Simulator
    chat_id: str | None = None
    log: list[str] = field(default_factory=list)

    async def run(self, code: str) -> Ran:
        """Run code."""
        return Ran(await self._call("python_execute", {"code": code}), self.log)

    async def file(self, operation: str, **arguments: str) -> SandboxResult:
        """Use one of the tools for files."""
        return await self._call(f"sandbox_fs_{operation}", arguments)

    async def still_works(self) -> bool:
        """Say whether the next run is as good as any."""
        return bool((await self.run("6 * 7")).result == 42)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> SandboxResult:
        turn = await use(self.tab, tool, arguments, chat_id=self.chat_id)
        self.chat_id = turn.chat_id
        # Open WebUI stores no empty file.
        text, _, _ = output_of(self.simulator).partition("\nOpen WebUI did not store ")
        entries = [
            entry
            for event in turn.of_type("chat:message:files")
            for entry in event["data"]["files"]
        ]
        files = [
            SandboxFile(entry["name"], entry["content_type"], Path(entry["url"]))
            for entry in entries
        ]
        return SandboxResult(text, text.startswith("Error:"), tuple(files))


@pytest_asyncio.fixture(scope="module")
async def tight_tool(admin: User) -> AsyncIterator[None]:
    """The tool with limits that every attack meets at once."""
    require_mark("sandbox")
    source = BUILT_TOOL.read_text("utf-8")
    for default, tight in EQUAL_LIMITS.items():
        assert source.count(default) == 1
        source = source.replace(default, tight)
    options = {
        "seconds": int(TIGHT.seconds),
        "memory_mb": TIGHT.memory // MEBIBYTE,
        "disk_mb": TIGHT.disk // MEBIBYTE,
    }
    async with (
        sandbox_installed(admin, release_file(source)),
        sandbox_options(admin, options),
    ):
        yield


@pytest.fixture
def chat(tab: Tab, simulator: Simulator) -> HostedChat:
    """A chat that was not used before."""
    return HostedChat(tab, simulator)


async def test_files_of_the_server_are_not_there(chat: HostedChat) -> None:
    """Neither at their paths nor behind the first process, nor in /etc."""
    paths = [__file__, str(BUILT_TOOL), "/etc/passwd", "/etc/shadow", "/sys", "/root"]
    paths += ["/proc/1/cwd/../etc/passwd", "/proc/1/root/etc/passwd", "/home", "/var"]
    code = f"import os\n[path for path in {paths!r} if os.path.lexists(path)]"

    assert (await chat.run(code)).result == []


async def test_environment_of_open_webui_is_not_there(chat: HostedChat) -> None:
    """Neither the code's own nor that of any process it can see."""
    code = """
import glob, os
seen = [open(path).read() for path in glob.glob("/proc/[0-9]*/environ")]
[len(seen), [word for word in ("WEBUI", "DATA_DIR", "PATH") if word in "".join(seen)]]
"""
    assert (await chat.run(code)).result == [2, []]


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        ("read", "passwd"),
        ("write", "folder/passwd"),
    ],
)
async def test_links_lead_nowhere(
    trapped: HostedChat, operation: str, path: str
) -> None:
    """Over links, over `..`, by absolute paths."""
    more = {"content": "x"} if operation == "write" else {}

    answer = await trapped.file(operation, path=path, **more)

    assert answer.text.endswith("is not in the workspace.")
    assert answer.files == ()


async def test_names_of_stored_files_are_only_names(
    chat: HostedChat, member: User
) -> None:
    """Open WebUI's own copy has no path, no line and no command of the code."""
    names = ["a\nb.png", "\\..\\x", "$(id)", "\x1b[31m", "x" * 255]
    code = f"for name in {names!r}: open(name, 'w').write('kept')"

    ran = await chat.run(code)

    shown = {file.name: str(file.path) for file in ran.answer.files}
    stored = {"a_b.png", "x.bin", "$(id).bin", "_[31m.bin", f"{'x' * 200}.bin"}
    assert set(shown) == stored
    for address in shown.values():
        assert await member.call("GET", address) == "kept"
