"""Makes an async iterator a plain iterator for a server's threads.

The Pipelines server calls `pipe()` in a thread, reads the answer in threads, and does
not tell when the reader has left (docs/reference/pipelines-server.md, "The call of
pipe"). So the work runs in an event loop of its own. While an answer is silent,
heartbeats let the server notice that its reader has left. The work waits until each
piece was read, so that an answer that no one reads asks no model and runs no tool. An
answer that is not read for the time of a lease is cancelled.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, Self, TypeVar

from openai_responses.clock import monotonic_seconds
from openai_responses.errors import InvalidRequest

AnswerPiece = dict[str, Any] | str
_Result = TypeVar("_Result")

KEEPALIVE_CHUNK: AnswerPiece = {"choices": []}
"""Open WebUI passes over it."""

_LEASE_SECONDS = 5.0
"""How long an answer may go unread before it is cancelled: its reader has left."""
_BEAT_SECONDS = 1.0
"""How often a silent answer lets the server look whether its reader is there."""
_TASK_END_SECONDS = 3.0
"""A tool that does not let itself be cancelled must not hold the server's end."""
_BRIDGE_CLOSE_SECONDS = 5.0
"""The same, with what is closed after the tools."""

MOST_ANSWERS = 50
"""Of one user at once. Each holds one of the server's threads until it ends, or a stream
for a beat at a time."""


class BridgeClosed(Exception):
    """The bridge was closed: nothing more is answered."""


_TOO_MANY_ANSWERS = (
    "{} of your answers are under way. Wait until one of them has ended."
)


class _AnswerReader:
    """One answer, read piece by piece from any thread.

    An iterator and not a generator: the server adds an end of its own to generators.
    """

    def __init__(
        self, lease_seconds: float, beat_seconds: float, beat: AnswerPiece
    ) -> None:
        """Begin with a lease for the reader that is about to come.

        It reads a `beat` while the answer is silent.
        """
        self._beat = beat
        self._lease_seconds = lease_seconds
        self._beat_seconds = beat_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the work runs."""
        self._was_read = asyncio.Event()
        self._pieces: SimpleQueue[AnswerPiece | None] = SimpleQueue()
        self._last_read_at: float | None = monotonic_seconds()
        self._has_ended = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AnswerPiece:
        """Return the next piece; a keepalive chunk if none comes in time."""
        if self._has_ended:
            raise StopIteration
        self._last_read_at = None
        try:
            piece = self._pieces.get(timeout=self._beat_seconds)
        except Empty:
            piece = self._beat
        self._last_read_at = monotonic_seconds()
        if piece is None:
            self._has_ended = True
            raise StopIteration
        if piece is not self._beat and self._loop is not None:
            with suppress(RuntimeError):  # the bridge was closed, and its loop with it
                self._loop.call_soon_threadsafe(self._was_read.set)
        return piece

    async def consume(
        self, pieces: AsyncGenerator[AnswerPiece, None], last_piece: AnswerPiece
    ) -> None:
        """Queue one piece after another; queue `last_piece` if cancelled.

        After Stop, the server reads nothing and says nothing. Because the next piece is
        asked for only when the last one was read, at most one call is then under way.
        """
        self._loop = asyncio.get_running_loop()
        watcher = asyncio.create_task(self._watch(asyncio.current_task()))
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._was_read.clear()
                    self._pieces.put(piece)
                    await self._was_read.wait()
        except asyncio.CancelledError:
            self._pieces.put(last_piece)
            raise
        finally:
            watcher.cancel()
            self._pieces.put(None)

    async def _watch(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel `task` when the lease has ended; wait while a reader waits."""
        seconds_left = self._lease_seconds
        while seconds_left > 0:
            await asyncio.sleep(seconds_left)
            last_read_at = self._last_read_at
            if last_read_at is None:
                seconds_left = self._beat_seconds
            else:
                lease_end = last_read_at + self._lease_seconds
                seconds_left = lease_end - monotonic_seconds()
        if task is not None:
            task.cancel()


