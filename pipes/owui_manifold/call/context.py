"""A call of the pipe: as it arrives, and once it has been checked."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from manifold.models import answering_model, retirement
from openai_responses.clock import monotonic_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.items import content_parts
from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    value_at,
)
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.recent_texts import RecentTexts, UserReports
from openai_responses.repairs.memory import RepairMemory
from owui_manifold.call.agent import AgentMode, answering_name, find_agent
from owui_manifold.call.config import Config, named_models
from owui_manifold.call.log import RunLog
from owui_manifold.call.models import Listing
from owui_manifold.call.uploads import UploadMemory
from owui_manifold.call.valves import Valves
from owui_manifold.host.open_webui import EventEmitter, HostContext
from owui_manifold.host.threads import ToolThreads
from shells.administration import CallAccount
from shells.caller import (
    CHANNEL,
    ChatCaller,
    is_program,
    log_left_out,
    uses_older_calls,
    wants_format,
    wants_usage_chunk,
)
from strategies.parameters import StrategyParameters

_ROWLESS_CHATS = ("temporary:", "local:", CHANNEL)
"""Prefixes of chat ids without a row: temporary chats (old and new) and channels."""


class Caller(ChatCaller):
    """Who asks the pipe, and for which chat and message."""

    @property
    def model(self) -> str:
        """The model as the administrator listed it, without the function's id."""
        return self.host_model.split(".", 1)[-1]

    @property
    def function_id(self) -> str:
        """The id under which an administrator installed the pipe."""
        return self.host_model.split(".", 1)[0]

    @property
    def has_page(self) -> bool:
        """Whether the answer is one of a chat of Open WebUI's page, and no task."""
        return self.is_open_webui and not self.task

    @property
    def may_have_row(self) -> bool:
        """Whether the chat can have a row of its own in the database."""
        return self.is_open_webui and not self.chat_id.startswith(_ROWLESS_CHATS)

    @property
    def place(self) -> dict[str, str]:
        """The message or the channel whose readers may read the answer's files."""
        if self.may_have_row:
            return {"chat_id": self.chat_id, "message_id": self.message_id}
        if self.is_in_channel:
            return {"channel_id": self.chat_id.removeprefix(CHANNEL)}
        return {}


def read_caller(
    body: JsonObject,
    user: JsonObject,
    metadata: JsonObject,
    task: str | None,
    tools: Collection[str] = (),
    answering: JsonObject | None = None,
) -> Caller:
    """Return the caller from what the host passes to `pipe()`.

    Another function in a chat that offers others than the chat's `tools` is a program:
    it has to get their calls (Haervwe's planner passes the chat's metadata on). The
    `answering` model is the one that the host itself asks: of its chats, clients choose
    the tools, and the host would run the calls of a program without TOOL_APPROVAL.
    """
    name = str(task or "")
    host_model = str(body.get("model") or "")
    is_for_program = is_program(name)
    model = as_mapping(metadata.get("model")) if answering is None else answering
    if not name and model and not _is_model(host_model, model):
        for tool in content_parts(body.get("tools")):
            own = as_text(as_mapping(tool.get("function") or tool).get("name"))
            is_for_program = is_for_program or bool(own and own not in tools)
    return Caller(
        host_model=host_model,
        user_id=str(user.get("id") or ""),
        chat_id=str(metadata.get("chat_id") or ""),
        message_id="" if is_for_program else str(metadata.get("message_id") or ""),
        task="" if is_for_program else name,
        streams=bool(body.get("stream")),
        is_admin=user.get("role") == "admin",
        wants_usage_chunk=wants_usage_chunk(body),
        reads_older_calls=uses_older_calls(body),
        wants_format=wants_format(body),
    )


def is_chats_model(host_model: str, metadata: JsonObject) -> bool:
    """Say whether the chat asks this model; else another function in it does.

    In a chat with several models the metadata name the first (main.py:1831 of 0.12.4).
    """
    model = as_mapping(metadata.get("model"))
    chosen = metadata.get("selected_model_id")  # of an arena
    return not model or host_model == chosen or _is_model(host_model, model)


def _is_model(host_model: str, model: JsonObject) -> bool:
    """Say whether the host's entry is that of the model, or of one made of it."""
    return host_model in (model.get("id"), value_at(model, "info", "base_model_id"))


_MAX_REASONS = 50
_MAX_REASON_CHARACTERS = 64
"""Of why the API left something out: it says so, so both are limited."""


