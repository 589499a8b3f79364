"""Item ids, the canonical text of a prompt, and encrypted content that records its origin."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "computer_call": "cu",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "compaction": "cmp",
    "configuration_update": "cfg",  # assumed: the types of outputs do not have it
}
MAX_ID_CHARACTERS = 64
NO_PARTNER = 255
"""The index of the partner of an item that belongs to no other one."""
ID_PATTERN = re.compile(
    r"^(?P<prefix>[a-z]+)_(?P<response>[0-9a-f]{24})"
    r"(?P<index>[0-9a-f]{2})(?P<partner>[0-9a-f]{2})(?P<check>[0-9a-f]{20})$"
)


@dataclass(frozen=True)
class ItemPosition:
    """Which item of which response this is.

    The partner of reasoning is the item that it led to, and the reverse.
    """

    response: str
    index: int
    partner: int = NO_PARTNER

    def id(self, prefix: str) -> str:
        head = f"{self.response}{self.index:02x}{self.partner:02x}"
        return f"{prefix}_{head}{make_digest(head)[:20]}"


def make_digest(text: str) -> str:
    """Return a hex digest that looks random, and is the same at every run."""
    return hashlib.sha256(f"id {text}".encode()).hexdigest()


def parse_item_id(id: str) -> ItemPosition | None:
    """Return the position that one of our ids names; None for a foreign id."""
    match = ID_PATTERN.match(id)
    if match is None:
        return None
    position = ItemPosition(
        response=match["response"],
        index=int(match["index"], 16),
        partner=int(match["partner"], 16),
    )
    return position if position.id(match["prefix"]) == id else None


def make_response_id(key: str) -> str:
    """Return the id of the response with this key of 24 hex digits."""
    return f"resp_{key}{make_digest(key)[:24]}"


def make_call_id(response: str, index: int) -> str:
    """Return the ``call_id`` of the call at an index of a response's output."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    number = int(make_digest(f"call {response} {index}"), 16)
    characters = []
    for _ in range(24):
        number, position = divmod(number, len(alphabet))
        characters.append(alphabet[position])
    return f"call_{''.join(characters)}"


Item = Mapping[str, Any]
IGNORED_FIELDS = frozenset(
    {"id", "status", "created_by", "annotations", "logprobs", "sources"}
)


def canonicalize_item(item: Item) -> dict[str, Any]:
    """Return one item without what the model does not read.

    Every encoding of the same encrypted content becomes the same text.
    """
    if item.get("encrypted_content"):
        item = {**item, "encrypted_content": rewrite_seal(item["encrypted_content"])}
    canonical = dict(_readable_value(item))
    if item.get("type", "message") != "message":
        return canonical
    content = item["content"]
    if isinstance(content, str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {
        **canonical,
        "type": "message",
        "content": [_readable_value(part) for part in content],
    }


def _readable_value(value: Any) -> Any:
    """Return a value without the fields that the model does not read, at every depth."""
    if isinstance(value, Mapping):
        return {
            name: _readable_value(inner)
            for name, inner in value.items()
            if name not in IGNORED_FIELDS and inner is not None
        }
    if isinstance(value, list):
        return [_readable_value(inner) for inner in value]
    return value


def serialize_value(value: object) -> bytes:
    """Write one value with sorted names, without spaces."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


class PrefixHash:
    """The hash of the part of a prompt that has been read so far."""

    def __init__(self, head: bytes) -> None:
        """Begin with ``head``: what precedes the input."""
        self._head = hashlib.sha256(head)
        self._hash = self._head.copy()

    def read(self, item: Item) -> None:
        """Read one more canonical item; a compaction replaces all before it."""
        if item["type"] == "compaction":
            self._hash = self._head.copy()
        self._hash.update(b"\n" + serialize_value(item))

    def digest(self) -> str:
        return self._hash.copy().hexdigest()[:32]


KEY = b"the stand-in's own sealing key"
VERSION = b"\x80"
TIMESTAMP = (1_790_000_000).to_bytes(8, "big")
HEAD_LENGTH = len(VERSION) + len(TIMESTAMP) + 16
TAG_LENGTH = 32
MIN_CONTENT_LENGTH = 288
SEALED_NAMES = {"organization": "organisation"}
"""The spelling that is encrypted in the transcripts."""


@dataclass(frozen=True)
class Seal:
    """What encrypted content records of its origin."""

    item: str
    organization: str
    family: str
    prefix: str
    end_user: str | None
    tokens: int
    tools: tuple[Mapping[str, Any], ...] = ()
    """What a compaction keeps of `additional_tools`."""


class ForeignSeal(Exception):
    """Content that this stand-in did not seal, or not in this form."""


def seal_content(seal: Seal, variant: str = "") -> str:
    """Return the opaque text of a seal, at least 400 characters long.

    Another ``variant`` gives another text, which unseals to the same seal.
    """
    # A change of what is encrypted changes the bytes of all transcripts.
    fields = {
        SEALED_NAMES.get(name, name): value
        for name, value in vars(seal).items()
        if name != "tools" or value
    }
    plain = json.dumps(fields).encode().ljust(MIN_CONTENT_LENGTH)
    nonce = hashlib.sha256(variant.encode() + plain).digest()[:16]
    head = VERSION + TIMESTAMP + nonce
    body = head + _mask_bytes(plain, nonce)
    tag = hmac.digest(KEY, body, "sha256")
    return base64.urlsafe_b64encode(body + tag).decode()


def unseal_content(text: str) -> Seal:
    """Open an opaque text, or raise :class:`ForeignSeal`."""
    try:
        raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ForeignSeal from error
    body = raw[:-TAG_LENGTH]
    tag = raw[-TAG_LENGTH:]
    if not hmac.compare_digest(hmac.digest(KEY, body, "sha256"), tag):
        raise ForeignSeal
    plain = _mask_bytes(body[HEAD_LENGTH:], body[HEAD_LENGTH - 16 : HEAD_LENGTH])
    fields = json.loads(plain)
    organization = fields.pop(SEALED_NAMES["organization"])
    tools = tuple(fields.pop("tools", ()))
    return Seal(organization=organization, tools=tools, **fields)


def rewrite_seal(text: str, variant: str = "") -> str:
    """Return another variant of encrypted content; foreign content stays as it is."""
    try:
        return seal_content(unseal_content(text), variant)
    except ForeignSeal:
        return text


def _mask_bytes(text: bytes, nonce: bytes) -> bytes:
    """Encrypt or decrypt: both are an exclusive or with the key's stream."""
    blocks = [
        hashlib.sha256(KEY + nonce + count.to_bytes(4, "big")).digest()
        for count in range(len(text) // 32 + 1)
    ]
    stream = b"".join(blocks)[: len(text)]
    masked = int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")
    return masked.to_bytes(len(text), "big")
