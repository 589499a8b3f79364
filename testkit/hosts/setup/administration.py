"""The filter of the administration, as an administrator installs it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from golden_run.built_files import BUILT_ADMINISTRATION
from hosts.people.client import Json
from hosts.people.users import User
from hosts.servers.open_webui import OpenWebUI

ADMINISTRATION = "openai_responses_administration"
COUNTED = json.dumps([{"role": "user", "tokens": 10**9, "per": "day"}])
"""Rules under which everything is counted and nothing is refused."""


def usage_rows(server: OpenWebUI, user: User) -> list[Json]:
    """What is counted for a user, by day and model."""
    query = "SELECT * FROM openai_responses_usage WHERE user_id = ?"
    return server.sql(query, user.id)


def counted_requests(server: OpenWebUI, user: User) -> int:
    return sum(row["requests"] for row in usage_rows(server, user))


@asynccontextmanager
async def administration(admin: User, **valves: str) -> AsyncIterator[None]:
    """Have the built filter, with its settings, active for the pipe."""
    source = BUILT_ADMINISTRATION.read_text("utf-8")
    await admin.install_function(ADMINISTRATION, source, "Administration")
    try:
        await admin.set_valves(ADMINISTRATION, dict(valves))
        yield
    finally:
        await admin.delete_function(ADMINISTRATION)
