"""Which run may begin: within the limit of its user, and within that of the server."""

import asyncio

from event_loops.skipping_loop import run_skipping
from sandbox.backend import SharedLimits
from sandbox.queues import RunQueue

LIMITS = SharedLimits(runs=4, runs_per_user=2)


async def run(queue: RunQueue, user: str, log: list[str], seconds: float) -> None:
    async with queue.take_turn(user):
        log.append(f"{user} begins")
        await asyncio.sleep(seconds)
    log.append(f"{user} ends")


def test_endless_runs_of_one_user_delay_nobody_else() -> None:
    """Twelve of them take two turns; those of others begin at once."""

    async def scene() -> list[str]:
        log: list[str] = []
        queue = RunQueue(LIMITS)
        endless = [
            asyncio.create_task(run(queue, "greedy", log, 10_000)) for _ in range(12)
        ]
        await asyncio.sleep(1)
        await asyncio.gather(*(run(queue, user, log, 1) for user in ("a", "b")))
        for task in endless:
            task.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        await run(queue, "greedy", log, 1)
        assert not queue._users
        return log

    log = run_skipping(scene())

    assert log == [
        *("greedy begins", "greedy begins"),
        *("a begins", "b begins", "a ends", "b ends"),
        *("greedy begins", "greedy ends"),
    ]


def test_server_runs_no_more_than_it_may() -> None:
    async def scene() -> list[str]:
        log: list[str] = []
        queue = RunQueue(LIMITS)
        await asyncio.gather(*(run(queue, user, log, 1) for user in "abcde"))
        return log

    log = run_skipping(scene())

    assert log.index("e begins") > log.index("a ends") > log.index("d begins")
