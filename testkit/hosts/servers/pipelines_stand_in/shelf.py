"""The pipelines that a server has loaded from its folder."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Shelf:
    """What is loaded, by the pipelines' ids; `file_names` has their files'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipelines: dict[str, Any] = {}
        self.file_names: dict[str, str] = {}

    async def fill(self) -> None:
        """Load every file, then start every pipeline; neither forgives bad valves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in list(self.folder.glob("*.py")):
            self._take(path)
        for pipeline in self.pipelines.values():
            if hasattr(pipeline, "on_startup"):
                await pipeline.on_startup()

    async def empty(self) -> None:
        """Stop every pipeline; they are not forgotten by that."""
        for pipeline in self.pipelines.values():
            if hasattr(pipeline, "on_shutdown"):
                await pipeline.on_shutdown()

    async def refill(self) -> None:
        """Begin again with all that is in the folder."""
        await self.empty()
        self.pipelines.clear()
        self.file_names.clear()
        await self.fill()

    def _take(self, path: Path) -> None:
        stored = self.valves_path(path.stem)
        if not stored.exists():
            stored.parent.mkdir(exist_ok=True)
            stored.write_text("{}")
        try:
            pipeline = _loaded(path)
        except Exception as error:
            logging.error("%s cannot be loaded: %s", path.stem, error)
            failed = self.folder / "failed"
            failed.mkdir(exist_ok=True)
            path.rename(failed / path.name)
            return
        if hasattr(pipeline, "valves"):
            defaults = pipeline.valves.model_dump()
            given = json.loads(stored.read_text())
            pipeline.valves = type(pipeline.valves)(**{**defaults, **given})
        pipeline_id = getattr(pipeline, "id", path.stem)
        self.pipelines[pipeline_id] = pipeline
        self.file_names[pipeline_id] = path.stem

    def valves_path(self, file_name: str) -> Path:
        return self.folder / file_name / "valves.json"

    async def update_valves(self, pipeline_id: str, values: Entry) -> None:
        """Replace the valves, in the pipeline and on disk: nothing is merged."""
        pipeline = self.pipelines[pipeline_id]
        pipeline.valves = type(pipeline.valves)(**values)
        path = self.valves_path(self.file_names[pipeline_id])
        path.write_text(json.dumps(pipeline.valves.model_dump()))
        if hasattr(pipeline, "on_valves_updated"):
            await pipeline.on_valves_updated()

    def models(self) -> dict[str, Entry]:
        """What can be asked for by name; a type of another name hides a pipeline."""
        return {
            entry["id"]: entry
            for pipeline_id, pipeline in self.pipelines.items()
            for entry in _entries(pipeline_id, pipeline)
        }


def _loaded(path: Path) -> Any:
    """Execute a file, which `sys.modules` never hears of; return its Pipeline."""
    text = path.read_text()
    for package in _requirements(text):
        logging.info("installing %s", package)
        subprocess.check_call([sys.executable, "-m", "pip", "install", package])
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "Pipeline"):
        raise ImportError("it has no class Pipeline")
    return module.Pipeline()


def _requirements(text: str) -> list[str]:
    """What the docstring on the first line wants to have installed."""
    docstring = text[3:].partition('"""')[0] if text.startswith('"""') else ""
    for line in docstring.splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() == "requirements" and value.strip():
            return [package.strip() for package in value.split(",")]
    return []


def _entries(pipeline_id: str, pipeline: Any) -> Iterator[Entry]:
    kind = getattr(pipeline, "type", None)
    valves = getattr(pipeline, "valves", None)
    entry: Entry = {
        "id": pipeline_id,
        "name": getattr(pipeline, "name", pipeline_id),
        "type": kind or "pipe",
        "pipelines": getattr(valves, "pipelines", []),
        "priority": getattr(valves, "priority", 0),
        "has_valves": valves is not None,
    }
    if kind == "manifold":
        listed = pipeline.pipelines
        prefix = getattr(pipeline, "name", "")
        for model in listed() if callable(listed) else listed:
            whole_id = f"{pipeline_id}.{model['id']}"
            name = prefix + model["name"]
            yield {**entry, "id": whole_id, "name": name}
    elif kind == "filter" or not hasattr(pipeline, "type"):
        yield entry
