"""The tools of the sandbox as a model sees them, with what each asks of it."""

from collections.abc import Mapping
from typing import Any

SandboxSpec = dict[str, Any]


class SandboxMisused(Exception):
    """The arguments of a call are not as its tool wants them."""


_WORKSPACE = (
    "The workspace is the folder /work. It lives as long as the chat is used and is "
    "shared by all tools whose names begin with python_ or sandbox_."
)
_PATH_SCHEMA = {
    "type": "string",
    "description": "A path in the workspace, like plots/a.png.",
}
_CODE_SCHEMA = {"type": "string", "description": "The Python code."}
_DEPENDENCIES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Packages to install for this run, like numpy or pandas==2.2.",
}
_CONTENT_SCHEMA = {"type": "string", "description": "The whole new text of the file."}

_RUN_DESCRIPTION = (
    "Runs Python code in a sandbox without network. Each run is a fresh process: only "
    "files in the workspace, which is the current folder, outlive it. Returns JSON with "
    "what was printed (stdout, stderr), the value of the last expression (result), and "
    "the files that were written, which the user is shown. " + _WORKSPACE
)
_FILE_TOOLS = {
    "sandbox_fs_list": (
        "list",
        "Lists a folder of the workspace.",
        {"path": _PATH_SCHEMA},
    ),
    "sandbox_fs_read": (
        "read",
        "Reads a text file of the workspace; any other file is shown to the user.",
        {"path": _PATH_SCHEMA},
    ),
    "sandbox_fs_write": (
        "write",
        "Writes a text file in the workspace, with the folders above it.",
        {"path": _PATH_SCHEMA, "content": _CONTENT_SCHEMA},
    ),
    "sandbox_fs_mkdir": (
        "mkdir",
        "Makes a folder in the workspace, with those above it.",
        {"path": _PATH_SCHEMA},
    ),
    "sandbox_fs_remove": (
        "remove",
        "Removes a file of the workspace, or a folder with all that it holds.",
        {"path": _PATH_SCHEMA},
    ),
}


def sandbox_specs(with_dependencies: bool) -> list[SandboxSpec]:
    """Return name, description and parameters of each tool."""
    run = {
        "code": _CODE_SCHEMA,
        **({"dependencies": _DEPENDENCIES} if with_dependencies else {}),
    }
    specs = [_sandbox_spec("python_execute", _RUN_DESCRIPTION, run, ["code"])]
    for name, (_, description, properties) in _FILE_TOOLS.items():
        specs.append(_sandbox_spec(name, description, properties, list(properties)))
    return specs


def _sandbox_spec(
    name: str, description: str, properties: Mapping[str, Any], required: list[str]
) -> SandboxSpec:
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


def sandbox_request(
    name: str, arguments: Mapping[str, Any], with_dependencies: bool
) -> dict[str, Any]:
    """Return what a call asks of the sandbox; raises SandboxMisused."""
    if name == "python_execute":
        return _run_request(arguments, with_dependencies)
    if name not in _FILE_TOOLS:
        raise SandboxMisused(f"There is no tool named {name}.")
    operation, _, properties = _FILE_TOOLS[name]
    given = {key: arguments.get(key) for key in properties}
    for key, value in given.items():
        if not isinstance(value, str):
            raise SandboxMisused(f"{name} needs {key}, a text.")
    return {"operation": operation, **given}


def _run_request(
    arguments: Mapping[str, Any], with_dependencies: bool
) -> dict[str, Any]:
    code, dependencies = arguments.get("code"), arguments.get("dependencies") or []
    if not isinstance(code, str):
        raise SandboxMisused("python_execute needs code, a text.")
    if not isinstance(dependencies, list) or not all(
        isinstance(one, str) for one in dependencies
    ):
        raise SandboxMisused("dependencies is a list of names.")
    if dependencies and not with_dependencies:
        raise SandboxMisused("No packages can be installed here; do without.")
    return {"operation": "run", "code": code, "dependencies": dependencies}
