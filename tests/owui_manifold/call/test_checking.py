"""A call that cannot be answered is refused at one place, before anything is read."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from calls.sample import SAVED, USER, arrived_call, chat
from openai_responses.errors import REASON_GIVEN, InvalidRequest
from owui_manifold.call.checking import call_facts, check_call
from owui_manifold.call.config import read_config
from owui_manifold.call.valves import UserValves, Valves
from stand_in.host import StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"API_KEY": " "}, "set API_KEY in its valves"),
        ({"EXTRA_HEADERS": "X-Team: blue"}, "EXTRA_HEADERS is not a JSON object"),
        ({"BASE_URL": "ftp://example"}, "is not an http or https address"),
        ({"MODEL_OVERRIDES_JSON": "{"}, "MODEL_OVERRIDES_JSON"),
        ({"USER_API_KEYS": "required"}, "your own OpenAI API key"),
        ({"AUTH": "entra_id"}, "needs the filter openai_responses_administration"),
    ],
    ids=["key", "headers", "address", "models", "own key", "entra"],
)
async def test_unusable_setting_refuses_the_call(
    given: dict[str, Any], message: str, host: StandInHost
) -> None:
    """The message says who has to change what."""
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})

    with pytest.raises(InvalidRequest, match=message) as refused:
        await check_call(arrived_call(chat("Hi"), valves))
    is_own = "USER_API_KEYS" in given
    assert refused.value.remedy == ("request" if is_own else "setup")
    assert host.chats.writes == []


async def test_address_is_refused_before_a_token_is_asked_for() -> None:
    """The filter's errors have classes of another file, which the pipe does not know."""

    async def entra_token(base_url: str, scope: str) -> None:
        raise AssertionError

    account: Any = SimpleNamespace(endpoints=None, entra_token=entra_token)
    valves = Valves(AUTH="entra_id", BASE_URL="ftp://example")

    with pytest.raises(InvalidRequest, match="is not an http or https address"):
        await check_call(arrived_call(chat("Hi"), valves), account)


GATEWAY = "https://gateway.example/v1"


@pytest.mark.parametrize(
    ("setting", "address", "headers", "told"),
    [
        ("auto", "https://api.openai.com/v1", {}, None),
        ("auto", "https://us.openai.azure.com/openai/v1", {}, None),
        ("auto", GATEWAY, {}, "Ada"),
        ("always", "https://api.openai.com/v1", {}, "Ada"),
        ("never", GATEWAY, {}, None),
        # A header of the administrator may say less of who asks.
        ("auto", GATEWAY, {"X-OpenWebUI-User-Name": "-"}, "-"),
    ],
)
async def test_only_gateways_are_told_who_asks(
    setting: str,
    address: str,
    headers: dict[str, str],
    told: str | None,
    host: StandInHost,
) -> None:
    """OpenAI needs neither a name nor an address, unless an administrator wants it."""

    def identity(headers: dict[str, str], user: Any, *, request: Any) -> dict[str, str]:
        return {**headers, "X-OpenWebUI-User-Name": user.name}

    host.provide("utils.headers", include_user_info_headers=identity)
    host.provide(
        "env",
        VERSION="0.12.4",
        WEBUI_SECRET_KEY="secret",
        ENABLE_FORWARD_USER_INFO_HEADERS=True,
        FORWARD_SESSION_INFO_HEADER_CHAT_ID="X-OpenWebUI-Chat-Id",
    )
    given = {"BASE_URL": address, "FORWARD_USER_INFO": setting}
    own = {"EXTRA_HEADERS": json.dumps(headers)} if headers else {}
    valves = Valves.model_validate({"API_KEY": "sk-1", **given, **own})

    call = await check_call(arrived_call(chat("Hi"), valves))

    sent = {"X-OpenWebUI-User-Name": told, "X-OpenWebUI-Chat-Id": "chat-1"}
    assert call.endpoint.extra_headers == (sent if told else {})


async def test_placeholders_of_the_host_are_filled_in(host: StandInHost) -> None:
    """By its own function; other headers are left as they are."""
    seen: list[Any] = []

    async def fill_in(
        headers: dict[str, str], user: Any, metadata: dict[str, Any], request: Any
    ) -> dict[str, str]:
        seen.append((headers, user.id, metadata["chat_id"], metadata["model_id"]))
        return {name: "filled in" for name in headers}

    host.provide("utils.headers", get_custom_headers=fill_in)
    headers = {"X-User": "{{USER_ID}}", "X-Team": "blue"}
    given = {"API_KEY": "sk-1", "EXTRA_HEADERS": json.dumps(headers)}
    call = await check_call(arrived_call(chat("Hi"), Valves.model_validate(given)))

    assert call.endpoint.extra_headers == {"X-User": "filled in", "X-Team": "blue"}
    assert seen == [
        ({"X-User": "{{USER_ID}}"}, "user-1", "chat-1", call.caller.host_model)
    ]


LOGGED_IN = SimpleNamespace(
    state=SimpleNamespace(token=SimpleNamespace(credentials="login-1"))
)
TOKENS = {"session": "login-1", "system_oauth": "oauth-1"}


async def _oauth_token(request: Any, user: Any) -> dict[str, str] | None:
    return {"access_token": "oauth-1"} if request and user.id == "user-1" else None


