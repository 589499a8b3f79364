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
from shells.administration import ADMINISTRATION_CONTRACT
from stand_in.host import StandInHost, host_request

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

ID = "openai_responses_administration"


class Administration:

    CONTRACT = ADMINISTRATION_CONTRACT

    class Valves(BaseModel):

        PERIOD: str = "day"

    valves = Valves()


async def test_without_the_filter_nothing_is_asked(host: StandInHost) -> None:
    host.filters.active = {"other": None}
    assert await active_administration(host_request()) is None
    host.filters.active = {ID: Administration()}
    assert await active_administration(None) is None  # a call of the host's own


@pytest.mark.parametrize(
    ("stored", "period"), [({"PERIOD": "week"}, "week"), (None, "day")]
)
async def test_it_has_its_settings(stored: Any, period: str, host: StandInHost) -> None:
    """As they are stored: what other filters of the chat have is not asked.

    The host stores nothing of a filter that was never saved.
    """
    host.filters.active = {"other": None, ID: Administration()}
    host.filters.valves = {ID: stored}
    administration: Any = await active_administration(host_request())
    assert period == administration.valves.PERIOD


async def test_settings_that_cannot_be_read_are_not_the_defaults(
    host: StandInHost,
) -> None:
    """Those would be no limits."""
    host.filters.active = {ID: Administration()}
    host.filters.is_database_away = True
    with pytest.raises(InvalidRequest, match="so nothing is sent") as refused:
        await active_administration(host_request())
    assert refused.value.remedy == "setup"


@pytest.mark.parametrize(
    ("contract", "older"),
    [
        (ADMINISTRATION_CONTRACT - 1, "update that filter"),
        (ADMINISTRATION_CONTRACT + 1, "update this pipe"),
    ],
)
async def test_another_contract_is_a_sentence(
    host: StandInHost, contract: int, older: str
) -> None:
    """The two files are updated one after the other; it says which is left."""
    other = Administration()
    other.CONTRACT = contract
    host.filters.active = {ID: other}
    with pytest.raises(InvalidRequest, match=older) as refused:
        await active_administration(host_request())
    assert refused.value.remedy == "setup"


def refused_token(_: object, scope: str) -> None:
    raise RuntimeError("tenant 1234 of login.example refused")


IDENTITY = SimpleNamespace(
    DefaultAzureCredential=type("Credential", (), {"get_token": refused_token})
)


@pytest.mark.parametrize(
    ("package", "role", "told"),
    [
        (None, "user", "need the package azure-identity"),
        (IDENTITY, "user", "issued no token for this server"),
        (IDENTITY, "admin", "issued no token for this server"),
    ],
    ids=["no package", "user", "administrator"],
)
async def test_reason_of_entra_id_is_for_administrators(
    package: object,
    role: str,
    told: str,
    host: StandInHost,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It names tenants and hosts; the log has it for all."""
    monkeypatch.setitem(sys.modules, "azure.identity", package)
    host.filters.active = {ID: Filter()}
    pipe = Pipe()
    pipe.valves = Valves(AUTH="entra_id", BASE_URL="https://north.openai.azure.com")
    asked = {**NATIVE, "__user__": {**USER, "role": role}}

    shown = await chunks_of(pipe, chat("Hi"), **asked, __request__=host_request())

    [error] = errors(shown)
    assert told in error
    assert ("tenant 1234" in error) is (role == "admin")
    assert ("tenant 1234" in caplog.text) is (package is IDENTITY)
