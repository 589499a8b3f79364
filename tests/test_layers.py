"""Who may import whom: the order of modules, the arrows of packages, the pure ones.

A new module gets its place in these lists: below everything it imports.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("pipes", "pipelines")

LAYERS = {
    "openai_responses": [
        "errors",
        "json_texts",
        "sentences",
        "endings",
        "endpoint",
        "catalog",
        "model_list",
        "models",
        "retirement",
        "overrides",
        "parameters",
        "sse",
        "cursor",
        "items",
        "tool_names",
        "hosted",
        "pictures",
        "remote_calls",
        "replay",
        "auto_model",
        "events",
        "api_errors",
        "event_reader",
        "origin",
        "schema_parts",
        "strict_limits",
        "schemas",
        "misfits",
        "arguments",
        "open_schemas",
        "tools",
        "request",
        "omissions",
        "compat",
        "healing",
        "retries",
        "usage",
        "prices",
        "run_events",
        "texts",
        "turn",
        "redaction",
        "audit",
        "clock",
        "ulids",
        "deadlines",
        "sessions",
        "routes",
        "received",
        "transport",
        "containers",
        "exchange",
        "resumption",
        "attempts",
        "approvals",
        "consents",
        "mcp_fields",
        "mcp_servers",
        "toolset",
        "calls",
        "run",
    ],
    "owui_chat": [
        "messages",
        "paired",
        "directive_words",
        "directives",
        "image_input",
        "documents",
        "attachments",
        "tool_images",
        "markers",
        "old_blocks",
        "stored",
        "injected",
        "pruning",
        "made",
        "links",
        "citations",
        "code_texts",
        "history",
        "prefix",
        "cards",
        "host_chunks",
        "closing",
        "shown",
        "remarks",
        "keeping",
        "call_cards",
        "picture_cards",
        "code_cards",
        "searches",
        "remote_cards",
        "hosted_cards",
        "kept_cards",
        "kept",
        "native",
        "annotations",
        "chunks",
        "completion",
        "details",
        "carried",
        "carrying",
        "tasks",
    ],
    "owui_controls": ["controls"],
    "owui_manifold": [
        "host",
        "connection_valves",
        "model_valves",
        "answer_valves",
        "hosted_valves",
        "tool_valves",
        "storage_valves",
        "network_valves",
        "oversight_valves",
        "valves",
        "caller",
        "defaults",
        "learned",
        "listing",
        "checkup",
        "settings",
        "wishes",
        "permitted",
        "list_models",
        "sealing",
        "store",
        "chain",
        "consent",
        "files",
        "kept_pictures",
        "result_files",
        "results",
        "host_tools",
        "search_tools",
        "image_and_code_tools",
        "hosted_tools",
        "offers",
        "rounds",
        "log",
        "job",
        "accounts",
        "chosen_model",
        "steady",
        "chat_job",
        "task_job",
        "check_job",
        "pricing",
        "made_files",
        "remote_notices",
        "legacy",
        "notices",
        "report",
        "answer",
        "pipe",
    ],
    "toolbox": [
        "remote_tools",
        "server_rows",
        "server_entries",
        "remote_http",
        "json_rpc",
        "event_texts",
        "mcp_wire",
        "mcp_http",
        "mcp_child",
        "mcp_stdio",
        "mcp_session",
        "mcp",
        "openapi_schemas",
        "openapi_arguments",
        "openapi_operations",
        "openapi_requests",
        "openapi_answers",
        "openapi",
        "tool_servers",
        "sandbox_limits",
        "seccomp",
        "inside_archive",
        "inside_files",
        "inside_code",
        "inside",
        "process_handle",
        "cells",
        "bubblewrap_cell",
        "bubblewrap",
        "containers",
        "replies",
        "conversations",
        "probing",
        "workspace_root",
        "workspaces",
        "sandbox_answers",
        "sandbox_specs",
        "sandbox",
    ],
    "gpt5_agent": [
        "events",
        "ports",
        "policy",
        "presets",
        "memory",
        "thinking",
        "pieces",
        "thoughts",
        "guard",
        "meant_calls",
        "files",
        "results",
        "own_tools",
        "harm",
        "confirmations",
        "asked",
        "ledger",
        "rounds",
        "context",
        "preparation",
        "task",
        "provider",
        "calling",
        "sound",
        "steps",
        "transcript",
        "answering",
        "agent",
        "strategy",
        "reporting",
        "agent_chunks",
        "views",
        "client_view",
        "session",
        "bridge",
        "sealing",
        "agent_valves",
        "own_tool_valves",
        "answer_valves",
        "network_valves",
        "valves",
        "caller",
        "log",
        "sandbox_tool",
        "workbench",
        "settings",
        "answers",
        "pipeline",
        "named_tools",
        "listeners",
        "terminal_lines",
        "terminal",
        "conversation",
        "__main__",
    ],
}
ARROWS = {
    "openai_responses": set[str](),
    "owui_chat": {"openai_responses"},
    "owui_controls": set[str](),
    "owui_manifold": {"owui_chat", "openai_responses"},
    "toolbox": set[str](),
    "gpt5_agent": {"owui_chat", "toolbox", "openai_responses"},
}
IMPURE = {
    f"openai_responses.{module}"
    for module in (
        "attempts",
        "audit",
        "calls",
        "clock",
        "deadlines",
        "exchange",
        "received",
        "resumption",
        "run",
        "sessions",
        "transport",
        "ulids",
    )
}
CONNECTED = {
    "openai_responses.sessions",
    "openai_responses.transport",
    "toolbox.remote_http",
}
EFFECTS = set(
    ["aiohttp", "asyncio", "time", "random", "secrets", "os", "socket", "logging"]
)


@dataclass(frozen=True)
class Source:
    """One module with what it names of others."""

    package: str
    module: str
    imports: frozenset[str]  # dotted, as written
    names: frozenset[str]  # every name or attribute in it

    @property
    def name(self) -> str:
        """Its dotted name."""
        return f"{self.package}.{self.module}"

    @property
    def tops(self) -> set[str]:
        """The top-level packages it imports."""
        return {name.partition(".")[0] for name in self.imports}


def sources(root: Path) -> Iterator[Source]:
    """All modules in the packages under a root."""
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*/*.py")):
            if path.stem != "__init__":
                tree = ast.parse(path.read_text("utf-8"))
                imports = frozenset(imported(tree))
                names = frozenset(named(tree))
                yield Source(path.parent.name, path.stem, imports, names)


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported, or of Open WebUI that a text names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Constant):
            text = str(node.value)
            yield from [text] if text.startswith("open_webui.") else []


def named(tree: ast.Module) -> Iterator[str]:
    """Every name or attribute that occurs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def unlisted(source: Source) -> Iterator[str]:
    """A module without a place in the lists."""
    if source.module not in LAYERS.get(source.package, ()):
        yield f"{source.name} has no place in the lists"


