"""What a release consists of, and whether its files belong together.

`release/` is that of the last release, while the sources move on. So it is not compared
with the sources: each packed file is checked against its own payload, and the files to
import against the packed files. The standard library is enough for that.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from releasing.packed import PackedError, read_packed, unpack

PIPE_ID = "openai_responses"
ADMINISTRATION_ID = "openai_responses_administration"
"""The pipe looks for a filter of this id."""
SANDBOX_ID = "openai_responses_sandbox"
"""A tool of Open WebUI, not a function."""
READABLE = {
    PIPE_ID: "pipes/openai_responses_manifold.py",
    ADMINISTRATION_ID: "pipes/openai_responses_administration.py",
    SANDBOX_ID: "pipes/openai_responses_sandbox.py",
}
"""The built files that people get packed, by the ids they are installed under."""
FUNCTIONS = "openai_responses.json"
ADMINISTRATION = "openai_responses_administration.json"
MODELS = "openai_responses_models.json"
SANDBOX = "openai_responses_sandbox.json"


def packed_name(plugin_id: str) -> str:
    """Return the name of the packed file of a function or tool."""
    return f"{plugin_id}_packed.py"


def check_release(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the files of a release, a sentence each."""
    for plugin_id, readable in READABLE.items():
        file = folder / packed_name(plugin_id)
        try:
            unpack(read_packed(file), readable)
        except (PackedError, OSError) as error:
            yield f"{file.name}: {error}"
    try:
        functions = _read_import(folder / FUNCTIONS)
        administration = _read_import(folder / ADMINISTRATION)
        sandbox = _read_import(folder / SANDBOX)
        models = _read_import(folder / MODELS)
        yield from _check_contents(folder, functions + administration + sandbox)
        yield from _check_models(models, functions)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield f"A file to import cannot be read: {error!r}"


def _read_import(file: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return entries


def _check_contents(folder: Path, plugins: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what keeps files to import from having the texts of the packed files."""
    contents = {plugin["id"]: plugin["content"] for plugin in plugins}
    for plugin_id in READABLE:
        file = folder / packed_name(plugin_id)
        if contents.get(plugin_id) != file.read_text("utf-8"):
            yield f"{plugin_id} to import is not {file.name}."
    versions = {version_of(content) for content in contents.values()}
    if len(versions) > 1:
        yield f"The files have several versions: {', '.join(sorted(versions))}."


def version_of(content: str) -> str:
    """Return the value of the frontmatter's version."""
    return content.partition("\nversion: ")[2].partition("\n")[0]


def _check_models(
    models: list[dict[str, Any]], functions: list[dict[str, Any]]
) -> Iterator[str]:
    """Yield which models are not ones of the pipe, with all its switches."""
    switches = [each["id"] for each in functions if each["id"] != PIPE_ID]
    for model in models:
        if not model["id"].startswith(f"{PIPE_ID}."):
            yield f"The model {model['id']} is not one of {PIPE_ID}."
        if model["meta"]["filterIds"] != switches:
            yield f"The model {model['id']} does not name the switches."