@pytest.mark.parametrize("auth", TOKENS)
async def test_token_of_the_user_takes_the_place_of_the_key(
    auth: str, host: StandInHost
) -> None:
    """It is in no log, and no other account is billed."""
    host.provide("utils.middleware", get_system_oauth_token=_oauth_token)
    given = {"API_KEY": "sk-1", "BASE_URL": GATEWAY, "AUTH": auth}
    arrived = arrived_call(chat("Hi"), Valves.model_validate(given))
    arrived = replace(arrived, host=arrived.host._replace(request=LOGGED_IN))
    call = await check_call(arrived)

    sent = call.endpoint.headers()
    assert sent["Authorization"] == f"Bearer {TOKENS[auth]}"
    assert "sk-1" not in str(sent)
    assert TOKENS[auth] not in call.log.redacted(f"told {TOKENS[auth]}")


@pytest.mark.parametrize(
    ("auth", "address", "message"),
    [
        ("session", GATEWAY, "In a chat, sign in again"),
        ("system_oauth", GATEWAY, "has none"),
        ("session", "https://api.openai.com/v1", "only gateways get"),
        ("system_oauth", "https://us.openai.azure.com/openai/v1", "only gateways get"),
    ],
)
async def test_no_token_is_sent_where_there_is_none_or_nobody_needs_it(
    auth: str, address: str, message: str, host: StandInHost
) -> None:
    """OpenAI would get to know a login of Open WebUI."""
    host.provide("utils.middleware", get_system_oauth_token=_oauth_token)
    given = {"API_KEY": "sk-1", "BASE_URL": address, "AUTH": auth}
    arrived = arrived_call(chat("Hi"), Valves.model_validate(given))
    request = LOGGED_IN if "only" in message else None
    arrived = replace(arrived, host=arrived.host._replace(request=request))

    with pytest.raises(InvalidRequest, match=message):
        await check_call(arrived)


async def test_own_key_is_sent_as_a_key() -> None:
    """AUTH is about the shared account, not about a user's own key."""
    shared = {"BASE_URL": GATEWAY, "AUTH": "session", "USER_API_KEYS": "allowed"}
    user = {**USER, "valves": UserValves(API_KEY="sk-own")}
    call = arrived_call(chat("Hi"), Valves.model_validate(shared))
    config = read_config(call.config.valves, user)
    checked = await check_call(replace(call, config=config))

    assert checked.endpoint.headers()["Authorization"] == "Bearer sk-own"


_HEADERS = {
    "EXTRA_HEADERS": '{"X-Gateway-Key": "secret"}',
    "EXPERT_JSON": '{"user_keys_get": "headers"}',
}


@pytest.mark.parametrize(
    ("given", "pays"),
    [
        ({}, True),
        ({"EXTRA_HEADERS": _HEADERS["EXTRA_HEADERS"]}, True),  # not sent with it
        (_HEADERS, False),
        ({"BASE_URL": "https://gateway.example/v1"}, False),
        ({"BASE_URL": "https://gateway.example", "COMPATIBILITY": "openai"}, False),
        ({"BASE_URL": "https://us.openai.azure.com/openai/v1"}, False),
        ({"USER_API_KEYS": "off"}, False),
    ],
)
async def test_own_key_pays_where_nothing_of_the_administrators_goes_out(
    given: dict[str, Any], *, pays: bool
) -> None:
    """A word in the place of a key would evade any limit at the administrator's cost."""
    shared = {"API_KEY": "sk-1", "USER_API_KEYS": "allowed", **given}
    user = {**USER, "valves": UserValves(API_KEY="dummy")}
    call = arrived_call(chat("Hi"), Valves.model_validate(shared))
    config = read_config(call.config.valves, user)

    assert call_facts(replace(call, config=config))["user_pays"] is pays


async def test_endpoint_that_cannot_be_used_is_no_fault_of_the_request() -> None:
    """The filter says what is wrong; nothing is sent to the valves' own server."""
    endpoints = SimpleNamespace(problem="ENDPOINTS_JSON cannot be read.")
    account: Any = SimpleNamespace(endpoints=endpoints)
    arrived = arrived_call(chat("Hi"), Valves(API_KEY="sk-1"))

    with pytest.raises(InvalidRequest, match="ENDPOINTS_JSON cannot") as refused:
        await check_call(arrived, account)

    assert refused.value.remedy == "setup"


@pytest.mark.parametrize("is_admin", [True, False])
async def test_reason_why_there_is_no_token_is_the_administrators(
    is_admin: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the tenant; whoever else asks reads who can help."""

    async def entra_token(*_: str) -> tuple[str, str]:
        return "", f"There is no token.{REASON_GIVEN}tenant-1"

    account: Any = SimpleNamespace(endpoints=None, entra_token=entra_token)
    valves = Valves(AUTH="entra_id", BASE_URL="https://us.openai.azure.com/openai/v1")
    caller = SAVED._replace(is_admin=is_admin)
    arrived = arrived_call(chat("Hi"), valves, caller)

    with pytest.raises(InvalidRequest, match="There is no token") as refused:
        await check_call(arrived, account)

    assert ("tenant-1" in str(refused.value)) is is_admin
    assert refused.value.remedy == "setup"
    assert "tenant-1" in caplog.text
