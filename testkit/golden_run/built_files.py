"""The built files of any revision, loaded as their hosts load them.

Only what the hosts themselves use is touched: `Pipe.pipe`, `Pipeline.inlet`,
`Pipeline.pipe`, `Pipeline.on_shutdown` and the valves.
"""

import __future__

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

ROOT = Path(__file__).resolve().parents[2]
BUILT_PIPE = ROOT / "pipes/openai_responses_manifold.py"
BUILT_ADMINISTRATION = ROOT / "pipes/openai_responses_administration.py"
BUILT_PIPELINE = ROOT / "pipelines/gpt5_agent_strategies.py"
Settings = Mapping[str, Any]

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "FETCH_MODELS": ("EXPERT_JSON.fetch_models",),
    "MAX_RETRIES": ("EXPERT_JSON.max_retries",),
}
"""Names that a setting of the cases has in other revisions.

`VALVE.field` is a field of a valve that holds a JSON object. A renamed valve needs an
entry here, or the new file runs with its default.
"""


def load_pipe(path: Path) -> ModuleType:
    """Return the module of a built pipe.

    Open WebUI executes the text under the annotations future that its own loader has
    (docs/reference/open-webui.md).
    """
    flags = __future__.annotations.compiler_flag
    return _load(path, "function_golden", flags)


def load_pipeline(path: Path) -> ModuleType:
    """Return the module of a built pipeline; its server inherits no future."""
    return _load(path, "pipeline_golden", 0)


def _load(path: Path, name: str, flags: int) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    text = path.read_text("utf-8")
    code = compile(text, str(path), "exec", flags, dont_inherit=True)
    exec(code, vars(module))
    return module


class ValveReader:
    """Makes valves from the settings of a case, for a revision that may lack some.

    `dropped` names the settings that this revision does not know or refuses.
    """

    def __init__(self) -> None:
        self.dropped: set[str] = set()

    def read(self, valves_class: Any, settings: Settings) -> Any:
        """Return an instance of `valves_class` with all settings that it accepts."""
        accepted: dict[str, Any] = {}
        fields: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            known_name = _known_name(valves_class, name)
            valve, _, field = known_name.partition(".")
            if field:
                fields.setdefault(valve, {})[field] = value
            elif known_name and _accepts(valves_class, known_name, value):
                accepted[known_name] = value
            else:
                self.dropped.add(name)
        for valve, values in fields.items():
            given = json.loads(accepted.get(valve) or "{}")
            accepted[valve] = json.dumps({**values, **given})
        return valves_class.model_validate(accepted)


def _known_name(valves_class: Any, name: str) -> str:
    """Return the name that the revision has for a setting; empty if it has none."""
    for candidate in (name, *OTHER_NAMES.get(name, ())):
        if candidate.partition(".")[0] in valves_class.model_fields:
            return candidate
    return ""


def _accepts(valves_class: Any, name: str, value: object) -> bool:
    try:
        valves_class.model_validate({name: value})
    except ValidationError:
        return False
    return True
