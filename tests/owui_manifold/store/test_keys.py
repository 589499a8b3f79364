"""What is encrypted opens where it was encrypted, and nowhere else."""

import base64

import pytest

from owui_manifold.store.keys import ChatKeys

SECRET = "the server's secret"
VALUE = {"instructions": "The secret plan.", "texts": [1, None]}


@pytest.mark.parametrize(
    ("opener", "message_id", "opens"),
    [
        (ChatKeys(SECRET, "user-1", "chat-1"), "m-1", True),
        (ChatKeys(SECRET, "user-1", "chat-1"), "m-2", False),
        (ChatKeys(SECRET, "user-1", "chat-2"), "m-1", False),
        (ChatKeys(SECRET, "user-2", "chat-1"), "m-1", False),
        (ChatKeys("another", "user-1", "chat-1"), "m-1", False),
        (ChatKeys("", "user-1", "chat-1"), "m-1", False),
    ],
    ids=["its own", "message", "chat", "user", "secret", "no secret"],
)
def test_value_opens_for_its_own_message_alone(
    opener: ChatKeys, message_id: str, opens: bool
) -> None:
    """A client chooses the ids of its messages; a chat can be cloned."""
    sealed = ChatKeys(SECRET, "user-1", "chat-1").seal(VALUE, "m-1")

    assert opener.unseal(sealed, message_id) == (VALUE if opens else None, b"")


def test_value_that_an_earlier_version_encrypted_opens() -> None:
    """Chats live longer than a release."""
    sealed = (
        "/A1QLVEBXaypjCe+xBVHcfsQTJeD0qWlN03vTQk+9pLkypJM7HBLxP4m"
        "HlH7FuS28ChM4QV8QJd+DTbL4J6OeTL+FZBSR+pebnMgI60enSSHWFpu"
    )

    assert ChatKeys(SECRET, "user-1", "chat-1").unseal(sealed, "m-1") == (VALUE, b"")


def test_bytes_after_the_value_come_back_as_they_were() -> None:
    keys = ChatKeys(SECRET, "user-1", "chat-1")

    sealed = keys.seal(VALUE, "m-1", b"\0{}\0")

    assert keys.unseal(sealed, "m-1") == (VALUE, b"\0{}\0")


@pytest.mark.parametrize("sealed", ["", "no base64!", base64.b64encode(b"x").decode()])
def test_what_nobody_encrypted_is_nothing(sealed: str) -> None:
    """The owner of a chat can write anything there."""
    assert ChatKeys(SECRET, "user-1", "chat-1").unseal(sealed, "m-1") == (None, b"")


def test_equal_values_do_not_look_alike() -> None:
    keys = ChatKeys(SECRET, "user-1", "chat-1")

    assert keys.seal(VALUE, "m-1") != keys.seal(VALUE, "m-1")