def downward(source: Source) -> Iterator[str]:
    """Imports inside a package that do not point up its list."""
    order = LAYERS.get(source.package, [])
    above = order[: order.index(source.module)] if source.module in order else order
    for name in sorted(source.imports):
        package, _, module = name.partition(".")
        if package == source.package and module not in above:
            yield f"{source.name} imports {name}, which does not stand above it"


def undrawn(source: Source) -> Iterator[str]:
    """Imports between packages that follow no arrow."""
    others = (source.tops & LAYERS.keys()) - {source.package}
    for package in sorted(others - ARROWS.get(source.package, set())):
        yield f"{source.name} imports {package}; no arrow leads there"


def effects(source: Source) -> Iterator[str]:
    """Pure modules that import what reaches outside."""
    pure = source.package == "owui_chat" or (
        source.package == "openai_responses" and source.name not in IMPURE
    )
    for module in sorted(source.tops & EFFECTS if pure else ()):
        yield f"{source.name} is pure and imports {module}"


def host_imports(source: Source) -> Iterator[str]:
    """Modules besides `owui_manifold.host` that know Open WebUI."""
    if "open_webui" in source.tops and source.name != "owui_manifold.host":
        yield f"{source.name} imports open_webui"


def connections(source: Source) -> Iterator[str]:
    """Modules that open a session, or send over one, besides the two that may."""
    if "ClientSession" in source.names and source.name not in CONNECTED:
        yield f"{source.name} uses aiohttp.ClientSession"


