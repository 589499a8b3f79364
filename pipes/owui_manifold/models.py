"""The models that the pipe lists.

Every page load lists the models, so the list is answered from memory. The models of a
key are fetched in the background; the last result stays until a newer one arrives, also
if the server cannot be reached.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass

from openai_responses.clock import monotonic_seconds, utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ResponsesError, UnreadableAnswer
from openai_responses.models.choice import list_ids, newest_models
from openai_responses.models.resolve import (
    ResolvedModel,
    read_overrides,
    resolve_model,
)
from openai_responses.transport.connections import Connections, Deadlines, Timeouts
from owui_manifold.config import build_endpoint, comma_list
from owui_manifold.valves import Valves

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 60.0
"""How long to wait after a failure before the server is asked again."""

_LIST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)
_LONGEST_LIST = 5_000_000


async def fetch_models(endpoint: Endpoint, connections: Connections) -> list[str]:
    """Return the ids of the chat models of `GET /models`; raises ResponsesError."""
    found = bytearray()
    asked = connections.get(endpoint, "/models", Deadlines(_LIST_TIMEOUTS))
    async with asked as answer, aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            found += chunk
            if len(found) > _LONGEST_LIST:
                break
    try:
        return list_ids(json.loads(found))
    except (ValueError, RecursionError):
        raise UnreadableAnswer("The server's list of models cannot be read.") from None


@dataclass(slots=True)
class _Known:
    """What was found for one key, and until when it is not asked for again."""

    ids: list[str] | None = None
    until: float = 0.0


class Listing:
    """What each key may use, as far as it is known."""

    def __init__(self, fresh_seconds: float = _FRESH_SECONDS) -> None:
        """Know nothing yet; ask again after `fresh_seconds`."""
        self._fresh = fresh_seconds
        self._known: dict[str, _Known] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def usable(self, endpoint: Endpoint, connections: Connections) -> list[str] | None:
        """Return what is known now, None for nothing; ask for newer if it is old."""
        known = self._known.setdefault(endpoint.account(), _Known())
        if monotonic_seconds() >= known.until:
            known.until = monotonic_seconds() + _PAUSE_SECONDS
            task = asyncio.get_running_loop().create_task(
                self._refresh(known, endpoint, connections)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return known.ids

    async def settled(self) -> None:
        """Wait until nobody is being asked."""
        await asyncio.gather(*self._tasks)

    async def _refresh(
        self, known: _Known, endpoint: Endpoint, connections: Connections
    ) -> None:
        try:
            known.ids = await fetch_models(endpoint, connections)
            known.until = monotonic_seconds() + self._fresh
        except ResponsesError:
            return  # what was known stays


_AUTO = "auto"


def list_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_ID by the names that are listed, in their order.

    `auto` stands for the newest of each family that the key can use. A name that an
    administrator wrote stays, whatever the server says: it fails at use.
    """
    try:
        overrides = read_overrides(valves.MODEL_OVERRIDES_JSON)
    except ResponsesError:
        overrides = {}  # the chat shows the mistake
    names: list[str] = []
    for name in comma_list(valves.MODEL_ID):
        names += _newest(valves, listing, connections) if name == _AUTO else [name]
    return {name: resolve_model(name, overrides) for name in names}


def configured_models(
    valves: Valves, overrides: Mapping[str, ResolvedModel]
) -> list[ResolvedModel]:
    """Return the models that the administrator wrote into MODEL_ID."""
    names = [name for name in comma_list(valves.MODEL_ID) if name != _AUTO]
    return [resolve_model(name, overrides) for name in names]


def _newest(valves: Valves, listing: Listing, connections: Connections) -> list[str]:
    today = utc_today().isoformat()
    usable = None
    if valves.FETCH_MODELS:
        try:
            usable = listing.usable(build_endpoint(valves), connections)
        except ResponsesError:
            usable = None  # without a key there is nothing to ask
    # A server whose list holds none of ours, as Azure's, does not tell what it serves.
    return newest_models(today, usable) or newest_models(today)
