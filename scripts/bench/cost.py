"""What one chat costs in the real Open WebUI, through the pipe and without it.

python scripts/bench/cost.py

The same questions, asked through Open WebUI's own Responses connection and through the
pipe: plain ones, some with a tool, an edited one, some with an attached file. The chat
happens twice: its system prompt stays the same, or has the time in it.

The simulator gives both the same answers, and counts what is read from the prompt cache
and written to it by what is published about that. Four bytes are a token, each reasoning
item has 64 tokens, and a model that gets its reasoning back reasons as long as one that
does not: what that saves is not measured.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import MODEL, Address, goal_line, parse_options, table
from bench.inside import NAMES, NATIVE, PIPE, SUMMARY, both_connections
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_toolkit
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import (
    RequestTerms,
    Usage,
    add_usage,
    cost_of_run,
    read_usage,
)
from simulator import RecordedRequest, Simulator
from simulator.sealing import unseal_content

PARTS = ("text", "tools", "edit", "file")
"""What a chat is about, in this order, each for as many turns."""
COLUMNS = ("requests", "input", "cached", "output", "replayed", "dollars")
CLOCK = "{{CURRENT_DATETIME}}"
SYSTEM = f"It is {CLOCK}.\n" + "You keep a lighthouse. Be brief and polite. " * 30
FILE = b"The lighthouse keeper has to wind the clock at noon.\n" * 150
LONG = "sim:long,deltas=300"
TOOL = 'sim:tool get_weather {"city": "Bergen"}'
GOAL = 1.0
"""Times the dollars of the native connection."""


class Step(NamedTuple):
    """One question of the chat."""

    part: str
    text: str
    edits: bool
    """It takes the place of the question before."""
    attaches: bool


class Spent(NamedTuple):
    """What some requests took; `replayed` are the tokens of reasoning that went back."""

    requests: int
    usage: Usage
    replayed: int
    dollars: float


def main() -> None:
    """Print the tables."""
    options = parse_options(__doc__, turns=(20, "of the chat"))
    steps = plan(options.turns)
    same_prompt, with_time = asyncio.run(measure(steps))
    print(result("the same system prompt", steps, same_prompt), end="\n\n")
    print(result("the time in the system prompt", steps, with_time))


def plan(turns: int) -> list[Step]:
    """Return the questions; those after the edit and with the file go on as before."""
    steps: list[Step] = []
    for number in range(turns):
        part = PARTS[number * len(PARTS) // turns]
        is_first = not steps or steps[-1].part != part
        scenario = TOOL if part == "tools" else LONG
        step = Step(
            part=part,
            text=f"{scenario} Question {number} about the life of a keeper.",
            edits=part == "edit" and is_first and number > 1,
            attaches=part == "file" and is_first,
        )
        steps.append(step)
    return steps


Requests = Sequence[RecordedRequest]
Turns = Mapping[str, Sequence[Requests]]
"""The requests of each turn, by their connection."""


async def measure(steps: Sequence[Step]) -> tuple[Turns, Turns]:
    """Return the requests of the chat without and with the time in its prompt."""
    async with Simulator() as simulator, OpenWebUI() as server:
        await install_toolkit(server.admin)
        same_prompt = await ask_both(steps, server.admin, simulator, ticks=False)
        with_time = await ask_both(steps, server.admin, simulator, ticks=True)
    return same_prompt, with_time


async def ask_both(
    steps: Sequence[Step], admin: User, simulator: Simulator, *, ticks: bool
) -> Turns:
    """Have the chat through each connection; raise RuntimeError if answers differ."""
    address = Address(simulator.base_url, simulator.api_key)
    turns: dict[str, list[Requests]] = {NATIVE: [], PIPE: []}
    chats: dict[str, Chat] = {}
    async with (
        both_connections(admin, address),
        Tab(admin) as tab,
    ):
        for model in (NATIVE, PIPE):
            simulator.forget()
            chats[model] = Chat(tab, model, ticks=ticks)
            for step in steps:
                simulator.requests.clear()
                await chats[model].ask(step)
                turns[model].append(list(simulator.requests))
    native_answers = [turn.text for turn in chats[NATIVE].turns]
    pipe_answers = [turn.text for turn in chats[PIPE].turns]
    if native_answers != pipe_answers:
        raise RuntimeError(f"The answers differ: {native_answers}, {pipe_answers}")
    return turns


class Chat:
    """The chat with one model."""

    def __init__(self, tab: Tab, model: str, *, ticks: bool) -> None:
        """Begin with no turns; `ticks` says that each has another time."""
        self.turns: list[Turn] = []
        self._ticks = ticks
        self._tab = tab
        self._model = model
        self._file: dict[str, Any] | None = None

    async def ask(self, step: Step) -> None:
        """Ask as the page does; raise RuntimeError if there is no whole answer."""
        if step.attaches:
            self._file = await attach(
                self._tab.user, "handbook.txt", FILE, "text/plain"
            )
        # The page sends a chat's files with every question (0.12.4). With `full`, the
        # server needs no embeddings.
        files = [{**self._file, "context": "full"}] if self._file else []
        minute = len(self.turns) if self._ticks else 0
        body = {
            "messages": [{"role": "system", "content": SYSTEM}],
            "variables": {CLOCK: f"2026-11-26 10:{minute:02}:00"},
            "tool_ids": ["toolkit"],
            "files": files,
            "params": SUMMARY if self._model == NATIVE else {},
        }
        turn = await self._tab.send(
            self._model,
            step.text,
            chat_id=self.turns[0].chat_id if self.turns else None,
            parent_id=self.turns[-2].message_id if step.edits else None,
            files=[self._file] if step.attaches else [],
            body=body,
        )
        if turn.error or not turn.text:
            raise RuntimeError(f"{step.text!r} was not answered: {turn.error}")
        self.turns.append(turn)


def spent(requests: Requests) -> Spent:
    """Sum up what the answers to requests say; raise RuntimeError where none does."""
    usages: list[Usage] = []
    total: Usage | None = None
    for request in requests:
        response = request.response or {}
        usage = read_usage(response.get("usage"), response.get("service_tier"))
        if usage is None:
            raise RuntimeError(f"A request was not answered: {response}")
        usages.append(usage)
        total = add_usage(total, usage)
    facts = resolve_model(MODEL).facts
    cost = cost_of_run(usages, facts, (), datetime.now(UTC).date(), RequestTerms())
    if cost is None:
        raise RuntimeError(f"Nobody knows what {MODEL} costs.")
    replayed = sum(replayed_tokens(request.body["input"]) for request in requests)
    return Spent(len(requests), total or Usage(), replayed, cost.dollars)


def replayed_tokens(items: Sequence[Mapping[str, Any]]) -> int:
    """Count the tokens of the encrypted reasoning in an input."""
    contents = [item.get("encrypted_content") for item in items]
    return sum(unseal_content(content).tokens for content in contents if content)


def result(prompt: str, steps: Sequence[Step], turns: Turns) -> str:
    """Return a table of the chat, one of its parts, then the goal."""
    rows: dict[str, list[str]] = {}
    dollars: dict[str, float] = {}
    for model, name in NAMES.items():
        whole = spent([request for turn in turns[model] for request in turn])
        dollars[model] = whole.dollars
        rows[name] = [
            f"{whole.requests}",
            f"{whole.usage.input:,}",
            f"{whole.usage.cached / whole.usage.input:.0%}",
            f"{whole.usage.output:,}",
            f"{whole.replayed:,}",
            f"{whole.dollars:.3f}",
        ]
    ratio = dollars[PIPE] / dollars[NATIVE]
    title = f"What {len(steps)} turns of a chat cost with {MODEL}, {prompt}"
    goal = goal_line(
        f"{prompt}: at most {GOAL:g} x the native dollars",
        ratio <= GOAL,
        f"{ratio:.2f}",
    )
    return f"{table(title, COLUMNS, rows)}\n\n{parts_table(steps, turns)}\n{goal}"


def parts_table(steps: Sequence[Step], turns: Turns) -> str:
    """Return the dollars of each part of the chat."""
    rows: dict[str, list[str]] = {}
    for part in dict.fromkeys(step.part for step in steps):
        dollars: dict[str, float] = {}
        for model, each_turn in turns.items():
            of_part: list[RecordedRequest] = []
            for step, requests in zip(steps, each_turn, strict=True):
                if step.part == part:
                    of_part += requests
            dollars[model] = spent(of_part).dollars
        native = dollars[NATIVE]
        pipe = dollars[PIPE]
        rows[part] = [f"{native:.3f}", f"{pipe:.3f}", f"{pipe / native:.2f}"]
    return table("Dollars of each part", ("native", "pipe", "x native"), rows)


if __name__ == "__main__":
    main()
