"""Whether replayed reasoning may be read.

Refused outright: content that is not ours, or not this organisation's. Dropped and
reported, on models that bind reasoning to its prefix: content whose history changed
(responses-api.md §0.2, §2.1 rules 4, 9, 10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.canonical import PrefixHash, canonical_item
from simulator.compacting import SEALED
from simulator.items_check import kind_of
from simulator.models import ModelFacts
from simulator.profiles import Profile
from simulator.refusals import Refusal, unknown_parameter
from simulator.sealing import NotOurs, Seal, shorten, unseal

Item = Mapping[str, Any]
NOT_READABLE = "Encrypted content could not be decrypted or parsed."
OTHER_ORGANISATION = (
    "Encrypted content organization_id did not match the target organization."
)


@dataclass(frozen=True)
class Reader:
    """Who asks: the organisation, the end user, the model, the profile."""

    organisation: str
    end_user: str | None
    model: ModelFacts
    profile: Profile
    current_turn_only: bool = False


@dataclass(frozen=True)
class Replay:
    """The input as the model reads it, and what was taken out of it."""

    items: tuple[Item, ...]
    removed: tuple[dict[str, str], ...]
    reasoning_tokens: int
    prefix: PrefixHash

    @property
    def reasoning(self) -> int:
        """How many reasoning items the model was given back."""
        return sum(item["type"] == "reasoning" for item in self.items)


def read_replay(
    body: Mapping[str, Any], items: Sequence[Item], reader: Reader
) -> Replay:
    """Return what the model reads of an input, or raise the refusal."""
    prefix = PrefixHash(body)
    kept: list[Item] = []
    removed: list[dict[str, str]] = []
    tokens = 0
    last_user = _last_user(items)
    for index, item in enumerate(items):
        if kind_of(item) in SEALED:
            found = _open(item, index, reader)
            past = index < last_user
            compacts = kind_of(item) == "compaction"
            read = found.prefix if compacts else prefix.digest()
            reason = _removal(found, read, past and not compacts, reader)
            if reason:
                removed.append(_report(item.get("id") or found.item, reason))
                continue
            if compacts:  # it stands for all before it
                kept, tokens = [], 0
            tokens += found.tokens
        if kind_of(item) == "mcp_call":
            continue  # taken, but never read: only a stored response gives it back
        kept.append(canonical_item(item))
        prefix.read(kept[-1])
    return Replay(tuple(kept), tuple(removed), tokens, prefix)


def _last_user(items: Sequence[Item]) -> int:
    users = [index for index, item in enumerate(items) if item.get("role") == "user"]
    return users[-1] if users else -1


def _report(id: str, reason: str) -> dict[str, str]:
    return {"id": id, "type": "reasoning", "action": "removed", "reason": reason}


def _open(item: Item, index: int, reader: Reader) -> Seal:
    if kind_of(item) == "reasoning":
        if not reader.model.reasons:
            raise Refusal(
                "Reasoning input items can only be provided to a reasoning or computer "
                "use model. Remove reasoning items from your input and try again.",
                param="input",
            )
        if "status" in item and not reader.profile.accepts_reasoning_status:
            raise unknown_parameter(f"input[{index}].status")
    content = item.get("encrypted_content") or ""
    try:
        found = unseal(content)
    except NotOurs as error:
        raise _unverifiable(content, NOT_READABLE) from error
    if found.organisation != reader.organisation:
        raise _unverifiable(content, OTHER_ORGANISATION)
    if found.family != reader.model.family and not _tolerates(reader):
        raise _unverifiable(content, NOT_READABLE)
    return found


def _tolerates(reader: Reader) -> bool:
    bound = reader.model.binds_reasoning_to_prefix
    return bound or reader.profile.accepts_foreign_family


def _unverifiable(content: str, reason: str) -> Refusal:
    return Refusal(
        f"The encrypted content {shorten(content)} could not be verified. "
        f"Reason: {reason}",
        code="invalid_encrypted_content",
    )


def _removal(found: Seal, prefix: str, past: bool, reader: Reader) -> str | None:
    if not reader.model.binds_reasoning_to_prefix:
        return None
    if found.family != reader.model.family:
        return "model_mismatch"
    if found.end_user != reader.end_user:
        return "end_user_mismatch"
    if found.prefix != prefix:
        return "prefix_mismatch"
    return "turn_boundary" if past and reader.current_turn_only else None
