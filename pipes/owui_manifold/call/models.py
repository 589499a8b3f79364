"""The models that the pipe lists.

Only the first listing waits for the server, for a moment.
"""

import asyncio
from contextlib import suppress

from openai_responses.clock import utc_today
from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.models.choice import newest_models
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.transport.connections import Connections
from owui_manifold.call.agent import add_agents, read_agent_parameters
from owui_manifold.call.config import build_endpoint, named_models
from owui_manifold.call.expert import read_expert_json
from owui_manifold.call.valves import CALL_TOKENS, Valves
from owui_manifold.host.open_webui import forget_kept_models, keeps_models
from shells.model_list import ModelList

_HOST_SECONDS = 15.0
"""By then the host has stored the list for which it asked: it waits for the servers of
its own connections, for ten seconds (AIOHTTP_CLIENT_TIMEOUT_MODEL_LIST)."""
_HOST_PAUSES = 240

OPENAI_HOST = Endpoint(DEFAULT_BASE_URL, "").host


class Listing(ModelList):
    """The model list of a host, which may keep what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: Endpoint | None = None
        """Whose models the host gets later, because it keeps a list without them."""

    def complete_later(self, endpoint: Endpoint, connections: Connections) -> None:
        """Make the host list the models again once the server has named them.

        The host keeps a list without them, so it would not ask again.
        """
        is_waiting = self._awaited is not None
        self._awaited = endpoint
        if not is_waiting:
            connections.do_later(self._complete(connections))

    async def _complete(self, connections: Connections) -> None:
        """Wait for the models, up to an hour; then make the host ask again."""
        for _ in range(_HOST_PAUSES):
            await asyncio.sleep(_HOST_SECONDS)
            endpoint = self._awaited
            # Another list was asked for since, which is complete.
            if endpoint is None or endpoint.account() != self._account:
                break
            usable = await self.usable(endpoint, connections)
            if usable is not None and await forget_kept_models():
                break
        self._awaited = None


async def list_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_ID by the names that are listed, in their order.

    `auto` stands for the newest of each family that the key can use, or of each known
    family if the server's list has no model that we know, like Azure's. Before that
    list is known, they are a guess, so a host that keeps what is listed gets none. A
    name that an administrator wrote stays, whatever the server lists: it fails when it
    is used.
    """
    try:
        models = named_models(valves)
    except ResponsesError:  # the chat shows the error
        models = add_agents({}, read_agent_parameters(valves.AGENT_JSON)[0])
    listed = valves.model_names()
    today = utc_today().isoformat()
    usable = None
    is_complete = True
    with suppress(ResponsesError):
        endpoint = build_endpoint(valves)
        # No call asks for the list, so there is no token to send.
        fetches = read_expert_json(valves.EXPERT_JSON)[0].fetch_models
        fetches = fetches and valves.AUTH not in CALL_TOKENS
        if fetches and ("auto" in listed or endpoint.host == OPENAI_HOST):
            usable = await listing.usable(endpoint, connections)
            if usable is None and "auto" in listed and await keeps_models():
                is_complete = False
                listing.complete_later(endpoint, connections)
        elif fetches and not endpoint.serves_openai:
            listing.refresh(endpoint, connections)  # for the contexts of its models
    newest: list[str] = []
    if is_complete:
        newest = newest_models(today, usable) or newest_models(today)
    names: list[str] = []
    for name in listed:
        names += newest if name == "auto" else [name]
    return {name: resolve_model(name, models) for name in names}
