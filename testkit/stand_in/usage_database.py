"""The host's database as the filter uses it, on SQLite in memory."""

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stand_in.host import StandInHost


class UsageDatabase:
    """Runs the real statements.

    `connection` is that of all sessions. `failing` is how many of them cannot be
    opened, `racing` how many fail to make the table, with `lost_race`, because another
    session has just made it, `unanswered` how many commits are made and not confirmed.
    """

    def __init__(self, patch: pytest.MonkeyPatch, host: StandInHost) -> None:
        self.failing = 0
        self.racing = 0
        self.unanswered = 0
        self.lost_race: type[Exception] = sqlite3.IntegrityError
        self.opened = 0
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute('CREATE TABLE "user" (id TEXT, email TEXT)')
        messages = "CREATE TABLE chat_message (id TEXT, chat_id TEXT, role TEXT)"
        self.connection.execute(messages)
        host.provide("internal.db", get_async_db=self.session)
        sqlalchemy = ModuleType("sqlalchemy")
        vars(sqlalchemy)["text"] = str
        patch.setitem(sys.modules, "sqlalchemy", sqlalchemy)

    @asynccontextmanager
    async def session(self) -> AsyncIterator["UsageDatabase"]:
        """Lend a session, which undoes what is not committed."""
        self.opened += 1
        if self.failing:
            self.failing -= 1
            raise sqlite3.OperationalError("database is locked")
        try:
            yield self
        finally:
            self.connection.rollback()

    async def execute(self, sql: str, values: Any) -> Any:
        """Run a statement with its values, or with each of a list."""
        if self.racing and sql.startswith("CREATE TABLE"):
            self.racing -= 1
            raise self.lost_race("duplicate key: pg_type_typname_nsp_index")
        many = isinstance(values, list)
        run = self.connection.executemany if many else self.connection.execute
        done = run(sql, values)
        returns = done.description is not None
        return SimpleNamespace(returns_rows=returns, all=done.fetchall)

    async def commit(self) -> None:
        self.connection.commit()
        if self.unanswered:
            self.unanswered -= 1
            raise TimeoutError

    def add_users(self, *users: tuple[str, str]) -> None:
        self.connection.executemany('INSERT INTO "user" VALUES (?, ?)', users)
        self.connection.commit()
