"""
title: Says whether this version of Open WebUI keeps what the pipe counts on
"""

# A question holds the directories of our packages, and pairs of a name and a promise. The
# answer is
#
#     {"version": ..., "broken": [[name, promise, what it is instead], ...],
#      "chat": {...}, "calls": {...}}

import ast
import inspect
import json
import sys
from importlib import import_module
from operator import attrgetter
from typing import Any
from uuid import uuid4

from open_webui.env import VERSION
from open_webui.internal.db import get_async_db_context
from open_webui.models.chats import Chat

OWNER = "owner"
KEY = "ours"


class Pipe:
    """Asked by a test, it looks around in the server."""

    def pipes(self) -> list[dict[str, str]]:
        return [{"id": "check", "name": "Check"}]

    async def pipe(self, body: dict[str, Any]) -> str:
        """Check every promise, then use a chat as the pipe does."""
        asked = json.loads(body["messages"][-1]["content"])
        sys.path.extend(asked["packages"])
        rows = [(name, kept, instead(name, kept)) for name, kept in asked["promises"]]
        broken = [row for row in rows if row[-1]]
        chat = await use_a_chat()
        calls = await compared_calls()
        told = {"version": VERSION, "broken": broken, "chat": chat, "calls": calls}
        return json.dumps(told)


def instead(name: str, promise: str) -> str:
    """What `name` is if it does not keep `promise`; nothing if it does."""
    module, path = name.split(":")
    try:
        held = attrgetter(path)(import_module(f"open_webui.{module}"))
    except (ImportError, AttributeError):
        return "missing"
    if "(" not in promise:
        kind = type(held).__name__
        return "" if kind == promise else kind
    signature = inspect.signature(held)
    is_async = inspect.iscoroutinefunction(held)
    (wanted,) = ast.parse(promise.replace("(", "def f(", 1) + ": ...").body
    assert isinstance(wanted, ast.FunctionDef | ast.AsyncFunctionDef)
    if is_async == isinstance(wanted, ast.AsyncFunctionDef) and fits(wanted, signature):
        return ""
    return f"{'async ' if is_async else ''}{signature}"


def fits(wanted: ast.FunctionDef | ast.AsyncFunctionDef, has: Any) -> bool:
    """Whether a function can be called as wanted, and needs nothing else."""
    placed = [argument.arg for argument in wanted.args.args]
    named = {argument.arg for argument in wanted.args.kwonlyargs}
    parameters = has.parameters.values()
    places = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    names = {
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    needed = {
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    return (
        places[: len(placed)] == placed
        and named <= names - set(placed)
        and needed <= named | set(placed)
    )


async def use_a_chat() -> dict[str, Any]:
    """Write one key of a chat twice, and a chat that is not there."""
    from owui_manifold.host.open_webui import read_chat, require_floor, write_chat_keys

    require_floor()
    chat_id = str(uuid4())
    async with get_async_db_context() as session:
        session.add(Chat(id=chat_id, user_id=OWNER, title="A chat", **chat_row()))
        await session.commit()
    before = await read_chat(chat_id, OWNER)
    stored = [
        await write_chat_keys(wanted, {KEY: value})
        for wanted, value in (
            (chat_id, {"first": 1}),
            (chat_id, {"second": 2}),
            ("no such chat", {}),
        )
    ]
    async with get_async_db_context() as session:
        updated_at = (await session.get(Chat, chat_id)).updated_at
    return {
        "before": before,
        "stored": stored,
        "after": await read_chat(chat_id, OWNER),
        "to somebody else": await read_chat(chat_id, "somebody else"),
        "updated_at": updated_at,
    }


async def compared_calls() -> dict[str, Any]:
    """Return the results of the calls that the stand-in answers alike."""
    from hosts.compared_calls import CHAT, CHAT_ID, OWNER, results

    row = Chat(
        id=CHAT_ID, user_id=OWNER, title=CHAT["title"], **{**chat_row(), "chat": CHAT}
    )
    async with get_async_db_context() as session:
        session.add(row)
        await session.commit()
    found = await results()
    async with get_async_db_context() as session:
        await session.delete(await session.get(Chat, CHAT_ID))
        await session.commit()
    return found


def chat_row() -> dict[str, Any]:
    """A chat of two messages that no one has touched for long."""
    messages: dict[str, Any] = {
        "q": {"id": "q", "role": "user", "content": "Why?", "parentId": None},
        "a": {"id": "a", "role": "assistant", "content": "So.", "parentId": "q"},
    }
    messages["q"]["childrenIds"] = ["a"]
    messages["a"]["childrenIds"] = []
    history = {"currentId": "a", "messages": messages}
    chat = {"title": "A chat", "models": ["a.model"], "history": history}
    return {"chat": chat, "meta": {}, "created_at": 1, "updated_at": 1}
