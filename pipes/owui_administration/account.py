"""One call of the pipe, as the administration sees it."""

from typing import Any

from owui_administration.endpoints import EndpointChoice, NoEndpoint


class Account:
    """What decides about one call of the pipe. Each method is asked by name."""

    def __init__(
        self, facts: dict[str, Any], endpoints: EndpointChoice | NoEndpoint | None
    ) -> None:
        """Keep the facts of the call."""
        self._facts = facts
        self.endpoints = endpoints
