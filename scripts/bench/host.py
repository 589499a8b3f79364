"""As much of Open WebUI as the built pipe needs to answer a temporary chat."""

import __future__

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

BUILT = Path(__file__).resolve().parents[2] / "pipes" / "openai_responses_manifold.py"
VERSION = "0.12.4"


def load_pipe(base_url: str, api_key: str) -> Any:
    """Return the pipe of the built file, executed as Open WebUI's loader does."""
    _provide_open_webui()
    module = ModuleType("function_bench")
    sys.modules[module.__name__] = module
    flags = __future__.annotations.compiler_flag
    text = BUILT.read_text("utf-8")
    exec(compile(text, str(BUILT), "exec", flags, dont_inherit=True), vars(module))
    pipe = module.Pipe()
    pipe.valves = module.Pipe.Valves(BASE_URL=base_url, API_KEY=api_key)
    return pipe


def _provide_open_webui() -> None:
    """Let the pipe find the host's version; a chat without a row asks for no more."""
    package, env = ModuleType("open_webui"), ModuleType("open_webui.env")
    vars(env)["VERSION"] = VERSION
    sys.modules |= {"open_webui": package, "open_webui.env": env}
