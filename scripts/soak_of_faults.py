"""Disturb each answer of many chats at random; nothing that arrived may be lost.

python scripts/soak_of_faults.py                        1,000 chats of 6 turns
python scripts/soak_of_faults.py --first 17 --chats 1   chat 17 again, with its log
python scripts/soak_of_faults.py --only compressed      one kind alone
python scripts/soak_of_faults.py --list                 the kinds

The built pipe answers over real sockets. Between it and the simulator is a server that
disturbs each answer in one of the ways of `disturbed.kinds`: it fails in passing, or it
comes in an odd form. Then no reasoning may be missing in a later request, no text that
was shown may be gone, no call may run twice or with other arguments, no answer may be
asked for twice, and there may be no error.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

from disturbed.kinds import KINDS, Kind
from disturbed.server import SOUND, DisturbedServer, Exchange, is_foreign
from fuzz import TOOL_NAMES, ChatReport, ChatWithPipe, run_chats, silence_log
from golden_run.built_files import BUILT_PIPE, load_pipe
from simulator import Simulator
from stand_in.chats import (
    convert_output,
    error_messages,
    finished_items,
)
from stand_in.host import StandInHost, host_callable

Json = dict[str, Any]
SCENARIOS = ("chat", "tool", "tool-twice", "remarks", "web-search", "parallel")
PLAIN_TOOL = "get_moon"
"""The tool without parameters."""
MOST_AT_ONCE = 32
"""Chats that run at the same time: they wait more than they work."""
CLOCK_ERROR = 0.05
"""Seconds that a wait may be shorter where it is measured."""
SHOWN_PROBLEM = 300


class DisturbedChat(ChatWithPipe):
    """A chat of which each answer is disturbed."""

    def __init__(
        self,
        number: int,
        simulator: Simulator,
        built: ModuleType,
        host: StandInHost,
        *,
        seed: int = 0,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        """The pipe asks the server that disturbs."""
        super().__init__(number, simulator, built, host)
        self._server = DisturbedServer(simulator, f"{seed} {number}", kinds)
        self._strip_markers = built.strip_markers
        self._texts: list[str] = []
        """What was shown in the turns so far."""

    async def run(self, turns: int = 6) -> ChatReport:
        """Take the turns, up to the first with a problem."""
        async with self._server as server:
            address = {"BASE_URL": server.base_url}
            self._pipe.valves = self._pipe.valves.model_copy(update=address)
            return await super().run(turns)

    def _list_faults(self) -> list[str]:
        return [
            f"turn {exchange.turn}: {exchange.kind}"
            for exchange in self._server.exchanges
        ]

    async def _take_turn(self, turn: int) -> None:
        self._server.turn = turn
        scenario = self._random.choice(SCENARIOS)
        arguments = json.dumps({"city": f"City-{turn}"})
        if self._random.random() < 0.3:
            # The simulator calls the tool that is named.
            arguments = f"{PLAIN_TOOL} {{}}"
        text = f"sim:{scenario} Question {turn}? {arguments}"
        self._messages.append({"role": "user", "content": text})
        exchanges_before = len(self._server.exchanges)
        runs_before = len(self._tool_runs)
        try:
            chunks = await self._ask(turn, self._offer_tools(), "medium")
        except Exception as error:
            self.report.problems.append(f"turn {turn}: the pipe raised {error!r}")
            return
        exchanges = self._server.exchanges[exchanges_before:]
        self.report.requests += len(exchanges)
        self.report.expected += sum(each.is_delivered for each in exchanges)
        problems = [
            *find_errors(chunks, exchanges),
            *find_lost_texts(chunks, exchanges),
            *find_wrong_runs(self._tool_runs[runs_before:], exchanges),
            *find_lost_reasoning(self._server.exchanges),
            *find_wrong_counts(chunks, exchanges),
            *self._find_lost_history(exchanges),
        ]
        self.report.problems += [f"turn {turn}: {problem}" for problem in problems]
        items = finished_items(chunks)
        self._texts += [self._strip_markers(text) for text in message_texts(items)]
        self._messages += convert_output(items)

    def _find_lost_history(self, exchanges: Sequence[Exchange]) -> Iterator[str]:
        """Yield what was shown in earlier turns and is not sent again."""
        for exchange in exchanges[:1]:
            sent = squeeze("".join(message_texts(exchange.request["input"])))
            for text in self._texts:
                for part in _LINK.split(text):
                    if squeeze(part) not in sent:
                        yield f"not sent again: {part}"

    def _offer_tools(self) -> dict[str, Json]:
        """Return the same tools in each turn, one of them without parameters."""

        def run() -> str:
            self._tool_runs.append((PLAIN_TOOL, {}))
            return "The moon is full."

        schema = {"type": "object", "properties": {}}
        spec = {"name": PLAIN_TOOL, "description": PLAIN_TOOL, "parameters": schema}
        plain = {"tool_id": "fuzz", "callable": host_callable(run), "spec": spec}
        return {name: self._make_tool(name) for name in TOOL_NAMES} | {
            PLAIN_TOOL: plain
        }


def find_errors(chunks: Sequence[Json], exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Yield the errors of a turn, and the requests that should not have been sent."""
    for message in error_messages(chunks):
        yield f"error: {message}"
    delivered: list[Json] = []
    for exchange in exchanges:
        items = exchange.request["input"]
        if exchange.refusal:
            yield f"invalid history: {exchange.refusal}"
        if any(is_foreign(item) and "output" in item for item in items):
            yield "a call that the server has run was answered"
        if delivered and len(items) <= len(delivered):
            yield "a whole answer was asked for again"
        if exchange.is_delivered:
            delivered = items
    if exchanges and not exchanges[0].request.get("stream"):
        yield "the turn was not streamed"
    for failed, again in pairwise(exchanges):
        waited = again.arrived_at - failed.ended_at
        if waited < failed.wait - CLOCK_ERROR:
            yield f"asked to wait {failed.wait} s, waited {waited:.2f} s"


