"""The filter of the administration is asked by the pipe, if it is active."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from calls.outcomes import NATIVE, chunks_of, errors
from calls.sample import USER, chat
from openai_responses.errors import InvalidRequest
from owui_administration.filter import Filter
from owui_manifold.call.valves import Valves
from owui_manifold.host.open_webui import active_administration
from owui_manifold.pipe import Pipe
from stand_in.host import StandInHost, host_request

pytestmark = pytest.mark.asyncio

ID = "openai_responses_administration"


class Administration:
    """A filter with one setting."""

    CONTRACT = 2

    class Valves(BaseModel):
        """Settings."""

        PERIOD: str = "day"

    valves = Valves()


async def test_without_the_filter_nothing_is_asked(host: StandInHost) -> None:
    """Other filters are not loaded."""
    host.filters.active = {"other": None}
    assert await active_administration(host_request()) is None
    assert await active_administration(None) is None


async def test_it_has_its_settings(host: StandInHost) -> None:
    """As the host would set them, and those of other filters stay readable."""
    host.filters.active = {"other": None, ID: Administration()}
    host.filters.valves = {ID: {"PERIOD": "week"}}
    administration: Any = await active_administration(host_request())
    assert administration.valves.PERIOD == "week"


@pytest.mark.parametrize("version", [0, 1, 3])
async def test_another_version_is_a_sentence(host: StandInHost, version: Any) -> None:
    """The two files are updated one after the other."""
    other = Administration()
    other.CONTRACT = version
    host.filters.active = {ID: other}
    with pytest.raises(InvalidRequest, match="pipe and its filter"):
        await active_administration(host_request())


async def test_token_of_entra_id_needs_the_filter(host: StandInHost) -> None:
    """Without it the chat says what to install; nothing is sent."""
    pipe = Pipe()
    pipe.valves = Valves(AUTH="entra_id", BASE_URL="https://north.openai.azure.com")

    shown = await chunks_of(pipe, chat("Hi"), **NATIVE, __request__=host_request())

    (error,) = errors(shown)
    assert "needs the filter openai_responses_administration" in error


async def test_entra_id_error_reaches_the_chat(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter has no package for it here."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    host.filters.active = {ID: Filter()}
    pipe = Pipe()
    pipe.valves = Valves(AUTH="entra_id", BASE_URL="https://north.openai.azure.com")

    shown = await chunks_of(pipe, chat("Hi"), **NATIVE, __request__=host_request())

    (error,) = errors(shown)
    assert "need the package azure-identity" in error


@pytest.mark.parametrize("role", ["user", "admin"])
async def test_reason_of_entra_id_is_for_administrators(
    role: str,
    host: StandInHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It names tenants and hosts; the log has it for all."""

    class Credential:
        def get_token(self, scope: str) -> None:
            raise RuntimeError("tenant 1234 of login.example refused")

    identity = SimpleNamespace(DefaultAzureCredential=Credential)
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    host.filters.active = {ID: Filter()}
    pipe = Pipe()
    pipe.valves = Valves(AUTH="entra_id", BASE_URL="https://north.openai.azure.com")
    asked = {**NATIVE, "__user__": {**USER, "role": role}}

    shown = await chunks_of(pipe, chat("Hi"), **asked, __request__=host_request())

    [error] = errors(shown)
    assert "issued no token for this server" in error
    assert ("tenant 1234" in error) is (role == "admin")
    assert "tenant 1234" in caplog.text
