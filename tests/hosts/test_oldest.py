"""The oldest Open WebUI that the pipe supports.

The tests are those of the newest one, imported; the fixtures here put another server
under them. Two models that answer at once in one chat are left out: with SQLite this
version reads and writes a chat's row without a lock (docs/reference/open-webui.md, "The
chat's row"), so now and then a change is lost, also one of the host's own.
"""

# ruff: noqa: F401, F811 - pytest uses what is imported

from collections.abc import AsyncIterator
from pathlib import Path

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
    test_context_is_read_and_stored_as_sources,
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
from hosts.test_clients import (
    client,
    responses,
    test_a_failure_has_its_status,
    test_a_limit_tells_when_to_ask_again,
    test_a_stream_has_one_end,
    test_an_anthropic_client_gets_the_reason,
    test_leaving_a_stream_closes_the_connection,
    test_status_that_the_host_passes_on,
)
from hosts.test_contract import (
    report,
    test_a_chat_is_its_owners,
    test_the_host_keeps_its_promises,
    test_writing_a_key_leaves_the_rest_of_the_chat,
)
from hosts.test_denied_tools import test_question_shows_what_will_be_done
from hosts.test_faults import (
    now,
    test_answer_that_was_continued_is_no_failure,
    without_scenario,
)
from hosts.test_gateways import (
    test_a_picture_of_a_gateway_is_on_the_page,
    test_a_picture_that_cannot_be_read_says_so,
    test_a_thought_ends_while_the_answer_grows,
    test_code_in_tags_is_said_to_run_nothing,
    test_people_choose_whole_documents_for_a_chat,
    test_the_server_says_what_an_answer_costs,
    test_thoughts_in_tags_are_stored_as_reasoning,
    test_thoughts_in_tags_on_the_page,
    test_words_of_the_model_stay_whatever_they_look_like,
)
from hosts.test_hosted_search import (
    searching,
    test_a_copied_answer_has_the_addresses_of_its_sources,
)
from hosts.test_limits import students, test_a_group_reaches_its_limit
from hosts.test_other_functions import (
    test_a_filter_reads_the_stream_and_changes_nothing_twice,
    test_a_filter_reads_the_text_before_the_question,
    test_a_pipe_passes_the_text_on,
    test_a_tool_gives_the_text_to_the_model,
    test_an_action_reads_the_text,
    test_the_page_shows_the_text_once,
)
from hosts.test_plain_http import (
    test_a_failure_in_a_stream_is_an_error_chunk,
    test_format_without_a_schema_is_a_bad_request,
    test_plain_request_gets_one_result,
    test_plain_stream_has_chat_chunks,
)
from hosts.test_sandbox_tool import (
    sandbox_tool,
    test_a_file_comes_back_to_the_person,
    test_attached_files_are_in_the_workspace,
    test_import_stores_the_packed_file,
    test_sandbox_blocks_each_attack,
    test_update_keeps_settings_and_workspaces,
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
PICTURES = Path(__file__).parents[2] / "artifacts"
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
@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize(
    ("scenario", "shown"),
    [
        ("parallel", ['"1. blocking_weather"', '"2. blocking_weather"']),
        ("hidden-arguments", [r"Bern\\u202egpj.exe\\u200b\\udb40\\udc41"]),
    ],
)
async def test_dialog_of_this_version_asks_in_a_chat_that_asks(
    admin: User, chromium: Chromium, scenario: str, shown: list[str]
) -> None:
    """Once, with all that will run: its own buttons at the cards lose the results."""
    PICTURES.mkdir(exist_ok=True)
    async with ChatPage(admin, chromium) as chat:
        ui = {"version": OLDEST, "params": {"tool_approval_mode": "ask"}}
        await admin.call("POST", "/api/v1/users/user/settings/update", {"ui": ui})
        await chat.open_model(f"{PIPE}.gpt-6.1-sol", tools="toolkit")
        await chat.ask(f"sim:{scenario}", wait=False)
        confirm = chat.page.get_by_role("button", name="Confirm")
        await confirm.wait_for()
        for width, height in (WIDE, PHONE):
            await chat.resize(width, height)
            await expect(confirm).to_be_in_viewport(ratio=1)
            await chat.screenshot(PICTURES / f"oldest-{scenario}-{width}.png")
        for text in shown:
            await expect(chat.page.get_by_text(text)).to_be_visible()
        await confirm.click()
        await chat.answers.last.get_by_text("It said: Heavy sun in").wait_for()


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
