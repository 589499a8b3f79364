"""A sync reader of asynchronous work: order, beats, the lease, the end."""

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpt5_agent.shell.bridge import (
    KEEPALIVE_CHUNK,
    AnswerPiece,
    AsyncBridge,
    BridgeClosed,
    close_on_sigterm,
)
from measures.kept_memory import kept_containers
from openai_responses.errors import InvalidRequest

LAST: AnswerPiece = {"error": "stopped"}


class Work:
    """Asynchronous work that can be seen from outside."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.closed = threading.Event()
        self.at_ends = 0
        self.calls = 0

    async def pieces(
        self, *texts: str, then: str = ""
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield `texts`; then end, be silent, or raise."""
        try:
            self.begun.set()
            for text in texts:
                yield text
            if then == "silence":
                await asyncio.Event().wait()
            if then == "failure":
                raise ValueError("broken")
        finally:
            self.closed.set()

    async def rounds(self) -> AsyncGenerator[AnswerPiece, None]:
        try:
            while True:
                self.calls += 1
                yield f"round {self.calls}"
        finally:
            self.closed.set()

    async def flood(self) -> AsyncGenerator[AnswerPiece, None]:
        try:
            self.begun.set()
            while True:
                yield "more"
                await asyncio.sleep(0)
        finally:
            self.closed.set()

    async def at_end(self) -> None:
        self.at_ends += 1


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def bridge(work: Work) -> Iterator[AsyncBridge]:
    opened = AsyncBridge(LAST, work.at_end, lease_seconds=120, beat_seconds=0.02)
    yield opened
    opened.close()


@pytest.fixture
def hasty(work: Work) -> Iterator[AsyncBridge]:
    opened = AsyncBridge(LAST, work.at_end, lease_seconds=0.2, beat_seconds=0.02)
    yield opened
    opened.close()


def agents() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "agent"]


def without_beats(reading: Iterator[AnswerPiece]) -> list[AnswerPiece]:
    return [piece for piece in reading if piece != KEEPALIVE_CHUNK]


def first_piece(reading: Iterator[AnswerPiece]) -> AnswerPiece:
    """The first one, however long a busy machine takes for it."""
    return next(piece for piece in reading if piece != KEEPALIVE_CHUNK)


def test_pieces_arrive_in_order(bridge: AsyncBridge, work: Work) -> None:
    reading = bridge.stream(work.pieces("one", "two", "three"))

    assert not hasattr(reading, "send")  # after one, the server puts its own end
    assert without_beats(reading) == ["one", "two", "three"]
    assert list(reading) == []
    assert work.closed.is_set()


def test_reader_waits_no_longer_than_a_beat(bridge: AsyncBridge, work: Work) -> None:
    reading = bridge.stream(work.pieces("one", then="silence"))

    assert first_piece(reading) == "one"
    assert [next(reading) for _ in range(3)] == [KEEPALIVE_CHUNK] * 3
    assert not work.closed.is_set()


def test_answer_can_have_a_beat_of_its_own(bridge: AsyncBridge, work: Work) -> None:
    reading = bridge.stream(work.pieces("one", then="silence"), "beat")

    assert first_piece(reading) == "one"
    assert next(reading) == "beat"


def test_a_reader_who_never_came_ends_the_work(hasty: AsyncBridge, work: Work) -> None:
    hasty.stream(work.pieces("one", then="silence"))

    assert work.closed.wait(60)


def test_a_reader_who_left_ends_work_that_goes_on(
    hasty: AsyncBridge, work: Work
) -> None:
    """Pieces that no one pulls do not renew the lease."""
    next(hasty.stream(work.flood()))

    assert work.closed.wait(60)


def test_nobody_reads_so_nothing_more_is_asked(hasty: AsyncBridge, work: Work) -> None:
    """After Stop one call may be under way; no other one begins."""
    reading = hasty.stream(work.rounds())
    first_piece(reading)
    seen = first_piece(reading)

    assert work.closed.wait(60)
    assert seen == "round 2"
    assert work.calls <= 3


def test_a_reader_who_stays_outlives_the_lease(work: Work) -> None:
    """A pull renews it, also one that waits for longer than it lasts."""
    bridge = AsyncBridge(LAST, work.at_end, lease_seconds=0.6, beat_seconds=0.7)
    reading = bridge.stream(work.pieces(then="silence"))

    assert next(reading) == KEEPALIVE_CHUNK
    assert not work.closed.is_set()
    bridge.close()


def test_a_failure_ends_the_answer(bridge: AsyncBridge, work: Work) -> None:
    reading = bridge.stream(work.pieces("one", then="failure"))

    assert without_beats(reading) == ["one"]


def test_closing_tells_open_readers(bridge: AsyncBridge, work: Work) -> None:
    """An answer that is cut off by us says so; its work ends first."""
    reading = bridge.stream(work.pieces("one", then="silence"))
    assert first_piece(reading) == "one"

    bridge.close()

    assert work.closed.is_set()
    assert without_beats(reading) == [LAST]


