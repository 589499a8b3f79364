"""One call of the pipe: who asks, what the host passes, and whose key is used."""

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
    """What the host passes beside the chat, for the tools that are run."""

    tools: Mapping[str, Mapping[str, Any]]
    request: Any
    metadata: Mapping[str, Any]
    body: Mapping[str, Any]
    event_call: EventCall | None
    event_emitter: Any


_ROWLESS_CHATS = ("temporary:", "local:", "channel:")
"""Prefixes of chat ids without a row: temporary chats (old and new) and channels."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and for which chat and message.

    `host_model` is the host's id of the model, `{function id}.{model}`. `task` is the
    name of a task of the host, or empty. `is_admin` says whether an administrator asks.
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

        The part before the first dot is the id of the function, which the administrator
        chose.
        """
        return self.host_model.split(".", 1)[-1]

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly if the request has a chat id and a message id. A session id only
        decides whether a dialog can be answered (docs/reference/open-webui.md, "Ids of
        a call").
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
    """One call of the pipe: what the host passes, and where log lines go.

    `state` is the state of the host's request; `capabilities` and `threads` are those
    of the pipe.
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
        """The keys of the sources that the page already has for the message."""
        message_id = self.caller.message_id
        return known_sources(self.state, message_id, self.host.metadata)


def model_of(call: PipeCall) -> ResolvedModel:
    """Return the model of the call, with the administrator's overrides."""
    return resolve_with_overrides(call.caller.model, overrides_of(call.valves))


def overrides_of(valves: Valves) -> Overrides:
    """Return the overrides in MODEL_OVERRIDES_JSON; raises InvalidRequest."""
    return read_overrides(valves.MODEL_OVERRIDES_JSON)


def messages_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a body; empty if they are not a list."""
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


def own_key(call: PipeCall) -> str:
    """Return the user's own key, if the administrator permits one."""
    allowed = call.valves.USER_API_KEYS != "off"
    return call.user_valves.API_KEY.strip() if allowed else ""


def user_endpoint(call: PipeCall) -> Endpoint:
    """Return the endpoint of a user's requests; raises InvalidRequest if unusable.

    Organisation and project belong to the administrator's account, so they are sent
    only with the administrator's key.
    """
    key = own_key(call)
    if not key:
        if call.valves.USER_API_KEYS == "required" and not call.caller.is_admin:
            raise InvalidRequest(_NO_OWN_KEY)
        return build_endpoint(call.valves)
    endpoint = build_endpoint(call.valves, key)
    rest = {
        name: text
        for name, text in endpoint.extra_headers.items()
        if name.lower() not in _BILLED_HEADERS
    }
    return replace(endpoint, organization="", project="", extra_headers=rest)


def correct_ending(call: PipeCall, ending: Ending, status: int | None) -> Ending:
    """Return the ending of a run; a wrong own key is reported to its owner."""
    if status == _UNAUTHORIZED and own_key(call):
        return ending._replace(sentence=_WRONG_OWN_KEY)
    return ending
