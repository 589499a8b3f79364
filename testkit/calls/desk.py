"""The pipe as Open WebUI asks it, in the stand-in of Open WebUI."""

from typing import Any

from calls.outcomes import NATIVE, chunks_of, result_of
from calls.sample import chat
from owui_manifold.pipe import Pipe
from simulator import Simulator
from stand_in.host import StandInHost

Json = dict[str, Any]


class Desk:
    """A pipe that an administrator has set up, and who asks it.

    `sim` answers as the API, `host` is Open WebUI. Questions come from the page of a
    stored chat (`usual`) unless `given`, what the host passes, says otherwise.
    """

    usual: Json = NATIVE

    def __init__(self, pipe: Pipe, sim: Simulator, host: StandInHost) -> None:
        """Let nobody have asked yet."""
        self.pipe = pipe
        self.sim = sim
        self.host = host
        self.emitted: list[Json] = []
        """What the page was told next to an answer, where `emit` is its emitter."""

    def set_valves(self, **valves: Any) -> None:
        """Change some valves, as an administrator does."""
        self.pipe.valves = self.pipe.valves.model_copy(update=valves)

    async def emit(self, event: Json) -> None:
        self.emitted.append(event)

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.sim.requests]

    @property
    def sent(self) -> Json:
        return self.bodies[-1]

    async def answer(self, body: Json, **given: Any) -> Any:
        """What the pipe returns: a stream that nobody has read yet, or one answer."""
        return await self.pipe.pipe(body, **{**self.usual, **given})

    async def ask(self, *texts: str, **given: Any) -> list[Json]:
        """All that comes of the last of these texts, those before it in turn."""
        return await self.chunks(chat(*texts), **given)

    async def chunks(self, body: Json, **given: Any) -> list[Json]:
        return await chunks_of(self.pipe, body, **{**self.usual, **given})

    async def result(self, body: Json, **given: Any) -> Json:
        return await result_of(self.pipe, body, **{**self.usual, **given})
