"""The bundles of the project itself, as the hosts load them.

That Open WebUI takes the pipe is shown in hosts/test_newcomer.py. `scripts/test` checks
types, format and version of the built files: mypy, Black, and `bundle.py --check`.
"""

import __future__

import ast
import gc
import inspect
import json
import subprocess
import sys
import types
import typing
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel

from bundles.sample import ROOT
from bundling.targets import TARGETS, Target
from hosts.servers.offline import pipelines_python

# Run with what this environment has, then with the oldest versions that are supported.
FORMS = """
import json, sys, types
from pathlib import Path
import aiohttp, pydantic

module = types.ModuleType("bundle")
sys.modules["bundle"] = module
exec(Path(sys.argv[1]).read_text("utf-8"), vars(module))
host = getattr(module, sys.argv[2])
host()
forms = {
    name: [
        [field, shown.get("default"), shown["title"], shown["description"]]
        for field, shown in getattr(host, name).model_json_schema()["properties"].items()
    ]
    for name in ("Valves", "UserValves")
    if hasattr(host, name)
}
print(json.dumps({"versions": [pydantic.VERSION, aiohttp.__version__], "forms": forms}))
"""


@dataclass(frozen=True)
class Bundle:
    """A built file; `bundle.py --check` says that it is what the sources make now."""

    target: Target

    @property
    def path(self) -> Path:
        return ROOT / self.target.output

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")


@pytest.fixture(params=TARGETS, ids=lambda t: Path(t.output).stem)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return Bundle(request.param)


def load(bundle: Bundle, future: bool, registered: bool) -> types.ModuleType:
    """Execute a bundle as a host does; it is not in sys.modules afterwards."""
    flags = __future__.annotations.compiler_flag if future else 0
    code = compile(bundle.text, "bundle", "exec", flags=flags, dont_inherit=True)
    module = types.ModuleType("a_bundle_under_test")
    if registered:
        sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))
    finally:
        sys.modules.pop(module.__name__, None)
    return module


def own(module: types.ModuleType) -> Iterator[typing.Any]:
    """The classes and functions that a loaded bundle defines, methods included."""
    for value in vars(module).values():
        if getattr(value, "__module__", "") == module.__name__:
            if inspect.isclass(value):
                yield value
                yield from filter(inspect.isfunction, vars(value).values())
            elif inspect.isfunction(value):
                yield value


def test_loads_the_same_in_both_hosts(bundle: Bundle) -> None:
    """With annotations as strings (Open WebUI) or unregistered (Pipelines), all works.

    As strings, each still has a meaning in the file's own names. A host loads a file
    again when it is saved, and holds the one before no longer.
    """
    module = load(bundle, future=True, registered=True)
    strings = valves_schema(module, bundle)
    defined = list(own(module))
    for each in defined:
        typing.get_type_hints(each, vars(module), include_extras=True)
    assert len(defined) > 3
    replaced = weakref.ref(getattr(module, bundle.target.host_class))
    del module, defined, each

    unregistered = load(bundle, future=False, registered=False)
    gc.collect()

    assert replaced() is None
    assert valves_schema(unregistered, bundle) == strings
    assert strings["properties"]


def valves_schema(module: types.ModuleType, bundle: Bundle) -> dict[str, typing.Any]:
    """Make the host's object of a loaded bundle, and return the form of its valves."""
    host = getattr(module, bundle.target.host_class)()
    valves = type(host).Valves
    assert issubclass(valves, BaseModel)
    schema: dict[str, typing.Any] = valves.model_json_schema()
    return schema


@pytest.mark.pipelines
def test_settings_are_the_same_with_the_oldest_libraries(bundle: Bundle) -> None:
    """Their order on the page, defaults and help: several bases make up one form."""

    def forms(python: Path | str) -> dict[str, typing.Any]:
        command = [str(python), "-c", FORMS, str(bundle.path), bundle.target.host_class]
        settings: dict[str, typing.Any] = json.loads(subprocess.check_output(command))
        return settings

    old = forms(pipelines_python())
    new = forms(sys.executable)

    assert old["versions"] == ["2.7.1", "3.9.5"]
    assert new["versions"] != old["versions"]
    assert old["forms"] == new["forms"]
    assert old["forms"]["Valves"]


# Prints those of the names in its arguments that no library here has.
ABSENT = """
import importlib, sys

for name in sys.argv[1:]:
    module, _, attribute = name.rpartition(".")
    if not hasattr(importlib.import_module(module), attribute):
        print(name)
"""
LIBRARIES = ("aiohttp", "pydantic", "pydantic_core")
"""What both hosts have, in several versions."""


def library_names(text: str) -> set[str]:
    """The names that a source imports of the libraries, or reads from them."""
    names = set[str]()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module)):
                if module.split(".")[0] in LIBRARIES:
                    names |= {f"{module}.{each.name}" for each in node.names}
            case ast.Attribute(value=ast.Name(id=module)) if module in LIBRARIES:
                names.add(f"{module}.{node.attr}")
    return names


@pytest.mark.pipelines
def test_every_name_is_in_the_oldest_libraries(bundle: Bundle) -> None:
    """A newer name fails only when it is used, maybe after the first error."""
    names = library_names(bundle.text)
    command = [str(pipelines_python()), "-c", ABSENT, *sorted(names)]

    absent = subprocess.check_output(command, text=True)

    assert absent.split() == []
    assert names
