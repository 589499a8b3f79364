"""Try the built pipe with real servers of the Responses API that are not OpenAI's.

    scripts/others                      gpt-oss's own server, LiteLLM's proxy, llama.cpp
    scripts/others --only litellm
    scripts/others --save FOLDER        also keep what the servers streamed

The servers are installed in an environment of their own (requirements/others.txt: about
130 packages from PyPI, 800 MB on the disk) and listen on 127.0.0.1 alone. The models behind them
are pretended ones: they call a tool when they are asked for the weather. gpt-oss's
server needs Python 3.12 or newer. llama.cpp is real, with a real model of 135 million
parameters (161 MB from PyPI): it needs a CPU with AVX-512, and root, because it runs as
nobody and without network.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

import aiohttp
import pytest
from aiohttp import web

from chats.pictures import PIXEL
from environment import Environment
from golden_run.built_files import BUILT_PIPE, ROOT, load_pipe
from hosts.servers.offline import free_port
from other_servers.completions_stub import complete_chat
from other_servers.llama_cpp import (
    LLAMA_CPP,
    MODEL,
    LlamaServer,
    Teller,
    read_obstacle,
    try_llama_cpp,
)
from other_servers.relay import Relay
from stand_in.chats import (
    convert_output,
    describe_tool,
    error_messages,
    finished_items,
    shown_text,
)
from stand_in.host import (
    Row,
    StandInHost,
    close_connections,
    host_callable,
    host_request,
)

Json = dict[str, Any]


def find_python() -> str:
    """Return a Python that gpt-oss's server accepts; empty if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    built_here = [str(path) for path in pyenv.glob("versions/3.1[23].*/bin/python3")]
    for python in ("python3.12", "python3.13", *sorted(built_here), "python3"):
        check = (
            "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 12))"
        )
        with contextlib.suppress(OSError):
            ran = subprocess.run(
                [python, "-c", check], check=False, capture_output=True, text=True
            )
            if ran.returncode == 0:
                return ran.stdout.strip()
    return ""


