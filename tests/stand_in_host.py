"""The few names of Open WebUI that the pipe uses, in memory.

What the real host does is shown in `tests/hosts`; here it is only there to be asked.
"""

import json
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

Json = dict[str, Any]
SERVER_SECRET = "the server's own secret"


@dataclass
class Row:
    """A chat in the database."""

    user_id: str
    chat: Any


@dataclass
class Chats:
    """The table of chats; `is_full` makes it refuse every write."""

    rows: dict[str, Row] = field(default_factory=dict)
    is_full: bool = False
    writes: list[Json] = field(default_factory=list)

    async def get_chat_by_id_and_user_id(self, id: str, user_id: str) -> Row | None:
        """Return a user's own chat (models/chats.py)."""
        row = self.rows.get(id)
        return row if row and row.user_id == user_id else None

    async def update_chat_by_id(
        self, id: str, chat: Json, touch: bool = True
    ) -> Row | None:
        """Patch the top-level keys of a chat (models/chats.py:803)."""
        row = self.rows.get(id)
        if row is None or self.is_full or touch:
            return None
        stored = json.loads(json.dumps(chat))
        self.writes.append(stored)
        row.chat = {**row.chat, **stored}
        return row


class StandInHost:
    """The package, put where the pipe looks for it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.chats = Chats({"chat-1": Row("user-1", {"title": "Rain"})})
        self._patch = patch
        self.provide("env", VERSION="0.12.4", WEBUI_SECRET_KEY=SERVER_SECRET)
        self.provide("models.chats", Chats=self.chats)

    def provide(self, module: str, **names: Any) -> None:
        """Let a module of the host have these names and no others."""
        made = ModuleType(f"open_webui.{module}")
        vars(made).update(names)
        self._patch.setitem(sys.modules, made.__name__, made)

    @property
    def kept(self) -> Json:
        """What the pipe keeps in the chat, by its key."""
        chat = self.chats.rows["chat-1"].chat
        return {k: v for k, v in chat.items() if k.startswith("openai_responses")}
