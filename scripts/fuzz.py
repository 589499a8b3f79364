"""Test recovery at random: a server refuses something in each turn; no chat may get stuck.

python scripts/fuzz.py                 1,000 chats of 6 turns, some minutes
python scripts/fuzz.py --first 17 --chats 1      chat 17 again

The built pipe answers over real sockets; the simulator refuses an item, a tool or a
parameter of the chat's requests from then on, in one of the forms of
`simulator.faults`, or lets the start of an answer fail. Open WebUI is a stand-in.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "testkit"))

import pytest

from golden_run.built_files import BUILT_PIPE, load_pipe
from simulator import RecordedRequest, Simulator
from simulator.faults import (
    DELIVERIES,
    FORMS,
    FailedStart,
    RefusedPart,
    refuse_item,
    refuse_parameter,
    refuse_tool,
)
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
MODELS = ("gpt-5.6-sol", "gpt-6.2-sol", "gpt-6-luna")
SCENARIOS = ("chat", "tool", "tool-twice", "remarks", "web-search", "count", "parallel")
REQUIRED = ("model", "input", "stream", "store")
"""Parameters without which there is no request."""
NEVER_DROPPED = (
    "safety_identifier",
    "max_tool_calls",
    "max_output_tokens",
    "instructions",
)
"""Parameters that no repair leaves out: a chat cannot survive their refusal."""
TOOL_NAMES = ("get_weather", "get_tide", "get_time")
EFFORTS = ("low", "medium", "medium", "high")
TRANSIENT_ENDINGS = ("failed", "error", "error-flat", "cut", "drop")
TURNS = 6
FAILED_START_PROBABILITY = 0.2
OPTIONAL_KEYS = ("phase", "namespace", "caller")


@dataclass
class ChatReport:
    """The requests, faults and problems of one chat."""

    number: int
    requests: int = 0
    refused: int = 0
    expected: int = 0
    faults: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def extra(self) -> int:
        """How many more requests than answers there were: those that faults caused."""
        return self.requests - self.expected


class ChatWithPipe:
    """One chat with a pipe of its own, which answers over real sockets."""

    def __init__(
        self, number: int, simulator: Simulator, built: ModuleType, host: StandInHost
    ) -> None:
        """Choose the chat's model by its number."""
        self.report = ChatReport(number)
        self._random = random.Random(number)
        self._simulator = simulator
        self._id = f"chat-{number}"
        self._request = host_request()
        host.chats.rows[self._id] = Row("user-1", {"title": "Fuzz"})
        self._model = self._random.choice(MODELS)
        self._messages: list[Json] = []
        self._tool_runs: list[tuple[str, Json]] = []
        """The name and the arguments of each."""
        self._pipe = built.Pipe()
        self._pipe.valves = built.Pipe.Valves(
            BASE_URL=simulator.base_url,
            API_KEY=simulator.api_key,
            MODEL_ID=", ".join(MODELS),
            ENABLE_WEB_SEARCH=True,
            ENABLE_CODE_INTERPRETER=True,
            COMPATIBILITY="openai",  # settings and tools are appended
            HISTORY_CARRIER="markers",  # the stand-in stores no output
        )

    async def run(self, turns: int = TURNS) -> ChatReport:
        """Take the turns, up to the first with a problem."""
        self._simulator.forget()
        try:
            for turn in range(1, turns + 1):
                await self._take_turn(turn)
                if self.report.problems:
                    break
        finally:
            await close_connections(self._pipe)
        self.report.faults = self._list_faults()
        return self.report

    async def _take_turn(self, turn: int) -> None:
        raise NotImplementedError

    def _list_faults(self) -> list[str]:
        """Return what went wrong on purpose, to be printed with problems."""
        raise NotImplementedError

    def _post_requests(self) -> list[RecordedRequest]:
        requests = self._simulator.requests
        return [request for request in requests if request.method == "POST"]

    async def _ask(
        self, turn: int, tools: Mapping[str, Json], effort: str
    ) -> list[Json]:
        """Send the messages as Open WebUI does; return all that the page gets."""
        ids = {"chat_id": self._id, "message_id": f"m-{turn}", "session_id": "s-1"}
        user = {"id": "user-1", "name": "Ada", "role": "user"}
        body = {
            "model": f"fuzz.{self._model}",
            "messages": json.loads(json.dumps(self._messages)),
            "stream": True,
            "reasoning_effort": effort,
            "tools": [
                {"type": "function", "function": tool["spec"]}
                for tool in tools.values()
            ],
        }
        answer = await self._pipe.pipe(
            body,
            __user__=user,
            __metadata__={**ids, "user_id": "user-1"},
            __request__=self._request,
            __tools__=tools,
        )
        return [chunk async for chunk in answer]

    def _offer_tools(self) -> dict[str, Json]:
        offered = TOOL_NAMES[: self._random.randint(1, len(TOOL_NAMES))]
        return {name: self._make_tool(name) for name in offered}

    def _make_tool(self, name: str) -> Json:
        def run(city: str) -> str:
            self._tool_runs.append((name, {"city": city}))
            return f"Rain in {city}, says {name}."

        spec = describe_tool(name)["function"]
        return {"tool_id": "fuzz", "callable": host_callable(run), "spec": spec}


