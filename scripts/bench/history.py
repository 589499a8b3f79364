"""Measure how long the input of a long chat takes to build.

python scripts/bench/history.py     400 turns with 1,200 kept items, in a few seconds

The chat lies in memory, so that only the pipe is measured: its read of the row, the
messages of the host, the kept items, up to the request that would be sent. What counts is
the CPU of the best round: a busy machine only adds to it.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.chats import MODEL, SECRET, USER_ID, long_chat
from owui_manifold.chat import build_chat_request
from owui_manifold.config import AccountCapabilities, read_config
from owui_manifold.context import Caller, HostContext, PipeCall
from owui_manifold.log import RunLog
from owui_manifold.threads import ToolThreads
from owui_manifold.valves import Valves

GOAL = 50.0
"""Milliseconds."""


class Rows:
    """The table of chats, with one row; it counts its reads."""

    def __init__(self, chat: dict[str, Any]) -> None:
        """Hold one chat."""
        self.reads = 0
        self._row = SimpleNamespace(chat=chat)

    async def get_chat_by_id_and_user_id(self, _id: str, _user: str) -> Any:
        """Return the chat."""
        self.reads += 1
        return self._row


def main() -> int:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    print(asyncio.run(measured(given.turns, given.rounds)))
    return 0


async def measured(turns: int, rounds: int) -> str:
    """Build the input again and again; return what it took."""
    chat, said = long_chat(turns)
    rows = Rows(chat)
    _provide_open_webui(rows)
    call = _call(turns, said)
    took: list[float] = []
    items = 0
    for _ in range(rounds):
        began = time.process_time()
        prepared = await build_chat_request(call)
        took.append((time.process_time() - began) * 1000)
        items = len(prepared.request.input)
    return _report(took, f"{turns} turns, {items:,} items", rows.reads / rounds)


def _report(took: Sequence[float], what: str, reads: float) -> str:
    verdict = "met" if min(took) <= GOAL else "MISSED"
    return (
        f"{what}: {min(took):.1f} ms of CPU at best, {median(took):.1f} ms in the middle of "
        f"{len(took)} rounds, {reads:g} reads of the database each.\n"
        f"Goal: at most {GOAL:g} ms and one read: {verdict}."
    )


def _call(turns: int, said: list[dict[str, Any]]) -> PipeCall:
    """Return the call of the pipe for the last question."""
    ids = {"user_message_id": f"q{turns - 1}", "message_id": f"a{turns - 1}"}
    body = {"model": MODEL, "messages": said, "stream": True}
    return PipeCall(
        body,
        Caller(MODEL, USER_ID, "chat", ids["message_id"], streams=True),
        read_config(Valves(BASE_URL="http://127.0.0.1:9/v1", API_KEY="sk-bench")),
        AccountCapabilities(),
        RunLog("ERROR", [], "bench"),
        HostContext({}, None, {"chat_id": "chat", **ids}, None, None),
        ToolThreads(),
    )


def _provide_open_webui(rows: Rows) -> None:
    """Let the pipe find the host's version, and its chats."""
    env, chats = ModuleType("open_webui.env"), ModuleType("open_webui.models.chats")
    vars(env).update(VERSION="0.12.4", WEBUI_SECRET_KEY=SECRET)
    vars(chats)["Chats"] = rows
    for module in (
        ModuleType("open_webui"),
        ModuleType("open_webui.models"),
        env,
        chats,
    ):
        sys.modules[module.__name__] = module


if __name__ == "__main__":
    sys.exit(main())
