"""One call of the pipe: who asks, and what the host passes.

Who asks, and who reads the answer.

One call of the pipe: what was asked, and the request that it comes to.

Whose key a request is sent with: the pipe's, or the own one of the user who asks.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from openai_responses.endings import Ending
from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from openai_responses.models.resolve import (
    Overrides,
    ResolvedModel,
    read_overrides,
    resolve_with_overrides,
)
from owui_manifold.config import AccountCapabilities, build_endpoint
from owui_manifold.log import RunLog
from owui_manifold.rounds import known_sources
from owui_manifold.valves import UserValves, Valves

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class HostContext:
    """What the host gave the pipe beside the chat, for those who run its tools."""

    tools: Mapping[str, Mapping[str, Any]]
    request: Any
    metadata: Mapping[str, Any]
    body: Mapping[str, Any]
    event_call: EventCall | None
    event_emitter: Any


_ROWLESS_CHATS = ("temporary:", "local:", "channel:")
"""Chat ids that name no row: temporary chats, in both spellings, and channels."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What one call of the pipe is about.

    `host_model` is the host's id of the model, `{function id}.{model}`; `task` the
    name of a small job of the host, or empty; `is_admin` whether an administrator
    asks.
    """

    host_model: str
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    streams: bool = False
    is_admin: bool = False

    @property
    def model(self) -> str:
        """The model as the administrator listed it.

        Everything in front of the first dot is the id of the function, which the
        administrator chose freely.
        """
        return self.host_model.split(".", 1)[-1]

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly when the request has both ids (utils/middleware.py:3028); a
        session id only decides who can answer a dialog.
        """
        return bool(self.chat_id and self.message_id)

    @property
    def may_have_row(self) -> bool:
        """Whether the chat can have a row of its own in the database."""
        return self.host_reads and names_a_row(self.chat_id)


def names_a_row(chat_id: str) -> bool:
    """Say whether a chat of this id is stored in the database."""
    return bool(chat_id) and not chat_id.startswith(_ROWLESS_CHATS)


def read_caller(
    body: Mapping[str, Any],
    user: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    task: str | None,
) -> Caller:
    """Return the caller from what the host passes to `pipe()`."""
    facts = metadata or {}
    return Caller(
        host_model=str(body.get("model") or ""),
        user_id=str((user or {}).get("id") or ""),
        chat_id=str(facts.get("chat_id") or ""),
        message_id=str(facts.get("message_id") or ""),
        task=str(task or ""),
        streams=bool(body.get("stream")),
        is_admin=(user or {}).get("role") == "admin",
    )


@dataclass(frozen=True, slots=True)
class PipeCall:
    """One call of the pipe: what the host passes, and where to write lines.

    `state` is the state of the host's request; `lessons` and `threads` are those of
    the pipe.
    """

    body: Mapping[str, Any]
    caller: Caller
    valves: Valves
    user_valves: UserValves
    state: Any
    capabilities: AccountCapabilities
    log: RunLog
    host: HostContext
    threads: Executor

    @property
    def known_sources(self) -> Sequence[str]:
        """The keys of the sources that the page has of the message already."""
        message_id = self.caller.message_id
        return known_sources(self.state, message_id, self.host.metadata)


def model_of(asked: PipeCall) -> ResolvedModel:
    """Return the model that was asked, by what the administrator says of it first."""
    return resolve_with_overrides(asked.caller.model, overrides_of(asked.valves))


def overrides_of(valves: Valves) -> Overrides:
    """Return what MODEL_OVERRIDES_JSON says; raises InvalidRequest."""
    return read_overrides(valves.MODEL_OVERRIDES_JSON)


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a body; no list of them is none."""
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


_NO_OWN_KEY = (
    "This pipe wants an OpenAI API key of your own. Set API_KEY in your settings of "
    "this pipe: the slider icon beside the chat input, or Controls > Valves."
)
_WRONG_OWN_KEY = (
    "OpenAI does not accept your own API key. Check API_KEY in your settings of this "
    "pipe: the slider icon beside the chat input, or Controls > Valves."
)
_BILLED_HEADERS = frozenset(
    {"authorization", "api-key", "openai-organization", "openai-project"}
)
_UNAUTHORIZED = 401


def own_key(asked: PipeCall) -> str:
    """Return the user's own key, if the administrator lets them use one."""
    allowed = asked.valves.USER_API_KEYS != "off"
    return asked.user_valves.API_KEY.strip() if allowed else ""


def user_endpoint(asked: PipeCall) -> Endpoint:
    """Return where a user's requests go; raises InvalidRequest for what cannot work.

    What names the account of the administrator goes with the administrator's key only.
    """
    key = own_key(asked)
    if not key:
        if asked.valves.USER_API_KEYS == "required" and not asked.caller.is_admin:
            raise InvalidRequest(_NO_OWN_KEY)
        return build_endpoint(asked.valves)
    endpoint = build_endpoint(asked.valves, key)
    rest = {
        name: text
        for name, text in endpoint.extra_headers.items()
        if name.lower() not in _BILLED_HEADERS
    }
    return replace(endpoint, organization="", project="", extra_headers=rest)


def correct_ending(asked: PipeCall, ending: Ending, status: int | None) -> Ending:
    """Return the ending of a run; a wrong key is told to the one who can correct it."""
    if status == _UNAUTHORIZED and own_key(asked):
        return replace(ending, sentence=_WRONG_OWN_KEY)
    return ending
