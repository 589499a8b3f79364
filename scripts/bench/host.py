"""The simulator in a process of its own, and the built pipe without Open WebUI.

Only what reads the simulator's answers is measured, so it runs elsewhere. A temporary
chat needs as much of Open WebUI as its version.
"""

import __future__

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

SCRIPTS = Path(__file__).resolve().parents[1]
BUILT = SCRIPTS.parent / "pipes" / "openai_responses_manifold.py"
MODEL = "gpt-5.6-sol"
VERSION = "0.12.4"

Chunk = dict[str, Any]


class Address(NamedTuple):
    """Where a server answers, and with which key."""

    base_url: str
    api_key: str


@contextmanager
def run_simulator() -> Iterator[Address]:
    """Run the simulator; it prints its address on one line, its key on the next."""
    with subprocess.Popen(
        [sys.executable, "-m", "simulator", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            base_url = process.stdout.readline().split()[-1]
            api_key = process.stdout.readline().split()[-1]
            yield Address(base_url, api_key)
        finally:
            process.terminate()


@asynccontextmanager
async def open_pipe(address: Address) -> AsyncIterator[Any]:
    """Lend a pipe of the built file; its pool of connections is closed afterwards."""
    pipe = _load_pipe()
    pipe.valves = pipe.Valves(BASE_URL=address.base_url, API_KEY=address.api_key)
    try:
        yield pipe
    finally:
        await pipe._connections.close()


def _load_pipe() -> Any:
    """Return the pipe of the built file, executed as Open WebUI's loader does.

    The loader's own module has the `annotations` future, which `exec` inherits.
    """
    _provide_open_webui()
    module = ModuleType("function_bench")
    sys.modules[module.__name__] = module
    flags = __future__.annotations.compiler_flag
    text = BUILT.read_text("utf-8")
    exec(compile(text, str(BUILT), "exec", flags, dont_inherit=True), vars(module))
    return module.Pipe()


def _provide_open_webui() -> None:
    """Let the pipe find the host's version; a chat without a row asks for no more."""
    package = ModuleType("open_webui")
    environment = ModuleType("open_webui.env")
    vars(environment)["VERSION"] = VERSION
    sys.modules["open_webui"] = package
    sys.modules["open_webui.env"] = environment


async def answer_chunks(
    pipe: Any, question: str, chat: str = "bench"
) -> AsyncGenerator[Chunk, None]:
    """Yield what Open WebUI would read of an answer in a temporary chat.

    Raises RuntimeError where the pipe shows an error.
    """
    body = {
        "model": f"openai_responses_manifold.{MODEL}",
        "messages": [{"role": "user", "content": question}],
        "stream": True,
    }
    ids = {"chat_id": f"temporary:{chat}", "message_id": f"message-{chat}"}
    chunks = await pipe.pipe(body, __metadata__=ids)
    async for chunk in chunks:
        if "error" in chunk:
            raise RuntimeError(f"The pipe showed an error: {chunk['error']}")
        yield chunk


def verdict(is_met: bool) -> str:
    """Return the word about a goal that `all.py` prints again at its end."""
    return "met" if is_met else "MISSED"
