"""Measure what is lost when a chat changes on its way.

python scripts/bench/growing.py     a table, in two minutes

Twenty turns in a real Open WebUI, on two models. On the way the effort changes four
times, web search goes on and off, two tools come and one goes, the clock in the system
prompt ticks, a memory is added, a picture is drawn, code runs and a tool fails. The same
chat goes through the built pipe, through the pipe as it was before chats only grew, and
through Open WebUI's own connection, which has neither pictures, code nor web search at
OpenAI. The simulator drops reasoning and counts cached tokens as OpenAI's guides say.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipes"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.host import BUILT
from hosts.client import Json
from hosts.open_webui import OpenWebUI
from hosts.pipes import install_pipe
from hosts.sent import answered, is_task
from hosts.tabs import Tab, Turn
from hosts.users import EVERYBODY_READS, User
from hosts.website import Website
from simulator import RecordedRequest, Simulator

MODELS = ("gpt-6.1-sol", "gpt-6.2-sol")
GOAL = 0.95
BEFORE = "b3979da"
"""The last commit whose pipe changed the beginning of its requests."""
CONNECTION = "own"
CLOCK = "{{CURRENT_DATETIME}}"
SYSTEM = f"You keep a lighthouse.\nIt is {CLOCK}.\n" + "Be brief and polite. " * 100
FACT = "The lighthouse keeper has to wind the clock at noon. " * 350
MEMORY = "I like herring."
TOOLS = {
    "lamp": '''
class Tools:
    def trim_lamp(self, city: str) -> str:
        """
        Trim the lamp of a lighthouse.
        :param city: where it stands
        """
        if city == "Storm":
            raise ValueError("The ladder is wet.")
        return f"The lamp of {city} burns."
''',
    "horn": '''
class Tools:
    def sound_horn(self, city: str) -> str:
        """
        Sound the horn of a lighthouse.
        :param city: where it stands
        """
        return f"The horn of {city} sounds."
''',
}


@dataclass(frozen=True)
class Step:
    """One turn: what is asked, and what differs from the turn before."""

    scenario: str = "short"
    says: str = ""
    effort: str | None = None
    search: bool | None = None
    tools: tuple[str, ...] | None = None
    made: tuple[str, ...] | None = None
    """Valves for what OpenAI makes: a picture, code."""
    remembers: bool = False


PICTURES, CODE = "ENABLE_IMAGE_GENERATION", "ENABLE_CODE_INTERPRETER"
STEPS = (
    Step(says=FACT),
    Step(),
    Step("web-search", search=True),
    Step(effort="high"),
    Step("tool", 'trim_lamp {"city": "Bergen"}', tools=("lamp",)),
    Step(search=False),
    Step(remembers=True),
    Step("tool", 'sound_horn {"city": "Bergen"}', tools=("lamp", "horn")),
    Step(effort="low"),
    Step("draw", made=(PICTURES,)),
    Step("count", made=(PICTURES, CODE)),
    Step(made=()),
    Step("tool", 'trim_lamp {"city": "Storm"}'),
    Step("tool", 'sound_horn {"city": "Oslo"}', tools=("horn",)),
    Step("web-search", search=True),
    Step(effort="xhigh"),
    Step(search=False),
    Step(effort="medium"),
    Step("tool", 'sound_horn {"city": "Hamburg"}'),
    Step(),
)


@dataclass
class Settings:
    """What holds in a turn: each step changes some of it."""

    effort: str = "medium"
    search: bool = False
    tools: tuple[str, ...] = ()

    def follow(self, step: Step) -> None:
        """Take over what a step changes."""
        self.effort = step.effort or self.effort
        self.search = self.search if step.search is None else step.search
        self.tools = self.tools if step.tools is None else step.tools


@dataclass(frozen=True)
class Talk:
    """A chat of twenty turns with one model, through one connection."""

    model: str
    tab: Tab
    is_pipe: bool = True
    turns: list[Turn] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)

    async def go_on(self, step: Step) -> None:
        """Ask one question."""
        self.settings.follow(step)
        number = len(self.turns)
        chat_id = self.turns[0].chat_id if self.turns else None
        words = f"sim:{step.scenario} question {number} {step.says}"
        turn = await self.tab.send(
            self.model, words, chat_id=chat_id, body=self._body(number)
        )
        self.turns.append(turn)

    def _body(self, number: int) -> Json:
        """Return what a page adds to a question."""
        now, effort = self.settings, self.settings.effort
        search = now.search and self.is_pipe
        wanted = {"reasoning_effort": effort} if self.is_pipe else {}
        own = {} if self.is_pipe else {"reasoning": {"effort": effort}}
        return {
            "messages": [{"role": "system", "content": SYSTEM}],
            "variables": {CLOCK: f"2026-11-22 10:{number:02}:00"},
            "features": {"memory": True, "web_search": search},
            "tool_ids": list(now.tools),
            "params": {"function_calling": "native"},
            **wanted,
            **own,
        }


@asynccontextmanager
async def switches_ready(admin: User) -> AsyncIterator[None]:
    """The tools that come and go, and the switch for web search."""
    for name, source in TOOLS.items():
        form: Json = {"id": name, "name": name.title(), "content": source}
        form |= {"meta": {"description": name}, "access_grants": [EVERYBODY_READS]}
        await admin.call("POST", "/api/v1/tools/create", form)
    try:
        async with Website().reachable(admin):
            yield
    finally:
        for name in TOOLS:
            await admin.call("DELETE", f"/api/v1/tools/id/{name}/delete")


async def happen(talks: Sequence[Talk], admin: User, function_id: str | None) -> None:
    """Let the chats happen side by side, turn by turn."""
    valves = await admin.valves(function_id) if function_id else {}
    for step in STEPS:
        if step.made is not None and function_id:
            made = {name: name in step.made for name in (PICTURES, CODE)}
            await admin.set_valves(function_id, valves | made)
        if step.remembers:
            await remember(talks[0].tab.user)
        await asyncio.gather(*(talk.go_on(step) for talk in talks))
    if function_id:
        await admin.set_valves(function_id, valves)


async def remember(user: User) -> None:
    """Note a memory; without an embedding model only its row is made."""
    path = f"{user.url}/api/v1/memories/add"
    form = {"content": MEMORY, "type": "user"}
    async with user.http.post(path, json=form, headers=user.headers):
        pass


@dataclass(frozen=True)
class Losses:
    """What the requests of one chat lost."""

    requests: int
    tokens: int
    before: int
    cached: int
    least: float
    """The smallest cached part of the request before."""
    missed: int
    """Requests that reached less than the goal."""
    dropped: int
    """Reasoning items that the API took out."""
    thought: int
    given: int
    """Reasoning items: those of the chat so far, and those read, at the last request."""

    @property
    def is_met(self) -> bool:
        """Whether nothing was lost."""
        return self.least >= GOAL and not self.dropped


def losses_of(requests: Sequence[RecordedRequest]) -> Losses:
    """Count what a chat lost, request by request."""
    answers = [request.response or {} for request in requests]
    usages = [answer["usage"] for answer in answers]
    known = [one["input_tokens_details"]["cached_tokens"] for one in usages[1:]]
    before = [one["input_tokens"] for one in usages[:-1]]
    parts = [part / whole for part, whole in zip(known, before, strict=True)]
    removed = [len(one.get("input_transformations") or ()) for one in answers]
    return Losses(
        requests=len(requests),
        tokens=sum(one["input_tokens"] for one in usages),
        before=sum(before),
        cached=sum(known),
        least=min(parts),
        missed=sum(part < GOAL for part in parts),
        dropped=sum(removed),
        thought=sum(_count_reasoning(one["output"]) for one in answers[:-1]),
        given=_count_reasoning(requests[-1].body["input"]) - removed[-1],
    )


def _count_reasoning(items: Sequence[Json]) -> int:
    return sum(item.get("type") == "reasoning" for item in items)


def requests_of(simulator: Simulator, model: str) -> list[RecordedRequest]:
    """Return the requests of the chat with a model."""
    return [
        request
        for request in answered(simulator)
        if request.body["model"] == model and not is_task(request)
    ]


FREE = {"input", "tool_choice", "include", "max_tool_calls"}
"""What may differ: the guides name none of the fields; the input may grow."""


def find_changes(requests: Sequence[RecordedRequest]) -> list[str]:
    """Name what differs at request level, or in the items of the request before."""
    found = []
    for before, after in pairwise(one.body for one in requests):
        names = sorted(
            name
            for name in {*before, *after} - FREE
            if before.get(name) != after.get(name)
        )
        same = after["input"][: len(before["input"])] == before["input"]
        found.append(", ".join([*names, *([] if same else ["input"])]))
    return found


def main() -> int:
    """Print the table; return 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pipe", type=Path, default=BUILT, help="the built file")
    parser.add_argument("--before", default=BEFORE, help="commit of the older pipe")
    parser.add_argument("--alone", action="store_true", help="only the built pipe")
    parser.add_argument("--changes", action="store_true", help="name what changed")
    given = parser.parse_args()
    before = None if given.alone else given.before
    source = given.pipe.read_text("utf-8")
    return asyncio.run(show(source, before, given.changes))