_LINK = re.compile(
    r"\(?\[[^\]]*\]\((?:[^()]|\([^()]*\))*\)\)?|\[\d+\](?:: \S+(?: \".*\")?)?"
)
"""A link to a source, or the number of the citation that the page shows for it, also
with the address that is copied with it."""


def find_lost_texts(
    chunks: Sequence[Json], exchanges: Sequence[Exchange]
) -> Iterator[str]:
    """Yield what arrived and is not stored, and what was shown and is not stored."""
    shown: dict[int, str] = {}
    stored: dict[int, str] = {}
    for chunk in chunks:
        index = chunk.get("output_index", -1)
        if chunk.get("type") == "response.output_text.delta":
            shown[index] = shown.get(index, "") + chunk["delta"]
        elif chunk.get("type") == "response.output_item.done":
            stored[index] = "".join(message_texts([chunk["item"]]))
    for index, text in shown.items():
        if squeeze(text) not in squeeze(stored.get(index, "")):
            yield f"shown and not stored: {text}"
    whole = squeeze("".join(stored.values()))
    for exchange in exchanges:
        if exchange.is_delivered:
            for text in message_texts(exchange.sound["output"]):
                for part in _LINK.split(text):
                    if squeeze(part) not in whole:
                        yield f"arrived and is not stored: {part}"


def find_wrong_runs(
    runs: Sequence[tuple[str, Json]], exchanges: Sequence[Exchange]
) -> Iterator[str]:
    """Yield the calls that did not run once, and the runs that no call asked for."""
    asked: Counter[str] = Counter()
    for exchange in exchanges:
        if exchange.is_delivered:
            for item in exchange.sound["output"]:
                if item["type"] == "function_call":
                    asked[
                        describe_call(item["name"], json.loads(item["arguments"]))
                    ] += 1
    ran = Counter(describe_call(name, arguments) for name, arguments in runs)
    for call in sorted(asked | ran):
        if asked[call] != ran[call]:
            yield f"{call} was called {asked[call]} times and ran {ran[call]} times"


