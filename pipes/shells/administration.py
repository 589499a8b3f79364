"""What the pipe and the filter for administrators agree on.

They are installed as separate files, each with its own copy of this module, and a test
checks both against these protocols. So only plain data goes between them, and events of
the pipe, which the filter passes back without reading them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypedDict, TypeVar

ADMINISTRATION_ID = "openai_responses_administration"
"""The id with which the filter has to be installed: the pipe finds it by that."""

ADMINISTRATION_CONTRACT = 2
"""The number of what this module describes. Files of different releases work together
as long as they have the same; whoever changes what goes between them raises it."""

MILLIONTHS = 1_000_000
"""Of a US dollar: money is counted in whole ones, here and in the filter's table."""

_PipeEvent = TypeVar("_PipeEvent")
_ToolOutcome = TypeVar("_ToolOutcome")


class CallFacts(TypedDict):
    """What the filter gets to know of one call of the pipe."""

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
"""A call about which nothing is known."""


class Purchases(NamedTuple):
    """What the money of responses bought; money is in millionths of a US dollar.

    The first two say of which requests the prices are known; counts of tokens and calls
    are those of all. What is left of `itemized_money` paid for the input. Tasks and
    agents are a view of their own: their money is in the other fields, too. The names are
    those of the filter's table.
    """

    itemized: int = 0
    """Requests."""
    itemized_money: int = 0
    input: int = 0
    """Tokens, as in `cache_writes`, `reasoning` and `answers`."""
    saved: int = 0
    """What the same tokens would have cost more without a cache."""
    cache_writes: int = 0
    reasoning: int = 0
    reasoning_money: int = 0
    answers: int = 0
    answer_money: int = 0
    searches: int = 0
    """Calls, on the web and in files."""
    search_money: int = 0
    images: int = 0
    image_money: int = 0
    containers: int = 0
    """In which Python ran."""
    container_money: int = 0
    tasks: int = 0
    """Requests, as in `agents`."""
    task_money: int = 0
    agents: int = 0
    agent_money: int = 0


NO_PURCHASES = Purchases()


class ResponseCounts(NamedTuple):
    """What responses used: requests, and tokens; `cached` is part of `input`."""

    requests: int
    input: int
    cached: int
    output: int
    bought: Purchases = NO_PURCHASES


class EventWords(NamedTuple):
    """The kind of an event of a run; for the last one also how the run ended."""

    word: Literal["", "text", "retry", "recovery", "end"] = ""
    kind: str = ""
    """The kind of the ending."""
    code: str | None = None
    """The code of the ending."""
    model: str = ""
    """The model that answered."""


SaveFile: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Takes a name and a text."""


class UsageAllowance(Protocol):
    """What the user of a call may use."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the rules alone, whoever calls; empty texts say nothing."""

    def refusal(self, model: str, has_price: bool) -> str:
        """Return why the request is not sent, or an empty text.

        `model` is the API's name, with `-pro` or `-research` for the mode.
        """

    def forbidden_tools(self) -> Sequence[str]:
        """Return the types of OpenAI's tools that are not offered."""

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the effort to send instead of one that is not allowed, or empty."""

    def notices(self) -> Sequence[str]:
        """Return the lines about what is left, if a rule wants them shown."""

    def complaints(self) -> Sequence[str]:
        """Return what is wrong with the rules or their table, if an administrator calls."""

    @property
    def is_counting(self) -> bool:
        """Whether usage is counted at all."""

    def usage_answer(
        self, text: str, save_file: SaveFile | None = None
    ) -> AsyncGenerator[str, None] | None:
        """Return the lines that answer `/usage`; None for other texts.

        `save_file` stores a text under a name for the page that reads the answer, and
        returns its address, or nothing if the host refuses it. Without it no page reads.
        """


class EndpointQueue(Protocol):
    """The entries of ENDPOINTS_JSON that may answer a call, the chosen one first."""

    @property
    def problem(self) -> str:
        """Why no entry can be used; empty if one can."""

    def valves(self) -> Mapping[str, str]:
        """Return the values that replace valves of the pipe."""

    def return_to(self, host: str, scope_id: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say if it was another one."""

    def lost_reasoning_notice(self, host: str, scope_id: str) -> str:
        """Return the notice if the entry cannot read a chat's reasoning, else empty."""

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return the notice, empty if none is."""


class EndpointTrial(NamedTuple):
    """One entry of ENDPOINTS_JSON, to be tried out."""

    model: str
    """One of those that it is for."""
    endpoints: EndpointQueue
    """It alone."""


class CallAccount(Protocol):
    """Decides about one call of the pipe, and counts its usage."""

    @property
    def limits(self) -> UsageAllowance:
        """What its user may use."""

    @property
    def endpoints(self) -> EndpointQueue | None:
        """Where it is answered; None if the valves of the pipe decide."""

    def endpoint_trials(self, models: Sequence[str]) -> Sequence[EndpointTrial]:
        """Return each entry of ENDPOINTS_JSON, whomever it is for, with a model.

        It is the first of `models` that the entry is for, or the first of all.
        """

    def count_responses(
        self, model: str, counts: ResponseCounts, cost: float | None
    ) -> str:
        """Count responses; return why the run ends, or an empty text.

        The cost is in US dollars, None if it is unknown.
        """

    def observe_run(
        self,
        events: AsyncGenerator[_PipeEvent, None],
        model: str,
        address: str,
        describe: Callable[[_PipeEvent], EventWords],
    ) -> AsyncGenerator[_PipeEvent, None]:
        """Return the events of a run, measured if the host exports telemetry.

        `address` is the server's. `describe` is called for each event.
        """

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_ToolOutcome],
        has_failed: Callable[[_ToolOutcome], bool],
    ) -> _ToolOutcome:
        """Return the result of a tool, measured if the host exports telemetry."""

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        """Return a token of Microsoft Entra ID and an empty text, or the problem."""


class Administration(Protocol):
    """The filter, while it is active."""

    async def begin(self, facts: CallFacts) -> CallAccount:
        """Return what decides about one call, and counts its usage."""