OTHERS = Environment(
    name="other servers",
    directory=ROOT / ".venv/hosts/others",
    requirements=ROOT / "requirements/others.txt",
    interpreter=find_python(),
)
MODES = ("auto", "strict", "openai")
START_SECONDS = 120
KEY = f"sk-{secrets.token_hex(16)}"
"""The key of LiteLLM, which does not start without one."""
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""The file of LiteLLM that contains the vocabulary o200k_base."""


@dataclass
class Served:
    """A running server: its address, its model, and one that it does not have."""

    url: str
    model: str
    missing: str = ""
    refused: Json = field(default_factory=dict)
    """Parameters that the server refuses, and that the pipe has to leave out."""
    llama: LlamaServer | None = None
    """The server itself, if it is llama.cpp."""


@dataclass
class Chat:
    """One chat with a pipe of its own, before one server."""

    pipe: Any
    model: str
    host: StandInHost
    messages: list[Json] = field(default_factory=list)
    tool_runs: int = 0
    turns: int = 0

    async def ask(self, text: object, **body: Any) -> list[Json]:
        """Send a question; return the chunks of the answer."""
        self.messages.append({"role": "user", "content": text})
        return await self.answer(**body)

    async def answer(self, *, model: str = "", **body: Any) -> list[Json]:
        """Let the model answer the last message, perhaps once more."""
        return [chunk async for chunk in await self._begin(model, body)]

    async def stream(self, text: str) -> AsyncGenerator[Json, None]:
        """Send a question; yield the chunks of the answer as they come."""
        self.messages.append({"role": "user", "content": text})
        async with contextlib.aclosing(await self._begin("", {})) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _begin(self, model: str, body: Json) -> Any:
        self.turns += 1
        self.host.chats.rows["chat-1"] = Row("user-1", {"title": "Others"})
        ids = {"chat_id": "chat-1", "message_id": f"m-{self.turns}", "session_id": "s"}
        request = host_request()
        spec = describe_tool("get_weather")["function"]
        tool = {"tool_id": "t", "callable": host_callable(self._run), "spec": spec}
        return await self.pipe.pipe(
            {
                "model": f"others.{model or self.model}",
                "messages": json.loads(json.dumps(self.messages)),
                "stream": True,
                "tools": [describe_tool("get_weather")],
                **body,
            },
            __user__={"id": "user-1", "name": "Ada", "role": "user"},
            __metadata__={**ids, "user_id": "user-1"},
            __request__=request,
            __tools__={"get_weather": tool},
        )

    def _run(self, city: str) -> str:
        self.tool_runs += 1
        return f"Rain in {city}."

    def keep(self, chunks: Sequence[Json]) -> None:
        """Add an answer to the chat, as Open WebUI does."""
        self.messages += convert_output(finished_items(chunks))


def error_of(chunks: Sequence[Json]) -> str:
    """Return the error message of an answer; empty if it did not fail."""
    return " ".join(error_messages(chunks))


async def try_server(
    served: Served, relay: Relay, pipe: Any, host: StandInHost
) -> list[str]:
    """Chat, call a tool, answer again, ask for a missing model; return the problems."""
    chat = Chat(pipe, served.model, host)
    problems: list[str] = []

    def expect(what: str, actual: object, wanted: object) -> None:
        if actual != wanted:
            problems.append(f"{what}: {actual!r}, not {wanted!r}")

    first = await chat.ask("What are two and two?")
    expect("chat", (error_of(first), shown_text(first).count("are 4.")), ("", 1))
    chat.keep(first)
    weather = await chat.ask("How is the weather?")
    expect("tool", (error_of(weather), chat.tool_runs), ("", 1))
    expect("text after it", shown_text(weather).count("It said: Rain in Zürich."), 1)
    repeated = await chat.answer()
    expect("repeated", (error_of(repeated), chat.tool_runs), ("", 2))
    expect("text of it", shown_text(repeated).count("It said: Rain in Zürich."), 1)
    chat.keep(repeated)
    sent_before = len(relay.exchanges)
    last = await chat.ask("And two and two?")
    expect("after it", (error_of(last), shown_text(last).count("are 4.")), ("", 1))
    expect("requests of it", len(relay.exchanges) - sent_before, 1)
    chat.keep(last)
    for name, value in served.refused.items():
        repaired = await chat.ask("And again?", **{name: value})
        answers = shown_text(repaired).count("are 4.")
        expect(f"without {name}", (error_of(repaired), answers), ("", 1))
        chat.keep(repaired)
    if served.missing:
        message = error_of(await chat.ask("Hello?", model=served.missing))
        names_model = served.missing in message and "does not exist" in message
        expect(f"a missing model ({message!r})", names_model, True)
    return problems


def make_pipe(built: ModuleType, url: str, served: Served, mode: str) -> Any:
    """Return a pipe that uses this server in this mode."""
    pipe = built.Pipe()
    models = served.model
    if served.missing:
        models += f", {served.missing}"
    pipe.valves = built.Pipe.Valves(
        BASE_URL=f"{url}/v1", API_KEY=KEY, MODEL_ID=models, COMPATIBILITY=mode
    )
    return pipe


@contextlib.asynccontextmanager
async def serve_here(handler: Any) -> AsyncIterator[str]:
    """Serve a handler in this process; give its address without a path."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def run_server(
    command: Sequence[str], port: int, environment: Json, log: Path
) -> AsyncIterator[str]:
    """Run a server until the block ends; give its address without a path."""
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            *command, env=os.environ | environment, stdout=written, stderr=written
        )
    try:
        await wait_for(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def wait_for(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    """Wait until a server answers; raise RuntimeError with the end of its log."""
    async with aiohttp.ClientSession() as session:
        for _ in range(START_SECONDS * 2):
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(url):
                    return
            if process.returncode is not None:
                break
            await asyncio.sleep(0.5)
    log_text = await asyncio.to_thread(log.read_text)
    raise RuntimeError(f"The server did not start: {log_text[-800:]}")


@contextlib.asynccontextmanager
async def serve_gpt_oss(folder: Path) -> AsyncIterator[Served]:
    """Run gpt-oss's own server."""
    pattern = f"lib/*/site-packages/litellm/*/*/{VOCABULARY}"
    [vocabulary] = OTHERS.directory.glob(pattern)
    shutil.copy(vocabulary, folder / "o200k_base.tiktoken")
    port = free_port()
    script = ROOT / "scripts/other_servers/serve_gpt_oss.py"
    command = [str(OTHERS.python), str(script), str(port)]
    environment = {"TIKTOKEN_ENCODINGS_BASE": str(folder)}
    async with run_server(command, port, environment, folder / "gpt-oss.log") as url:
        refused = {
            "reasoning_effort": "minimal",
            "tool_choice": "required",
            "temperature": 0.7,
        }
        yield Served(url, "gpt-oss-120b", refused=refused)


@contextlib.asynccontextmanager
async def serve_litellm(folder: Path) -> AsyncIterator[Served]:
    """Run LiteLLM's proxy in front of a server of Chat Completions."""
    async with serve_here(complete_chat) as stub:
        target = {"api_base": f"{stub}/v1", "api_key": "none"}
        models = [
            {
                "model_name": name,
                "litellm_params": {"model": f"deepseek/{name}", **target},
            }
            for name in ("stand-in", "missing")
        ]
        config = folder / "litellm.json"  # JSON is YAML, too
        settings = {"disable_cooldowns": True}  # of a model that was missing once
        wanted = {"model_list": models, "router_settings": settings}
        config.write_text(json.dumps(wanted))
        port = free_port()
        program = OTHERS.directory / "bin/litellm"
        command = [str(program), "--config", str(config), "--host", "127.0.0.1"]
        environment = {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
            "LITELLM_MASTER_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
        }
        async with run_server(
            [*command, "--port", str(port)], port, environment, folder / "litellm.log"
        ) as url:
            yield Served(url, "stand-in", "missing")


@contextlib.asynccontextmanager
async def serve_llama_cpp(folder: Path) -> AsyncIterator[Served]:
    """Run llama.cpp with a small model, in a folder that the user nobody may use."""
    own = folder / "llama.cpp"
    own.mkdir()
    for path in (folder, own):
        path.chmod(0o711)
    os.chown(own, 65534, 65534)
    server = LlamaServer(own, LLAMA_CPP)
    try:
        await server.start()
        yield Served("http://llama", MODEL, llama=server)
    finally:
        await server.kill()


SERVERS = {
    "gpt-oss": serve_gpt_oss,
    "litellm": serve_litellm,
    "llama.cpp": serve_llama_cpp,
}
TELLER = Teller(shown_text, error_of, PIXEL)


async def try_all(names: Sequence[str], save: Path | None) -> int:
    """Try the servers in each mode; print the results, and return how many failed."""
    built = load_pipe(BUILT_PIPE)
    failures = 0
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        patch.delenv("OPENAI_API_KEY", raising=False)
        folder = Path(home)
        for name in names:
            async with SERVERS[name](folder) as served:
                for mode in MODES:
                    relay = Relay(
                        served.url, served.llama.socket if served.llama else ""
                    )
                    host = StandInHost(patch, folder)
                    problems = await try_mode(served, relay, built, mode, host)
                    if problems:
                        failures += 1
                    report(name, mode, relay, problems)
                    if save:
                        save_streams(relay, save, f"{name}.{mode}")
    return failures


async def try_mode(
    served: Served, relay: Relay, built: ModuleType, mode: str, host: StandInHost
) -> list[str]:
    """Try a server with a new pipe in one mode; return the problems."""
    async with serve_here(relay.pass_on) as url:
        pipe = make_pipe(built, url, served, mode)
        if served.llama:
            await pipe.pipes()  # as a page does, which makes the context known
            problems = await try_llama_cpp(
                lambda: Chat(pipe, served.model, host),
                served.llama,
                TELLER,
                tells_limits=mode != "openai",
            )
        else:
            problems = await try_server(served, relay, pipe, host)
        await close_connections(pipe)
    return problems


def report(name: str, mode: str, relay: Relay, problems: Sequence[str]) -> None:
    """Print the result of one server in one mode."""
    refused = [exchange for exchange in relay.exchanges if exchange.status != 200]
    count = f"{len(relay.exchanges)} requests, {len(refused)} refused"
    print(f"{name}, {mode}: {count}, {'FAILED' if problems else 'ok'}")
    for exchange in refused:
        beginning = exchange.answer[:300].decode("utf-8", "replace")
        print(f"    {exchange.status} {beginning}")
    for problem in problems:
        print(f"    {problem}")


def save_streams(relay: Relay, folder: Path, name: str) -> None:
    """Write the bodies and the answers of all requests to numbered files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, exchange in enumerate(relay.exchanges, 1):
        stem = f"{name}.{number}"
        (folder / f"{stem}.sse").write_bytes(exchange.answer)
        (folder / f"{stem}.json").write_text(json.dumps(exchange.body, indent=1))


def main() -> int:
    """Install what is missing, try the servers; 1 if one failed."""
    parser = argparse.ArgumentParser(
        prog="others",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--only", choices=SERVERS, help="one server")
    parser.add_argument("--save", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    names = [options.only] if options.only else list(SERVERS)
    obstacle = read_obstacle()
    if "llama.cpp" in names and obstacle:
        print(f"llama.cpp is skipped: {obstacle}.")
        names.remove("llama.cpp")
    if names != ["llama.cpp"] and not OTHERS.is_current():
        print("130 packages (800 MB on the disk) go from PyPI to .venv/hosts/others.")
        OTHERS.make_current(None)
    if "llama.cpp" in names:
        LLAMA_CPP.make_current(None)
    logging.disable(logging.CRITICAL)
    return 1 if asyncio.run(try_all(names, options.save)) else 0


if __name__ == "__main__":
    sys.exit(main())