def describe_call(name: str, arguments: Json) -> str:
    """Return a call as a text that is the same for the same arguments."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def find_lost_reasoning(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Yield the reasoning that arrived whole and is missing in the newest request."""
    *earlier, newest = exchanges
    removed = newest.sound.get("input_transformations") or ()
    for row in removed:
        yield f"the API left reasoning out: {row.get('reason')}"
    sent = {item.get("encrypted_content") for item in newest.request["input"]}
    for exchange in earlier:
        for sealed in exchange.sealed if exchange.is_delivered else ():
            if not sealed & sent:
                yield f"reasoning of turn {exchange.turn} is missing ({exchange.kind})"


def find_wrong_counts(
    chunks: Sequence[Json], exchanges: Sequence[Exchange]
) -> Iterator[str]:
    """Yield the tokens of a turn, if they are not those of all its answers."""
    delivered = [exchange for exchange in exchanges if exchange.is_delivered]
    if any(exchange.kind == "bare-end" for exchange in delivered):
        return  # it has no counts
    used = sum(exchange.sound["usage"]["total_tokens"] for exchange in delivered)
    counted = [chunk["usage"]["total_tokens"] for chunk in chunks if "usage" in chunk]
    if counted != [used]:
        yield f"{used} tokens were used, and {counted} counted"


REMARK = "openai_responses:remark"
"""What the pipe makes of a message before the answer: its lines are quoted."""
_QUOTE = re.compile(r"^> ?", re.MULTILINE)


def message_texts(items: Sequence[Json]) -> list[str]:
    """Return the text of each message of the model."""
    texts: list[str] = []
    for item in items:
        content = item.get("content")
        text = ""
        if isinstance(content, str):
            text = content
        elif isinstance(content, list):
            text = "".join(part.get("text", "") for part in content)
        if item.get("type") == REMARK:
            texts.append(_QUOTE.sub("", text))
        elif item.get("type", "message") == "message" and item["role"] == "assistant":
            texts.append(text)
    return texts


def squeeze(text: str) -> str:
    """Return a text without white space: a page may break lines in another way."""
    return "".join(text.split())


def write_figures(reports: Sequence[ChatReport], seed: int) -> str:
    """Return the chats with problems, and the figures of all chats."""
    lines: list[str] = []
    failed = [report for report in reports if report.problems]
    for report in failed:
        lines.append(f"chat {report.number}:")
        lines += [f"    {problem[:SHOWN_PROBLEM]}" for problem in report.problems]
        lines.append(f"    {', '.join(report.faults)}")
    counts = Counter(
        fault.partition(": ")[2] for report in reports for fault in report.faults
    )
    disturbed = ", ".join(
        f"{count} {kind}" for kind, count in sorted(counts.items()) if kind != SOUND
    )
    requests = sum(report.requests for report in reports)
    answers = sum(report.expected for report in reports)
    lines.append(f"disturbed: {disturbed or 'nothing'}")
    lines.append(
        f"seed {seed}: {len(reports)} chats, {requests} requests, {answers} answers, "
        f"{len(failed)} chats with problems"
    )
    return "\n".join(lines)


async def soak(
    numbers: range, built: ModuleType, seed: int = 0, kinds: Sequence[Kind] = KINDS
) -> list[ChatReport]:
    """Run the chats with these numbers."""
    make_chat = partial(DisturbedChat, seed=seed, kinds=kinds)
    return await run_chats(numbers, built, MOST_AT_ONCE, make_chat)


def main() -> int:
    """Print the figures; 1 if a chat had a problem."""
    parser = argparse.ArgumentParser(prog="soak_of_faults", description=__doc__)
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first chat")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    parser.add_argument("--pipe", type=Path, default=BUILT_PIPE, help="the built file")
    parser.add_argument("--list", action="store_true", help="print the kinds")
    options = parser.parse_args()
    if options.list:
        for kind in KINDS:
            print(f"{kind.name:18} {kind.make.__doc__}")
        return 0
    names = [name for name in options.only.split(",") if name]
    kinds = [kind for kind in KINDS if not names or kind.name in names]
    if len(kinds) < len(names):
        parser.error("There is no such kind; --list prints all.")
    if options.chats > 1:
        silence_log()
    numbers = range(options.first, options.first + options.chats)
    built = load_pipe(options.pipe)
    reports = asyncio.run(soak(numbers, built, options.seed, kinds))
    print(write_figures(reports, options.seed))
    return 1 if any(report.problems for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
