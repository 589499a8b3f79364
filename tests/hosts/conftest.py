"""One Open WebUI server for all tests of this directory."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from golden_run.built_files import BUILT_PIPE
from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.people.tabs import Tab
from hosts.people.users import User, settings_changed
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import (
    PIPE,
    STUB,
    install_pipe,
    install_toolkit,
    valves_changed,
)
from simulator import Simulator

MODELS = (
    "gpt-6.1-sol",
    "gpt-6.2-sol",
    "gpt-5.2",
    "gpt-5.2-high",
    "gpt-4.1",
    "gpt-99-unheard-of",
)


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    """The process from which servers are forked."""
    forking = ForkServer()
    yield forking
    forking.stop()


@pytest_asyncio.fixture(scope="session")
async def server(forks: ForkServer) -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI."""
    async with OpenWebUI(forks=forks) as running:
        yield running


@pytest_asyncio.fixture(scope="session")
async def running_simulator() -> AsyncIterator[Simulator]:
    """The stand-in for the Responses API that the installed pipe talks to."""
    async with Simulator() as running:
        yield running


@pytest.fixture
def simulator(running_simulator: Simulator) -> Simulator:
    """The same with an empty record."""
    running_simulator.forget()
    return running_simulator


@pytest.fixture(scope="session")
def admin(server: OpenWebUI) -> User:
    """The administrator."""
    return server.admin


@pytest_asyncio.fixture(scope="session")
async def member(admin: User) -> AsyncIterator[User]:
    """An ordinary user."""
    async with await admin.add_user("member@example.com", "member") as signed_in:
        yield signed_in


@pytest.fixture(scope="session")
def pipe_source() -> str:
    """The built file."""
    return BUILT_PIPE.read_text()


@pytest.fixture(scope="session")
def pipe_valves(running_simulator: Simulator) -> dict[str, str]:
    """The valves of a pipe that talks to the simulator."""
    upstream = running_simulator
    return {
        "BASE_URL": upstream.base_url,
        "API_KEY": upstream.api_key,
        "MODEL_ID": ", ".join(MODELS),
        "COMPATIBILITY": "openai",  # the simulator stands for OpenAI
    }


@pytest_asyncio.fixture(scope="session")
async def pipe(admin: User, pipe_source: str, pipe_valves: dict[str, str]) -> list[str]:
    """The built pipe, installed for everybody: the ids of its models."""
    return await install_pipe(admin, PIPE, pipe_source, pipe_valves)


@pytest_asyncio.fixture(scope="session")
async def stub(admin: User) -> list[str]:
    """A pipe whose tools Open WebUI runs, installed for everybody."""
    return await install_pipe(admin, "stub", STUB, {})


@pytest_asyncio.fixture
async def in_row(admin: User, pipe: list[str]) -> AsyncIterator[None]:
    """Records in a key of the chat's row, with markers."""
    async with valves_changed(admin, PIPE, HISTORY_CARRIER="markers"):
        yield


@pytest_asyncio.fixture
async def tab(member: User) -> AsyncIterator[Tab]:
    """A browser tab of the ordinary user."""
    async with Tab(member) as opened:
        yield opened


@pytest_asyncio.fixture
async def admins_tab(admin: User) -> AsyncIterator[Tab]:
    """A browser tab of the administrator."""
    async with Tab(admin) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def running_chromium() -> AsyncIterator[Chromium]:
    """The browser of all pages."""
    async with Chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="module")
async def chromium(running_chromium: Chromium) -> AsyncIterator[Chromium]:
    """The browser, whose pages go on running between the tests of one file alone."""
    yield running_chromium
    await running_chromium.empty_kept_pages()


@pytest_asyncio.fixture
async def page(member: User, chromium: Chromium) -> AsyncIterator[ChatPage]:
    """The ordinary user's page."""
    async with ChatPage(member, chromium) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def toolkit(admin: User) -> AsyncIterator[None]:
    """A toolkit that everybody may use."""
    await install_toolkit(admin)
    yield
    await admin.call("DELETE", "/api/v1/tools/id/toolkit/delete")


@pytest_asyncio.fixture(scope="session")
async def twin(admin: User) -> AsyncIterator[None]:
    """The toolkit once more, whose tools Open WebUI renames because of the first."""
    await install_toolkit(admin, "twin")
    yield
    await admin.call("DELETE", "/api/v1/tools/id/twin/delete")


@pytest_asyncio.fixture
async def sub_agents(admin: User) -> AsyncIterator[None]:
    """A server whose chats can delegate tasks."""
    on = {"ENABLE_SUBAGENTS": True}
    async with settings_changed(admin, "/api/v1/configs/subagents", on):
        yield
