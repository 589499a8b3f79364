"""The only importer of `open_webui`; every name of the host is looked up here.

Names are looked up when they are used: one that an older host lacks gives a sentence
in the chat instead of a pipe that does not load.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from openai_responses.errors import InvalidRequest

FLOOR = (0, 11, 4)
"""From here on `Chats.update_chat_by_id` patches the top-level keys of a chat; before,
it replaced the whole chat (models/chats.py:803)."""


def require_floor() -> None:
    """Raise InvalidRequest, with a sentence, on an Open WebUI that is too old."""
    version = _host_name("env", "VERSION")
    numbers = [int(number) for number in re.findall(r"\d+", str(version))[:3]]
    if tuple(numbers) < FLOOR:
        floor = ".".join(map(str, FLOOR))
        raise InvalidRequest(
            f"This pipe needs Open WebUI {floor} or newer; this server runs "
            f"{version}. An administrator has to update Open WebUI."
        )


async def read_chat(chat_id: str, user_id: str) -> Mapping[str, Any] | None:
    """Return the JSON of a user's own chat; None when there is no such row."""
    chats = _host_name("models.chats", "Chats")
    row = await chats.get_chat_by_id_and_user_id(chat_id, user_id)
    return row.chat if row is not None and isinstance(row.chat, Mapping) else None


async def write_chat_key(chat_id: str, key: str, value: Mapping[str, Any]) -> bool:
    """Replace one top-level key of a chat's JSON; say whether the host stored it.

    `touch=False`: keeping items is no activity that moves a chat in the list.
    """
    chats = _host_name("models.chats", "Chats")
    row = await chats.update_chat_by_id(chat_id, {key: dict(value)}, touch=False)
    return row is not None


def server_secret() -> str:
    """Return the server's own secret, or nothing."""
    return str(_host_name("env", "WEBUI_SECRET_KEY") or "")


def _host_name(module: str, name: str) -> Any:
    """Return a name of the host; raises InvalidRequest when it has none."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this pipe needs. An administrator has to update the pipe or Open WebUI."
        ) from None
