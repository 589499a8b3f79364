"""Run a real Open WebUI on this machine with the pipe in it.

`scripts/demo` starts it and installs what is missing. If OPENAI_API_KEY is in the
environment, the pipe talks to OpenAI, otherwise to the simulator; with `--server` to a
server of your own.
"""

import argparse
import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import release
from demo_options import USUAL_PORT, is_free, read_demo_options
from demo_secrets import PASSWORD, demo_secrets
from demo_server import describe_server, own_server_valves
from hosts.people.client import Json, OpenWebUIError
from hosts.people.users import EVERYBODY_READS, User
from hosts.servers.offline import ADMIN_EMAIL, BootError, free_port
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.pipelines_server import PipelinesServer
from hosts.setup.agent import FUNCTION_CALLING, connected, install_pipeline
from progress import Progress
from releasing.contents import FUNCTIONS, MODELS, PIPE_ID
from simulator import Simulator
from tour import (
    AGENT_WORDS,
    LAKE,
    SERVER_AGENT_WORDS,
    Word,
    describe_words,
    install_lake,
    take_tour,
)
from two_turns import check_two_turns

HOSTED_TOOLS = (
    "ENABLE_WEB_SEARCH",
    "ENABLE_IMAGE_GENERATION",
    "ENABLE_CODE_INTERPRETER",
)
AGENT_TOOLS = {
    "SANDBOX": True,
    "DELEGATION": True,
    "TOOL_APPROVAL": "sandbox_fs_write=ask",
}
"""What the agents may use with the simulator, for the words that the demo prints."""
AGENT_NAME = "GPT Agent"
SUB_AGENTS = (
    "\nSub-agents are on in this demo. In an installation of your own, switch them on in "
    "Open WebUI:\nAdmin Panel > Settings > Sub-agents."
)
TICK_SECONDS = 0.5
STOPPED_EXIT_STATUS = 130
OPENAI_VARIABLES = (
    "OPENAI_API_KEY",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""The environment variables that a connection to OpenAI may need."""


@dataclass(frozen=True)
class Upstream:
    """The server that the pipe talks to."""

    message: str
    valves: Json
    environment: dict[str, str] = field(default_factory=dict)
    simulator: Simulator | None = None


async def demo(options: argparse.Namespace) -> int:
    """Boot, install, then serve until stopped; or check two turns and end."""
    async with AsyncExitStack() as running:
        if options.server:
            upstream = choose_own_server(options.server, options.model)
        else:
            upstream = await choose_upstream(running)
        print(upstream.message)
        guards = demo_secrets(options.keep_data)
        server = OpenWebUI(
            home=options.keep_data,
            port=options.port,
            env=upstream.environment | guards,
        )
        async with show_progress("Open WebUI boots"):
            await running.enter_async_context(server)
        admin = server.admin
        models = await install_release(admin, upstream.valves)
        if not models:
            raise BootError(f"The pipe shows no models:\n{server.log()[-4000:]}")
        print(f"The pipe is installed for everybody, with {len(models)} models.")
        checked_models = models[:1]
        if options.agent:
            await start_agents(running, admin, upstream)
            checked_models.append(FUNCTION_CALLING)
        if options.check:
            exit_codes = [
                await check_two_turns(admin, model, upstream.simulator)
                for model in checked_models
            ]
            return max(exit_codes)
        await admin.hide_changelog()
        chat_id = ""
        if options.tour and upstream.simulator:
            print("\nThe tour:")
            chat_id = await take_tour(admin, models[0])
        print_login(server, guards[PASSWORD], chat_id)
        if upstream.simulator:
            print("\nWords to try in a chat:\n\n" + "\n".join(describe_words()))
            print_words(f"with the model {AGENT_NAME}", AGENT_WORDS)
            print(SUB_AGENTS)
            if options.agent:
                print_words(
                    "with GPT-5 Function Calling or GPT-5 ReAct, on the Pipelines "
                    "server",
                    SERVER_AGENT_WORDS,
                )
        print("\nCtrl-C ends it.", flush=True)
        return await serve(server)


async def install_release(admin: User, valves: Json) -> list[str]:
    """Install the files of a release, made of the sources; return the pipe's models."""
    with TemporaryDirectory() as folder:
        release.write(Path(folder))
        functions = read_import(Path(folder) / FUNCTIONS)
        models = read_import(Path(folder) / MODELS)
    for function in functions:
        await admin.install_function(
            function["id"], function["content"], function["name"]
        )
    stored = await admin.valves(PIPE_ID)
    # An earlier demo with --server may have stored its model.
    await admin.set_valves(PIPE_ID, stored | {"MODEL_ID": None, **valves})
    await install_lake(admin, EVERYBODY_READS)
    await switch_sub_agents_on(admin)
    for model in models:
        model["meta"]["toolIds"] = [LAKE]
    await admin.call("POST", "/api/v1/models/import", {"models": models})
    listed = [model["id"] for model in await admin.models()]
    return [model for model in listed if model.startswith(f"{PIPE_ID}.")]


async def switch_sub_agents_on(admin: User) -> None:
    """Let agents delegate, as an administrator does in the settings."""
    path = "/api/v1/configs/subagents"
    stored = await admin.call("GET", path)
    await admin.call("POST", path, stored | {"ENABLE_SUBAGENTS": True})


def read_import(file: Path) -> list[Json]:
    """Return the entries of a file that people import."""
    entries: list[Json] = json.loads(file.read_text("utf-8"))
    return entries


async def choose_upstream(running: AsyncExitStack) -> Upstream:
    """Return OpenAI if there is a key, otherwise a simulator that runs."""
    if os.environ.get("OPENAI_API_KEY"):
        environment = {
            name: os.environ[name] for name in OPENAI_VARIABLES if name in os.environ
        }
        base_url = os.environ.get("OPENAI_BASE_URL")
        # None restores a valve's default, whatever an earlier demo stored. The key
        # reaches the pipe through the environment, and is in no file.
        return Upstream(
            message=f"OPENAI_API_KEY is set: the pipe talks to {base_url or 'OpenAI'}.",
            valves={"BASE_URL": base_url, "API_KEY": None, "COMPATIBILITY": None},
            environment=environment,
        )
    simulator = await running.enter_async_context(Simulator(default_scenario="hello"))
    return Upstream(
        message="OPENAI_API_KEY is not set: the pipe talks to the simulator on this "
        "machine, whose answers are made up.",
        valves={
            "BASE_URL": simulator.base_url,
            "API_KEY": simulator.api_key,
            "COMPATIBILITY": "openai",  # the simulator stands for OpenAI
            "SHOW_COST": True,
            **dict.fromkeys(HOSTED_TOOLS, True),  # they cost nothing here
        },
        simulator=simulator,
    )


def choose_own_server(url: str, model: str) -> Upstream:
    """Return the server that the options name; OpenAI's key is not for it."""
    names = [name for name in OPENAI_VARIABLES if name != "OPENAI_API_KEY"]
    return Upstream(
        message=describe_server(url, model),
        valves={**own_server_valves(url, model), **dict.fromkeys(HOSTED_TOOLS, False)},
        environment={name: os.environ[name] for name in names if name in os.environ},
    )


async def start_agents(
    running: AsyncExitStack, admin: User, upstream: Upstream
) -> None:
    """Start a Pipelines server with the agents, and connect it to Open WebUI."""
    pipelines = PipelinesServer(env=upstream.environment)
    await running.enter_async_context(pipelines)
    valves = {name: value for name, value in upstream.valves.items() if value}
    if upstream.simulator:
        valves |= AGENT_TOOLS
    if "MODEL_ID" in valves:
        valves["MODEL"] = valves.pop("MODEL_ID")
    await install_pipeline(pipelines, valves)
    await running.enter_async_context(connected(admin, pipelines))
    offered = await pipelines.models()
    if not offered:
        raise BootError(f"The agents did not load:\n{pipelines.log()[-4000:]}")
    names = " and ".join(str(model["name"]) for model in offered)
    print(f"The agents are connected, as the models {names}.")
    print(describe_pipelines_server())


def describe_pipelines_server() -> str:
    """Return a message about the Pipelines server that runs the agents."""
    checkout = os.environ.get("PIPELINES_SERVER")
    if checkout:
        return f"They run on the Pipelines server in {checkout}."
    return (
        "They run on a stand-in of the Pipelines server, which behaves like it. For the "
        "real one, set\nPIPELINES_SERVER to a checkout of open-webui/pipelines."
    )


def print_login(server: OpenWebUI, password: str, chat_id: str) -> None:
    """Print the address and the login."""
    address = f"{server.url}/c/{chat_id}" if chat_id else server.url
    print(f"\n    {address}")
    print(f"    e-mail {ADMIN_EMAIL}, password {password}")


def print_words(where: str, words: Sequence[Word]) -> None:
    """Print words that lead to something with some models."""
    lines = "\n".join(describe_words(words))
    print(f"\nWords to try {where}:\n\n{lines}")


async def serve(server: OpenWebUI) -> int:
    """Wait for the server to end, which it does only if it fails."""
    while server.is_running:  # noqa: ASYNC110 - a process sets no event
        await asyncio.sleep(TICK_SECONDS)
    print(f"Open WebUI has ended:\n{server.log()[-4000:]}", file=sys.stderr)
    return 1


@asynccontextmanager
async def show_progress(step: str) -> AsyncIterator[None]:
    """Show the progress of a step until the block ends."""
    progress = Progress(step)
    ticking = asyncio.create_task(_tick(progress))
    try:
        yield
    finally:
        ticking.cancel()
        progress.end()


async def _tick(progress: Progress) -> None:
    while True:
        progress.show()
        await asyncio.sleep(TICK_SECONDS)


async def until_stopped(options: argparse.Namespace) -> int:
    """Run the demo; the first signal ends it in order, later ones change nothing."""
    work = asyncio.ensure_future(demo(options))

    def stop() -> None:
        if not work.cancelling():
            work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        return await work
    except asyncio.CancelledError:
        print("\nEnded.", file=sys.stderr)
        return STOPPED_EXIT_STATUS if options.check else 0
    except TimeoutError:
        print("\nOpen WebUI took too long to answer.", file=sys.stderr)
        return 1
    except (BootError, OpenWebUIError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


@contextmanager
def usual_port() -> Iterator[int]:
    """Lend the usual port, or another one if a server or a second demo has it.

    A demo that still boots does not listen yet, so it holds a lock meanwhile.
    """
    lock = Path(gettempdir(), f"openai-responses-demo-{os.getuid()}.lock")
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield free_port()
            return
        yield USUAL_PORT if is_free(USUAL_PORT) else free_port()


@contextmanager
def only_demo_of(folder: Path | None) -> Iterator[None]:
    """Hold a kept folder; raises BootError if another demo uses it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "demo.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BootError(f"Another demo uses {folder}.") from None
        yield


def main(arguments: Sequence[str]) -> int:
    """Run the demo with these options; return its exit status."""
    options = read_demo_options(arguments)
    try:
        with ExitStack() as held:
            held.enter_context(only_demo_of(options.keep_data))
            if not options.port:
                options.port = held.enter_context(usual_port())
            return asyncio.run(until_stopped(options))
    except (BootError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
