"""One call of the pipe, as the administration sees it."""

from typing import NamedTuple

from owui_administration.endpoints import EndpointChoice, NoEndpoint
from owui_administration.limits import UserLimits


class Account(NamedTuple):
    """What decides about one call of the pipe. Each method is asked by name."""

    limits: UserLimits
    endpoints: EndpointChoice | NoEndpoint | None = None
    """None where the valves of the pipe say where it is answered."""
