"""Run by Open WebUI's interpreter in the place of `python -m uvicorn`: starts sooner.

What is imported stays, so the garbage collector would only walk over it again and
again; and the changelog, 1.5 MB of Markdown that is parsed at the import, is left out.
Both together are almost half of the time until the server answers.

Tests install one pipe under several ids, so what was compiled is kept.

The passwords of the tests are in their sources. To hash them as slowly as others takes
half a second of CPU for each account.
"""

import __future__

import contextlib
import ctypes
import functools
import gc
import importlib
import json
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
PACKAGES = (
    *("aiohttp", "alembic", "authlib.integrations.starlette_client", "black", "boto3"),
    *("botocore", "bs4", "cryptography", "fastapi", "jsonschema"),
    *("langchain_classic.retrievers", "langchain_core.document_loaders.base"),
    *("langsmith", "ldap3", "mcp", "mcp.server", "mcp_types", "numpy"),
    *("opentelemetry.trace", "PIL.Image", "redis", "requests", "rich.console"),
    *("socketio", "sqlalchemy.ext.asyncio", "typer"),
)
"""What costs most of those that Open WebUI imports."""
FEWEST_ROUNDS = 4
SET_PARENT_DEATH_SIGNAL = 1
"""For prctl(2): what a process gets when the thread ends that started it."""
ANNOTATIONS = __future__.annotations.compiler_flag
read_file = pkgutil.get_data


def main() -> None:
    """Import the application, then do what uvicorn's command does."""
    gc.disable()
    if sys.argv[1:] == ["--forks"] and not is_forked():
        return
    end_with_parent()
    if os.environ.get("WEBUI_ADMIN_PASSWORD") == PUBLIC_PASSWORD:
        bcrypt.gensalt = functools.partial(bcrypt.gensalt, FEWEST_ROUNDS)
    pkgutil.get_data = read_without_changelog
    import open_webui.main  # noqa: F401 - uvicorn finds it imported

    pkgutil.get_data = read_file
    keep_compiled()
    gc.freeze()  # a quarter of the time that the tests need the server for
    gc.enable()
    uvicorn.main()


def end_with_parent() -> None:
    """Let tests that are killed leave no server behind; a fork has to say it again."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def is_forked() -> bool:
    """Fork for each line that comes; true in the forks, false when no more come."""
    end_with_parent()
    for name in PACKAGES:
        with contextlib.suppress(ImportError):  # another version needs others
            importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:  # a fork has none of the others, but the locks that they hold
        raise SystemExit(f"A package of PACKAGES has started {threads - 1} threads.")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork here
    for line in sys.stdin:
        fork = os.fork()
        if not fork:
            become_server(**json.loads(line))
            return True
        print(fork, flush=True)
    return False


def become_server(arguments: list[str], env: dict[str, str], home: str) -> None:
    """Be what a process of this environment would be, which logs into its directory."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(f"{home}/server.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for opened, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(opened, number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(home)
    sys.argv[1:] = arguments


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