async def show(source: str, before: str | None, names_changes: bool) -> int:
    """Let the chats happen in each way, then print what they lost."""
    async with OpenWebUI() as server, Simulator() as simulator:
        admin = server.admin
        sources = {"pipe": source}
        older = read_older(before) if before else None
        sources |= {"before": older} if older else {}
        print(f"{'':10}{'model':14}{HEADINGS}")
        losses: list[Losses] = []
        async with switches_ready(admin):
            for name, text in sources.items():
                await install_pipe(admin, name, text, valves_for(simulator))
                found = await measure(admin, simulator, name, name)
                losses += found if name == "pipe" else []
                if names_changes:
                    print_changes(simulator)
            if before:
                await connect(admin, simulator)
                await measure(admin, simulator, CONNECTION, None)
    met = all(one.is_met for one in losses)
    least = min(one.least for one in losses)
    dropped = sum(one.dropped for one in losses)
    verdict = f"{'met' if met else 'MISSED'} ({least:.1%}, {dropped} dropped)"
    print(f"\nGoal: at least {GOAL:.0%} cached, nothing dropped: {verdict}.")
    return 0 if met else 1


def print_changes(simulator: Simulator) -> None:
    """Name what differs between neighbouring requests, and what that lost."""
    for model in MODELS:
        asked = requests_of(simulator, model)
        for number, (two, changed) in enumerate(
            zip(pairwise(asked), find_changes(asked), strict=True), 2
        ):
            lost = losses_of(two)
            print(
                f"  {model} request {number:2}: {lost.least:6.1%} cached, "
                f"{lost.dropped} dropped; {changed or 'grew'}"
            )


