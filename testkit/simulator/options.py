"""The options of a scenario: faults and other deviations.

They come after its name, separated by commas: ``sim:tool,chunks=random,crlf``.

==================  =================================================================
``cut=N``           end the body cleanly after N events
``drop=N``          abort the connection in the middle of event N
``stall=N``         write nothing after N events, keep the connection open
``endless=N``       write without an end after N events: what ``of`` says
``of=KIND``         a ``line``, ``comments``, ``lines`` of one event, ``events``, or a
                    ``drip`` of one byte at a time
``burst``           all events in one piece
``hold=N``          write nothing after N events before ``Simulator.release`` is called
``delay=MS``        wait before each delta
``wait=MS``         send the first byte so long after the request came
``together=N``      answer only when N requests with this option have come
``chunks=random``   random chunk boundaries, inside characters too
``chunks=N``        chunks of N bytes; ``chunks=1`` is byte by byte
``crlf`` ``cr``     other line ends
``comments``        comment lines between events
``multiline``       each event's JSON over several ``data:`` lines
``nameless``        no ``event:`` lines
``done``            a final ``data: [DONE]``
``keepalive=N``     a keepalive event after every N events
``unknown``         events of unknown types
``status=CODE``     refuse with this HTTP status
``times=N``         ... for the first N attempts (default: every one)
``retry-after=S``   ... with this Retry-After; also ``retry-after-ms=MS``
``should-retry=B``  ... with this X-Should-Retry, true or false
``deltas=N``        the length of the ``long`` answer
``again=N``         ``cut`` and ``drop`` break the first N resumed streams, too
``halt=N``          a background model stops after N events, until it is cancelled
``asks=N``          ... or until the response was retrieved N times
``busy=N``          refuse the first N retrievals with 503
``aged``            a background response too old to be streamed again
``gone``            a background response that is not stored
==================  =================================================================
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_NAMES = """
again aged asks burst busy chunks comments cr crlf cut delay deltas done drop endless
gone halt hold keepalive multiline nameless of retry-after retry-after-ms should-retry
stall status times together unknown wait
"""
NAMES = frozenset(_NAMES.split())
SPEC_PATTERN = re.compile(
    r"(?<![\w:/])sim:(?P<spec>[a-z0-9-]+(?:,[a-z-]+(?:=[A-Za-z0-9.]+)?)*)"
)


class UnknownOption(Exception):
    """A scenario or an option that does not exist."""


@dataclass(frozen=True)
class Options:
    """The options of one answer, by their names."""

    given: Mapping[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.given

    def text(self, name: str, default: str = "") -> str:
        return self.given.get(name, default)

    def number(self, name: str) -> int | None:
        """Return an option as a whole number, None if it was not given."""
        return int(self.given[name]) if name in self.given else None

    def seconds(self, name: str) -> float:
        return float(self.given.get(name) or 0) / 1000

    def without(self, names: Collection[str]) -> "Options":
        rest = {name: value for name, value in self.given.items() if name not in names}
        return Options(rest)


def find_spec(text: str) -> str | None:
    """Return what follows the last ``sim:`` in a text."""
    specs = [match["spec"] for match in SPEC_PATTERN.finditer(text)]
    return specs[-1] if specs else None


def parse_spec(spec: str, defaults: str = "") -> tuple[str, Options]:
    """Split ``name,option=value`` into the name and its options.

    ``defaults`` are the options that the scenario always has.
    """
    name, *assignments = spec.split(",")
    given: dict[str, str] = {}
    for assignment in [*defaults.split(","), *assignments]:
        option, _, value = assignment.partition("=")
        if option and option not in NAMES:
            raise UnknownOption(f"There is no option {option!r} for a scenario.")
        if option:
            given[option] = value
    return name, Options(given)
