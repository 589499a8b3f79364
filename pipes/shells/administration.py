"""What the pipe and the filter for administrators agree on.

They are files of their own, and each has a copy of this module: a test holds them to
these protocols. So only plain data goes between them, and events of the pipe, which the
filter hands back unread.
"""

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from typing import Literal, NamedTuple, Protocol, TypedDict, TypeVar

_PipeEvent = TypeVar("_PipeEvent")
_ToolOutcome = TypeVar("_ToolOutcome")


class CallFacts(TypedDict):
    """What the filter is told of one call of the pipe."""

    user_id: str
    email: str
    role: str
    """As the host calls it: `admin`, `user`."""
    model: str
    """As the pipe lists it."""
    host_model: str
    """As the host lists it, with the id of the function in front."""
    task: str
    """The name of a task of the host, or empty."""
    base_url: str
    """That of the pipe's valves."""
    has_own_key: bool
    """Whether a key of the user's own is sent."""
    user_pays: bool
    """Whether that key pays: nothing of the administrator's goes out with it."""


UNKNOWN_CALL = CallFacts(
    user_id="",
    email="",
    role="",
    model="",
    host_model="",
    task="",
    base_url="",
    has_own_key=False,
    user_pays=False,
)
"""A call of which nothing is known."""


class ResponseCounts(NamedTuple):
    """What responses used: requests, and tokens; `cached` is part of `input`."""

    requests: int
    input: int
    cached: int
    output: int


class EventWords(NamedTuple):
    """What an event of a run is, and of the last one how the run ended."""

    word: Literal["", "text", "retry", "recovery", "end"] = ""
    kind: str = ""
    """Of the ending."""
    code: str | None = None
    """Of the ending."""
    model: str = ""
    """The one that answered."""


class UsageAllowance(Protocol):
    """What the user of a call may use."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the rules, for administrators; empty texts say nothing."""

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

    def return_to(self, host: str, scope_id: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say whether that changes it."""

    def lost_reasoning_notice(self, host: str, scope_id: str) -> str:
        """Return what to say if the entry cannot read a chat's reasoning, or nothing."""

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return what to say, or nothing."""


class EndpointTrial(NamedTuple):
    """One entry of ENDPOINTS_JSON, to be tried out."""

    model: str
    """One of those that it is for."""
    endpoints: EndpointQueue
    """It alone."""


class CallAccount(Protocol):
    """What decides about one call of the pipe, and takes what it used."""

    @property
    def limits(self) -> UsageAllowance:
        """What its user may use."""

    @property
    def endpoints(self) -> EndpointQueue | None:
        """Where it is answered; None where the valves of the pipe say that."""

    def endpoint_trials(self, models: Sequence[str]) -> Sequence[EndpointTrial]:
        """Return each entry of ENDPOINTS_JSON, whomever it is for, with a model.

        It is the first of `models` that the entry is for, or the first of all.
        """

    def count_responses(
        self, model: str, counts: ResponseCounts, cost: float | None
    ) -> str:
        """Count responses; return why the run ends, or nothing.

        The cost is in US dollars, None if it is unknown.
        """

    def observe_run(
        self,
        events: AsyncGenerator[_PipeEvent, None],
        model: str,
        address: str,
        describe: Callable[[_PipeEvent], EventWords],
    ) -> AsyncGenerator[_PipeEvent, None]:
        """Return the events of a run, measured if the host exports that.

        `address` is the server's. `describe` is asked about each event.
        """

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_ToolOutcome],
        has_failed: Callable[[_ToolOutcome], bool],
    ) -> _ToolOutcome:
        """Return the result of a tool, measured if the host exports that."""

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        """Return a token of Microsoft Entra ID, or else what is wrong."""


class Administration(Protocol):
    """The filter, while it is active."""

    async def begin(self, facts: CallFacts) -> CallAccount:
        """Return what decides about one call, and takes its usage."""
