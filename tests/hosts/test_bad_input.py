"""What goes wrong at the administrator's or the caller's end: a message each."""

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import valves_changed

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"


async def refused(tab: Tab, admin: User, model: str = MODEL, **valves: str) -> str:
    """The message under an answer that was refused, the same once it is stored."""
    async with valves_changed(admin, PIPE, **valves):
        turn = await tab.send(model, "sim:short hello")
    stored = (await tab.message(turn))["error"]["content"]
    assert stored == turn.error
    return str(stored["message"])


@pytest.mark.asyncio
async def test_refusal_is_stored_as_the_error_of_the_message(
    tab: Tab, admin: User
) -> None:
    """One way through the host; tests/owui_manifold/test_pipe.py has each cause."""
    assert "no API key yet" in await refused(tab, admin, API_KEY="")
    unknown = "gpt-99-unheard-of"
    said = await refused(tab, admin, f"{PIPE}.{unknown}")
    assert f"{unknown} does not exist" in said
