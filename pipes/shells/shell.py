"""The two shells by their names: the rest of their messages is the same."""

from typing import NamedTuple


class Shell(NamedTuple):
    """The names of a shell in messages."""

    noun: str
    """Like "pipe"."""
    valves_page: str
    """How an administrator gets to its valves."""
    in_entry: frozenset[str] = frozenset()
    """The valves that an entry of ENDPOINTS_JSON has in its own way, for one call."""

    @property
    def valves(self) -> str:
        """Where its valves are, as a part of a message."""
        return f"the valves of this {self.noun}"


PIPE_SHELL = Shell("pipe", "Admin Panel > Functions > the gear next to it")
PIPELINE_SHELL = Shell("pipeline", "Admin Panel > Settings > Pipelines")
