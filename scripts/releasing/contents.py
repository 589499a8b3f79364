"""What a release consists of, and whether its files belong together.

`release/` is that of the last release, while the sources move on. So it is not compared
with the sources: each packed file is checked against its own payload, and the files to
import against the packed files. Only the switches, which no packed file has, are
compared with the readable ones, as long as these have the same version. The standard
library is enough for that.

A file to import is checked like a packed one: it is written again from the texts that
it holds, so nothing can be added or changed. Its form is Open WebUI's (0.12.4):
`FunctionForm` in models/functions.py, `ToolForm` in models/tools.py, `ModelForm` in
models/models.py. What a file does not name keeps the host's default: a tool is its
owner's alone.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bundling.frontmatter import KEY_LINE
from bundling.targets import FUNCTION_KEYS, TARGETS
from releasing.packed import PackedError, read_packed, unpack, without_comments

ROOT = Path(__file__).resolve().parents[2]

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
SWITCHES = {
    Path(target.output).stem: target.output
    for target in TARGETS
    if "owui_controls" in target.packages
}
"""The switches of the composer, which are imported as they are, by their ids."""
FUNCTIONS = "openai_responses.json"
ADMINISTRATION = "openai_responses_administration.json"
MODELS = "openai_responses_models.json"
SANDBOX = "openai_responses_sandbox.json"
PLUGINS = {
    FUNCTIONS: (PIPE_ID, *SWITCHES),
    ADMINISTRATION: (ADMINISTRATION_ID,),
    SANDBOX: (SANDBOX_ID,),
}
"""The ids of the functions, or of the tool, in each file with code."""
_ICON = Path(__file__).with_name("model.png")
_EVERYBODY_READS = {
    "principal_type": "user",
    "principal_id": "*",
    "permission": "read",
}
_CAPABILITIES = (
    "vision",
    "file_upload",
    "file_context",
    "web_search",
    "image_generation",
    "code_interpreter",
    "citations",
    "status_updates",
    "usage",
    "builtin_tools",
)
"""Of the page's list, those that hold for a model that reads images."""


def packed_name(plugin_id: str) -> str:
    """Return the name of the packed file of a function or tool."""
    return f"{plugin_id}_packed.py"


def version_of(content: str) -> str:
    """Return the value of the frontmatter's version."""
    return content.partition("\nversion: ")[2].partition("\n")[0]


# ------------------------------------------------------------ how they are written


def plugins_file(contents: Mapping[str, str]) -> str:
    """Return what *Import JSON* takes, from the texts of functions or tools by id."""
    entries: list[dict[str, Any]] = []
    for plugin_id, content in contents.items():
        keys = frontmatter(content)
        entries.append(
            {
                "id": plugin_id,
                "name": keys["title"],
                "meta": {"description": keys["description"]},
                "content": content,
            }
        )
    return import_file(entries)


def model_entry(
    model_id: str,
    name: str,
    description: str,
    filters: Iterable[str],
    *,
    sees: bool,
    is_public: bool,
) -> dict[str, Any]:
    """Return a model as *Import Models* takes it: not its prompt, nor its tools."""
    icon = base64.b64encode(_ICON.read_bytes()).decode()
    return {
        "id": model_id,
        "base_model_id": None,
        "name": name,
        "meta": {
            "profile_image_url": f"data:image/png;base64,{icon}",
            "filterIds": list(filters),
            "description": description,
            "capabilities": dict.fromkeys(_CAPABILITIES, True) | {"vision": sees},
        },
        "params": {"function_calling": "native"},
        "access_grants": [_EVERYBODY_READS] if is_public else [],
        "is_active": True,
    }


def import_file(entries: Iterable[dict[str, Any]]) -> str:
    """Return the text of a file to import."""
    return json.dumps(list(entries), indent=1, ensure_ascii=False) + "\n"


