"""What is sealed comes back with the same key, and is nothing with any other."""

import json
import sys
from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from owui_manifold.store import Encryption, is_encrypted_value

VALUE = {
    "__v": 4,
    "items": {"A": {"payload": {"summary": "Trüffel 🍄"}}},
    "dead": ["B"],
}


@pytest.mark.parametrize("secret", ["short", "x" * 1000, "Schlüssel 🗝", " "])
def test_value_comes_back_as_it_was(secret: str) -> None:
    """Through the host's JSON, whatever the secret is made of."""
    stored = json.loads(json.dumps(Encryption(secret).encrypt(VALUE)))

    assert Encryption(secret).decrypt(stored) == VALUE


def test_nothing_of_it_can_be_read() -> None:
    """But the version, which a reader needs first."""
    stored = Encryption("secret").encrypt(VALUE)

    assert is_encrypted_value(stored)
    assert set(stored) == {"__v", "sealed"}
    assert stored["__v"] == 4
    assert not {"items", "dead", "payload"} & set(str(stored).split("'"))
    assert "secret" not in str(stored)


def test_two_seals_of_one_value_differ() -> None:
    """Whoever reads the database sees no repetition."""
    seal = Encryption("secret")

    assert seal.encrypt(VALUE) != seal.encrypt(VALUE)


def test_value_that_is_sealed_with_another_key_is_empty() -> None:
    """A changed key makes items unreadable, no more."""
    stored = Encryption("before").encrypt(VALUE)

    assert Encryption("after").decrypt(stored) == {}


@pytest.mark.parametrize(
    "token",
    ["", "garbage", "gAAAAA==", "\udcff", None, 7, ["a"], {}],
)
def test_garbage_is_empty(token: Any) -> None:
    """Whoever wrote it."""
    assert Encryption("secret").decrypt({"__v": 4, "sealed": token}) == {}


def test_cut_seal_is_empty() -> None:
    """A database may lose the end of a text."""
    stored = Encryption("secret").encrypt(VALUE)

    assert (
        Encryption("secret").decrypt({**stored, "sealed": stored["sealed"][:-1]}) == {}
    )


def test_sealed_text_that_is_no_json_is_empty() -> None:
    """It was not this pipe that sealed it."""
    seal = Encryption("secret")
    token = seal._fernet.encrypt(b"no json").decode()

    assert seal.decrypt({"sealed": token}) == {}


@pytest.mark.parametrize("value", [VALUE, {}, None, [], "sealed", 7])
def test_value_in_clear_is_left_alone(value: object) -> None:
    """It was written while the valve was off."""
    assert not is_encrypted_value(value)
    assert Encryption("secret").decrypt(value) is value


def test_server_without_cryptography_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says who can do what."""
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)

    with pytest.raises(InvalidRequest) as caught:
        Encryption("canary")

    assert "lacks the package cryptography" in str(caught.value)
    assert "An administrator has to install it or turn the valve off." in str(
        caught.value
    )
    assert "canary" not in str(caught.value)
