"""What the pipe asks of the filter for administrators.

The filter is a file of its own (`owui_administration`), so neither imports the other: a
test holds the two to these protocols. Only plain data goes between them, and events of
the pipe, which the filter hands back unread.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent, RunEvents
from openai_responses.loop.tools import ToolResult

DescribeEvent = Callable[[RunEvent], tuple[str | None, ...]]
"""Returns what an event is, in words that the filter knows (`event_words`)."""


class UsageAllowance(Protocol):
    """What the user of a call may use."""

    def refusal(self, model: str, has_price: bool) -> str:
        """Return why the request is not sent, or nothing.

        `model` is the API's name, with `-pro` for the mode.
        """

    def forbidden_tools(self) -> Sequence[str]:
        """Return the types of OpenAI's tools that are not offered."""

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the effort to send instead of one that is not allowed, or nothing."""

    def notices(self) -> Sequence[str]:
        """Return the lines that stand above an answer."""

    def usage_answer(self, text: str) -> AsyncGenerator[str, None] | None:
        """Return the lines that answer `/usage`; None for other texts."""


class EndpointQueue(Protocol):
    """Where a call is answered: an entry of ENDPOINTS_JSON, and those after it."""

    @property
    def problem(self) -> str:
        """Why nothing can be sent, or nothing; then there is no entry."""

    def valves(self) -> Mapping[str, str]:
        """Return what replaces valves of the pipe."""

    def return_to(self, host: str, owner: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say whether that changes it."""

    def lost_reasoning_notice(self, host: str, owner: str) -> str:
        """Return what to say if the entry cannot read a chat's reasoning, or nothing."""

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return what to say, or nothing."""


class CallAccount(Protocol):
    """What decides about one call of the pipe, and takes what it used."""

    @property
    def limits(self) -> UsageAllowance:
        """What its user may use."""

    @property
    def endpoints(self) -> EndpointQueue | None:
        """Where it is answered; None where the valves of the pipe say that."""

    def count_responses(
        self, model: str, counts: tuple[int, int, int, int], cost: float | None
    ) -> str:
        """Count responses; return why the run ends, or nothing.

        `counts`: requests, input tokens, cached ones of them, output tokens. The cost
        is in US dollars, None if it is unknown.
        """

    def observe_run(
        self, events: RunEvents, model: str, address: str, describe: DescribeEvent
    ) -> RunEvents:
        """Return the events of a run, measured if the host exports that."""

    def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, ToolResult],
        has_failed: Callable[[ToolResult], bool],
    ) -> Coroutine[Any, Any, ToolResult]:
        """Return the result of a tool, measured if the host exports that."""

    def entra_token(
        self, base_url: str, scope: str
    ) -> Coroutine[Any, Any, tuple[str, str]]:
        """Return a token of Microsoft Entra ID, or else what is wrong."""


class Administration(Protocol):
    """The filter, while it is active."""

    def begin(self, facts: JsonObject) -> Coroutine[Any, Any, CallAccount]:
        """Return what decides about one call; `facts` are `PipeCall.facts`."""