def test_nothing_is_left_after_closing(work: Work) -> None:
    """The thread is gone, the last work was done once, a second close does nothing.

    A bridge that no one used has neither a thread nor last work.
    """
    before = len(agents())
    AsyncBridge(LAST, work.at_end).close()
    assert work.at_ends == 0
    bridge = AsyncBridge(LAST, work.at_end)
    assert len(agents()) == before
    bridge.stream(work.pieces(then="silence"))
    assert len(agents()) == before + 1

    bridge.close()
    bridge.close()

    assert len(agents()) == before
    assert work.at_ends == 1


def test_closing_does_not_wait_for_what_never_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server would not end."""
    monkeypatch.setattr("gpt5_agent.shell.bridge._BRIDGE_CLOSE_SECONDS", 0.05)
    may_end = threading.Event()

    async def at_end() -> None:
        may_end.wait()

    bridge = AsyncBridge(LAST, at_end)
    bridge.run(asyncio.sleep(0))

    bridge.close()

    [thread] = agents()
    may_end.set()
    thread.join()


def test_work_after_closing_is_refused(bridge: AsyncBridge, work: Work) -> None:
    bridge.close()

    with pytest.raises(BridgeClosed):
        bridge.stream(work.pieces("one"))
    assert not work.begun.is_set()


def test_a_result_is_waited_for(bridge: AsyncBridge) -> None:
    assert bridge.run(asyncio.sleep(0, result=42)) == 42


def test_closing_ends_a_wait(bridge: AsyncBridge, work: Work) -> None:
    async def forever() -> None:
        work.begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bridge.run, forever())
        assert work.begun.wait(60)
        bridge.close()
        with pytest.raises(BridgeClosed):
            waiting.result(60)


def test_many_readers_share_one_thread(work: Work) -> None:
    """A hundred answers at once, each pulled by a thread of its own, stay apart."""
    bridge = AsyncBridge(LAST, work.at_end, lease_seconds=120)
    meet = threading.Barrier(100)

    async def answer(number: int) -> AsyncGenerator[AnswerPiece, None]:
        for part in range(20):
            await asyncio.sleep(0)
            yield f"{number}/{part}"

    def read(number: int) -> list[Any]:
        reading = bridge.stream(answer(number))
        meet.wait(60)
        return without_beats(reading)

    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(read, range(100)))

    assert answers == [[f"{n}/{part}" for part in range(20)] for n in range(100)]
    assert len(agents()) == 1
    bridge.close()


def test_signal_that_ends_the_server_closes_the_bridge_first() -> None:
    """The server's own handler runs all the same, and is in its place again."""
    heard: list[int] = []

    def handler_of_server(number: int, _: object) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGTERM, handler_of_server)
    try:
        work = Work()
        bridge = AsyncBridge(LAST, work.at_end, lease_seconds=120)
        reading = bridge.stream(work.pieces("one", then="silence"))
        first_piece(reading)
        restore = close_on_sigterm(bridge)

        signal.raise_signal(signal.SIGTERM)

        assert without_beats(reading) == [LAST]
        assert heard == [signal.SIGTERM]
        restore()
        assert signal.getsignal(signal.SIGTERM) is handler_of_server
        bridge.close()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_signal_that_somebody_else_took_is_left_to_them() -> None:
    """Nor does a process get a handler that had none: the signal would not end it.

    A thread may set none.
    """
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    bridge = AsyncBridge(LAST, Work().at_end)
    try:
        close_on_sigterm(bridge)()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

        signal.signal(signal.SIGTERM, lambda *_: None)
        restore = close_on_sigterm(bridge)
        with ThreadPoolExecutor() as threads:
            threads.submit(close_on_sigterm, bridge).result()()
        taken = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        restore()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert taken is not None
    finally:
        signal.signal(signal.SIGTERM, before)


def test_answers_that_ended_leave_a_user_the_same_number(
    bridge: AsyncBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds a thread of the server: none may be counted as two that ended."""
    monkeypatch.setattr("gpt5_agent.shell.bridge.MOST_ANSWERS", 1)
    work = Work()
    for _ in range(2):
        assert without_beats(bridge.stream(work.pieces("one"), user="ada")) == ["one"]
        bridge.run(asyncio.sleep(0), user="bob")
    bridge.run(asyncio.sleep(0.01))  # by then all of them are counted as ended
    counted = kept_containers(bridge)[f"{AsyncBridge.__module__}.AsyncBridge._answers"]
    assert counted == [{}]

    reading = bridge.stream(work.pieces("one", then="silence"), user="ada")
    with pytest.raises(InvalidRequest):
        bridge.stream(work.pieces("two"), user="ada")
    assert first_piece(reading) == "one"


@pytest.mark.parametrize(
    ("seconds", "ended"),
    [(0.05, ["the work", "the connections"]), (60, ["the connections"])],
)
def test_work_that_needs_a_moment_to_end_has_it(
    seconds: float, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What closes connections runs last; no work keeps it waiting."""
    monkeypatch.setattr("gpt5_agent.shell.bridge._TASK_END_SECONDS", 0.5)
    order: list[str] = []

    async def slow_end() -> AsyncGenerator[AnswerPiece, None]:
        try:
            yield "one"
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(seconds)
            order.append("the work")

    async def at_end() -> None:
        order.append("the connections")

    bridge = AsyncBridge(LAST, at_end)
    reading = bridge.stream(slow_end())
    assert first_piece(reading) == "one"

    bridge.close()

    assert order == ended
