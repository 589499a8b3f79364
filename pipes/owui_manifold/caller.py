"""Who asks, and who reads the answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