class FuzzedChat(ChatWithPipe):
    """A chat of which a server rejects something in each turn."""

    async def _take_turn(self, turn: int) -> None:
        scenario = self._random.choice(SCENARIOS)
        self._add_fault(turn)
        arguments = json.dumps({"city": f"City-{turn}"})
        text = f"sim:{scenario} Question {turn}? {arguments}"
        self._messages.append({"role": "user", "content": text})
        sent_before = len(self._post_requests())
        runs_before = len(self._tool_runs)
        tools = self._offer_tools()
        chunks = await self._ask(turn, tools, self._random.choice(EFFORTS))
        sent = self._post_requests()[sent_before:]
        self._count(sent)
        problems = find_problems(chunks, sent, len(self._tool_runs) - runs_before)
        self.report.problems += [f"turn {turn}: {problem}" for problem in problems]
        self._messages += convert_output(finished_items(chunks))

    def _list_faults(self) -> list[str]:
        return [describe_fault(fault) for fault in self._simulator.faults]

    def _count(self, sent: Sequence[RecordedRequest]) -> None:
        self.report.requests += len(sent)
        for request in sent:
            if request.status != 200:
                self.report.refused += 1
            if is_answered(request):
                self.report.expected += 1

    def _add_fault(self, turn: int) -> None:
        """Refuse something that the chat's last request held, or will hold."""
        answered = [
            request for request in self._post_requests() if is_answered(request)
        ]
        if not answered:
            return
        if self._random.random() < FAILED_START_PROBABILITY:
            self._simulator.faults.append(self._choose_start(turn))
            return
        body = answered[-1].body
        kinds = (
            list_item_refusals(answered[-1]),
            [refuse_tool(name) for name in _list_tools(body)],
            [refuse_parameter(name) for name in _list_parameters(body)],
        )
        possible_kinds = [refusals for refusals in kinds if refusals]
        refusal = self._random.choice(self._random.choice(possible_kinds))
        self._simulator.faults.append(self._choose_form(refusal))

    def _choose_start(self, turn: int) -> FailedStart:
        return FailedStart(
            self._random.choice(TRANSIENT_ENDINGS),
            code=self._random.choice(("server_error", "rate_limit_exceeded")),
            after_rounds=self._random.choice((0, 1)),
            text=f"Question {turn}?",
        )

    def _choose_form(self, part: RefusedPart) -> RefusedPart:
        """Return a refusal in a random form."""
        forms = list(FORMS)
        if part.place == "item":
            forms.append("unnamed")
        form = self._random.choice(forms)
        delivery = self._random.choice(list(DELIVERIES))
        status = self._random.choice((400, 400, 404))
        if form == "unnamed":
            status = 400  # a 404 that names nothing is about the address
        return replace(part, form=form, delivery=delivery, status=status)


def list_item_refusals(request: RecordedRequest) -> list[RefusedPart]:
    """Return a refusal of each item of a request and of its response.

    Messages of people, developers and the host are never refused: without them there is
    no question.
    """
    output = (request.response or {}).get("output") or []
    refusals: list[RefusedPart] = []
    for item in [*request.body["input"], *output]:
        if item.get("role") not in ("user", "developer", "system"):
            refusals += _refusals_of_item(item)
    return refusals


def _refusals_of_item(item: Json) -> Iterator[RefusedPart]:
    """Yield a refusal of the item itself, then one of each of its optional keys."""
    kind = item.get("type", "message")
    unique_text = item.get("call_id") or item.get("encrypted_content")
    if unique_text:
        yield refuse_item(kind, text=unique_text)
    elif kind != "message":
        yield refuse_item(kind)
    for key in OPTIONAL_KEYS:
        if key in item:
            yield refuse_item(kind, key=key)


