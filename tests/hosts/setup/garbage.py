"""Garbage collection in the server as it is outside of the tests.

`boot.py` freezes what the server has imported, so that the tests need less time. Who
measures the server lets it collect among its imports for a while.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hosts.people.users import User

CALLING = '''"""title: Collecting"""
import gc
gc.{}()
class Filter: ...
'''


@asynccontextmanager
async def whole_collections(admin: User) -> AsyncIterator[None]:
    """Let the server look for garbage among its imports, too, as it does elsewhere."""
    await _call_in_server(admin, "unfreeze")
    try:
        yield
    finally:
        await _call_in_server(admin, "freeze")


async def _call_in_server(admin: User, name: str) -> None:
    """Call a function of `gc`: the server runs the text of a function that it saves."""
    await admin.install_function("collecting", CALLING.format(name), "Collecting")
    await admin.delete_function("collecting")
