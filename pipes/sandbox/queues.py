"""Who may run when: the runs of a server, and those of each of its users."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager

from sandbox.backend import SharedLimits


class _UserQueue:
    """The runs of one user: those that are under way, and those that wait."""

    def __init__(self, max_runs: int, max_calls: int) -> None:
        self.turns = asyncio.Semaphore(max_runs)
        self.files = asyncio.Semaphore(max_runs)
        self.places = asyncio.Semaphore(max_calls)
        self.members = 0


class RunQueue:
    """Lets as many runs begin as the server and the user may have at once.

    A user waits behind their own runs first. So each user has no more than
    `runs_per_user` in the line of the server, however many calls they make.
    """

    def __init__(self, limits: SharedLimits) -> None:
        self._limits = limits
        self._server_turns = asyncio.Semaphore(limits.runs)
        self._users: dict[str, _UserQueue] = {}

    @asynccontextmanager
    async def take_place(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until one more call of `user` may borrow a workspace.

        Each call without a chat has a new one, and each looks at all that there are: 400
        at once blocked the event loop for four seconds.
        """
        with self._join(user) as queue:
            async with queue.places:
                yield

    @asynccontextmanager
    async def take_turn(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until a run of `user` may begin; it ends with the context."""
        with self._join(user) as queue:
            async with queue.turns, self._server_turns:
                yield

    @asynccontextmanager
    async def hold_file(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until one more file of `user` may be in memory, for a run that gets it.

        Else all would be there that wait for their turn. It is no turn: to read a file
        may take long, and others can run meanwhile.
        """
        with self._join(user) as queue:
            async with queue.files:
                yield

    @contextmanager
    def _join(self, user: str) -> Iterator[_UserQueue]:
        """Lend the queue of a user, which is there as long as somebody needs it."""
        queue = self._users.get(user)
        if queue is None:
            limits = self._limits
            queue = _UserQueue(limits.runs_per_user, limits.workspaces_per_user)
            self._users[user] = queue
        queue.members += 1
        try:
            yield queue
        finally:
            queue.members -= 1
            if queue.members == 0:
                del self._users[user]