HEADINGS = (
    f"{'requests':>9}{'input':>10}{'cached':>10}{'least':>8}{'missed':>8}"
    f"{'dropped':>9}{'read':>9}"
)


async def measure(
    admin: User, simulator: Simulator, prefix: str, function_id: str | None
) -> list[Losses]:
    """Let one chat a model happen, and print a line for each."""
    simulator.forget()
    is_pipe = function_id is not None
    person = await admin.add_user(f"{prefix}@example.com", "keeper")  # no memories yet
    async with person, Tab(person) as tab:
        talks = [Talk(f"{prefix}.{model}", tab, is_pipe) for model in MODELS]
        await happen(talks, admin, function_id)
    for talk in talks:
        for turn in talk.turns:
            if turn.error:
                print(f"{talk.model}: {json.dumps(turn.error)[:300]}")
    found = [losses_of(requests_of(simulator, model)) for model in MODELS]
    for model, one in zip(MODELS, found, strict=True):
        print(f"{prefix:10}{model:14}{line_of(one)}", flush=True)
    return found


def line_of(one: Losses) -> str:
    """Return the figures of a chat."""
    share = one.cached / one.before
    return (
        f"{one.requests:9}{one.tokens:10,}{share:10.1%}{one.least:8.1%}{one.missed:8}"
        f"{one.dropped:9}{f'{one.given}/{one.thought}':>9}"
    )


def valves_for(simulator: Simulator) -> Json:
    """Return the valves of a pipe that takes the simulator for OpenAI."""
    return {
        "BASE_URL": simulator.base_url,
        "API_KEY": simulator.api_key,
        "MODEL_ID": ", ".join(MODELS),
        "COMPATIBILITY": "openai",
    }


def read_older(commit: str) -> str | None:
    """Return the built file of a commit, None where the repository has it not."""
    command = ["git", "show", f"{commit}:pipes/{BUILT.name}"]
    done = subprocess.run(
        command, cwd=BUILT.parent, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


async def connect(admin: User, simulator: Simulator) -> None:
    """Add the simulator as a connection of Open WebUI's own."""
    config = {
        "enable": True,
        "api_type": "responses",
        "prefix_id": CONNECTION,
        "model_ids": list(MODELS),
    }
    form = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [simulator.base_url],
        "OPENAI_API_KEYS": [simulator.api_key],
        "OPENAI_API_CONFIGS": {"0": config},
    }
    await admin.call("POST", "/openai/config/update", form)
    await admin.models()
    for model in MODELS:
        await admin.share_model(f"{CONNECTION}.{model}", model)


if __name__ == "__main__":
    sys.exit(main())
