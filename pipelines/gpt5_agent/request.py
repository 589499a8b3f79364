"""The question to the agent: who asks, and under which settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.pictures import PictureMemory
from gpt5_agent.ports import StoreFile, Tool
from openai_responses.endpoint import Endpoint
from openai_responses.loop.tools import Approver, CallLimits
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.memory import RepairMemory
from openai_responses.requests.build import Settings
from openai_responses.requests.replay import Origin, origin_at
from owui_chat.storage.signature import Sign, signer
from shells.answer_log import AnswerLog
from shells.caller import ChatCaller
from strategies.parameters import StrategyParameters


class PipelineCaller(ChatCaller):
    """Which message of which chat is answered, or which task of the host."""

    @property
    def can_ask(self) -> bool:
        """Whether the host can show a card: it needs a stream."""
        return self.is_open_webui and self.streams

    @property
    def workspace(self) -> str:
        """The key of what is kept for a user's chat, such as files and approvals.

        Empty without a chat: each approval counts once.
        """
        return f"{self.user_id}/{self.chat_id}" if self.chat_id else ""

    @property
    def answer(self) -> str:
        """The key of what is kept for one answer; empty without a chat."""
        return f"{self.workspace}/{self.message_id}" if self.chat_id else ""


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


class AgentRequest(NamedTuple):
    """One question to the agent.

    `body` holds the caller's other keys.
    """

    strategy: str
    model: ResolvedModel
    """The one that answers."""
    parameters: StrategyParameters
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    endpoint: Endpoint
    log: AnswerLog
    signing_secret: str
    """What only the copies of this pipeline have."""
    repairs: RepairMemory
    """What earlier refusals showed."""
    caller: PipelineCaller = PipelineCaller()
    settings: Settings = Settings()
    own_tools: OwnToolSettings = OwnToolSettings()
    take_notices: Callable[[], Sequence[str]] = tuple
    """Returns what is read above a complete answer; it is shown then."""
    has_wish: bool = False
    """Whether the last message only says how to answer the one before it again."""
    debug: bool = False
    pictures: PictureMemory | None = None
    """What the model saw in earlier rounds of this answer; a task has none."""

    @property
    def origin(self) -> Origin:
        """What makes the reasoning of the answer."""
        return origin_at(self.model.family, self.endpoint)

    @property
    def sign(self) -> Sign:
        """Signs what the messages carry of an answer.

        The signature holds for one user and one chat: a call that waits, a style of
        policies or an approval that another chat brought about is not gone on with
        here. Clients without a chat share one.
        """
        purpose = f"gpt5_agent reasoning_details {self.caller.workspace}".rstrip()
        return signer(self.signing_secret, purpose)
