"""The users of Open WebUI."""

from typing import Protocol

from owui_host.lookup import host_name


class HostUser(Protocol):
    """The host's model of a user, which its functions need whole."""

    id: str
    role: str


async def user_model(user_id: str) -> HostUser | None:
    """Return a user, or None for somebody whom the host does not know."""
    user: HostUser | None
    user = await host_name("models.users", "Users").get_user_by_id(user_id)
    return user
