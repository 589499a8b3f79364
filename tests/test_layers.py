"""Who may import whom: arrows between packages and rooms, no cycles, effects at the edge.

A room is a sub-package; the modules that lie in a package itself come first.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gpt5_agent.shell.valves import Valves as AgentValves
from owui_manifold.call.valves import UserValves
from owui_manifold.call.valves import Valves as PipeValves

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("pipes", "pipelines", "testkit")

API = {
    "openai_responses",
    "openai_responses.models",
    "openai_responses.repairs",
    "openai_responses.requests",
}
API_RUN = API | {"openai_responses.transport", "openai_responses.loop"}
CHAT = {"owui_chat", "owui_chat.storage", "owui_chat.input", "owui_chat.render"}
PIPE_CALL = {
    "settings",
    "shells",
    "owui_host",
    "owui_manifold.host",
    "owui_manifold.call",
}
PIPE_STORE = PIPE_CALL | {"owui_manifold.store"}
PIPE_PREPARE = PIPE_STORE | {"manifold", "owui_manifold.prepare"}
PIPE_PRESENT = PIPE_PREPARE | {"owui_manifold.present"}
PIPE_RUN = PIPE_PRESENT | {"owui_manifold.run"}
AGENT = {"manifold", "strategies", "gpt5_agent", "gpt5_agent.tools", "gpt5_agent.agent"}
SIMULATOR_ROOMS = ("checks", "faults", "scenarios", "wire")

ARROWS: dict[str, set[str]] = {
    "openai_responses": set(),
    "openai_responses.models": {"openai_responses"},
    "openai_responses.repairs": {"openai_responses", "openai_responses.models"},
    "openai_responses.requests": {
        "openai_responses",
        "openai_responses.models",
        "openai_responses.repairs",
    },
    "openai_responses.transport": {"openai_responses"},
    "openai_responses.loop": API_RUN,
    "owui_chat": API_RUN,
    "owui_chat.storage": {"owui_chat"} | API_RUN,
    "owui_chat.input": {"owui_chat", "owui_chat.storage"} | API_RUN,
    "owui_chat.render": {"owui_chat"} | API_RUN,
    "settings": {"openai_responses"},
    "shells": {"settings"} | API_RUN,
    "strategies": {"owui_chat", "settings"} | API_RUN,
    "manifold": {"settings", "shells", "strategies"} | CHAT | API_RUN,
    "owui_manifold": PIPE_RUN | {"strategies"} | CHAT | API_RUN,
    "owui_manifold.run": PIPE_PRESENT | {"shells", "strategies"} | CHAT | API_RUN,
    "owui_manifold.present": PIPE_PREPARE
    | {"strategies", "owui_chat", "owui_chat.render"}
    | API_RUN,
    "owui_manifold.prepare": PIPE_STORE | {"manifold", "strategies"} | CHAT | API_RUN,
    "owui_manifold.store": PIPE_CALL | CHAT | API_RUN,
    "owui_manifold.call": {"owui_manifold.host"}
    | {"manifold", "settings", "shells", "strategies"}
    | API_RUN,
    "owui_manifold.host": {"shells", "owui_host"} | CHAT | API_RUN,
    "owui_host": {"openai_responses", "owui_chat"},
    "owui_controls": set(),
    "owui_administration": {
        "shells",
        "owui_host",
        "owui_chat",
        "openai_responses",
        "openai_responses.models",
        "openai_responses.transport",
    },
    "sandbox": set(),
    "owui_sandbox": {"shells", "owui_host", "sandbox"},
    "gpt5_agent": {"strategies", "shells", "gpt5_agent.shell", "gpt5_agent.terminal"}
    | CHAT
    | API_RUN,
    "gpt5_agent.tools": {"strategies", "gpt5_agent", "owui_chat"} | API_RUN,
    "gpt5_agent.agent": AGENT | CHAT | API_RUN,
    "gpt5_agent.shell": AGENT | {"settings", "shells", "sandbox"} | CHAT | API_RUN,
    "gpt5_agent.terminal": AGENT | {"gpt5_agent.shell", "shells"} | CHAT | API_RUN,
    "simulator": {f"simulator.{room}" for room in SIMULATOR_ROOMS},
    "simulator.checks": {"simulator"},
    "simulator.faults": {"simulator", "simulator.checks", "simulator.scenarios"},
    "simulator.scenarios": {"simulator", "simulator.checks"},
    "simulator.wire": {"simulator", "simulator.checks", "simulator.scenarios"},
}
"""What each room may import beside itself."""

PURE = {"settings", "strategies", *CHAT, *API}
IMPURE_MODULES = {
    "openai_responses.audit",
    "openai_responses.clock",
    "openai_responses.long_work",
    "openai_responses.ulid",
}
EFFECTS = set(
    ["aiohttp", "asyncio", "time", "random", "secrets", "os", "socket", "logging"]
)
HOST_MODULE = "owui_host.lookup"
"""The only module that imports Open WebUI."""
HOST_NAME_MODULES = {
    HOST_MODULE,
    "owui_host.database",
    "owui_host.files",
    "owui_host.task_models",
    "owui_host.users",
    "owui_manifold.host.http_answers",
    "owui_manifold.host.open_webui",
    "owui_administration.host",
    "owui_sandbox.host",
}
"""Those that look names up in it."""
SESSION_MODULES = {
    "openai_responses.transport.connections",
    "gpt5_agent.shell.host_files",
}
VALVES = {*PipeValves.model_fields, *UserValves.model_fields, *AgentValves.model_fields}
NO_WORDS = re.compile(r"(?!)")
SHELL_WORDS = {
    "openai_responses": re.compile(
        rf"\b(?:{'|'.join(VALVES)}|[Vv]alves?|Open WebUI)\b"
    ),
    "owui_chat": re.compile(rf"\b(?:{'|'.join(VALVES)})\b"),
}
"""What no module of a package may mention: the names of valves, and the host."""


@dataclass(frozen=True)
class Source:
    """One module with what it names of others."""

    name: str
    imports: frozenset[str]  # dotted, as written
    names: frozenset[str]  # every name or attribute in it
    text: str

    @property
    def room(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def tops(self) -> set[str]:
        return {name.partition(".")[0] for name in self.imports}


def sources(root: Path) -> list[Source]:
    return [
        read_source(path, ".".join(path.relative_to(root / folder).parts))
        for folder in FOLDERS
        for path in sorted((root / folder).glob("*/**/*.py"))
        if path.stem != "__init__"
        and (folder != "testkit" or "simulator" in path.parts)
    ]


def read_source(path: Path, name: str) -> Source:
    text = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    name = name.removesuffix(".py")
    return Source(name, frozenset(imported(nodes)), frozenset(named(nodes)), text)


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module that is imported, or of Open WebUI that a text names."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Constant):
            text = str(node.value)
            yield from [text] if text.startswith("open_webui.") else []


def named(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def rooms_without_arrows(source: Source) -> Iterator[str]:
    if source.room not in ARROWS:
        yield f"{source.name} lies in a room that is not drawn"


def undrawn_imports(source: Source) -> Iterator[str]:
    packages = {room.partition(".")[0] for room in ARROWS}
    for name in sorted(source.imports):
        room = name.rpartition(".")[0] or name
        allowed = {source.room, *ARROWS.get(source.room, ())}
        if name.partition(".")[0] in packages and room not in allowed:
            yield f"{source.name} imports {name}; no arrow leads there"


def effects(source: Source) -> Iterator[str]:
    """Pure modules that import what reaches outside."""
    is_pure = source.room in PURE and source.name not in IMPURE_MODULES
    for module in sorted(source.tops & EFFECTS if is_pure else ()):
        yield f"{source.name} is pure and imports {module}"


def host_imports(source: Source) -> Iterator[str]:
    """Modules besides those that may know Open WebUI."""
    if "open_webui" in source.tops and source.name != HOST_MODULE:
        yield f"{source.name} imports open_webui"
    if "host_name" in source.names and source.name not in HOST_NAME_MODULES:
        yield f"{source.name} looks up names of Open WebUI"


def sessions(source: Source) -> Iterator[str]:
    """Modules that open a session, or send over one, besides the two that may."""
    if "ClientSession" in source.names and source.name not in SESSION_MODULES:
        yield f"{source.name} uses aiohttp.ClientSession"


def words_of_shells(source: Source) -> Iterator[str]:
    """What only a shell knows, in code, texts and comments of the rooms behind it."""
    package = source.name.partition(".")[0]
    for word in sorted(set(SHELL_WORDS.get(package, NO_WORDS).findall(source.text))):
        yield f"{source.name} mentions {word}"


RUNNING = {"eval", "exec", "popen", "fork", "posix_spawn", "spawnv"} | {
    "create_subprocess_exec",
    "create_subprocess_shell",
}


def code_that_runs_code(source: Source) -> Iterator[str]:
    """Modules that run texts or programs; only the sandbox does, in its confinement."""
    if source.room == "sandbox":
        return
    for name in sorted(source.names & RUNNING | source.tops & {"subprocess"}):
        yield f"{source.name} uses {name}"


RULES = (
    rooms_without_arrows,
    undrawn_imports,
    effects,
    host_imports,
    sessions,
    words_of_shells,
    code_that_runs_code,
)


@pytest.fixture(scope="module")
def modules() -> list[Source]:
    return sources(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_sources_keep_the_rule(
    rule: Callable[[Source], Iterator[str]], modules: list[Source]
) -> None:
    assert [broken for module in modules for broken in rule(module)] == []


def test_modules_and_rooms_form_no_circle(modules: list[Source]) -> None:
    """Neither by what is imported nor by what is drawn, but for entry modules in front."""
    names = {module.name for module in modules}
    graph = {module.name: module.imports & names for module in modules}
    list(TopologicalSorter(graph).static_order())
    behind = {room for room in ARROWS if "." in room}
    drawn = {room: (ARROWS[room] & behind) - {room} for room in behind}

    list(TopologicalSorter(drawn).static_order())


BROKEN = [
    ("extras.words", "", "lies in a room that is not drawn"),
    (
        "openai_responses.transport.stream",
        "from openai_responses.loop.run import run",
        "imports openai_responses.loop.run; no arrow leads there",
    ),
    (
        "openai_responses.loop.run",
        "from owui_chat.storage.markers import format_marker",
        "imports owui_chat.storage.markers; no arrow leads there",
    ),
    (
        "owui_manifold.pipe",
        "def f():\n    import gpt5_agent.events",
        "imports gpt5_agent.events; no arrow leads there",
    ),
    (
        "openai_responses.requests.build",
        "import asyncio",
        "is pure and imports asyncio",
    ),
    ("owui_chat.storage.markers", "from os.path import join", "is pure and imports os"),
    (
        "owui_manifold.store.writers",
        'import importlib\nCHATS = "open_webui.models.chats"',
        "imports open_webui",
    ),
    ("owui_manifold.call.valves", "import open_webui.config", "imports open_webui"),
    (
        "owui_manifold.host.tools",
        "from owui_host.lookup import host_name",
        "looks up names of Open WebUI",
    ),
    (
        "openai_responses.loop.run",
        "import aiohttp\nOPEN = aiohttp.ClientSession",
        "uses aiohttp.ClientSession",
    ),
    (
        "openai_responses.endpoint",
        'PROBLEM = "BASE_URL is not an address"',
        "mentions BASE_URL",
    ),
    (
        "openai_responses.endings",
        "# The page of Open WebUI shows it.",
        "mentions Open WebUI",
    ),
    (
        "owui_chat.storage.markers",
        "# See MAXIMUM_ITERATIONS.",
        "mentions MAXIMUM_ITERATIONS",
    ),
    ("owui_manifold.host.tools", "def f(text):\n    return eval(text)", "uses eval"),
    ("owui_manifold.host.tools", "from subprocess import run", "uses subprocess"),
    (
        "owui_manifold.host.tools",
        "import asyncio\nrun = asyncio.create_subprocess_exec",
        "uses create_subprocess_exec",
    ),
    (
        "owui_manifold.prepare.files",
        "from aiohttp import ClientSession as Session",
        "uses aiohttp.ClientSession",
    ),
]
"""A module, its text, and what is told of it."""


@pytest.mark.parametrize(("module", "text", "message"), BROKEN)
def test_broken_layers_are_found(
    module: str, text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "pipes" / f"{module.replace('.', '/')}.py"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")

    (source,) = sources(tmp_path)

    broken = [broken for rule in RULES for broken in rule(source)]
    assert broken == [f"{module} {message}"]


def test_scripts_and_tests_share_the_testkit_alone() -> None:
    """It knows neither; of the scripts it uses what makes the files of a release."""
    beside = {path.stem for path in (ROOT / "scripts").iterdir()} - {"releasing"}
    for path in sorted((ROOT / "testkit").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        tops = {name.partition(".")[0] for name in imported(nodes)}
        assert not tops & beside, path
