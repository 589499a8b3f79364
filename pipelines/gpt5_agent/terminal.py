"""A terminal as the agent's user interface: type, read, approve with y or n."""

import asyncio
from collections import deque
from collections.abc import Callable

from gpt5_agent.events import AgentEvent, NewMessage, State, ToolCallRequested
from gpt5_agent.session import Session
from gpt5_agent.terminal_lines import TerminalLines, shown_arguments, without_controls

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


_Input = tuple[str, asyncio.Future[None]]
"""What was heard, with what is told when it is answered."""


class Terminal:
    """Writes what happens, takes what is typed; one input is answered after another."""

    def __init__(self, write: Callable[[str], object], *, emits_thoughts: bool) -> None:
        """Write nothing yet; `write` gets texts with their line ends."""
        self._write = write
        self._lines = TerminalLines(emits_thoughts=emits_thoughts)
        self._inputs: asyncio.Queue[_Input | None] = asyncio.Queue()
        self._asked: deque[ToolCallRequested] = deque()
        self._session: Session | None = None
        self._turn: asyncio.Task[None] | None = None
        self._is_over = False

    async def converse(self, session: Session) -> None:
        """Answer inputs until there are no more."""
        self._session = session
        self.on_ready_for_input()
        try:
            while (heard := await self._inputs.get()) is not None:
                text, answered = heard
                await self._answered(session, text)
                _tell(answered)
        finally:
            while not self._inputs.empty():
                left = self._inputs.get_nowait()
                _tell(left[1] if left else None)

    async def _answered(self, session: Session, text: str) -> None:
        """Wait until an input is answered, or its answer is stopped."""
        self._turn = asyncio.create_task(session.submit_user_input(text))
        try:
            await self._turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            self._line("[stopped]")
            self.on_ready_for_input()
        finally:
            self._turn = None
            self._asked.clear()

    async def emit_input(self, text: str) -> None:
        """Take what a listener heard; returns once it is answered."""
        await self._queued(text)

    def take_typed(self, text: str) -> None:
        """Take what the person typed: the answer to a question, if there is one."""
        if not self._asked:
            self._queued(text)
            return
        approved = _ANSWERS.get(text.strip().lower())
        if approved is None:
            self._write("Please answer y or n: ")
        else:
            self._answer(approved)

    def end(self) -> None:
        """Take no more inputs; those that are there are answered first.

        Nobody is there any more to say yes.
        """
        self._is_over = True
        self._inputs.put_nowait(None)
        while self._asked:
            self._answer(False)

    def interrupt(self) -> None:
        """Stop the answer that is under way; where there is none, end."""
        if self._turn is None:
            self.end()
        else:
            self._turn.cancel()

    def show(self, event: AgentEvent) -> None:
        """Write what the seed has no event for."""
        for line in self._lines.show(event):
            self._line(line)

    def on_new_message(self, message: NewMessage) -> None:
        """Write the answer."""
        self._line(message.content)

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Ask for a y or an n."""
        self._asked.append(request)
        warning = (request.security_warning or {}).get("reason", "")
        self._line(f"May {request.tool_name} be called? {warning}".rstrip())
        self._line(f"With: {shown_arguments(request.args)}")
        self._write("y or n: ")
        if self._is_over:
            self._answer(False)

    def on_ready_for_input(self) -> None:
        """Write the prompt."""
        self._write("> ")

    def on_agent_state_change(self, state: State) -> None:
        """Write what the agent does now."""
        self._line(f"[{state}]")

    def _queued(self, text: str) -> asyncio.Future[None]:
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inputs.put_nowait((text, answered))
        return answered

    def _answer(self, approved: bool) -> None:
        """Answer the question that was asked first."""
        asked = self._asked.popleft()
        if self._session is not None:
            self._session.provide_confirmation(asked.confirmation_id, approved)

    def _line(self, text: str) -> None:
        self._write(f"{without_controls(text)}\n")


class Typed:
    """The keyboard of a terminal, to which a listener gives what it reads."""

    def __init__(self, terminal: Terminal) -> None:
        """Belong to `terminal`."""
        self._terminal = terminal

    async def emit_input(self, text: str) -> None:
        """Pass it on; a `y` must not wait for the answer that waits for it."""
        self._terminal.take_typed(text)


def _tell(answered: asyncio.Future[None] | None) -> None:
    if answered is not None and not answered.done():
        answered.set_result(None)