class AsyncBridge:
    """The event loop of one pipeline, in a thread that the first work starts."""

    def __init__(
        self,
        last_piece: AnswerPiece,
        on_close: Callable[[], Coroutine[Any, Any, None]],
        lease_seconds: float = _LEASE_SECONDS,
        beat_seconds: float = _BEAT_SECONDS,
    ) -> None:
        """Start nothing.

        `last_piece` ends an answer that nobody reads, and at `close` each open one; then
        `on_close` is awaited.
        """
        self._last_piece = last_piece
        self._on_close = on_close
        self._lease_seconds = lease_seconds
        self._beat_seconds = beat_seconds
        self._lock = Lock()
        self._answers = Counter[str]()
        """How many of each user are under way."""
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._is_closed = False

    def stream(
        self,
        pieces: AsyncGenerator[AnswerPiece, None],
        beat: AnswerPiece = KEEPALIVE_CHUNK,
        user: str = "",
    ) -> Iterator[AnswerPiece]:
        """Return `pieces` for a user as a plain iterator; raises what `run` raises."""
        reader = _AnswerReader(self._lease_seconds, self._beat_seconds, beat)
        self._submit(reader.consume(pieces, self._last_piece), user)
        return reader

    def run(self, work: Coroutine[Any, Any, _Result], user: str = "") -> _Result:
        """Return the result of `work` for a user; raises BridgeClosed, also while it runs.

        Raises InvalidRequest for one of too many; who is unknown may have any number.
        """
        try:
            return self._submit(work, user).result()
        except CancelledError:
            raise BridgeClosed from None

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` without waiting for it.

        A bridge that is closed, or that no thread can be started for, drops it.
        """
        with suppress(BridgeClosed, OSError, RuntimeError):
            self._submit(work)

    def close(self) -> None:
        """Cancel everything, then end the thread; later work is refused."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            loop = self._loop
        if thread and loop:
            with suppress(RuntimeError):  # it is closed already: a signal closes, too
                loop.call_soon_threadsafe(self._closing.set)
            thread.join(_BRIDGE_CLOSE_SECONDS)

    def _submit(
        self, work: Coroutine[Any, Any, _Result], user: str = ""
    ) -> Future[_Result]:
        """Start `work` in the event loop of the thread; raises BridgeClosed.

        Also InvalidRequest for one of too many of a user, and what the system raises that
        lacks files or threads: the next work tries again.
        """
        with self._lock:
            try:
                if self._is_closed:
                    raise BridgeClosed
                if user and self._answers[user] >= MOST_ANSWERS:
                    raise InvalidRequest(_TOO_MANY_ANSWERS.format(MOST_ANSWERS))
                loop = self._loop or self._start_thread()
            except BaseException:
                work.close()
                raise
            future = asyncio.run_coroutine_threadsafe(work, loop)
            if user:
                self._answers[user] += 1
        if user:
            future.add_done_callback(partial(self._end, user))
        return future

    def _end(self, user: str, _: object) -> None:
        """Note that an answer of a user has ended."""
        with self._lock:
            self._answers[user] -= 1
            if not self._answers[user]:
                del self._answers[user]

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        """Return asyncio's own loop, whatever loop the server has, once its thread runs.

        The loop is made here: whoever waits for a thread that fails waits forever.
        """
        own_loop = getattr(asyncio, "ProactorEventLoop", asyncio.SelectorEventLoop)
        loop: asyncio.AbstractEventLoop = own_loop()

        def run_loop() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(self._run_until_closed())

        thread = Thread(target=run_loop, name="agent", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            loop.close()
            raise
        self._thread = thread
        self._loop = loop
        return loop

    async def _run_until_closed(self) -> None:
        """Wait until the bridge is closed, then leave nothing in the loop."""
        await self._closing.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_TASK_END_SECONDS)
        await self._on_close()


def close_on_sigterm(bridge: AsyncBridge) -> Callable[[], object]:
    """Close the bridge when the process has to end; return what undoes this.

    The server itself waits for open answers before it calls `on_shutdown`. Its own loop
    hears of a signal in addition to Python's handlers
    (docs/reference/pipelines-server.md).
    """
    previous_handler = signal.getsignal(signal.SIGTERM)

    def close_and_pass_on(number: int, frame: Any) -> None:
        Thread(target=bridge.close, daemon=True).start()
        if callable(previous_handler):
            previous_handler(number, frame)

    def restore() -> None:
        if signal.getsignal(signal.SIGTERM) is close_and_pass_on:
            signal.signal(signal.SIGTERM, previous_handler)

    if callable(previous_handler) and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, close_and_pass_on)
    return restore
