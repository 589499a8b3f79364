"""What is looked up in Open WebUI has its promise; its tasks are known."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.promises import PIPES, PROMISED
from shells.caller import HOST_TASKS
from test_layers import HOST_MODULE, HOST_NAME_MODULES

RETURNED = "utils.filter:FilterContext."
"""What a call returns is looked up by nobody."""


def host_names(source: str) -> set[str]:
    """The names of Open WebUI that `source` looks up, with what it takes from them."""
    return {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in names_within(node)
    }


def names_within(function: ast.AST) -> Iterator[str]:
    """The same for one function, whose variables may hold what was looked up."""
    nodes = list(ast.walk(function))
    held = {ast.unparse(node): name(node) for node in nodes if is_look_up(node)}
    for node in nodes:
        if isinstance(node, ast.Assign) and is_look_up(node.value):
            held[ast.unparse(node.targets[0])] = name(node.value)
    taken = [
        (held[ast.unparse(node.value)], node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in held
    ]
    yield from (f"{holder}.{attribute}" for holder, attribute in taken)
    yield from set(held.values()) - {holder for holder, _ in taken}


def is_look_up(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "host_name"


def name(call: ast.AST) -> str:
    """What is looked up, as PROMISED spells it; only literals can be checked here."""
    assert isinstance(call, ast.Call)
    module, attribute = map(ast.literal_eval, call.args)
    return f"{module}:{attribute}"


def test_every_name_has_its_row() -> None:
    """A new name needs a promise, and a row that no test needs goes."""
    modules = sorted(HOST_NAME_MODULES - {HOST_MODULE})
    paths = [PIPES / module.replace(".", "/") for module in modules]
    sources = [path.with_suffix(".py").read_text() for path in paths]

    looked_up = {row for row in PROMISED if not row.startswith(RETURNED)}
    assert set().union(*map(host_names, sources)) == looked_up


NEWEST = "0.12.4"
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
HOST = (
    Path(__file__).parents[1]
    / f".venv/hosts/open-webui-{NEWEST}/lib/{PYTHON}/site-packages/open_webui"
)
TASK_NAMES = (
    ("constants.py", re.compile(r"^    [A-Z_]+ = '(\w+)'$", re.MULTILINE)),
    ("utils/context_compaction.py", re.compile(r"'task': '(\w+)'")),
    ("utils/memory.py", re.compile(r"'task': '(\w+)'")),
)


@pytest.mark.skipif(not HOST.exists(), reason=f"Open WebUI {NEWEST} is not installed")
def test_pipe_knows_the_hosts_tasks() -> None:
    """A task that it does not know is answered like a question of a program."""
    tasks: set[str] = set()
    for file, pattern in TASK_NAMES:
        text = (HOST / file).read_text("utf-8")
        if file == "constants.py":
            _, text = text.split("class TASKS(")
        found = pattern.findall(text)
        assert found, file
        tasks |= set(found)

    assert tasks == HOST_TASKS
