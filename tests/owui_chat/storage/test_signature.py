"""Signatures are the same for ever: chats hold those of all versions."""

from typing import Any

import pytest

from owui_chat.storage.signature import derive_key, is_signed, sign_object, signer

RECORDS = signer("secret", "records")
FIELDS = {"b": 1, "a": "ü"}
IN_ORDER = "7b6bea478c86261f5cbd304a9babf693"
SORTED = "f2368109c0518cd87aac80b4cb55cb1c"
SIGNED = {**FIELDS, "signature": IN_ORDER + SORTED}


def test_keys_and_signatures_do_not_change() -> None:
    """What a chat has stored could not be read any more."""
    assert derive_key("secret", "records").hex() == (
        "331241d2a67faf46a38be3222e2bec06ea6df599e53e68b108ae7e43b9453b58"
    )
    assert sign_object(FIELDS, RECORDS, 5, "x") == SIGNED
    assert sign_object(SIGNED, RECORDS, 5, "x") == SIGNED
    assert sign_object(SIGNED, None, 5, "x") == FIELDS


def test_id_with_half_a_character_has_a_key_of_its_own() -> None:
    """A client names its chat as it likes."""
    keys = {derive_key("secret", f"chat {name}") for name in ("\ud800", "\udfff", "?")}

    assert len(keys) == 3


@pytest.mark.parametrize(
    ("signed", "scope", "is_ours"),
    [
        (SIGNED, (5, "x"), True),
        ({**SIGNED, "signature": SORTED}, (5, "x"), True),
        ({"a": "ü", "b": 1, "signature": IN_ORDER + SORTED}, (5, "x"), True),
        ({"a": "ü", "b": 1, "signature": IN_ORDER}, (5, "x"), False),
        ({**SIGNED, "b": 2}, (5, "x"), False),
        ({**SIGNED, "c": None}, (5, "x"), False),
        ({**SIGNED, "signature": "ü" * 64}, (5, "x"), False),
        (FIELDS, (5, "x"), False),
        (SIGNED, (5, "y"), False),
        (SIGNED, (5,), False),
    ],
)
def test_signature_holds_for_its_value_and_place(
    signed: dict[str, Any], scope: tuple[object, ...], is_ours: bool
) -> None:
    """With the secret of this server and for one purpose; names may be sorted."""
    assert is_signed(signed, RECORDS, *scope) is is_ours
    for other in (None, signer("secret", "details"), signer("other", "records")):
        assert not is_signed(signed, other, *scope)
