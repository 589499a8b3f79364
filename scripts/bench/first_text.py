"""How long a person waits for the first visible text, by the way that a question takes.

Three ways take turns, in another order each round: Open WebUI's own connection, the
pipe, and a bare pipe that hands on the bytes as they come. What the bare one takes
longer than the connection is Open WebUI's own time for any function.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median

from bench.readers import MODEL

GOAL = 10.0
"""Milliseconds later than through the native connection."""
BARE = "bare"
BARE_PIPE = f"""\
import aiohttp
from pydantic import BaseModel


class Pipe:
    class Valves(BaseModel):
        BASE_URL: str = ""
        API_KEY: str = ""

    def __init__(self):
        self.valves = self.Valves()
        self.session = None

    async def pipe(self, body):
        self.session = self.session or aiohttp.ClientSession()
        asked = {{"model": "{MODEL}", "input": body["messages"], "stream": True}}
        asked |= {{"store": False, "reasoning": {{"summary": "auto"}}}}
        asked |= {{"include": ["reasoning.encrypted_content"]}}
        url = self.valves.BASE_URL + "/responses"
        headers = {{"Authorization": "Bearer " + self.valves.API_KEY}}
        async with self.session.post(url, json=asked, headers=headers) as response:
            async for line in response.content:
                if line.startswith(b"data:"):
                    yield line.decode().strip()
"""

Firsts = Mapping[str, Sequence[float]]
"""Milliseconds to the first text, of each way."""


async def measure_firsts(
    ask: Callable[[str], Awaitable[float]], ways: Sequence[str], rounds: int
) -> Firsts:
    """Let all ways answer in turns; whoever comes first does so in turns, too."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        start = number % len(ways)
        for way in (*ways[start:], *ways[:start]):
            found[way].append(await ask(way))
    return found


def table_of_firsts(firsts: Firsts, names: Mapping[str, str]) -> str:
    """Return a line for each way, compared with the first within each round."""
    base, *_, judged = firsts
    later = {way: _later(firsts[way], firsts[base]) for way in firsts}
    lines = [f"First visible text, {len(firsts[base])} short answers of each, medians"]
    lines.append(f"  {'':28}{'ms':>8}{'later ms':>10}")
    for way, name in names.items():
        lines.append(f"  {name:28}{median(firsts[way]):8.0f}{later[way]:10.0f}")
    verdict = "met" if later[judged] <= GOAL else "MISSED"
    own = _later(firsts[judged], firsts[BARE])
    lines.append(
        f"Goal: first text at most {GOAL:g} ms later: {verdict} ({later[judged]:.0f}; "
        f"{own:.0f} later than the bare pipe)."
    )
    return "\n".join(lines)


def _later(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return median(own - other for own, other in zip(ours, theirs, strict=True))
