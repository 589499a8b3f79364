"""What Open WebUI needs to boot without a network."""

import contextlib
import os
import random
import socket
from pathlib import Path

from marking import require_mark

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parents[2] / ".venv/hosts"
NEWEST = "0.12.4"
OLDEST = "0.11.4"  # of the versions that the pipe supports
ADMIN_EMAIL = "admin@example.com"
ADMIN_PASSWORD = "admin"
_PORTS = range(20_000, 32_000)
"""Linux gives none of them to an outgoing connection while a server boots."""

# Neither models nor a sign-up either: the administrator comes with the first start.
OFFLINE = {
    "OFFLINE_MODE": "true",  # no model hub, no version check, no pip
    "USE_SLIM_DOCKER": "true",  # no vector store, no embedding model, no whisper
    "ENABLE_OLLAMA_API": "false",
    "ENABLE_OPENAI_API": "false",
    "ENABLE_COMMUNITY_SHARING": "false",
    "ENABLE_RAG_LOCAL_WEB_FETCH": "true",  # the only pages there are
    "DEFAULT_USER_ROLE": "user",
    "ENABLE_TOOL_PERMISSIONS": "true",  # the chat's controls may ask before a tool
    "WEBUI_SECRET_KEY": "on this machine only",
    "WEBUI_ADMIN_EMAIL": ADMIN_EMAIL,
    "WEBUI_ADMIN_PASSWORD": ADMIN_PASSWORD,
    "FROM_INIT_PY": "true",  # what `open-webui serve` sets
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": str(HERE / "stubs"),  # missing packages fail at once: 7 s less
}


class BootError(RuntimeError):
    """The server did not come up."""


def free_port() -> int:
    """A port of 127.0.0.1 that no one listens on, nor will before it is used."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def host_python(version: str = NEWEST) -> Path:
    """The interpreter that has Open WebUI; OWUI_PYTHON names another newest one."""
    python = INSTALLED / f"open-webui-{version}/bin/python"
    if version == NEWEST:
        python = Path(os.environ.get("OWUI_PYTHON", python))
    if not python.exists():
        raise BootError(f"No Open WebUI at {python}. `bash scripts/test` installs it.")
    require_mark("host" if version == NEWEST else "oldest")
    return python


def pipelines_python() -> Path:
    """The interpreter on which the Pipelines server runs."""
    python = INSTALLED / "pipelines/bin/python"
    python = Path(os.environ.get("PIPELINES_PYTHON", python))
    if not python.exists():
        raise BootError(f"Nothing at {python}. `bash scripts/test` installs it.")
    require_mark("pipelines")
    return python


def host_environment(python: Path, home: Path) -> dict[str, str]:
    """The variables of a process of Open WebUI that writes under `home` alone."""
    return {
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "DATA_DIR": str(home / "data"),
        "STATIC_DIR": str(home / "static"),  # else it writes to site-packages
        **OFFLINE,
    }
