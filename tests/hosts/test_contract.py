"""What the pipe counts on in Open WebUI: its names, and what it stores and shows.

The oldest version is asked the same in test_oldest.py. That each name that is looked up
is asked about is shown in tests/test_host_names.py.
"""

from copy import deepcopy
from pathlib import Path

import pytest

from hosts import compared_calls
from hosts.chats.contract import Asked, walk
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.promises import (
    asked_for_promises,
    assert_a_chat_is_its_owners,
    assert_promises_are_kept,
)
from hosts.servers.open_webui import OpenWebUI
from simulator import Simulator
from stand_in.host import Row, StandInHost

pytestmark = pytest.mark.host


@pytest.mark.asyncio
async def test_the_host_keeps_its_promises(admin: User, tmp_path: Path) -> None:
    """Its names, and what it does with a chat's row; the stand-in answers alike."""
    report = await asked_for_promises(admin)

    assert_promises_are_kept(report)
    assert_a_chat_is_its_owners(report)
    assert await answers_of_the_stand_in(tmp_path) == report["calls"]


async def answers_of_the_stand_in(folder: Path) -> Json:
    """What the stand-in, on which the tests without a host stand, gives for each call."""
    with pytest.MonkeyPatch.context() as patch:
        stand_in = StandInHost(patch, folder)
        stand_in.ask_at_cards()
        chat = deepcopy(compared_calls.CHAT)
        stand_in.chats.rows[compared_calls.CHAT_ID] = Row(compared_calls.OWNER, chat)
        return await compared_calls.results()


@pytest.mark.asyncio
@pytest.mark.usefixtures("pipe", "toolkit")
async def test_chats_are_stored_and_shown_as_the_pipe_counts_on(
    admin: User, tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """Events, stored forms, and what the next request gets of them."""
    await walk(Asked(admin, tab, server, simulator))
