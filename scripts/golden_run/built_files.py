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

Settings = Mapping[str, Any]

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {}
"""Names that a valve has in other revisions, by the name that the cases use.

A renamed valve needs an entry here, or the new file runs with its default.
"""

EXPERT_KEYS: Mapping[str, str] = {
    "FETCH_MODELS": "fetch_models",
    "MAX_RETRIES": "max_retries",
}
"""Keys of EXPERT_JSON that were valves of their own in earlier revisions."""


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
    """Makes valves of the settings of a case, for a revision that may lack some.

    `dropped` names the settings that this revision does not know or refuses.
    """

    def __init__(self) -> None:
        """Nothing is dropped yet."""
        self.dropped: set[str] = set()

    def read(self, valves_class: Any, settings: Settings) -> Any:
        """Return an instance of `valves_class` with all settings that it accepts."""
        accepted: dict[str, Any] = {}
        expert: dict[str, Any] = {}
        has_expert = "EXPERT_JSON" in valves_class.model_fields
        for name, value in settings.items():
            if has_expert and name in EXPERT_KEYS:
                expert[EXPERT_KEYS[name]] = value
                continue
            known_name = self._known_name(valves_class, name)
            if known_name and self._accepts(valves_class, known_name, value):
                accepted[known_name] = value
            else:
                self.dropped.add(name)
        if expert:
            accepted["EXPERT_JSON"] = json.dumps(expert)
        return valves_class.model_validate(accepted)

    @staticmethod
    def _known_name(valves_class: Any, name: str) -> str | None:
        """Return the name that the revision has for a setting."""
        for candidate in (name, *OTHER_NAMES.get(name, ())):
            if candidate in valves_class.model_fields:
                return candidate
        return None

    @staticmethod
    def _accepts(valves_class: Any, name: str, value: object) -> bool:
        try:
            valves_class.model_validate({name: value})
        except ValidationError:
            return False
        return True
