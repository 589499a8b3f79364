"""What the pipe, the filters and the pipeline keep in memory between requests.

A container is found from an object that lives as long as the server's copy of the file:
through the attributes of our own classes, and through other containers.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(
    path.parent.name
    for folder in ("pipes", "pipelines")
    for path in (ROOT / folder).glob("*/__init__.py")
)
CONTAINERS = (
    dict,
    list,
    set,
    bytearray,
    deque,
    WeakKeyDictionary,
    WeakSet,
    WeakValueDictionary,
)
_NOT_READ = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, BaseModel)


def is_ours(value: object) -> bool:
    """Say whether a value is of a class of our sources, and no tuple with names."""
    package = type(value).__module__.partition(".")[0]
    return package in PACKAGES and not isinstance(value, (*_NOT_READ, tuple))


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, with those of its slots."""
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        for name in vars(kind).get("__slots__", ()):
            if hasattr(value, name):
                yield name, getattr(value, name)


def parts(value: object) -> Iterable[object]:
    """Return what a container, a tuple or one of our objects holds."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset | deque | WeakSet):
        return list(value)
    if is_ours(value):
        return [part for _, part in attributes(value)]
    return []


def kept_containers(*roots: object) -> dict[str, list[Any]]:
    """Return all containers below some objects, by `module.Class.attribute`."""
    containers: dict[str, list[Any]] = {}
    seen: set[int] = set()
    waiting: list[object] = list(roots)
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if not is_ours(value):
            waiting.extend(parts(value))
            continue
        kind = type(value)
        for name, held in attributes(value):
            if isinstance(held, CONTAINERS):
                full_name = f"{kind.__module__}.{kind.__qualname__}.{name}"
                containers.setdefault(full_name, []).append(held)
            if is_ours(held) or isinstance(held, (*CONTAINERS, tuple)):
                waiting.append(held)
    return containers


def kept_container(root: object) -> Any:
    """Return the container of an object that has only one."""
    [[container]] = kept_containers(root).values()
    return container


def deep_size(value: object) -> int:
    """Return the bytes of a value with all that it alone may hold."""
    size = 0
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, _NOT_READ):
            continue
        seen.add(id(part))
        size += sys.getsizeof(part)
        waiting.extend(parts(part))
    return size


def source_modules() -> list[ModuleType]:
    """Return all modules of our sources."""
    return [
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts[1:]))
        for folder in ("pipes", "pipelines")
        for path in sorted((ROOT / folder).glob("*/**/*.py"))
        if path.stem != "__main__"
    ]


def caches() -> dict[str, Any]:
    """Return the functions of our sources that remember results, by their names."""
    return {
        f"{module.__name__}.{name}": value
        for module in source_modules()
        for name, value in vars(module).items()
        if hasattr(value, "cache_info") and value.__module__ == module.__name__
    }


def global_containers() -> dict[str, Any]:
    """Return the containers that modules hold in names of their own."""
    return {
        f"{module.__name__}.{name}": value
        for module in source_modules()
        for name, value in vars(module).items()
        if isinstance(value, CONTAINERS) and not name.startswith("__")
    }
