"""The models that the pipe lists.

Every page load lists the models, so the list is answered from memory. The models of a
key are fetched in the background; the last result stays until a newer one arrives, also
if the server cannot be reached.
"""

from collections.abc import Collection
from contextlib import suppress

from openai_responses.clock import monotonic_seconds, utc_today
from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.models.choice import newest_models, read_models
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.transport.connections import Connections, Deadlines, Timeouts
from owui_manifold.call.agent import add_agents, read_agent_parameters
from owui_manifold.call.config import (
    build_endpoint,
    named_models,
    read_expert_settings,
)
from owui_manifold.call.valves import Valves
from shells.valve_words import comma_list

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 60.0
"""How long a request keeps the next one away, until it has succeeded."""

OPENAI_HOST = Endpoint(DEFAULT_BASE_URL, "").host
_LIST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)
_MAX_LIST_BYTES = 5_000_000


async def fetch_models(endpoint: Endpoint, connections: Connections) -> dict[str, str]:
    """Return the chat models of `GET /models`, with their last days if they have one.

    Raises ResponsesError.
    """
    deadlines = Deadlines(_LIST_TIMEOUTS)
    async with connections.request(endpoint, "/models", None, deadlines) as answer:
        return read_models(await answer.read_json(_MAX_LIST_BYTES))


class Listing:
    """The models that the key of the valves can use, as far as they are known.

    One account is remembered: that of the valves when the models were last listed.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.shutdown_dates: dict[str, str] = {}
        self._account = ""
        self._known: dict[str, str] | None = None
        self._next_request = 0.0

    def usable(
        self, endpoint: Endpoint, connections: Connections
    ) -> Collection[str] | None:
        """Return the known models, None before the first answer; refresh old ones."""
        account = endpoint.account()
        now = monotonic_seconds()
        if account != self._account:
            self._account = account
            self._known = None
            self._next_request = 0.0
        if now >= self._next_request:
            self._next_request = now + _PAUSE_SECONDS
            connections.do_later(self._refresh(endpoint, connections))
        return self._known

    async def _refresh(self, endpoint: Endpoint, connections: Connections) -> None:
        """Fetch the models; after an error the known ones stay."""
        with suppress(ResponsesError):
            models = await fetch_models(endpoint, connections)
            if endpoint.account() != self._account:  # the valves were changed meanwhile
                return
            self._known = models
            self.shutdown_dates.clear()
            self.shutdown_dates.update(models)
            self._next_request = monotonic_seconds() + _FRESH_SECONDS


def list_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_ID by the names that are listed, in their order.

    `auto` stands for the newest of each family that the key can use, or of each known
    family if the server's list has no model that we know, like Azure's. A name that an
    administrator wrote stays, whatever the server lists: it fails when it is used.
    """
    try:
        models = named_models(valves)
    except ResponsesError:  # the chat shows the error
        models = add_agents({}, read_agent_parameters(valves.AGENT_JSON).parameters)
    listed = comma_list(valves.MODEL_ID)
    names = list[str]()
    today = utc_today().isoformat()
    usable = None
    with suppress(ResponsesError):
        endpoint = build_endpoint(valves)
        fetches = read_expert_settings(valves).fetch_models
        if fetches and ("auto" in listed or endpoint.host == OPENAI_HOST):
            usable = listing.usable(endpoint, connections)
    newest = newest_models(today, usable) or newest_models(today)
    for name in listed:
        if name == "auto":
            names += newest
        else:
            names.append(name)
    return {name: resolve_model(name, models) for name in names}
