"""The host's database, for what its own functions do not tell."""

from asyncio import timeout
from collections.abc import Sequence
from importlib import import_module

from owui_host.lookup import host_name

_STATEMENT_SECONDS = 15
"""For SQLite's lock the host waits five."""


async def run_sql(*statements: tuple[str, object]) -> list[Sequence[object]]:
    """Run statements in one transaction of the host's database; return the last rows.

    Each comes with its values, or a list of them. `{schema}` goes in front of the
    names of tables. Raises exceptions of SQLAlchemy.
    """
    schema = host_name("env", "DATABASE_SCHEMA")
    prefix = f'"{schema}".' if schema else ""
    text = import_module("sqlalchemy").text
    open_session = host_name("internal.db", "get_async_db")
    rows: list[Sequence[object]] = []
    async with timeout(_STATEMENT_SECONDS), open_session() as session:
        for sql, values in statements:
            result = await session.execute(text(sql.format(schema=prefix)), values)
            rows = list(result.all()) if result.returns_rows else []
        await session.commit()
    return rows
