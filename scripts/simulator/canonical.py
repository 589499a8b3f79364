"""One serialisation of what a model reads.

Ids, status and spelled-out defaults never reach the model, so two requests that differ
only there have the same prefix.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

Item = Mapping[str, Any]
UNREAD = frozenset({"id", "status", "created_by", "annotations", "logprobs", "sources"})


def canonical_item(item: Item) -> dict[str, Any]:
    """Return one item without what the model does not read."""
    if item.get("type", "message") != "message":
        return dict(_readable(item))
    spelled = dict(_readable(item))
    content = item["content"]
    if isinstance(content, str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {**spelled, "type": "message", "content": [_readable(p) for p in content]}


def _readable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _readable(inner)
            for name, inner in value.items()
            if name not in UNREAD and inner is not None
        }
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    return value


def serialise_head(body: Mapping[str, Any]) -> bytes:
    """Serialise what stands before the input: tools, then instructions."""
    head = [body.get("tools") or [], body.get("instructions") or ""]
    return serialise(head)


def serialise(value: object) -> bytes:
    """Write one value with sorted names, without spaces."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def serialise_prompt(body: Mapping[str, Any], items: Iterable[Item]) -> bytes:
    """Serialise a whole prompt so that a longer one starts with a shorter one."""
    return b"\n".join([serialise_head(body), *map(serialise, items)])


class PrefixHash:
    """The hash of a prompt as far as it has been read."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        """Start behind the instructions."""
        self._head = hashlib.sha256(serialise_head(body))
        self._hash = self._head.copy()

    def read(self, item: Item) -> None:
        """Read one more canonical item; a compaction stands for all before it."""
        if item["type"] == "compaction":
            self._hash = self._head.copy()
        self._hash.update(b"\n" + serialise(item))

    def digest(self) -> str:
        """Return the hash of all that was read so far."""
        return self._hash.copy().hexdigest()[:32]