class PipeMemory(RecentTexts):
    """What all calls of the pipe share: what they remember of keys, models and files.

    Itself it knows which notices were shown and logged.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        super().__init__(now=now)
        self.listed = Listing()
        self.repairs = RepairMemory(now)
        self.uploads = UploadMemory(now)
        self.threads = ToolThreads()
        """Where tools run that are not coroutines."""
        self.refused_uploads = UserReports(now=now)
        """Accounts that take no files for Python, by the users who met it."""
        self.left_out = RecentTexts(now=now)
        """What the log has said of callers' requests: they choose the names in it."""
        self.dropped = Counter[str]()
        """How often the API left items out of the input, by its reasons."""

    def count_dropped(self, removed: Mapping[str, int]) -> None:
        """Count what the API left out of an input."""
        for reason, count in removed.items():
            name = reason[:_MAX_REASON_CHARACTERS]
            if name in self.dropped or len(self.dropped) < _MAX_REASONS:
                self.dropped[name] += count


@dataclass(frozen=True, kw_only=True)
class ArrivedCall:
    """Who asks the pipe, on which host, under which settings; nothing is checked yet."""

    body: JsonObject
    caller: Caller
    config: Config
    memory: PipeMemory
    log: RunLog
    host: HostContext

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Those of the body; none if it has no list of them."""
        return as_list(self.body.get("messages"))

    def answering_agent(self) -> AgentMode | None:
        """Return how an agent answers; None if none does. Tasks have no agent."""
        if self.caller.task:
            return None
        name = self.caller.model
        switched = self.config.wants_agent
        return find_agent(name, self.config.agent, is_switched=switched)

    def page_emitter(self) -> EventEmitter | None:
        """Return what sends events apart from the answer; None if no page shows them.

        The host stores some of them, and raises what its database reports: a line that
        is lost is no reason to lose the answer.
        """
        emit = self.host.event_emitter
        if emit is None or not self.caller.has_page:
            return None

        async def emit_if_possible(event: JsonObject) -> None:
            with suppress(Exception):
                await emit(event)

        return emit_if_possible

    def note_left_out(self, left_out: Mapping[str, str], advice: str = "") -> None:
        """Log what a request lost, with the reason of each; each once a day for a caller.

        With `advice`, an administrator can change that.
        """
        log_left_out(self.log, self.caller, left_out, self.memory.left_out, advice)


@dataclass(frozen=True, kw_only=True)
class Call(ArrivedCall):
    """A call with its endpoint and model, whose body has only what the caller may set.

    Its tools, limits and files are checked later.
    """

    account: CallAccount | None
    """What the administration's filter decides about it, if the filter is active."""
    endpoint: Endpoint
    """Where its requests go."""
    models: Mapping[str, ResolvedModel]
    """The administrator's models and the agents, by name; no user can change them."""
    model: ResolvedModel
    """What answers it."""
    agent: AgentMode | None
    """How an agent answers, if one does."""

    @property
    def valves(self) -> Valves:
        """The administrator's settings, with what the user chose in their place."""
        return self.config.valves

    @property
    def agent_parameters(self) -> StrategyParameters | None:
        """Those of the agent, if one answers."""
        return self.agent.parameters if self.agent else None

    @property
    def model_id(self) -> str:
        """The host's id of the model that was chosen, maybe one of its workspace."""
        return str(self.host.metadata.get("model_id") or self.caller.host_model)

    @property
    def model_name(self) -> str:
        """The name in MODEL_ID or AGENT_JSON of the model that answers."""
        return answering_name(self.caller.model, self.config.agent)

    def warn_once(self, text: str) -> None:
        """Write a line in the log, once a day."""
        self.log.warn_once(text, self.memory)

    def resolve(self, name: str) -> ResolvedModel:
        """Return a model with the administrator's overrides."""
        return resolve_model(name, self.models)

    def retirement(self, name: str) -> str:
        """Return the notice about the end of a model, if it is near.

        An agent is named by the model that answers for it: that is what ends.
        """
        model = self.resolve(answering_name(name, self.config.agent))
        listed = self.memory.listed.as_listed(model, self.endpoint)
        return retirement(listed, self.endpoint)


def resolve_call(
    arrived: ArrivedCall, endpoint: Endpoint, account: CallAccount | None = None
) -> Call:
    """Return a call with the model that answers it at an endpoint.

    Raises InvalidRequest for unusable overrides.
    """
    models = named_models(arrived.config.valves)
    chosen = resolve_model(arrived.caller.model, models)
    listed = arrived.memory.listed.as_listed(chosen, endpoint)
    return Call(
        **vars(arrived),
        account=account,
        endpoint=endpoint,
        models=models,
        model=answering_model(listed, endpoint),
        agent=arrived.answering_agent(),
    )
