"""A conversation in a terminal, from the command line to its last word.

    cd pipelines && PYTHONPATH=../pipes python -m gpt5_agent --set MODEL=gpt-5.2

The valves of the pipeline can be set; the key is that of OPENAI_API_KEY.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from gpt5_agent.request import PipelineCaller
from gpt5_agent.shell.call import (
    PipelineCall,
    SharedState,
    build_agent_request,
    build_endpoint,
    make_provider,
)
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import TERMINAL_WORKSPACE, open_host_files
from gpt5_agent.shell.valves import Valves, read_valve_settings
from gpt5_agent.terminal.interface import KeyboardContext, Terminal
from gpt5_agent.terminal.listeners import HttpListener, StdinListener
from gpt5_agent.terminal.session import Session
from openai_responses.errors import InvalidRequest
from shells.valve_messages import PIPELINE_SHELL, error_message
from strategies.parameters import STRATEGY_NAMES

_TOKEN_VARIABLE = "GPT5_AGENT_TOKEN"
_MIN_TOKEN_CHARACTERS = 16
"""Other programs of this machine can try tokens without end."""
_UNREAD_VALVES = ("DEBUG", "OPEN_WEBUI_API_KEY", "OPEN_WEBUI_URL")
"""They are about the server's log, and files of Open WebUI."""


def run_conversation(arguments: Sequence[str] | None = None) -> int:
    """Talk until stdin ends; returns the exit status."""
    strategies = list(STRATEGY_NAMES)
    parser = argparse.ArgumentParser(
        prog="gpt5_agent", description="Talk to the agent."
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="VALVE=VALUE", dest="valves"
    )
    parser.add_argument("--strategy", choices=strategies, default=strategies[0])
    parser.add_argument(
        "--listen",
        type=int,
        metavar="PORT",
        help=f"accept input over HTTP, with the token in {_TOKEN_VARIABLE}",
    )
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_run_terminal(options))
    except InvalidRequest as error:
        sys.stderr.write(f"{error_message(error, PIPELINE_SHELL)}\n")
        return 1
    except (OSError, OverflowError) as error:  # of an address, or its port
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _run_terminal(options: argparse.Namespace) -> None:
    """Converse with whoever types, until there is no more input."""
    valves = _parse_valves(options.valves)
    log = AgentLog("terminal")
    endpoint = build_endpoint(valves, log)
    terminal = Terminal(_write_stdout, emits_thoughts=valves.EMIT_INTERMEDIATE_THOUGHTS)
    shared = SharedState()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(shared.close)
        files = open_host_files(valves, "", (), log)
        stack.push_async_callback(files.aclose)
        settings = read_valve_settings(valves)
        lent = shared.own_tools.lend_tools(settings, TERMINAL_WORKSPACE, log, files)
        offer = await stack.enter_async_context(lent)
        for problem in settings.problems:
            _write_stdout(f"[{problem}]\n")
        for name in _UNREAD_VALVES:
            if name in settings.valves.model_fields_set:
                _write_stdout(f"[{name} has no effect in a terminal.]\n")
        call = PipelineCall(
            strategy=options.strategy,
            messages=(),
            body={},
            settings=settings,
            shared=shared,
            log=log,
            caller=PipelineCaller(streams=True),
        )
        request = build_agent_request(call, endpoint, offer)
        await _start_listeners(options, terminal, stack)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, terminal.interrupt)
        stack.callback(loop.remove_signal_handler, signal.SIGINT)
        provider = partial(make_provider, call)
        await terminal.converse(Session(request, provider, terminal, terminal.show))


async def _start_listeners(
    options: argparse.Namespace, terminal: Terminal, stack: AsyncExitStack
) -> None:
    """Start the listeners, to be stopped at the end."""
    if options.listen is not None:
        token = os.environ.get(_TOKEN_VARIABLE, "").strip()
        if len(token) < _MIN_TOKEN_CHARACTERS:
            raise InvalidRequest(
                f"Set {_TOKEN_VARIABLE} to a token that posts must have, of at least "
                f"{_MIN_TOKEN_CHARACTERS} characters."
            )
        posts = HttpListener(token, options.listen)
        await posts.on_start(terminal)
        stack.push_async_callback(posts.on_stop)
        _write_stdout(f"[listening at {posts.address}]\n")
    lines = StdinListener(on_end=terminal.end)
    await lines.on_start(KeyboardContext(terminal))
    stack.push_async_callback(lines.on_stop)


def _parse_valves(settings: Sequence[str]) -> Valves:
    """Return the valves; raises InvalidRequest for a wrong name or a wrong value."""
    values: dict[str, str] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        values[name] = value
    unknown = values.keys() - Valves.model_fields.keys()
    if unknown:
        names = ", ".join(sorted(unknown))
        raise InvalidRequest(f"There is no valve named {names}.")
    # Of a stored valve a wrong value means the default; whoever types one reads why.
    for name, value in values.items():
        field = Valves.model_fields[name]
        checked: Any = Annotated[field.annotation, field]
        try:
            TypeAdapter(checked).validate_python(value)
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
            raise InvalidRequest(
                f"The value of {name} cannot be used: {reason}."
            ) from None
    return Valves.model_validate(values)


def _write_stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
