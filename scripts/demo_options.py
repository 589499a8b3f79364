"""The command line of `scripts/demo`.

It imports the standard library only: its help is also shown before anything is
installed.
"""

import argparse
from pathlib import Path

USUAL_PORT = 8080
DESCRIPTION = (
    "A real Open WebUI on this machine with the pipe in it. With OPENAI_API_KEY in the "
    "environment the pipe talks to OpenAI, without it to a simulator. The first start "
    "takes a minute or two: it downloads Open WebUI (270 MB, 0.9 GB on disk). Later "
    "starts take about half a minute."
)


def build_demo_parser() -> argparse.ArgumentParser:
    """Return the parser of the demo's command line."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=DESCRIPTION)
    parser.add_argument("--port", type=int, help=f"instead of {USUAL_PORT}")
    parser.add_argument(
        "--keep-data",
        type=_absolute_path,
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


def _absolute_path(text: str) -> Path:
    return Path(text).resolve()
