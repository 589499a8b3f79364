"""Processes of one Open WebUI, on one PostgreSQL and one Redis."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from tempfile import TemporaryDirectory

from hosts.servers.databases import lent_postgres, lent_redis
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI


@asynccontextmanager
async def shared_servers(
    count: int = 2,
    env: Mapping[str, str] | None = None,
    forks: ForkServer | None = None,
) -> AsyncIterator[list[OpenWebUI]]:
    """Run so many with the variables in `env`; the administrator is the same."""
    async with AsyncExitStack() as stack:
        shared = {
            "DATABASE_URL": await stack.enter_async_context(lent_postgres()),
            "REDIS_URL": await stack.enter_async_context(lent_redis()),
            # As two workers of one server have it; the sandbox keeps its workspaces there.
            "DATA_DIR": stack.enter_context(TemporaryDirectory()),
            "WEBSOCKET_MANAGER": "redis",
            # Fifteen connections are too few for all answers at once on a busy machine.
            "DATABASE_POOL_SIZE": "30",
            **(env or {}),
        }
        # One after the other: the first makes the tables and the administrator.
        servers = [
            await stack.enter_async_context(OpenWebUI(env=shared, forks=forks))
            for _ in range(count)
        ]
        yield servers