def find_problems(
    chunks: Sequence[Json], sent: Sequence[RecordedRequest], run_count: int
) -> list[str]:
    """Return what must not happen in a turn: an error, no text, a tool run twice."""
    problems = [f"stuck: {message}" for message in error_messages(chunks)]
    if not shown_text(chunks).strip():
        problems.append("no answer")
    for request in sent:
        is_own_refusal = request.scenario is None  # no fault that was asked for
        if request.status == 400 and is_own_refusal:
            problems.append(f"invalid history: {request.response}")
    call_count = sum(_count_calls(request) for request in sent if is_answered(request))
    if run_count > call_count:
        problems.append(f"{run_count} runs of {call_count} calls")
    return problems


def _count_calls(request: RecordedRequest) -> int:
    output = (request.response or {}).get("output", ())
    return [item["type"] for item in output].count("function_call")


def is_answered(request: RecordedRequest) -> bool:
    """Tell whether a request got a whole answer."""
    return (request.response or {}).get("status") == "completed"


def describe_fault(fault: RefusedPart | FailedStart) -> str:
    """Return a fault with its fields on one line."""
    texts = [
        f"{name}={str(value)[:40]}" for name, value in vars(fault).items() if value
    ]
    return f"{type(fault).__name__} {' '.join(texts)}"


def _list_tools(body: Json) -> list[str]:
    """Return the names, or else the types, of the tools of a request and its items."""
    tools = list(body.get("tools") or ())
    for item in body["input"]:
        tools += item.get("tools") or ()
    return [tool.get("name") or tool["type"] for tool in tools]


def _list_parameters(body: Json) -> Iterator[str]:
    for name, value in body.items():
        if name in (*REQUIRED, *NEVER_DROPPED, "tools"):
            continue
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)


MakeChat = Callable[[int, Simulator, ModuleType, StandInHost], ChatWithPipe]


async def run_chats(
    numbers: Iterable[int],
    built: ModuleType,
    at_once: int = 8,
    make_chat: MakeChat = FuzzedChat,
) -> list[ChatReport]:
    """Run chats, some at the same time, each with a simulator of its own."""
    reports: list[ChatReport] = []
    waiting = iter(numbers)

    async def work(host: StandInHost) -> None:
        async with Simulator() as simulator:
            for number in waiting:
                chat = make_chat(number, simulator, built, host)
                reports.append(await chat.run())

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.delenv("OPENAI_API_KEY", raising=False)
        host = StandInHost(patch, Path(folder))
        await asyncio.gather(*(work(host) for _ in range(at_once)))
    return sorted(reports, key=attrgetter("number"))


def write_figures(reports: Sequence[ChatReport]) -> str:
    """Return the chats with problems, and the figures of all chats."""
    lines: list[str] = []
    stuck = [report for report in reports if report.problems]
    for report in stuck:
        lines.append(f"chat {report.number}: {'; '.join(report.problems)}")
        lines += [f"    {fault}" for fault in report.faults]
    requests = sum(report.requests for report in reports)
    lines.append(
        f"{len(reports)} chats, {requests} requests, {len(stuck)} with problems"
    )
    extras = [report.extra for report in reports if not report.problems]
    repaired = [extra for extra in extras if extra]
    mean = fmean(repaired) if repaired else 0
    most = max(repaired, default=0)
    lines.append(
        f"{len(repaired)} repaired, {mean:.2f} extra requests each, {most} at most"
    )
    return "\n".join(lines)


def silence_log() -> None:
    """Print no lines of the log; one chat alone is looked at with it.

    The pipe hands its lines to the logger's handlers, past `logging.disable`.
    """
    logging.disable(logging.CRITICAL)
    logging.getLogger("openai_responses_manifold").disabled = True


def main() -> int:
    """Print the figures; 1 if a chat had a problem."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first chat")
    parser.add_argument("--pipe", type=Path, default=BUILT_PIPE, help="the built file")
    options = parser.parse_args()
    if options.chats > 1:
        silence_log()
    numbers = range(options.first, options.first + options.chats)
    reports = asyncio.run(run_chats(numbers, load_pipe(options.pipe)))
    print(write_figures(reports))
    return 1 if any(report.problems for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
