"""What the server of the valves says of its models: which there are, and their limits.

Every page load lists the models, so the list is answered from memory. It is fetched in
the background when a host lists our models; the last one stays until a newer one
arrives, also if the server cannot be reached. No answer waits for it.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress

from openai_responses.clock import monotonic_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.models.choice import read_context_windows, read_models
from openai_responses.models.resolve import ResolvedModel
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 60.0
"""How long a request keeps the next one away, until it has succeeded."""
_FIRST_LIST_SECONDS = 2.0
"""How long a page may wait for the first list."""
_LIST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)
_MAX_LIST_BYTES = 5_000_000
LISTS_NOTHING = frozenset({404, 405, 501})
"""Statuses of servers that have no list: other servers of this API need none."""


async def fetch_models(endpoint: Endpoint, connections: Connections) -> dict[str, str]:
    """Return the models of `GET /models`, with their last days if they have one.

    Raises ResponsesError.
    """
    return read_models(await _fetch_list(endpoint, connections))


async def _fetch_list(endpoint: Endpoint, connections: Connections) -> object:
    """Return what `GET /models` says; raises ResponsesError."""
    deadlines = Deadlines(_LIST_TIMEOUTS)
    async with connections.request(endpoint, "/models", None, deadlines) as answer:
        return await answer.read_json(_MAX_LIST_BYTES)


class ModelList:
    """The models that the key of the valves can use, as far as they are known.

    One account is remembered: that of the valves when the models were last listed.
    """

    def __init__(self) -> None:
        self._account = ""
        self._base_url = ""
        self._known: dict[str, str] | None = None
        """The last days of the models, empty for those that have none."""
        self._context_windows: dict[str, int] = {}
        self._next_request = 0.0
        self._answered = asyncio.Event()

    def refresh(self, endpoint: Endpoint, connections: Connections) -> None:
        """Fetch the models in the background if what is known of them is old."""
        account = endpoint.account()
        now = monotonic_seconds()
        if account != self._account:
            self._account = account
            self._base_url = endpoint.base_url
            self._known = None
            self._context_windows = {}
            self._next_request = 0.0
        if now >= self._next_request:
            self._next_request = now + _PAUSE_SECONDS
            self._answered = asyncio.Event()
            connections.do_later(self._fetch(endpoint, connections, self._answered))

    async def usable(
        self, endpoint: Endpoint, connections: Connections
    ) -> Collection[str] | None:
        """Return the known models, None before the first answer; refresh old ones.

        While none are known, the answer is waited for, but not for long.
        """
        self.refresh(endpoint, connections)
        if self._known is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_LIST_SECONDS):
                    await self._answered.wait()
        return self._known

    async def _fetch(
        self, endpoint: Endpoint, connections: Connections, answered: asyncio.Event
    ) -> None:
        """Fetch the models; the known ones stay unless the server names others.

        A server, or a proxy in front of it, that is just starting lists nothing, or has
        no such address: what has listed models before is asked again soon.
        """
        listed: object = None
        has_no_list = False
        try:
            try:
                listed = await _fetch_list(endpoint, connections)
            except ResponsesError as error:
                has_no_list = error.status in LISTS_NOTHING
            if endpoint.account() != self._account:  # of earlier valves
                return
            models = read_models(listed)
            if listed is not None and (models or not self._known):
                self._known = models
                self._context_windows = read_context_windows(listed)
            if models or (has_no_list and not self._known):
                self._next_request = monotonic_seconds() + _FRESH_SECONDS
        finally:
            answered.set()

    def as_listed(self, model: ResolvedModel, endpoint: Endpoint) -> ResolvedModel:
        """Return a model with the last day and the context window that its server names.

        The context windows of OpenAI and Azure are those of the catalog, which knows
        more. Of another server than the one that was asked, nothing is known.
        """
        if endpoint.base_url != self._base_url:
            return model
        facts = model.facts
        known = self._known or {}
        if known.get(model.id):
            facts = facts._replace(shutdown=known[model.id])
        windows = self._context_windows
        window = windows.get(model.id) or windows.get("")
        if window and not endpoint.serves_openai:
            facts = facts._replace(context_window=window, max_input_tokens=None)
        return model._replace(facts=facts)
