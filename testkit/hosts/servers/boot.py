"""Run by Open WebUI's interpreter in the place of `python -m uvicorn`: starts sooner.

What is imported stays, so the garbage collector would only walk over it again and
again; and the changelog, 1.5 MB of Markdown that is parsed at the import, is left out.
Both together are almost half of the time until the server answers.

Tests install one pipe under several ids, so what was compiled is kept.

The passwords of the tests are in their sources. To hash them as slowly as others takes
half a second of CPU for each account.
"""

import __future__

import ctypes
import functools
import gc
import os
import pkgutil
import signal
import sys
from types import CodeType
from typing import Any

import bcrypt
import uvicorn

PUBLIC_PASSWORD = "admin"
"""The tests' administrator has it; the demo, whose data may be kept, makes one up."""
FEWEST_ROUNDS = 4
SET_PARENT_DEATH_SIGNAL = 1
"""For prctl(2): what a process gets when the thread ends that started it."""
ANNOTATIONS = __future__.annotations.compiler_flag
read_file = pkgutil.get_data


def main() -> None:
    """Import the application, then do what uvicorn's command does."""
    if sys.platform == "linux":  # tests that are killed leave no server behind
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    if os.environ.get("WEBUI_ADMIN_PASSWORD") == PUBLIC_PASSWORD:
        bcrypt.gensalt = functools.partial(bcrypt.gensalt, FEWEST_ROUNDS)
    gc.disable()
    pkgutil.get_data = read_without_changelog
    import open_webui.main  # noqa: F401 - uvicorn finds it imported

    pkgutil.get_data = read_file
    keep_compiled()
    gc.freeze()  # a quarter of the time that the tests need the server for
    gc.enable()
    uvicorn.main()


def keep_compiled() -> None:
    """Compile each text of a function or tool once; Open WebUI does at each load."""
    from open_webui.utils import plugin

    # A text that is executed has what the code around it has imported from `__future__`.
    flags = plugin.replace_imports.__code__.co_flags & ANNOTATIONS

    @functools.cache
    def compiled(text: str) -> CodeType:
        code: CodeType = compile(text, "<string>", "exec", flags, dont_inherit=True)
        return code

    def execute(text: str, namespace: dict[str, Any]) -> None:
        exec(compiled(text), namespace)

    plugin.exec = execute  # it is found before the built-in function


def read_without_changelog(package: str, resource: str) -> bytes | None:
    """Read a file of a package; of that one there seems to be none."""
    return None if resource == "CHANGELOG.md" else read_file(package, resource)


if __name__ == "__main__":
    main()
