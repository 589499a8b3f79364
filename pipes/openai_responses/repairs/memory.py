"""What is remembered of refusals: for whom, how long, and how much.

A repair counts for all users only if the server itself named what to change, the request
was as its administrators configured it, and the next request was accepted.
What may be about a user's own choice counts for that user, and what is about the items
of a chat for that chat, if it can store it. The rest is forgotten.

Everything has a bound: a day, a number for each user and of users. A repair holds names
and digests of limited length, never a text of a user.
"""

from collections.abc import Callable
from typing import NamedTuple

from openai_responses.clock import monotonic_seconds
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import Repair

DAY_SECONDS = 86_400.0
MAX_FOR_ALL = 256
MAX_FOR_ONE_USER = 64
MAX_USERS = 500

_ALL_USERS = ""
_MAX_NAME_IN_SCOPE = 300
"""Characters; nothing is remembered of what has a longer name."""


class RepairScope(NamedTuple):
    """Whose requests a repair is about."""

    account: str
    """A digest of the address, the organization and the key."""
    model: str
    user: str = ""
    """Empty for a client that nobody knows: nothing is remembered for it alone."""


class RepairMemory:
    """What refusals of the last day showed of accounts and models."""

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty; `now` is a time in seconds that never goes back."""
        self._now = now
        self._ends: dict[str, dict[tuple[str, str, Repair], float]] = {}
        """Until when a repair of an account and a model is remembered, by user; the
        oldest comes first."""

    def repairs(self, scope: RepairScope) -> tuple[Repair, ...]:
        """Return the repairs that requests of a scope need, each once."""
        now = self._now()
        repairs: dict[Repair, None] = {}
        for owner in (_ALL_USERS, scope.user):
            for (account, model, repair), end in self._ends.get(owner, {}).items():
                is_meant = account == scope.account and model == scope.model
                if is_meant and now < end:
                    repairs[repair] = None
        return tuple(repairs)

    def learn(
        self,
        scope: RepairScope,
        tried: TriedRepair,
        is_as_configured: Callable[[], bool],
    ) -> None:
        """Remember what helped, for all users or for one.

        `is_as_configured` says whether the request had only what its administrators
        set; it may cost a moment, and is called only if it matters.
        """
        longest_name = max(len(name) for name in scope)
        if not tried.is_lasting or longest_name > _MAX_NAME_IN_SCOPE:
            return
        may_be_for_all = (
            tried.is_named and tried.helped_at_once and not tried.repair.is_about_chat
        )
        if may_be_for_all and is_as_configured():
            self._remember(_ALL_USERS, MAX_FOR_ALL, scope, tried.repair)
        elif scope.user:
            self._remember(scope.user, MAX_FOR_ONE_USER, scope, tried.repair)

    def _remember(
        self, owner: str, max_entries: int, scope: RepairScope, repair: Repair
    ) -> None:
        """Remember a repair for a day; if it is known, the day begins again.

        Of more than `max_entries` the oldest is forgotten.
        """
        if owner not in self._ends and len(self._ends) >= MAX_USERS:
            # What holds for all stays; the user who was remembered first goes.
            users = [known for known in self._ends if known != _ALL_USERS]
            del self._ends[users[0]]
        now = self._now()
        entry = (scope.account, scope.model, repair)
        remembered = self._ends.get(owner, {}).items()
        ends = {known: end for known, end in remembered if now < end}
        ends.pop(entry, None)
        if len(ends) >= max_entries:
            oldest = next(iter(ends))
            del ends[oldest]
        ends[entry] = now + DAY_SECONDS
        self._ends[owner] = ends
