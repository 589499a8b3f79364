"""The question to the agent, with its settings."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from gpt5_agent.pictures import PictureMemory
from gpt5_agent.ports import StoreFile, Tool
from openai_responses.callbacks import ignore_report
from openai_responses.endpoint import Endpoint
from openai_responses.loop.attempt import Limits
from openai_responses.loop.tools import Approver, CallLimits
from openai_responses.models.resolve import ResolvedModel
from openai_responses.redaction import redact
from openai_responses.repairs.memory import RepairMemory
from openai_responses.requests.build import ResponsesRequest, Settings
from openai_responses.transport.connections import Connections
from owui_chat.storage.signature import Sign, signer
from strategies.metadata import RunMetadata
from strategies.parameters import StrategyParameters


class OwnToolSettings(NamedTuple):
    """The tools that run here.

    With `asks_in_chat` an approval is requested through the host, which shows a card
    and calls the agent again; without, `approver.ask` is awaited. If it `delegates`,
    the agent may give tasks to other runs of itself. `store_file` gives files of tools
    to the user.
    """

    tools: Sequence[Tool] = ()
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    asks_in_chat: bool = False
    delegates: bool = False
    store_file: StoreFile | None = None


def show_always(name: str) -> bool:  # noqa: ARG001
    """Say that a notice was not shown before."""
    return True


class AgentRequest(NamedTuple):
    """One question to the agent.

    `body` holds the caller's other keys, `query` the question if it is not in the
    messages, `notices` what is read above the answer if its name `is_new`.
    `chat` names the user and the chat for which approvals are kept; without it each
    counts once. `on_request` is called with what is sent first, and `on_end` once,
    however the answer ends.
    """

    strategy: str
    model: ResolvedModel
    """The one that answers."""
    parameters: StrategyParameters
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    endpoint: Endpoint
    connections: Connections
    signing_secret: str
    """What only the copies of this pipeline have."""
    limits: Limits = Limits()
    settings: Settings = Settings()
    own_tools: OwnToolSettings = OwnToolSettings()
    query: str = ""
    notices: Mapping[str, str] = MappingProxyType({})
    """By the names under which it is remembered that they were shown."""
    is_new: Callable[[str], bool] = show_always
    chat: str = ""
    log: Callable[[str], object] = ignore_report
    redacted: Callable[[str], str] = redact
    """Returns a text for the model without what only the server may know."""
    debug: bool = False
    on_request: Callable[[ResponsesRequest], object] = ignore_report
    on_end: Callable[[RunMetadata], object] = ignore_report
    user_id: str = ""
    repairs: RepairMemory | None = None
    """What earlier refusals showed; without it nothing is remembered."""
    pictures: PictureMemory | None = None
    """What the model saw in earlier rounds of this answer."""

    @property
    def sign(self) -> Sign:
        """Signs what the messages carry of an answer.

        The signature holds for one user and one chat: a call that waits, a style of
        policies or an approval that another chat brought about is not gone on with
        here. Clients without a chat share one.
        """
        purpose = f"gpt5_agent reasoning_details {self.chat}".rstrip()
        return signer(self.signing_secret, purpose)
