"""Fixtures for a file of tests that has a server of its own.

Such a file imports them, and defines the fixture `server` for the length of a module.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import PIPE, install_pipe, install_toolkit


@pytest.fixture(scope="module")
def admin(server: OpenWebUI) -> User:
    return server.admin


@pytest_asyncio.fixture(scope="module")
async def member(admin: User) -> AsyncIterator[User]:
    async with await admin.add_user("member@example.com", "member") as signed_in:
        yield signed_in


@pytest_asyncio.fixture(scope="module")
async def pipe(admin: User, pipe_source: str, pipe_valves: Json) -> list[str]:
    """The built pipe, installed there for everybody: the ids of its models."""
    return await install_pipe(admin, PIPE, pipe_source, pipe_valves)


@pytest_asyncio.fixture(scope="module")
async def toolkit(admin: User) -> None:
    await install_toolkit(admin)