RULES = (unlisted, downward, undrawn, effects, host_imports, connections)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_sources_keep_the_layers(rule: object) -> None:
    """No module of the project breaks the rule."""
    assert callable(rule)

    assert [broken for source in sources(ROOT) for broken in rule(source)] == []


def test_lists_and_arrows_agree() -> None:
    """Every package has both; the arrows form no circle."""
    assert LAYERS.keys() == ARROWS.keys()
    for package, reached in ARROWS.items():
        for other in reached:
            assert package not in ARROWS[other]
            assert ARROWS[other] <= reached


BROKEN = {
    "a new module": (
        "pipes/owui_chat/surprise.py",
        "",
        "owui_chat.surprise has no place in the lists",
    ),
    "a new package": (
        "pipes/extras/words.py",
        "",
        "extras.words has no place in the lists",
    ),
    "an import down the list": (
        "pipes/openai_responses/sse.py",
        "from openai_responses.turn import Turn",
        "openai_responses.sse imports openai_responses.turn, "
        "which does not stand above it",
    ),
    "an import of itself": (
        "pipelines/toolbox/mcp.py",
        "import toolbox.mcp",
        "toolbox.mcp imports toolbox.mcp, which does not stand above it",
    ),
    "the engine knows a chat": (
        "pipes/openai_responses/run.py",
        "from owui_chat.markers import read_markers",
        "openai_responses.run imports owui_chat; no arrow leads there",
    ),
    "a tool knows the engine": (
        "pipelines/toolbox/mcp.py",
        "from openai_responses.errors import ApiError",
        "toolbox.mcp imports openai_responses; no arrow leads there",
    ),
    "the pipe knows the pipeline": (
        "pipes/owui_manifold/pipe.py",
        "def f():\n    import gpt5_agent.policy",
        "owui_manifold.pipe imports gpt5_agent; no arrow leads there",
    ),
    "a pure module waits": (
        "pipes/openai_responses/turn.py",
        "import asyncio",
        "openai_responses.turn is pure and imports asyncio",
    ),
    "a pure module reads a path": (
        "pipes/owui_chat/markers.py",
        "from os.path import join",
        "owui_chat.markers is pure and imports os",
    ),
    "the host looked up elsewhere": (
        "pipes/owui_manifold/store.py",
        'import importlib\nCHATS = "open_webui.models.chats"',
        "owui_manifold.store imports open_webui",
    ),
    "the host imported elsewhere": (
        "pipes/owui_manifold/valves.py",
        "import open_webui.config",
        "owui_manifold.valves imports open_webui",
    ),
    "a second connection": (
        "pipes/openai_responses/run.py",
        "import aiohttp\nOPEN = aiohttp.ClientSession",
        "openai_responses.run uses aiohttp.ClientSession",
    ),
    "a second connection inside an attempt": (
        "pipes/openai_responses/exchange.py",
        "import aiohttp\nOPEN = aiohttp.ClientSession",
        "openai_responses.exchange uses aiohttp.ClientSession",
    ),
    "a second connection by name": (
        "pipes/owui_manifold/files.py",
        "from aiohttp import ClientSession as Session",
        "owui_manifold.files uses aiohttp.ClientSession",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_layers_are_found(case: str, tmp_path: Path) -> None:
    """Each rule finds the module that breaks it."""
    name, text, complaint = BROKEN[case]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")

    (source,) = sources(tmp_path)

    assert [broken for rule in RULES for broken in rule(source)] == [complaint]


def test_allowed_imports_pass(tmp_path: Path) -> None:
    """The entry of the pipe may use what stands above it and follow its arrows."""
    path = tmp_path / "pipes" / "owui_manifold" / "pipe.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import asyncio\nimport os\n"
        "from openai_responses.run import run\n"
        "from owui_chat.markers import read_markers\n"
        "from owui_manifold.files import keep_file\n",
        "utf-8",
    )

    (source,) = sources(tmp_path)

    assert [broken for rule in RULES for broken in rule(source)] == []
