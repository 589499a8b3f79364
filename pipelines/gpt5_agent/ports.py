"""The interfaces that connect the agent to users, tools and listeners.

That of a model is `Provider` in openai_responses/loop/run.py, a preset is a `Guide`
(strategies/guide.py).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from gpt5_agent.events import AgentState, NewMessage, ToolCallRequested


class UserInterface(Protocol):
    """Shows the user what the agent does.

    The user's input goes to `Session.submit_user_input` and
    `Session.provide_confirmation`.
    """

    def on_new_message(self, message: NewMessage) -> None:
        """Show a complete answer."""

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Ask whether a call may be made."""

    def on_ready_for_input(self) -> None:
        """Let the user write."""

    def on_agent_state_change(self, state: AgentState) -> None:
        """Show what the agent is doing."""


class Tool(Protocol):
    """Something that the model can call; `args` is the JSON Schema of its arguments."""

    @property
    def name(self) -> str:
        """A name that no other tool has."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def args(self) -> Mapping[str, Any]:
        """The schema of the arguments."""

    async def execute(self, args: dict[str, Any]) -> Any:
        """Run it; the model gets what is returned, an exception is a failure."""


class HostFileError(Exception):
    """A file could not be stored or read; the text names no secret.

    The user and the model read it.
    """


StoreFile = Callable[[str, bytes], Awaitable[str]]
"""Stores a file with its name for the user; returns its address.

Raises HostFileError.
"""


class AgentContext(Protocol):
    """Takes the signals of a listener."""

    async def emit_input(self, text: str) -> None:
        """Take an input; returns once it is answered."""


class Listener(Protocol):
    """Receives input from outside and passes it on."""

    @property
    def name(self) -> str:
        """A name that no other listener has."""

    async def on_start(self, context: AgentContext) -> None:
        """Begin to listen; input goes to `context.emit_input`."""

    async def on_stop(self) -> None:
        """Stop and close everything."""
