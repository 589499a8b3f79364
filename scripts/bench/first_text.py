"""How long a person waits for the first visible text, by the way that a question takes.

Three ways take turns, in another order each round: Open WebUI's own connection, a bare
pipe that hands on the bytes as they come, and the pipe. What the bare pipe takes longer
than the connection is Open WebUI's own time for any function.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median

from bench.host import MODEL

GOAL = 10.0
"""Milliseconds later than through the native connection."""
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
        payload = {{
            "model": "{MODEL}",
            "input": body["messages"],
            "stream": True,
            "store": False,
            "reasoning": {{"summary": "auto"}},
            "include": ["reasoning.encrypted_content"],
        }}
        url = self.valves.BASE_URL + "/responses"
        headers = {{"Authorization": "Bearer " + self.valves.API_KEY}}
        async with self.session.post(url, json=payload, headers=headers) as response:
            async for line in response.content:
                if line.startswith(b"data:"):
                    yield line.decode().strip()
"""

Firsts = Mapping[str, Sequence[float]]
"""Milliseconds to the first text, of each way."""


async def measure_firsts(
    ask: Callable[[str], Awaitable[float]], ways: Sequence[str], rounds: int
) -> Firsts:
    """Let all ways answer in turns; which of them begins changes each round."""
    firsts: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        start = number % len(ways)
        for way in (*ways[start:], *ways[:start]):
            firsts[way].append(await ask(way))
    return firsts


def table_of_firsts(
    firsts: Firsts, names: Mapping[str, str], native: str, bare: str, judged: str
) -> str:
    """Return a line for each way, compared with the native one within each round."""
    lines = [f"First visible text, {len(firsts[native])} short answers each, medians"]
    lines.append(f"  {'':28}{'ms':>8}{'later ms':>10}")
    for way, name in names.items():
        later = _later(firsts[way], firsts[native])
        lines.append(f"  {name:28}{median(firsts[way]):8.0f}{later:10.0f}")
    reached = _later(firsts[judged], firsts[native])
    verdict = "met" if reached <= GOAL else "MISSED"
    over_bare = _later(firsts[judged], firsts[bare])
    lines.append(
        f"Goal: first text at most {GOAL:g} ms later: {verdict} ({reached:.0f}; "
        f"{over_bare:.0f} later than the bare pipe)."
    )
    return "\n".join(lines)


def _later(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the differences within each round."""
    pairs = zip(ours, theirs, strict=True)
    return median(own - other for own, other in pairs)
