"""One call of the pipe: what was asked, and the request that it comes to."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.exchange import Limits
from openai_responses.models import ResolvedModel
from openai_responses.origin import Origin
from openai_responses.overrides import Overrides, read_overrides, resolve_overridden
from openai_responses.request import ResponsesRequest
from openai_responses.toolset import Toolset
from owui_manifold.caller import Caller
from owui_manifold.host_tools import Surroundings
from owui_manifold.learned import Lessons
from owui_manifold.log import RunLog
from owui_manifold.rounds import Round, sources_so_far
from owui_manifold.store import ChatStore
from owui_manifold.valves import UserValves, Valves


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of the pipe: what the host passes, and where to write lines.

    `state` is the state of the host's request; `lessons` and `threads` are those of
    the pipe.
    """

    body: Mapping[str, Any]
    caller: Caller
    valves: Valves
    user_valves: UserValves
    state: Any
    lessons: Lessons
    log: RunLog
    around: Surroundings
    threads: Executor

    @property
    def known_sources(self) -> Sequence[str]:
        """The keys of the sources that the page has of the message already."""
        message_id = self.caller.message_id
        return sources_so_far(self.state, message_id, self.around.metadata)


@dataclass(frozen=True, slots=True)
class Job:
    """One request, and where its answer is kept.

    `store` is None where nothing is kept; `before` is the round of the host's tools
    that this call goes on from; without a `toolset` nothing is answered here; `notices`
    are sentences for the person who asked.
    """

    asked: Asked
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    before: Round | None = None
    toolset: Toolset | None = None
    notices: tuple[str, ...] = ()

    @property
    def runs_calls(self) -> bool:
        """Whether calls are answered here; if not, they are the host's."""
        return self.toolset is not None and self.toolset.runs_calls


def model_of(asked: Asked) -> ResolvedModel:
    """Return the model that was asked, by what the administrator says of it first."""
    return resolve_overridden(asked.caller.model, overrides_of(asked.valves))


def overrides_of(valves: Valves) -> Overrides:
    """Return what MODEL_OVERRIDES_JSON says; raises InvalidRequest."""
    return read_overrides(valves.MODEL_OVERRIDES_JSON)


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a body; no list of them is none."""
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []
