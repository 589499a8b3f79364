"""A strict stand-in for OpenAI's Responses API.

``async with Simulator() as sim`` listens on ``sim.base_url``; ``sim.requests`` is the
record of what came in. A scenario is chosen by the header ``X-Simulator-Scenario`` or by
``sim:NAME`` in the last user message; :mod:`simulator.options` lists the faults that may
follow the name.
"""

from simulator.delivery import RecordedRequest
from simulator.server import Simulator

__all__ = ["RecordedRequest", "Simulator"]
