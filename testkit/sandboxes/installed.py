"""A Python that is no virtual environment, with Open WebUI's data in it.

As `pip install open-webui` leaves it in conda, pyenv or the `python` images: without
DATA_DIR, the database lies in `site-packages`, below the folder of the standard library.
"""

import shutil
from pathlib import Path

from sandbox.bubblewrap import find_interpreters
from sandboxes.real import CANARY

_NOT_NEEDED = ("site-packages", "dist-packages", "test", "idlelib", "__pycache__")
"""Of the standard library; the first two are made anew."""


def install_python(prefix: Path) -> Path:
    """Copy the system's Python below `prefix`; return the interpreter.

    The system's, because whoever runs the code may not read that of the tests.
    """
    system = find_interpreters()[-1]
    python = prefix / "bin" / system.name
    python.parent.mkdir(parents=True)
    shutil.copy2(system, python)
    shutil.copytree(
        system.parents[1] / "lib" / system.name,
        prefix / "lib" / system.name,
        ignore=shutil.ignore_patterns(*_NOT_NEEDED),
    )
    for path in (prefix, *prefix.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return python


def write_secrets(folder: Path) -> Path:
    """Write what a server keeps below a folder, readable for everybody; return it."""
    for name in ("webui.db", "uploads/letter.txt", "cache/audio.bin"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)
    return folder
