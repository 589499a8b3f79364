"""What only the sandbox uses of Open WebUI.

Each function raises HostTooOld if the host lacks a name that it needs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owui_host.lookup import host_name


def data_folder() -> Path:
    """Return the folder in which the server keeps its data."""
    return Path(host_name("env", "DATA_DIR"))


def private_paths() -> dict[str, Path]:
    """Return what only the server may read, by what an administrator calls it.

    Without DATA_DIR, `pip install open-webui` puts all but the last two into the folder
    of the packages. The key is that of `open-webui serve` (`__init__.py`, 0.12.4).
    """
    paths = {
        "DATA_DIR": data_folder(),
        "STATIC_DIR": Path(host_name("env", "STATIC_DIR")),
        "UPLOAD_DIR": Path(host_name("config", "UPLOAD_DIR")),
        "CACHE_DIR": Path(host_name("config", "CACHE_DIR")),
        ".env": Path(host_name("env", "BASE_DIR"), ".env"),
        ".webui_secret_key": Path.cwd() / ".webui_secret_key",
    }
    kind, _, database = str(host_name("env", "DATABASE_URL")).partition(":///")
    if kind.startswith("sqlite"):
        paths["DATABASE_URL"] = Path(database)
    return paths


async def find_saved_message(
    chat_id: str, message_id: str, user_id: str
) -> dict[str, str]:
    """Return `chat_id` and `message_id` if the user has this chat, else nothing.

    Temporary chats, channels and plain API calls have no row.
    """
    if not chat_id or not message_id:
        return {}
    chats = host_name("models.chats", "Chats")
    if await chats.get_chat_by_id_and_user_id(chat_id, user_id) is None:
        return {}
    return {"chat_id": chat_id, "message_id": message_id}


async def add_to_message(
    message: Mapping[str, str], entries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Put files below a saved message; return all files that it has then.

    Open WebUI 0.12.4 does so for its own pictures (tools/builtin.py, generate_image):
    the page replaces a message's files by those of an event.
    """
    if not message:
        return entries
    chats = host_name("models.chats", "Chats")
    stored: list[dict[str, Any]] | None
    stored = await chats.add_message_files_by_id_and_message_id(
        message["chat_id"], message["message_id"], entries
    )
    return stored or entries
