"""What was said lately, and what users reported lately."""

from collections.abc import Callable

from openai_responses.clock import monotonic_seconds

_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, or of as many seconds, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(
        self,
        seconds: float = _DAY_SECONDS,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._now = now
        self._seconds = seconds
        self._ends: dict[int, float] = {}
        """Until when each text counts, by its hash."""

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + self._seconds
        return True


_MAX_SUBJECTS = 500
_USERS_FOR_ALL = 3


class UserReports:
    """What requests of users met lately, such as a server that fails.

    What one request met says nothing about other users: it may be about its content, or
    one bad moment. So it holds for that user, and for all once three users met it. Of
    too many subjects, the oldest are forgotten that the same user met with the fewest
    others, or of all.
    """

    def __init__(
        self,
        seconds: float = _DAY_SECONDS,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._ends: dict[str, dict[str, float]] = {}
        """Until when each user's report counts, by subject and user."""

    def add(self, subject: str, user_id: str) -> None:
        """Note that a user's request met `subject`; without a user, ignore it."""
        if not user_id:
            return
        users = self._ends.pop(subject, {})
        users = {user: end for user, end in users.items() if self._now() < end}
        users.pop(user_id, None)
        if len(users) >= _USERS_FOR_ALL:
            # It holds for all already, so more users need no place.
            del users[next(iter(users))]
        users[user_id] = self._now() + self._seconds
        if len(self._ends) >= _MAX_SUBJECTS:
            own = {
                known: len(met_by)
                for known, met_by in self._ends.items()
                if user_id in met_by and len(met_by) < _USERS_FOR_ALL
            }
            forgotten = min(own, key=own.__getitem__) if own else next(iter(self._ends))
            del self._ends[forgotten]
        self._ends[subject] = users

    def holds(self, subject: str, user_id: str) -> bool:
        """Say whether `subject` is to be expected for a user."""
        users = self._ends.get(subject, {})
        reporters = [user for user, end in users.items() if self._now() < end]
        return user_id in reporters or len(reporters) >= _USERS_FOR_ALL
