"""The terminal as the agent's user interface: input lines, output lines, approval with y or n.

Text from elsewhere is written without control characters, because a terminal would execute them.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from shutil import get_terminal_size

from gpt5_agent.events import (
    AgentEvent,
    AgentOnlyEvent,
    AgentState,
    ExecutionEnded,
    NewMessage,
    StepStarted,
    ToolCallRequested,
)
from gpt5_agent.terminal.session import Session
from gpt5_agent.tools.approval_cards import one_line_json
from openai_responses.items import is_call, is_reasoning
from openai_responses.json_input import as_list, as_mapping
from openai_responses.loop.events import (
    GIVEN_UP,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.transport.stream import ItemDone
from owui_chat.wording import with_escapes
from shells.valve_messages import PIPELINE_SHELL, advised_ending
from strategies.context import ContextSource
from strategies.thoughts import RunTexts

_MAX_OUTPUT_CHARACTERS = 2_000


def _format_run_event(event: RunEvent) -> Iterator[str]:
    """Yield the lines of an event of the API's run; none for most of them."""
    match event:
        case ItemDone() if is_reasoning(event.item):
            for part in as_list(event.item.get("summary")):
                text = as_mapping(part).get("text")
                if text:
                    yield _mark_lines("~", text)
        case ItemDone() if is_call(event.item):
            arguments = event.item.get("arguments", event.item.get("input", ""))
            yield _mark_lines("*", f"{event.item.get('name')} {arguments}")
        case ToolOutput():
            output = event.item.get("output")
            text = output if isinstance(output, str) else json.dumps(output)
            if len(text) > _MAX_OUTPUT_CHARACTERS:
                text = f"{text[:_MAX_OUTPUT_CHARACTERS]} [...]"
            yield _mark_lines("!" if event.failed else "=", text)
        case Status():
            yield f"[{event.message}]"
        case RunDone() if event.ending.is_failure:
            yield f"[{advised_ending(event.ending, PIPELINE_SHELL).message}]"


def _mark_lines(mark: str, text: object) -> str:
    """Return a text from elsewhere with a mark, and its further lines indented.

    It may come while the user is asked about another call: no line of it may look like
    a question, nor one that the terminal begins where a line is too long.
    """
    columns = get_terminal_size().columns - 2
    rows: list[str] = []
    for line in f"{mark} {text}".expandtabs(4).split("\n"):
        most = max(1, columns if line.isascii() else columns // 2)  # some take two
        rows += [line[at : at + most] for at in range(0, len(line) or 1, most)]
    return "\n  ".join(rows)


_CONFIRMATION_WORDS = {"y": True, "yes": True, "n": False, "no": False}

_WaitingInput = tuple[str, asyncio.Future[None]]
"""An input, with the future that is resolved once it is answered."""


class Terminal:
    """Writes what happens, takes what is typed; one input is answered after another."""

    def __init__(self, write: Callable[[str], object], *, emits_thoughts: bool) -> None:
        """Write nothing yet; `write` gets texts with their line ends."""
        self._write = write
        self._texts = RunTexts(are_shown=emits_thoughts)
        self._called: dict[int, str] = {}
        """The names of the calls that this round has written, by their indexes."""
        self._inputs: asyncio.Queue[_WaitingInput | None] = asyncio.Queue()
        self._pending_requests: deque[ToolCallRequested] = deque()
        self._session: Session | None = None
        self._turn: asyncio.Task[None] | None = None
        self._is_over = False

    async def converse(self, session: Session) -> None:
        """Answer inputs until there are no more."""
        self._session = session
        self.on_ready_for_input()
        try:
            while (pending := await self._inputs.get()) is not None:
                text, answered = pending
                await self._answer_input(session, text)
                _set_answered(answered)
        finally:
            # No one answers the inputs that are left; whoever waits for one goes on.
            while not self._inputs.empty():
                pending = self._inputs.get_nowait()
                if pending is not None:
                    _set_answered(pending[1])

    async def _answer_input(self, session: Session, text: str) -> None:
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
            self._pending_requests.clear()

    async def emit_input(self, text: str) -> None:
        """Take the input of a listener; returns once it is answered."""
        await self._queue_input(text)

    def receive_line(self, text: str) -> None:
        """Take what the user typed: the answer to a question, if there is one."""
        if not self._pending_requests:
            self._queue_input(text)
            return
        approved = _CONFIRMATION_WORDS.get(text.strip().lower())
        if approved is None:
            self._write("Please answer y or n: ")
        else:
            self._answer(approved)

    def end(self) -> None:
        """Take no more inputs; earlier ones are answered first, and requests denied."""
        self._is_over = True
        self._inputs.put_nowait(None)
        while self._pending_requests:
            self._answer(False)

    def interrupt(self) -> None:
        """Stop the answer that is under way; where there is none, end."""
        if self._turn is None:
            self.end()
        else:
            self._turn.cancel()

    def show(self, event: AgentEvent) -> None:
        """Write events that `UserInterface` has no method for."""
        match event:
            case StepStarted(begins_round=True):
                self._texts.begin_round(may_call=event.may_call)
                self._called.clear()
            case ContextSource():
                self._line(f"[given: {event.name}]")
            case ExecutionEnded():
                self._line(f"[{event.metadata.describe()}]")
            case _ if not isinstance(event, AgentOnlyEvent):
                for shown in self._texts.feed(event):
                    for line in _format_run_event(shown):
                        self._line(line)
                    match shown:
                        case ItemDone(index, item) if is_call(item):
                            self._called[index] = str(item.get("name"))
                        case ItemDone(index, item) if item == GIVEN_UP:
                            # A page takes the card away; a written line stays.
                            name = self._called.pop(index, "")
                            if name:
                                self._line(_mark_lines("*", f"{name} is not called"))

    def on_new_message(self, message: NewMessage) -> None:
        self._line(message.content)

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Ask for a y or an n."""
        self._pending_requests.append(request)
        warning = (request.security_warning or {}).get("reason", "")
        name = with_escapes(request.tool_name)
        self._line(f"May {name} be called? {warning}".rstrip())
        self._line(_mark_lines("With:", one_line_json(request.args)))
        self._write("y or n: ")
        if self._is_over:
            self._answer(False)

    def on_ready_for_input(self) -> None:
        """Write the prompt."""
        self._write("> ")

    def on_agent_state_change(self, state: AgentState) -> None:
        self._line(f"[{state}]")

    def _queue_input(self, text: str) -> asyncio.Future[None]:
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inputs.put_nowait((text, answered))
        return answered

    def _answer(self, approved: bool) -> None:
        """Answer the oldest request."""
        request = self._pending_requests.popleft()
        if self._session is not None:
            self._session.provide_confirmation(request.confirmation_id, approved)

    def _line(self, text: str) -> None:
        """Write a line, with nothing in it that a terminal obeys."""
        kept: list[str] = []
        for character in text:
            is_safe = character.isprintable() or character in "\n\t"
            kept.append(character if is_safe else "\N{REPLACEMENT CHARACTER}")
        self._write(f"{''.join(kept)}\n")


class KeyboardContext:
    """The keyboard of a terminal, to which a listener gives what it reads."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def emit_input(self, text: str) -> None:
        """Pass it on; a `y` must not wait for the answer that waits for it."""
        self._terminal.receive_line(text)


def _set_answered(answered: asyncio.Future[None]) -> None:
    """Let whoever waits for an answer go on; they may have left."""
    if not answered.done():
        answered.set_result(None)