def frontmatter(source: str) -> dict[str, str]:
    """Return what Open WebUI reads as key lines of a function.

    It reads the whole docstring, also after the keys that we write (0.12.4,
    utils/plugin.py, `extract_frontmatter`), and installs what `requirements` names.
    """
    first, *lines = source.splitlines() or [""]
    keys: dict[str, str] = {}
    if first.strip() != '"""':
        return keys
    for line in lines:
        if '"""' in line:
            break
        match = KEY_LINE.match(line)
        if match:
            keys[match[1]] = match[2].strip()
    return keys


# ------------------------------------------------------------ how they are checked


def read_import(text: str) -> dict[str, str]:
    """Return the texts of functions or tools by id; raises PackedError.

    Nothing else is in the file then.
    """
    try:
        contents = {entry["id"]: entry["content"] for entry in json.loads(text)}
        for plugin_id, content in contents.items():
            if tuple(frontmatter(content)) != FUNCTION_KEYS:
                keys = ", ".join(FUNCTION_KEYS)
                raise PackedError(f"{plugin_id} has other key lines than {keys}.")
        expected = plugins_file(contents)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise PackedError("This is no list of functions or tools.") from None
    if text != expected:
        raise PackedError("An entry was added or changed; it does not belong there.")
    return contents


def check_models(text: str) -> Iterator[str]:
    """Yield what keeps a file from being the pipe's models, and nothing else."""
    try:
        models = json.loads(text)
        expected = []
        for model in models:
            if not model["id"].startswith(f"{PIPE_ID}."):
                yield f"The model {model['id']} is not one of {PIPE_ID}."
            if model["meta"]["filterIds"] != list(SWITCHES):
                yield f"The model {model['id']} does not name the switches."
            expected.append(
                model_entry(
                    model["id"],
                    str(model["name"]),
                    str(model["meta"]["description"]),
                    SWITCHES,
                    sees=bool(model["meta"]["capabilities"]["vision"]),
                    is_public=bool(model["access_grants"]),
                )
            )
        if len({model["id"] for model in models}) < len(models):
            yield "Two models have the same id."
        if text != import_file(expected):
            yield "A model has more than a name, a description and who may use it."
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        yield f"The models to import cannot be read: {error!r}"


def check_release(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the files of a release, a message each."""
    for plugin_id, readable in READABLE.items():
        file = folder / packed_name(plugin_id)
        try:
            code = unpack(read_packed(file), readable)
            yield from _check_version(code, readable, without_comments)
        except (PackedError, OSError) as error:
            yield f"{file.name}: {error}"
    contents: dict[str, str] = {}
    for name, plugin_ids in PLUGINS.items():
        try:
            held = read_import(read_packed(folder / name))
        except (PackedError, OSError) as error:
            yield f"{name}: {error}"
            continue
        if tuple(held) != plugin_ids:
            yield f"{name} holds other functions than {', '.join(plugin_ids)}."
        contents |= held
    yield from _check_contents(folder, contents)
    try:
        yield from check_models(read_packed(folder / MODELS))
    except (PackedError, OSError) as error:
        yield f"{MODELS}: {error}"


def _check_contents(folder: Path, contents: Mapping[str, str]) -> Iterator[str]:
    """Yield which texts to import are not those of another file."""
    for plugin_id in contents.keys() & READABLE.keys():
        file = folder / packed_name(plugin_id)
        if contents[plugin_id] != file.read_text("utf-8"):
            yield f"{plugin_id} to import is not {file.name}."
    for plugin_id in contents.keys() & SWITCHES.keys():
        yield from _check_version(contents[plugin_id], SWITCHES[plugin_id], str)
    versions = {version_of(content) for content in contents.values()}
    if len(versions) > 1:
        yield f"The files have several versions: {', '.join(sorted(versions))}."


def _check_version(
    released: str, readable: str, released_form: Callable[[str], str]
) -> Iterator[str]:
    """Yield that a released text is not the built one, though both have one version.

    `released_form` makes the one of the other, which takes long: other versions need none.
    """
    built = (ROOT / readable).read_text("utf-8")
    version = version_of(built)
    if version == version_of(released) and released != released_form(built):
        yield (
            f"release/ holds another {version} of {readable}. A version is released "
            "once: name the next one, with .dev after it, in pyproject.toml and in "
            "the entry modules."
        )
