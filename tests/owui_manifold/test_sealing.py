"""What is sealed comes back with the same key, and is nothing with any other."""

import json
import sys
from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from owui_manifold.store import Seal, is_sealed

VALUE = {
    "__v": 4,
    "items": {"A": {"payload": {"summary": "Trüffel 🍄"}}},
    "dead": ["B"],
}


@pytest.mark.parametrize("secret", ["short", "x" * 1000, "Schlüssel 🗝", " "])
def test_value_comes_back_as_it_was(secret: str) -> None:
    """Through the host's JSON, whatever the secret is made of."""
    stored = json.loads(json.dumps(Seal(secret).close(VALUE)))

    assert Seal(secret).open(stored) == VALUE


def test_nothing_of_it_can_be_read() -> None:
    """But the version, which a reader needs first."""
    stored = Seal("secret").close(VALUE)

    assert is_sealed(stored)
    assert set(stored) == {"__v", "sealed"}
    assert stored["__v"] == 4
    assert not {"items", "dead", "payload"} & set(str(stored).split("'"))
    assert "secret" not in str(stored)


def test_two_seals_of_one_value_differ() -> None:
    """Whoever reads the database sees no repetition."""
    seal = Seal("secret")

    assert seal.close(VALUE) != seal.close(VALUE)


def test_value_that_is_sealed_with_another_key_is_empty() -> None:
    """A changed key makes items unreadable, no more."""
    stored = Seal("before").close(VALUE)

    assert Seal("after").open(stored) == {}


@pytest.mark.parametrize(
    "token",
    ["", "garbage", "gAAAAA==", "\udcff", None, 7, ["a"], {}],
)
def test_garbage_is_empty(token: Any) -> None:
    """Whoever wrote it."""
    assert Seal("secret").open({"__v": 4, "sealed": token}) == {}


def test_cut_seal_is_empty() -> None:
    """A database may lose the end of a text."""
    stored = Seal("secret").close(VALUE)

    assert Seal("secret").open({**stored, "sealed": stored["sealed"][:-1]}) == {}


def test_sealed_text_that_is_no_json_is_empty() -> None:
    """It was not this pipe that sealed it."""
    seal = Seal("secret")
    token = seal._fernet.encrypt(b"no json").decode()

    assert seal.open({"sealed": token}) == {}


@pytest.mark.parametrize("value", [VALUE, {}, None, [], "sealed", 7])
def test_value_in_clear_is_left_alone(value: object) -> None:
    """It was written while the valve was off."""
    assert not is_sealed(value)
    assert Seal("secret").open(value) is value


def test_server_without_cryptography_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says who can do what."""
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)

    with pytest.raises(InvalidRequest) as caught:
        Seal("canary")

    assert "lacks the package cryptography" in str(caught.value)
    assert "An administrator has to install it or turn the valve off." in str(
        caught.value
    )
    assert "canary" not in str(caught.value)
