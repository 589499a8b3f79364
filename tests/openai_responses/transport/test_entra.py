"""Tokens of Microsoft Entra ID; the package itself is tried in the real Open WebUI."""

import asyncio
import sys
from types import ModuleType
from typing import NamedTuple

import pytest

from measures.kept_memory import kept_container
from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from openai_responses.transport import entra
from openai_responses.transport.entra import EntraTokens, entra_scope

pytestmark = pytest.mark.asyncio
SCOPE = "https://cognitiveservices.azure.com/.default"


class AccessToken(NamedTuple):
    """What azure-core gives."""

    token: str
    expires_on: int


class Credential:
    """Gives tokens that hold for some seconds, or fails."""

    seconds = 3600
    failure = ""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tries = 0

    def get_token(self, *scopes: str) -> AccessToken:
        self.tries += 1
        if self.failure:
            raise RuntimeError(self.failure)
        self.asked += scopes
        end = unix_seconds() + self.seconds
        return AccessToken(f"token-{len(self.asked)}", end)


@pytest.fixture
def credential(monkeypatch: pytest.MonkeyPatch) -> Credential:
    """A server's identity, which is found out once."""
    identity = Credential()
    made = [identity]
    package = ModuleType("azure.identity")
    vars(package)["DefaultAzureCredential"] = made.pop
    monkeypatch.setitem(sys.modules, "azure", ModuleType("azure"))
    monkeypatch.setitem(sys.modules, "azure.identity", package)
    return identity


async def test_concurrent_requests_share_one_token(credential: Credential) -> None:
    """Many who ask at once wait for the same; another scope has its own."""
    tokens = EntraTokens()

    given = await asyncio.gather(*(tokens.token(SCOPE) for _ in range(50)))
    other = await tokens.token("https://other/.default")

    assert {*given, other} == {"token-1", "token-2"}
    assert credential.asked == [SCOPE, "https://other/.default"]


async def test_token_that_has_ended_is_forgotten(
    credential: Credential, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings may have named many scopes since."""
    tokens = EntraTokens()
    await tokens.token("https://earlier/.default")
    later = unix_seconds() + 4000
    monkeypatch.setattr(entra, "unix_seconds", lambda: later)

    await tokens.token(SCOPE)

    assert set(kept_container(tokens)) == {SCOPE}


async def test_token_is_used_until_its_end(
    credential: Credential, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While there is no other; then the reason is told."""
    credential.seconds = 290
    tokens = EntraTokens()
    # Five minutes before its end it is renewed, so that none ends on its way.
    assert [await tokens.token(SCOPE) for _ in range(2)] == ["token-1", "token-2"]
    credential.failure = "The network is down."

    assert await tokens.token(SCOPE) == "token-2"
    end = unix_seconds() + credential.seconds
    monkeypatch.setattr(entra, "unix_seconds", lambda: end)
    with pytest.raises(InvalidRequest, match="issued no token for this server"):
        await tokens.token(SCOPE)


async def test_after_a_failure_the_token_is_used_for_a_while(
    credential: Credential, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a minute without an answer would hold up each request after the other."""
    credential.seconds = 290
    tokens = EntraTokens()
    await tokens.token(SCOPE)
    credential.failure = "The network is down."

    given = await asyncio.gather(*(tokens.token(SCOPE) for _ in range(10)))
    given.append(await tokens.token(SCOPE))

    assert set(given) == {"token-1"}
    assert credential.tries == 2

    credential.failure = ""
    later = unix_seconds() + 31
    monkeypatch.setattr(entra, "unix_seconds", lambda: later)
    assert await tokens.token(SCOPE) == "token-2"


async def test_those_who_wait_for_a_failure_share_it(credential: Credential) -> None:
    """Entra may take half a minute to say no; the twentieth would wait for ten minutes."""
    # Azure's package lists what each kind of identity said.
    credential.failure = "No identity.\nclient_secret=abcdef123456 was refused" * 99
    tokens = EntraTokens()
    asked = [tokens.token(SCOPE) for _ in range(20)]
    asked.append(tokens.token("https://other/.default"))  # may be given one

    refusals = await asyncio.gather(*asked, return_exceptions=True)

    assert {str(refusal) for refusal in refusals} == {str(refusals[0])}
    assert "issued no token for this server" in str(refusals[0])
    assert "No identity." in str(refusals[0])
    assert "abcdef123456" not in str(refusals[0])
    assert len(str(refusals[0])) < 500
    assert credential.tries == 2
    credential.failure = ""  # who comes later asks again
    assert await tokens.token(SCOPE) == "token-1"
    assert credential.tries == 3


async def test_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed in the server of a user."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)

    with pytest.raises(InvalidRequest, match="need the package azure-identity"):
        await EntraTokens().token(SCOPE)


async def test_scope_of_each_cloud() -> None:
    scope = "https://cognitiveservices.azure.{}/.default"
    for address, cloud in {
        "https://ours.openai.azure.com": "com",
        "https://ours.openai.azure.us/openai/v1": "us",
        "https://ours.openai.azure.cn": "cn",
        "https://gateway.example/v1": "com",
    }.items():
        assert entra_scope(Endpoint(address, "")) == scope.format(cloud), address


async def test_clock_that_is_set_back_keeps_no_token_alive(
    credential: Credential, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the package, which gives the same token for as long as it counts."""
    tokens = EntraTokens()
    assert await tokens.token(SCOPE) == "token-1"
    ended = monotonic_seconds() + credential.seconds
    monkeypatch.setattr(entra, "monotonic_seconds", lambda: ended)
    monkeypatch.setattr(entra, "unix_seconds", lambda: 1_000_000_000)

    credential.asked.clear()  # it gives the first token once more
    given = [await tokens.token(SCOPE) for _ in range(3)]
    assert given == ["token-1", "token-2", "token-2"]
