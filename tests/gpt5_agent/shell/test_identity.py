"""What the agent tells a server of who asks."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpt5_agent.shell.identity import open_endpoint
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.settings import (
    AgentInput,
    PipelineCaller,
    build_agent_request,
    read_caller,
    read_inlet_context,
)
from gpt5_agent.shell.valves import Valves
from openai_responses.errors import InvalidRequest
from openai_responses.transport.connections import Connections
from openai_responses.transport.entra import EntraTokens

pytestmark = pytest.mark.asyncio

ADA = {"id": "u-1", "name": "Ada Løvelace", "email": "ada@example.com", "role": "user"}
GATEWAY = "https://gateway.example/v1"
AZURE = "https://it.openai.azure.us"
TOLD = {
    "X-OpenWebUI-User-Name": "Ada L%C3%B8velace",
    "X-OpenWebUI-User-Id": "u-1",
    "X-OpenWebUI-User-Email": "ada@example.com",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "chat-1",
}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that tells who asks, and has no key."""
    monkeypatch.setenv("PIPELINES_DIR", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("ENABLE_FORWARD_USER_INFO_HEADERS", "True")


def caller_of(user: object) -> PipelineCaller:
    """Who asks, as Open WebUI passes it through the inlet."""
    body = {"metadata": {"chat_id": "chat-1", "message_id": "m-1"}}
    given: Any = user
    return read_caller({"agent_context": read_inlet_context(body, given)})


async def headers_of(user: object = ADA, **valves: Any) -> Mapping[str, str]:
    """The headers of a request, but for the usual ones."""
    set_up = Valves(**{"API_KEY": "sk-1", "BASE_URL": GATEWAY, **valves})
    endpoint = await open_endpoint(
        set_up, caller_of(user), EntraTokens(), AgentLog("ID")
    )
    usual = ("Authorization", "Content-Type", "api-key")
    return {k: v for k, v in endpoint.headers().items() if k not in usual}


@pytest.mark.parametrize(
    ("valves", "told"),
    [
        ({}, TOLD),
        ({"BASE_URL": "https://api.openai.com/v1"}, {}),
        ({"BASE_URL": AZURE}, {}),
        ({"BASE_URL": AZURE, "FORWARD_USER_INFO": "always"}, TOLD),
        ({"FORWARD_USER_INFO": "never"}, {}),
    ],
)
async def test_who_asks(valves: dict[str, str], told: Mapping[str, str]) -> None:
    """Gateways are told, OpenAI and Azure only if an administrator says so."""
    assert await headers_of(**valves) == told


async def test_names_are_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An administrator's own header stays; without the switch nothing is told."""
    monkeypatch.setenv("FORWARD_USER_INFO_HEADER_USER_ID", "X-Who")
    own = '{"X-OpenWebUI-User-Role": "agent"}'

    found = await headers_of(EXTRA_HEADERS=own)
    assert (found["X-Who"], found["X-OpenWebUI-User-Role"]) == ("u-1", "agent")

    monkeypatch.delenv("ENABLE_FORWARD_USER_INFO_HEADERS")
    assert await headers_of() == {}


@pytest.mark.parametrize("user", [None, {}, {"id": 7, "name": ["x"]}])
async def test_nobody_is_told_of_whom_nothing_is_known(user: object) -> None:
    """A plain client, or a user that is no text."""
    assert await headers_of(user) == {}


async def test_what_a_caller_says_cannot_end_a_header() -> None:
    """Line ends are encoded; half a character is a question mark."""
    found = await headers_of({**ADA, "id": "a\r\nX-Admin: 1", "name": "\ud800"})

    assert found["X-OpenWebUI-User-Id"] == "a%0D%0AX-Admin: 1"
    assert found["X-OpenWebUI-User-Name"] == "%3F"


async def test_token_takes_the_place_of_the_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One for many answers, for the cloud of the address; it is in no log."""
    asked: list[str] = []

    class Credential:
        """As azure-identity's, whose scopes are positional."""

        def get_token(self, *scopes: str, **more: Any) -> SimpleNamespace:
            """Return a token for an hour."""
            asked.extend(scopes)
            return SimpleNamespace(token="canary-token", expires_on=2**40)

    identity = ModuleType("azure.identity")
    vars(identity)["DefaultAzureCredential"] = Credential
    monkeypatch.setitem(sys.modules, "azure", ModuleType("azure"))
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    tokens, log = EntraTokens(), AgentLog("ID")
    valves = Valves(BASE_URL=AZURE, AUTH="entra_id")

    opened = [open_endpoint(valves, PipelineCaller(), tokens, log) for _ in range(3)]
    endpoints = await asyncio.gather(*opened)
    log.warn("canary-token")

    assert asked == ["https://cognitiveservices.azure.us/.default"]
    for endpoint in endpoints:
        assert endpoint.headers()["Authorization"] == "Bearer canary-token"
        assert "api-key" not in endpoint.headers()
    assert "canary-token" not in caplog.text


async def test_signature_without_a_key_is_the_servers() -> None:
    """No caller can make it, and it is the same for each answer."""
    valves = Valves(BASE_URL=AZURE, AUTH="entra_id", AUTH_SCOPE="a")
    tokens, log = EntraTokens(), AgentLog("ID")
    tokens._known["a"] = ("canary-token", 2**40)
    endpoint = await open_endpoint(valves, PipelineCaller(), tokens, log)
    question = AgentInput("gpt5_react", [], {}, valves)

    signs = [
        build_agent_request(question, endpoint, Connections(), log).sign("text", False)
        for _ in range(2)
    ]

    assert signs[0] == signs[1]
    plain = build_agent_request(question, endpoint, Connections(), log)
    assert plain._replace(secret="").sign("text", False) != signs[0]


async def test_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Pipelines server does not install it."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    valves = Valves(BASE_URL=AZURE, AUTH="entra_id")

    with pytest.raises(InvalidRequest, match="no package azure-identity"):
        await open_endpoint(valves, PipelineCaller(), EntraTokens(), AgentLog("ID"))
