"""Measure the same answer in the real Open WebUI, through its own connection and the pipe.

python scripts/bench/inside.py    one table, in about a minute

Open WebUI's own Responses connection and the pipe answer in turns, so that a busy
machine slows both down: the ratio is the result. The CPU is that of the server's
process, from the question until everything is saved; a tab reads along as the page does.
The simulator writes a delta every two milliseconds.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import (
    MODEL,
    Address,
    address_valves,
    goal_line,
    packed_pipe,
    parse_options,
    ratios,
    run_simulator,
    server_cpu,
    table,
)
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe

NATIVE = f"native.{MODEL}"
PIPE = f"bench.{MODEL}"
NAMES = {NATIVE: "the native connection", PIPE: "the pipe"}
PAUSE_MS = 2
SUMMARY = {"custom_params": {"reasoning": {"summary": "auto"}}}
"""Open WebUI's connection asks for no summary by itself; the pipe does."""
GOAL = 0.5
"""Times the CPU of the native connection."""
SHORT_DELTAS = 20
ANSWER_TIMEOUT = 600


@dataclass(frozen=True)
class Answered:
    """One answer: seconds of the server's CPU, events of the tab."""

    cpu: float
    events: int


Answers = Mapping[str, Sequence[Answered]]
"""The answers of each round, by their connection."""


def main() -> None:
    """Print the table."""
    options = parse_options(
        __doc__,
        deltas=(4000, "in an answer"),
        rounds=(3, "of both"),
    )
    with run_simulator() as address:
        answers = asyncio.run(measure(address, options))
    print(cpu_result(answers, options.deltas))


async def measure(address: Address, options: argparse.Namespace) -> Answers:
    """Let both answer in turns, after a short answer of each that does not count."""
    async with (
        OpenWebUI() as server,
        both_connections(server.admin, address),
        Tab(server.admin) as tab,
    ):
        await _ask_in_turns(server, tab, SHORT_DELTAS, 1)
        return await _ask_in_turns(server, tab, options.deltas, options.rounds)


async def _ask_in_turns(
    server: OpenWebUI, tab: Tab, deltas: int, rounds: int
) -> Answers:
    """Ask both in each round; the first one of a round is the last one of the next."""
    answers: dict[str, list[Answered]] = {NATIVE: [], PIPE: []}
    for number in range(rounds):
        order = (NATIVE, PIPE) if number % 2 == 0 else (PIPE, NATIVE)
        for model in order:
            answers[model].append(await answer(server, tab, model, deltas))
    return answers


@asynccontextmanager
async def both_connections(admin: User, address: Address) -> AsyncIterator[None]:
    """Connect Open WebUI with the simulator, natively and through the pipe."""
    async with native_connection(admin, address):
        await install_pipe(admin, "bench", packed_pipe(), pipe_valves(address))
        try:
            yield
        finally:
            await admin.delete_function("bench")


def pipe_valves(address: Address) -> dict[str, str]:
    """Return the valves of a pipe with the model of both connections."""
    return {**address_valves(address), "MODEL_ID": MODEL}


@asynccontextmanager
async def native_connection(admin: User, address: Address) -> AsyncIterator[None]:
    """Connect Open WebUI with the simulator, with its own Responses connection."""
    native_config = {
        "enable": True,
        "api_type": "responses",
        "prefix_id": "native",
        "model_ids": [MODEL],
    }
    connection = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [address.base_url],
        "OPENAI_API_KEYS": [address.api_key],
        "OPENAI_API_CONFIGS": {"0": native_config},
    }
    config_before = await admin.call("GET", "/openai/config")
    await admin.call("POST", "/openai/config/update", connection)
    listed = {model["id"]: model for model in await admin.models()}
    if "info" not in listed[NATIVE]:
        # Everybody may use it, as the models of the pipe: Open WebUI then reads the row of
        # the model, with who may use it, for each question.
        await admin.share_model(NATIVE, NATIVE)
    try:
        yield
    finally:
        await admin.call("POST", "/openai/config/update", config_before)


async def answer(server: OpenWebUI, tab: Tab, model: str, deltas: int) -> Answered:
    """Ask in a new chat and read to the end; raise RuntimeError if words are missing."""
    question = f"sim:long,deltas={deltas},delay={PAUSE_MS}"
    body = {"params": SUMMARY} if model == NATIVE else {}
    cpu_before = server_cpu(server.pid)
    turn = await tab.begin(model, question, body=body)
    await asyncio.wait_for(turn.finished.wait(), ANSWER_TIMEOUT)
    await tab.settle(turn)
    cpu = server_cpu(server.pid) - cpu_before
    _check(turn, deltas)
    return Answered(cpu, len(turn.events))


def _check(turn: Turn, deltas: int) -> None:
    """Raise RuntimeError if the answer is not whole, or has no reasoning."""
    words = turn.text.count("word")
    if words != deltas or turn.error:
        raise RuntimeError(f"{words} of {deltas} words came: {turn.error}")
    if "reasoning_summary" not in str(turn.events):
        raise RuntimeError("The answer came without its reasoning.")


def cpu_result(answers: Answers, deltas: int) -> str:
    """Return a line for each connection, then the goal."""
    cpu = {model: [each.cpu for each in answers[model]] for model in NAMES}
    rows: dict[str, list[str]] = {}
    for model, name in NAMES.items():
        rows[name] = [
            f"{median(cpu[model]):.2f}",
            f"{median(ratios(cpu[model], cpu[NATIVE])):.2f}",
            f"{answers[model][-1].events:,}",
        ]
    times = ratios(cpu[PIPE], cpu[NATIVE])
    title = (
        f"Inside Open WebUI: {deltas:,} deltas and reasoning, one every {PAUSE_MS} ms, "
        f"{len(times)} rounds, medians"
    )
    goal = goal_line(
        f"at most {GOAL:g} of the native CPU",
        median(times) <= GOAL,
        f"{median(times):.2f}; {min(times):.2f} to {max(times):.2f}",
    )
    return f"{table(title, ('CPU s', 'x native', 'events'), rows)}\n{goal}"


if __name__ == "__main__":
    main()
