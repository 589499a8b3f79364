"""One call of the pipe: who asks, and what the host passes."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from openai_responses.clock import utc_today
from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import JsonObject, as_list, as_text
from openai_responses.models.choice import replacement
from openai_responses.models.resolve import ResolvedModel, resolve_model
from owui_manifold.call.config import AccountCapabilities, Config, build_endpoint
from owui_manifold.call.log import RunLog
from owui_manifold.call.valves import Valves
from owui_manifold.host.context import HostContext
from owui_manifold.host.threads import ToolThreads
from shells.administration import CallAccount, CallFacts

_ROWLESS_CHATS = ("temporary:", "local:", "channel:")
"""Prefixes of chat ids without a row: temporary chats (old and new) and channels."""


class Caller(NamedTuple):
    """Who asks, and for which chat and message."""

    host_model: str
    """The host's id of the model, `{function id}.{model}`."""
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    """The name of a task of the host, or empty."""
    streams: bool = False
    """Whether the host reads a stream: as it decides that itself (functions.py, 0.12.4),
    by whether the value counts as true. The administration's filter makes it a bool."""
    is_admin: bool = False

    @property
    def model(self) -> str:
        """The model as the administrator listed it, without the function's id."""
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
        return self.host_reads and not self.chat_id.startswith(_ROWLESS_CHATS)


def read_caller(
    body: JsonObject,
    user: JsonObject | None,
    metadata: JsonObject | None,
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


class PipeCall(NamedTuple):
    """One call of the pipe, and what it shares with others."""

    body: JsonObject
    caller: Caller
    config: Config
    capabilities: AccountCapabilities
    log: RunLog
    host: HostContext
    threads: ToolThreads
    """Where tools run that are not coroutines."""
    user: JsonObject = MappingProxyType({})
    """What the host tells of who asks."""
    account: CallAccount | None = None
    """What the administration's filter decides about the call, if it is active."""

    @property
    def valves(self) -> Valves:
        """The administrator's settings."""
        return self.config.valves

    @property
    def page(self) -> Any:
        """What sends events beside the answer; a title made for it has none to show."""
        waits = self.caller.host_reads and not self.caller.task
        return self.host.event_emitter if waits else None

    @property
    def model_id(self) -> str:
        """The host's id of the model that was chosen, maybe one of its workspace."""
        return str(self.host.metadata.get("model_id") or self.caller.host_model)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the body; none if it has no list of them."""
        return as_list(self.body.get("messages"))

    @property
    def endpoint(self) -> Endpoint:
        """Where its requests go; raises InvalidRequest for unusable valves."""
        config = self.config
        is_admin = self.caller.is_admin
        made = build_endpoint(config.valves, config.own_key, is_admin=is_admin)
        headers = {**config.identity, **made.extra_headers}
        return replace(made, token=config.token or made.token, extra_headers=headers)

    @property
    def model(self) -> ResolvedModel:
        """What answers the call; raises InvalidRequest for unusable overrides.

        Azure ends its models on other days than OpenAI.
        """
        chosen = self.chosen_model
        is_azure = Endpoint(self.valves.BASE_URL, "").is_azure
        if is_azure:
            return chosen
        return replacement(chosen, utc_today()) or chosen

    @property
    def chosen_model(self) -> ResolvedModel:
        """The model that was asked for, which may be switched off."""
        model = self.resolve(self.caller.model)
        ends = self.capabilities.shutdown_dates.get(model.id)
        if ends:
            return model._replace(facts=model.facts._replace(shutdown=ends))
        return model

    @property
    def facts(self) -> CallFacts:
        """What the administration's filter is told of the call."""
        return CallFacts(
            user_id=self.caller.user_id,
            email=as_text(self.user.get("email")),
            role=as_text(self.user.get("role")),
            model=self.caller.model,
            task=self.caller.task,
            base_url=self.valves.BASE_URL,
            has_own_key=bool(self.config.own_key),
        )

    def warn_once(self, text: str) -> None:
        """Write a line in the log, once a day."""
        if self.capabilities.first_time(text):
            self.log.warn(text)

    def resolve(self, name: str) -> ResolvedModel:
        """Return a model with the administrator's overrides; raises InvalidRequest."""
        if isinstance(self.config.overrides, InvalidRequest):
            raise self.config.overrides
        return resolve_model(name, self.config.overrides)
