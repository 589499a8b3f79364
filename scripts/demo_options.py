"""The command line of `scripts/demo`.

It imports the standard library only: its help is also shown before anything is
installed.
"""

import argparse
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from demo_server import list_server_models

USUAL_PORT = 8080
_LAST_PORT = 65535
DESCRIPTION = (
    "A real Open WebUI on this machine with the pipe in it. With OPENAI_API_KEY in the "
    "environment the pipe talks to OpenAI, without it to a simulator. The first start "
    "takes a minute or two: it downloads Open WebUI (270 MB, 0.9 GB on disk). Later "
    "starts take 10 to 30 seconds."
)


def build_demo_parser() -> argparse.ArgumentParser:
    """Return the parser of the demo's command line."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=DESCRIPTION)
    parser.add_argument("--port", type=_port, help=f"instead of {USUAL_PORT}")
    parser.add_argument(
        "--keep-data",
        type=_folder,
        metavar="DIR",
        help="keep chats and settings there, for the next start",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="run one chat of two turns, print what was replayed, and exit with 0 or 1",
    )
    parser.add_argument(
        "--tour",
        action="store_true",
        help="send ten prompts to a chat, one after another, and leave it there",
    )
    parser.add_argument(
        "--agent",
        action="store_true",
        help="also start a Pipelines server with the agents, connected to Open WebUI",
    )
    parser.add_argument(
        "--server",
        metavar="URL",
        help="your own server, such as llama-server or Ollama: http://127.0.0.1:8081/v1",
    )
    parser.add_argument("--model", metavar="NAME", help="the model at --server")
    return parser


def read_demo_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; end with a message if the demo cannot start with them."""
    parser = build_demo_parser()
    options = parser.parse_args(arguments)
    _check_server_options(parser, options)
    if options.check and options.tour:
        parser.error("--check ends after two turns of its own: leave out --tour")
    if options.port and not is_free(options.port):
        parser.error(f"port {options.port} is in use")
    if options.tour and os.environ.get("OPENAI_API_KEY"):
        parser.error(
            "--tour sends words that only the simulator understands: unset "
            "OPENAI_API_KEY for it"
        )
    return options


def _check_server_options(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> None:
    """End with a message if the options of a server do not fit the others."""
    if bool(options.server) != bool(options.model):
        parser.error("--server and --model are given together")
    if not options.server:
        return
    if not options.server.startswith(("http://", "https://")):
        parser.error(f"--server {options.server!r} is no address: http://HOST:PORT/v1")
    for name in ("tour", "check"):
        if getattr(options, name):
            parser.error(f"--{name} is for the simulator or OpenAI, not for --server")
    try:
        list_server_models(options.server)
    except OSError as error:
        parser.error(str(error))


def is_free(port: int) -> bool:
    """Tell whether a server can listen on a port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= port <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to {_LAST_PORT}")
    return port


def _folder(text: str) -> Path:
    """Return an absolute path at which a folder is or can be made."""
    path = Path(text).resolve()
    existing = next(place for place in (path, *path.parents) if place.exists())
    if not existing.is_dir():
        raise argparse.ArgumentTypeError(f"{existing} is a file: a folder is needed")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{existing} is not yours to write to")
    return path
