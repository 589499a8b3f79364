"""The signature of the stand-in host's server."""

from collections.abc import Mapping
from typing import Any

from owui_chat.input.prefix import SentContext, add_sent_context
from owui_chat.storage.signature import Sign, sign_object
from owui_manifold.store.keys import ChatKeys
from stand_in.host import SERVER_SECRET

KEYS = ChatKeys(SERVER_SECRET, "user-1", "chat-1")
"""The keys of the chat that most tests ask in."""

assert KEYS.sign is not None
SIGN: Sign = KEYS.sign


def signed_items(items: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {ulid: sign_object(wire, SIGN, 5, ulid) for ulid, wire in items.items()}


def with_sent(value: Mapping[str, Any], sent: SentContext, key: str) -> dict[str, Any]:
    """The value of a message's key, with what its run sent."""
    message_id = key.partition(":")[2]
    sealed = KEYS.seal(sent.wire(), message_id, sent.packed_turn())
    return add_sent_context(value, sealed)
