"""The filter of the administration, as an administrator installs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hosts.people.users import User

ADMINISTRATION = "openai_responses_administration"
BUILT = Path(__file__).parents[3] / "pipes" / f"{ADMINISTRATION}.py"


@asynccontextmanager
async def administration(
    admin: User, function_id: str = ADMINISTRATION, **valves: str
) -> AsyncIterator[None]:
    """Have the built filter, with its settings, active for the pipe."""
    source = BUILT.read_text("utf-8")
    await admin.install_function(function_id, source, "Administration")
    try:
        await admin.set_valves(function_id, dict(valves))
        yield
    finally:
        await admin.delete_function(function_id)
