"""What is sealed comes back with the same key, and is nothing with any other."""

import json
import sys
from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from owui_chat.storage.records import Record, message_key
from owui_manifold.context import Caller
from owui_manifold.store import ChatStore, open_store
from owui_manifold.valves import Valves
from run_sample import ORIGIN, reasoning
from stand_in_host import Row, StandInHost

pytestmark = pytest.mark.asyncio

CALLER = Caller("f.gpt-5.2", "user-1", "chat-1", "m-1", streams=True)
KEY = message_key("m-1")
SUMMARY = {"type": "summary_text", "text": "Trüffel 🍄"}
ITEM = {**reasoning("1"), "summary": [SUMMARY]}
RECORD = Record("A" * 26, "f.gpt-5.2", 0, (ITEM,), "m-1", ORIGIN)


async def opened(secret: str) -> ChatStore:
    """The store of a chat on a server with this key."""
    valves = Valves(STORE_ENCRYPTION="on", STORE_ENCRYPTION_KEY=secret)
    store = await open_store(CALLER, valves)
    assert store is not None
    return store


async def sealed(host: StandInHost, secret: str) -> dict[str, Any]:
    """What is stored of a record with this key."""
    await (await opened(secret)).write(RECORD)
    stored: dict[str, Any] = host.kept[KEY]
    return stored


async def read(host: StandInHost, secret: str, stored: Any) -> dict[str, Record]:
    """The records of a chat that holds this value."""
    host.chats.rows["chat-1"] = Row("user-1", {KEY: stored})
    return (await opened(secret)).records


@pytest.mark.parametrize("secret", ["short", "x" * 1000, "Schlüssel 🗝", " "])
async def test_value_comes_back_as_it_was(secret: str, host: StandInHost) -> None:
    """Through the host's JSON, whatever the secret is made of."""
    stored = json.loads(json.dumps(await sealed(host, secret)))

    assert await read(host, secret, stored) == {"A" * 26: RECORD}


async def test_nothing_of_it_can_be_read(host: StandInHost) -> None:
    """But the version, which a reader needs first."""
    stored = await sealed(host, "secret")

    assert set(stored) == {"__v", "sealed"}
    assert isinstance(stored["__v"], int)
    assert not {"items", "dead", "payload"} & set(str(stored).split("'"))
    assert "secret" not in str(stored)


async def test_two_seals_of_one_value_differ(host: StandInHost) -> None:
    """Whoever reads the database sees no repetition."""
    assert await sealed(host, "secret") != await sealed(host, "secret")


async def test_value_that_is_sealed_with_another_key_is_empty(
    host: StandInHost,
) -> None:
    """A changed key makes items unreadable, no more."""
    stored = await sealed(host, "before")

    assert await read(host, "after", stored) == {}


@pytest.mark.parametrize(
    "token",
    ["", "garbage", "gAAAAA==", "\udcff", None, 7, ["a"], {}],
)
async def test_garbage_is_empty(token: Any, host: StandInHost) -> None:
    """Whoever wrote it."""
    assert await read(host, "secret", {"__v": 4, "sealed": token}) == {}


async def test_cut_seal_is_empty(host: StandInHost) -> None:
    """A database may lose the end of a text."""
    stored = await sealed(host, "secret")

    cut = {**stored, "sealed": stored["sealed"][:-1]}
    assert await read(host, "secret", cut) == {}


async def test_sealed_text_that_is_no_json_is_empty(host: StandInHost) -> None:
    """It was not this pipe that sealed it."""
    seal = (await opened("secret"))._seal
    assert seal is not None
    token = seal._fernet.encrypt(b"no json").decode()

    assert await read(host, "secret", {"sealed": token}) == {}


@pytest.mark.parametrize("value", [{}, None, [], "sealed", 7])
async def test_value_in_clear_is_left_alone(value: object, host: StandInHost) -> None:
    """It was written while the valve was off."""
    assert await read(host, "secret", value) == {}


async def test_server_without_cryptography_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch, host: StandInHost
) -> None:
    """It says who can do what."""
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)

    with pytest.raises(InvalidRequest) as caught:
        await opened("canary")

    assert "lacks the package cryptography" in str(caught.value)
    assert "An administrator has to install it or turn the valve off." in str(
        caught.value
    )
    assert "canary" not in str(caught.value)
