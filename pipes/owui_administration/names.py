"""Names in the rules that Open WebUI does not know, for administrators.

A mistyped group would be a rule that silently holds for nobody. An address that nobody
has is worse: whoever signs up with it gets its rule.
"""

from itertools import islice

from openai_responses.clock import monotonic_seconds
from owui_administration.endpoints import read_endpoints
from owui_administration.host import has_group, has_user
from owui_administration.rules import read_limits

_SECONDS = 60.0
_MOST_NAMES = 100
"""Each is one or two questions to the database."""
_MOST_TOLD = 9


class NameCheck:
    """Looks names up when an administrator asks, at most once a minute."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._texts = ("", "")
        self._until = 0.0
        self._problem = ""

    async def problem(self, limits: str, endpoints: str) -> str:
        """Return the sentence about names in the two valves, or nothing.

        Raises what the host's database raises.
        """
        texts, now = (limits, endpoints), monotonic_seconds()
        if texts != self._texts or now > self._until:
            self._problem = await _find_problem(*texts)
            self._texts, self._until = texts, now + _SECONDS
        return self._problem


async def _find_problem(limits: str, endpoints: str) -> str:
    rules, entries = read_limits(limits)[0] or (), read_endpoints(endpoints) or ()
    users = dict.fromkeys(rule.user for rule in rules if rule.user)
    groups = dict.fromkeys(rule.group for rule in rules if rule.group)
    groups |= dict.fromkeys(name for entry in entries for name in entry.groups)
    unknown = [n for n in islice(groups, _MOST_NAMES) if not await has_group(n)]
    unknown += [n for n in islice(users, _MOST_NAMES) if not await has_user(n)]
    if not unknown:
        return ""
    return (
        f"The valves of the filter name {', '.join(unknown[:_MOST_TOLD])}, but Open "
        "WebUI has no such group or user. These rules hold for nobody; whoever signs "
        "up with such an address gets its rules."
    )
