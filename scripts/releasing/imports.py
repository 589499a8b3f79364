"""The files of *Import*: functions, tools, and models for everybody.

Open WebUI's forms (0.12.4): `FunctionForm` in models/functions.py, `ToolForm` in
models/tools.py, `ModelForm` in models/models.py. What a file does not name keeps the
host's default: a tool is its owner's alone.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bundling.frontmatter import KEY_LINE, split_docstring
from openai_responses.models.resolve import ResolvedModel, resolve_model
from owui_manifold.call.config import named_models
from owui_manifold.call.valves import Valves
from strategies.parameters import STRATEGY_NAMES

ICON = Path(__file__).with_name("model.png")
EVERYBODY_READS = {
    "principal_type": "user",
    "principal_id": "*",
    "permission": "read",
}
CAPABILITIES = (
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
_SIZES = {
    "astra": "The largest model, for the hardest work.",
    "sol": "The large model, for hard questions and long work with tools.",
    "terra": "The middle size, for most questions at half the price of Sol.",
    "luna": "The small model: fast and cheap, for short questions and drafts.",
    "mini": "A small model: fast and cheap.",
    "pro": "Thinks longest, for the hardest questions.",
}
_AGENT = (
    "Plans, uses tools and goes on until the question is answered, with {}. For work of "
    "several steps."
)
_NO_SIZE = "A model of OpenAI, with its reasoning kept in the chat."


def plugins_file(sources: Mapping[str, str]) -> str:
    """Return what *Import JSON* takes, from the built files by their ids.

    The forms of functions and of tools have the same fields.
    """
    return _json(_plugin(name, source) for name, source in sources.items())


def models_file(pipe: str, names: Iterable[str], filters: Iterable[str]) -> str:
    """Return what *Import Models* takes: models of a pipe, for everybody.

    Those that think longest, and research, are for administrators alone.
    """
    icon = base64.b64encode(ICON.read_bytes()).decode()
    meta = {
        "profile_image_url": f"data:image/png;base64,{icon}",
        "filterIds": list(filters),
    }
    known = named_models(Valves())
    return _json(
        _model(f"{pipe}.{name}", resolve_model(name, known), meta) for name in names
    )


def frontmatter(source: str) -> dict[str, str]:
    """Return the key lines of a built file."""
    keys, _ = split_docstring(source.partition('"""\n')[2].partition('"""')[0])
    matches = [KEY_LINE.match(line) for line in keys.splitlines()]
    return {match[1]: match[2] for match in matches if match}


def _plugin(plugin_id: str, source: str) -> dict[str, Any]:
    keys = frontmatter(source)
    return {
        "id": plugin_id,
        "name": keys["title"],
        "meta": {"description": keys["description"]},
        "content": source,
    }


def _model(
    model_id: str, model: ResolvedModel, meta: Mapping[str, Any]
) -> dict[str, Any]:
    description = describe(model)
    if model_id.rpartition(".")[2] in STRATEGY_NAMES:
        description = _AGENT.format(resolve_model(model.id).name)
    # These cost many times as much; without a grant only administrators see a model.
    is_costly = model.pro or model.research or "-pro" in model.id
    vision = {} if model.facts.vision else {"vision": False}
    return {
        "id": model_id,
        "base_model_id": None,
        "name": model.name,
        "meta": {
            **meta,
            "description": description,
            "capabilities": dict.fromkeys(CAPABILITIES, True) | vision,
        },
        "params": {"function_calling": "native"},
        "access_grants": [] if is_costly else [EVERYBODY_READS],
        "is_active": True,
    }


def describe(model: ResolvedModel) -> str:
    """Return one or two sentences for the list of models."""
    size = _describe_size(model.id)
    return f"{size} Effort: {model.effort}." if model.effort else size


def _describe_size(model_id: str) -> str:
    for word, sentence in _SIZES.items():
        if word in model_id:
            return sentence
    return _NO_SIZE


def _json(entries: Iterable[dict[str, Any]]) -> str:
    return json.dumps(list(entries), indent=1, ensure_ascii=False) + "\n"
