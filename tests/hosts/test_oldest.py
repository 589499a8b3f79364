"""The oldest Open WebUI that the pipe supports.

The tests are those of the newest one, imported; the fixtures here put another server
under them. Two models that answer at once in one chat are left out: with SQLite this
version reads and writes a chat's row without a lock (docs/reference/open-webui.md, "The
chat's row"), so now and then a change is lost, also one of the host's own.
"""

# ruff: noqa: F401, F811 - pytest uses what is imported

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.servers.offline import OLDEST
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.own_server import PIPE, admin, member, pipe, toolkit
from hosts.setup.pipes import valves_changed
from hosts.test_agents import (
    agents,
    test_stop_in_a_round_asks_nothing_more,
    test_the_limit_of_rounds_ends_in_an_answer,
    test_the_switch_keeps_the_beginning_of_a_chat,
    test_work_of_several_rounds,
)
from hosts.test_agents_work import agents as agents_at_work
from hosts.test_agents_work import (
    storm,
    test_a_restart_in_the_middle,
    test_thirty_calls_of_tools_that_fail_hang_and_die,
    test_thoughts_in_tags_go_back_to_the_model,
)
from hosts.test_bad_input import test_refusal_is_stored_as_the_error_of_the_message
from hosts.test_chat import (
    test_a_temporary_chat_holds_no_marker,
    test_a_title_task_is_short_and_sees_no_marker,
    test_an_answer_streams_as_the_hosts_own,
    test_encrypted_reasoning_is_stored_in_the_answers_output_only,
    test_page_without_streaming_stores_and_replays_the_answer,
    test_regenerate_leaves_the_first_answer_out,
    test_stop_closes_the_connection_and_keeps_the_text,
    test_the_second_turn_sends_what_the_first_received,
)
from hosts.test_contract import (
    report,
    test_a_chat_is_its_owners,
    test_the_host_keeps_its_promises,
    test_writing_a_key_leaves_the_rest_of_the_chat,
)
from hosts.test_denied_tools import test_question_shows_what_will_be_done
from hosts.test_limits import students, test_a_group_reaches_its_limit
from hosts.test_plain_http import (
    test_a_failure_in_a_stream_is_an_error_chunk,
    test_plain_request_gets_one_result,
    test_plain_stream_has_chat_chunks,
)
from hosts.test_sandbox_tool import (
    sandbox_tool,
    test_a_file_comes_back_to_the_person,
    test_an_exact_passage_is_replaced,
    test_attached_files_are_in_the_workspace,
    test_import_stores_the_packed_file,
    test_sandbox_blocks_each_attack,
    test_update_keeps_settings_and_workspaces,
    test_wheels_of_the_server_can_be_imported,
)
from hosts.test_tool_rounds import (
    test_reasoning_survives_the_rounds_and_the_turn,
    test_the_card_is_the_hosts_own,
)
from hosts.test_tools_page import test_the_model_reads_what_a_tool_raised
from hosts.test_usage import HAS_PICTURES, counting, test_commands_are_told_to_no_model
from hosts.test_wishes import test_list_that_open_webui_keeps_holds_no_guess
from hosts.test_wishes_page import (
    admins_page,
    test_end_of_a_model_is_announced_once,
    test_merged_answers_are_shown,
)

pytestmark = [pytest.mark.oldest, pytest.mark.usefixtures("pipe")]


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI of the oldest version, for this file alone."""
    async with OpenWebUI(version=OLDEST) as running:
        yield running


@pytest.mark.asyncio
async def test_server_is_the_oldest_version(admin: User) -> None:
    """Without this, another server under the tests would go unnoticed."""
    assert (await admin.call("GET", "/api/version"))["version"] == OLDEST


SCROLL_TO_END = """node => {
  while (node.scrollHeight <= node.clientHeight) node = node.parentElement;
  node.scrollTop = node.scrollHeight;
}"""
WIDE = (1280, 800)
PHONE = (390, 700)


@pytest.mark.asyncio
@pytest.mark.browser
@pytest.mark.usefixtures("toolkit")
async def test_long_call_can_be_read_whole_before_it_is_approved(
    admin: User, chromium: Chromium
) -> None:
    """The dialog of this version neither scrolls nor shrinks what it shows."""
    async with (
        valves_changed(admin, PIPE, TOOL_APPROVAL="*=ask"),
        ChatPage(admin, chromium) as chat,
    ):
        await chat.open_model(f"{PIPE}.gpt-6.1-sol", tools="toolkit")
        await chat.ask("sim:long-arguments", wait=False)
        deny = chat.page.get_by_role("button", name="Cancel")
        await deny.wait_for()
        await expect(deny).to_be_focused()
        for width, height in (WIDE, PHONE):
            await chat.resize(width, height)
            await expect(deny).to_be_in_viewport(ratio=1)
            await expect(chat.page.get_by_text("Allow this tool?")).to_be_in_viewport()
            call = chat.page.locator("code", has_text="Zürich, Zürich")
            await call.evaluate(SCROLL_TO_END)
            box = await call.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= height
        await deny.click()
        await chat.answers.last.get_by_text("did not approve").wait_for()


@pytest.mark.asyncio
@pytest.mark.browser
@pytest.mark.usefixtures("counting")
async def test_usage_is_drawn(admin: User, chromium: Chromium) -> None:
    """By this version, too; its box takes Enter after a command for its suggestions."""
    model = f"{PIPE}.gpt-5.2"
    async with Tab(admin) as tab, ChatPage(admin, chromium) as chat:
        await tab.send(model, "sim:short")
        told = await tab.send(model, "/usage")
        await chat.page.goto(f"{admin.url}/c/{told.chat_id}")
        await chat.page.wait_for_function(HAS_PICTURES, arg=1)

        assert "US dollars a day" in await chat.last_answer()
        assert (chat.errors, chat.blocked) == ([], [])
