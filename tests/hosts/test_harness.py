"""What the harness itself promises, shown with a pipe of twenty lines."""

import sys
from pathlib import Path

import pytest

from hosts.browser.page import ChatPage
from hosts.browser.valves_dialog import fill_user_valves
from hosts.people.client import OpenWebUIError
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.servers.offline import BootError
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import STUB, valves_changed

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("stub")]

ONE = "stub.one"
TWO = "stub.two"


@pytest.mark.asyncio
async def test_two_tabs_of_one_user_see_each_other(tab: Tab) -> None:
    """An answer asked for in one tab reaches the other, too."""
    async with Tab(tab.user) as other:
        turn = await tab.send(ONE, "hello")

        mine = await other.send(ONE, "mine")

    assert mine.text == "1 echo: mine"
    assert turn.message_id in {event["message_id"] for event in other.stray}


@pytest.mark.asyncio
async def test_only_shared_models_reach_an_ordinary_user(
    admin: User, member: User
) -> None:
    """`install_pipe` shares every model; one without a row is hidden."""
    await admin.install_function("unshared", STUB)

    shown = {model["id"] for model in await member.models()}

    assert {ONE, TWO} <= shown
    assert "unshared.one" not in shown
    assert "unshared.one" in {model["id"] for model in await admin.models()}
    await admin.delete_function("unshared")


@pytest.mark.asyncio
async def test_valves_are_set_for_a_while(admin: User) -> None:
    """Changed valves take effect at once, then they are as before."""
    async with valves_changed(admin, "stub", WORD="parrot"):
        changed = await admin.complete(ONE, "hello")

    assert changed == "1 parrot: hello"
    assert await admin.complete(ONE, "hello") == "1 echo: hello"


@pytest.mark.asyncio
async def test_a_refusal_is_an_error(member: User) -> None:
    """A call that the server refuses raises with its status."""
    with pytest.raises(OpenWebUIError) as refused:
        await member.valves_spec("stub")

    assert refused.value.status == 401


@pytest.mark.asyncio
async def test_a_chat_lies_in_the_database(server: OpenWebUI, tab: Tab) -> None:
    """The row on disk says what the interface says."""
    turn = await tab.send(ONE, "hello")

    on_disk = server.stored_chat(turn.chat_id)

    answer = on_disk["history"]["messages"][turn.message_id]
    assert answer["output"][0]["content"][0]["text"] == "1 echo: hello"


@pytest.mark.asyncio
async def test_boot_error_quotes_the_servers_log() -> None:
    """The log is in the error, and the directory is gone."""
    broken = OpenWebUI(python=Path(sys.executable))

    with pytest.raises(BootError, match="uvicorn"):
        await broken.__aenter__()

    assert not broken.home.exists()


@pytest.mark.browser
@pytest.mark.asyncio
async def test_the_page_does_what_people_do(page: ChatPage) -> None:
    """Ask, copy whole, reload, set a switch of the user's valves, stop an answer."""
    await page.open_model(ONE)
    await page.watch("echo")

    await page.ask("hello")

    assert await page.last_answer() == "1 echo: hello"
    assert await page.seen()
    assert await page.copy_last() == "1 echo: hello"
    await page.reload()
    assert await page.last_answer() == "1 echo: hello"
    assert page.chat_id

    await fill_user_valves(page, {"Loud": True})
    await page.ask("hello")
    assert await page.last_answer() == "2 echo: HELLO"
    await page.user.set_user_valves("stub", {})

    await page.ask("forever", wait=False)
    await page.answers.last.get_by_text("3 echo:").wait_for()
    await page.stop()
    await page.reload()
    assert await page.last_answer() == "3 echo:"
    assert page.blocked == page.errors == []
