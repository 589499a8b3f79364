"""A conversation in a terminal, from the command line to its last word.

    cd pipelines && PYTHONPATH=../pipes python -m gpt5_agent --set MODEL=gpt-5.2

Every valve of the pipeline can be set; the key is that of OPENAI_API_KEY.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from gpt5_agent.listeners import HttpListener, StdinListener
from gpt5_agent.log import AgentLog
from gpt5_agent.named_tools import named_servers
from gpt5_agent.ports import AgentContext, Listener
from gpt5_agent.session import Session
from gpt5_agent.settings import Question, agent_asked, build_endpoint, valve_secrets
from gpt5_agent.strategy import STRATEGIES
from gpt5_agent.terminal import Terminal, Typed
from gpt5_agent.valves import Valves
from openai_responses.errors import InvalidRequest
from openai_responses.transport.connections import Connections
from toolbox.tool_servers import NamedServers, ToolServers

_TOKEN = "GPT5_AGENT_TOKEN"


def run_conversation(arguments: Sequence[str] | None = None) -> int:
    """Talk until stdin ends; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_converse(options))
    except (InvalidRequest, OSError) as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpt5_agent", description="Talk to the agent."
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="VALVE=VALUE", dest="valves"
    )
    parser.add_argument("--strategy", choices=STRATEGIES, default=STRATEGIES[0])
    parser.add_argument(
        "--listen", type=int, metavar="PORT", help=f"take posts; the token is {_TOKEN}"
    )
    parser.add_argument("--mcp", type=Path, metavar="FILE", help="MCP servers, as JSON")
    parser.add_argument("--openapi", type=Path, metavar="FILE", help="OpenAPI servers")
    return parser


async def _converse(options: argparse.Namespace) -> None:
    valves = _valves(options.valves)
    endpoint, log = build_endpoint(valves), AgentLog("terminal")
    log.hide(valve_secrets(endpoint))
    terminal = Terminal(_write, emits_thoughts=valves.EMIT_INTERMEDIATE_THOUGHTS)
    connections, servers = Connections(), ToolServers()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(connections.close)
        stack.push_async_callback(servers.close)
        lent = await stack.enter_async_context(servers.lend(_named(options)))
        for complaint in lent.complaints:
            _write(f"[{complaint}]\n")
        question = Question(options.strategy, (), {"stream": True}, valves)
        asked = agent_asked(question, endpoint, connections, log)
        asked = replace(asked, own=replace(asked.own, tools=lent.tools))
        await _listen(options, terminal, stack)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, terminal.interrupt)
        stack.callback(loop.remove_signal_handler, signal.SIGINT)
        await terminal.converse(Session(asked, terminal, terminal.show))


async def _listen(
    options: argparse.Namespace, terminal: Terminal, stack: AsyncExitStack
) -> None:
    """Start the listeners, to be stopped at the end."""
    heard: list[tuple[Listener, AgentContext]] = [
        (StdinListener(ended=terminal.end), Typed(terminal))
    ]
    if options.listen is not None:
        token = os.environ.get(_TOKEN, "").strip()
        if not token:
            raise InvalidRequest(f"Set {_TOKEN} to a token that posts must have.")
        heard.insert(0, (HttpListener(token, options.listen), terminal))
    for listener, context in heard:
        await listener.on_start(context)
        stack.push_async_callback(listener.on_stop)
        if isinstance(listener, HttpListener):
            _write(f"[listening at {listener.address}]\n")


def _valves(settings: Sequence[str]) -> Valves:
    """Return the valves; raises InvalidRequest for one that does not exist."""
    given = dict(setting.partition("=")[::2] for setting in settings)
    unknown = ", ".join(sorted(given.keys() - Valves.model_fields.keys()))
    if unknown:
        raise InvalidRequest(f"There is no valve named {unknown}.")
    return Valves.model_validate(given)


def _named(options: argparse.Namespace) -> NamedServers:
    """Return the servers of tools; whoever types here may start programs."""
    files = (options.mcp, options.openapi)
    texts = [file.read_text("utf-8") if file else "" for file in files]
    return named_servers(*texts, allows_programs=True)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
