"""What an older host lacks gives a message; another user's chat gives nothing."""

import sys
from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from owui_manifold.host.open_webui import (
    read_chat,
    require_floor,
    server_secret,
    without_forbidden_search,
    write_chat_keys,
)
from stand_in.host import SERVER_SECRET, Row, StandInHost

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("version", ["0.11.4", "0.12", "0.11.5-dev"])
async def test_newer_host_passes_the_version_check(
    version: str, host: StandInHost
) -> None:
    """The oldest supported version passes, too."""
    host.provide("env", VERSION=version)

    require_floor()


@pytest.mark.parametrize(
    "version",
    [
        "0.11.3",
        "0.11",
        "unknown",
    ],
)
async def test_older_host_gives_a_sentence(version: str, host: StandInHost) -> None:
    """It names both versions and who can do something."""
    host.provide("env", VERSION=version)

    with pytest.raises(InvalidRequest, match=r"0\.11\.4 or newer") as caught:
        require_floor()

    assert f"this server runs {version}" in str(caught.value)
    assert "administrator" in str(caught.value)


async def test_host_without_a_version_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the host's modules the version cannot be read."""
    monkeypatch.delitem(sys.modules, "open_webui.env", raising=False)

    with pytest.raises(InvalidRequest, match=r"no VERSION in open_webui\.env"):
        require_floor()


async def test_missing_name_gives_a_sentence(host: StandInHost) -> None:
    """The module is there, what we need of it is not."""
    host.provide("models.chats", ChatTable=object)

    with pytest.raises(InvalidRequest, match=r"no Chats in open_webui\.models\.chats"):
        await read_chat("chat-1", "user-1")


async def test_only_an_own_chat_with_a_row_is_read(host: StandInHost) -> None:
    """Another user's chat reads like one that does not exist, or has nothing in it."""
    assert await read_chat("chat-1", "user-1") == {"title": "Rain"}
    assert await read_chat("chat-1", "user-2") is None
    assert await read_chat("chat-2", "user-1") is None
    host.chats.rows["chat-1"] = Row("user-1", None)
    assert await read_chat("chat-1", "user-1") is None


async def test_only_the_given_key_is_written(host: StandInHost) -> None:
    """The rest of the chat is not sent: it may be stale. The row may be gone."""
    assert not await write_chat_keys("chat-2", {"ours": {"a": 1}})
    assert await write_chat_keys("chat-1", {"ours": {"a": 1}})

    assert host.chats.writes == [{"ours": {"a": 1}}]
    assert host.chats.rows["chat-1"].chat == {"title": "Rain", "ours": {"a": 1}}


@pytest.mark.parametrize(
    ("env", "secret"),
    [
        ({"WEBUI_SECRET_KEY": SERVER_SECRET}, SERVER_SECRET),
        ({"WEBUI_SECRET_KEY": None}, ""),
        ({}, ""),
    ],
    ids=["set", "null", "absent"],
)
async def test_server_secret_is_empty_where_the_host_has_none(
    env: dict[str, str | None], secret: str, host: StandInHost
) -> None:
    """A chat goes on without what needs one."""
    host.provide("env", VERSION="0.12.4", **env)

    assert server_secret() == secret


@pytest.mark.parametrize(
    ("change", "searches"),
    [
        ({}, True),
        ({"server": False}, False),
        ({"server": None}, False),
        ({"model": False}, False),
        ({"user": "user-2"}, False),
        ({"role": "admin", "server": False, "user": "user-2"}, True),
        ({"asked": False}, False),
    ],
    ids=repr,
)
async def test_search_of_a_client_is_taken_back_where_the_server_forbids_it(
    change: dict[str, Any], searches: bool, host: StandInHost
) -> None:
    """Model, server and the user's groups each have to allow it."""
    host.settings.values["web.search.enable"] = change.get("server", True)
    if change.get("server", True) is None:
        del host.settings.values["web.search.enable"]
    meta = {"capabilities": {"web_search": change.get("model", True)}}
    metadata = {
        "features": {"web_search": change.get("asked", True), "other": 1},
        "model": {"info": {"meta": meta}},
    }
    user = {"id": change.get("user", "user-1"), "role": change.get("role", "user")}

    permitted = await without_forbidden_search(metadata, user)

    assert permitted["features"]["web_search"] is searches
    assert permitted["features"]["other"] == 1
