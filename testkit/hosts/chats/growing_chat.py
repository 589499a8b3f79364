"""A chat whose settings change on its way.

The effort changes three times, web search goes on and off, two tools come and one goes,
the clock in the system prompt ticks, a memory is added, a picture is drawn, code runs
and a tool fails.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from hosts.chats.lighthouse import remember
from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.sent import answered, is_task
from hosts.servers.website import Website
from hosts.setup.pipes import install_tools
from simulator import RecordedRequest, Simulator

MEMORY = "I like herring."
_CLOCK = "{{CURRENT_DATETIME}}"
_SYSTEM = f"You keep a lighthouse.\nIt is {_CLOCK}.\n" + "Be brief and polite. " * 100
_FACT = "The lighthouse keeper has to wind the clock at noon. " * 350
_TOOLS = {
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
    words: str = ""
    effort: str | None = None
    search: bool | None = None
    tools: tuple[str, ...] | None = None
    hosted_tools: tuple[str, ...] | None = None
    """The valves that are on from now on."""
    remembers: bool = False


_PICTURES = "ENABLE_IMAGE_GENERATION"
_CODE = "ENABLE_CODE_INTERPRETER"
STEPS = (
    Step(words=_FACT),
    Step("web-search", search=True),
    Step(effort="high"),
    Step("tool", 'trim_lamp {"city": "Bergen"}', tools=("lamp",)),
    Step(search=False),
    Step(remembers=True),
    Step("tool", 'sound_horn {"city": "Bergen"}', tools=("lamp", "horn")),
    Step("draw", hosted_tools=(_PICTURES,)),
    Step("count", effort="low", hosted_tools=(_PICTURES, _CODE)),
    Step("tool", 'trim_lamp {"city": "Storm"}', hosted_tools=()),
    Step("tool", 'sound_horn {"city": "Oslo"}', tools=("horn",)),
    Step(effort="medium"),
)


@dataclass
class GrowingChat:
    """The chat with one model, and the settings of its next turn."""

    model: str
    tab: Tab
    turns: list[Turn] = field(default_factory=list)
    effort: str = "medium"
    search: bool = False
    tools: tuple[str, ...] = ()

    async def go_on(self, step: Step) -> None:
        """Take over what a step changes, and ask its question."""
        if step.effort is not None:
            self.effort = step.effort
        if step.search is not None:
            self.search = step.search
        if step.tools is not None:
            self.tools = step.tools
        number = len(self.turns)
        turn = await self.tab.send(
            self.model,
            f"sim:{step.scenario} question {number} {step.words}",
            chat_id=self.turns[0].chat_id if self.turns else None,
            body=self._body(number),
        )
        self.turns.append(turn)

    def _body(self, number: int) -> Json:
        """Return what a page adds to a question."""
        return {
            "messages": [{"role": "system", "content": _SYSTEM}],
            "variables": {_CLOCK: f"2026-11-22 10:{number:02}:00"},
            "features": {"memory": True, "web_search": self.search},
            "tool_ids": list(self.tools),
            "params": {"function_calling": "native"},
            "reasoning_effort": self.effort,
        }


@asynccontextmanager
async def growing_tools(admin: User) -> AsyncIterator[None]:
    """Install the tools that come and go, and let web search be offered."""
    for name, source in _TOOLS.items():
        await install_tools(admin, name, source)
    try:
        async with Website().reachable(admin):
            yield
    finally:
        for name in _TOOLS:
            await admin.call("DELETE", f"/api/v1/tools/id/{name}/delete")


async def let_grow(chats: Sequence[GrowingChat], admin: User, function_id: str) -> None:
    """Let the chats happen side by side, turn by turn."""
    valves = await admin.valves(function_id)
    for step in STEPS:
        if step.hosted_tools is not None:
            switches = {name: name in step.hosted_tools for name in (_PICTURES, _CODE)}
            await admin.set_valves(function_id, valves | switches)
        if step.remembers:
            await remember(chats[0].tab.user, MEMORY)
        await asyncio.gather(*(chat.go_on(step) for chat in chats))
    await admin.set_valves(function_id, valves)


def requests_of(simulator: Simulator, model: str) -> list[RecordedRequest]:
    """Return the requests of the chat with a model."""
    requests = []
    for request in answered(simulator):
        if request.body["model"] == model and not is_task(request):
            requests.append(request)
    return requests


_MAY_DIFFER = {"input", "tool_choice", "include", "max_tool_calls"}
"""No guide names these fields; the input may grow."""


def changes_between(requests: Sequence[RecordedRequest]) -> list[str]:
    """Name what differs at request level, or in the items of the request before."""
    changes = []
    for before, after in pairwise(request.body for request in requests):
        for name in sorted({*before, *after} - _MAY_DIFFER):
            if before.get(name) != after.get(name):
                changes.append(name)
        if after["input"][: len(before["input"])] != before["input"]:
            changes.append("input")
    return changes


def count_reasoning(items: Sequence[Json]) -> int:
    return len([item for item in items if item.get("type") == "reasoning"])
