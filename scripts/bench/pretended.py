"""The names of Open WebUI that a stored chat with tools asks for, in memory."""

import json
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

USER = {"id": "user-1", "name": "Ada", "role": "user"}
CHAT = "chat-1"


@dataclass
class Chats:
    """The table of chats with one row, of which the pipe writes single keys."""

    chat: dict[str, Any] = field(default_factory=dict)

    async def get_chat_by_id_and_user_id(self, id: str, user_id: str) -> Any:
        """Return the row."""
        del id
        return SimpleNamespace(user_id=user_id, chat=self.chat)

    async def update_chat_by_id(
        self, id: str, chat: dict[str, Any], touch: bool = True
    ) -> Any:
        """Replace top-level keys, as the host does."""
        del id, touch
        self.chat |= json.loads(json.dumps(chat))
        return SimpleNamespace(chat=self.chat)


class Users:
    """The table of users."""

    async def get_user_by_id(self, id: str) -> Any:
        """Return the model of a user."""
        return SimpleNamespace(id=id, role="user")


async def _updated_tool(function: Any, extra_params: dict[str, Any]) -> Any:
    del extra_params
    return function


async def _tool_result(request: Any, name: str, result: Any, *rest: Any) -> Any:
    del request, name, rest
    return result, [], []


def _no_terminal(*result: Any) -> None:
    """No tool here is a terminal's."""
    del result


def _sources(**result: Any) -> list[Any]:
    del result
    return []


def provide_chat() -> Chats:
    """Let the pipe find these names from now on; return the chats."""
    chats = Chats()
    _provide("models.chats", Chats=chats)
    _provide("models.users", Users=Users())
    _provide("utils.tools", get_updated_tool_function=_updated_tool)
    _provide(
        "utils.middleware",
        build_terminal_file_tool_result=_no_terminal,
        process_tool_result=_tool_result,
        get_citation_source_from_tool_result=_sources,
    )
    return chats


def _provide(name: str, **names: Any) -> None:
    module = ModuleType(f"open_webui.{name}")
    vars(module).update(names)
    sys.modules[module.__name__] = module
