"""The five steps of the README, by hand on the administrator's pages."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bundling.targets import TARGETS
from hosts.admin_pages import AdminPages
from hosts.chromium import Chromium
from hosts.page import ChatPage
from hosts.users import User
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.browser]

PIPE = TARGETS[0]
PASTED = "pasted_by_hand"
"""An id that no other test uses."""
MODEL, SHOWN_MODEL = "gpt-5.6-terra", "GPT-5.6 Terra"
"""A model that no other pipe of the server offers."""


@pytest_asyncio.fixture
async def admin_page(admin: User, chromium: Chromium) -> AsyncIterator[ChatPage]:
    """The administrator's page; what was pasted is gone afterwards."""
    async with ChatPage(admin, chromium) as opened:
        yield opened
    await admin.delete_function(PASTED)
    await admin.call("POST", "/api/v1/models/model/delete", {"id": f"{PASTED}.{MODEL}"})


@pytest.mark.asyncio
async def test_from_zero_to_a_reply(
    admin_page: ChatPage, page: ChatPage, pipe_source: str, simulator: Simulator
) -> None:
    """Paste, key, switch, visibility; then an ordinary user chats."""
    pages = AdminPages(admin_page)
    await pages.open_functions()
    await pages.open_editor()
    assert await pages.paste(pipe_source, PASTED) == "OpenAI Responses Manifold"
    await pages.save()
    await pages.set_valves(
        PASTED,
        {
            "Base Url": simulator.base_url,
            "Api Key": simulator.api_key,
            "Model Id": MODEL,
        },
    )
    await pages.enable(PASTED)
    assert f"{PASTED}.{MODEL}" not in [one["id"] for one in await page.user.models()]
    await pages.open_models()
    access = await pages.open_access(SHOWN_MODEL)
    await pages.make_public(access)
    await pages.save_model(access)

    await page.open_model(f"{PASTED}.{MODEL}")
    await page.ask("sim:short Good morning")

    assert "Turn 1." in await page.last_answer()
    assert (page.errors, admin_page.errors) == ([], [])
    function = await admin_page.user.call("GET", f"/api/v1/functions/id/{PASTED}")
    # Neither the loader's replacements nor the editor's Black have changed anything.
    assert function["content"] == pipe_source
    assert function["type"] == "pipe"
    manifest = function["meta"]["manifest"]
    assert tuple(manifest) == PIPE.frontmatter
    assert manifest["required_open_webui_version"] == "0.11.4"
