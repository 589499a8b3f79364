"""Whether replayed reasoning may be read.

Refused outright: content that is not ours, or not this organization's. Dropped and
reported, on models that bind reasoning to its prefix: content whose history changed
(docs/reference/responses-api.md, "Changed beginnings", and "Refusals of input items",
4, 9, 10 and 12).

Source: reports, listed there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.accounts import Profile
from simulator.checks.items import read_item_type
from simulator.models import ModelFacts
from simulator.prefix import serialize_bound_head
from simulator.refusals import Refusal, refuse
from simulator.sealing import (
    ForeignSeal,
    PrefixHash,
    Seal,
    canonicalize_item,
    unseal_content,
)
from simulator.tokens import SEALED_TYPES

Item = Mapping[str, Any]
UNREADABLE_TEXT = "Encrypted content could not be decrypted or parsed."
OTHER_ORGANIZATION_TEXT = (
    "Encrypted content organization_id did not match the target organization."
)


@dataclass(frozen=True)
class ReplayReader:
    """Whose request it is: organization, end user, model, profile."""

    organization: str
    end_user: str | None
    model: ModelFacts
    profile: Profile
    current_turn_only: bool = False


@dataclass(frozen=True)
class Replay:
    """The input as the model reads it, and the reasoning that was removed from it."""

    items: tuple[Item, ...]
    removed: tuple[dict[str, str], ...]
    reasoning_tokens: int
    prefix: PrefixHash

    @property
    def reasoning_count(self) -> int:
        return sum(item["type"] == "reasoning" for item in self.items)


def read_replay(
    body: Mapping[str, Any], items: Sequence[Item], reader: ReplayReader
) -> Replay:
    """Return what the model reads of an input, or raise the refusal."""
    prefix = PrefixHash(serialize_bound_head(body, reader.model))
    questions = (at for at, item in enumerate(items) if item.get("role") == "user")
    last_question = max(questions, default=-1)
    read: list[Item] = []
    removed: list[dict[str, str]] = []
    reasoning_tokens = 0
    for index, item in enumerate(items):
        kind = read_item_type(item)
        if kind == "mcp_call":
            continue  # accepted, but only a stored response gives it back
        if kind in SEALED_TYPES:
            seal = _unseal_item(item, index, reader)
            # A compaction is bound to no prefix, and belongs to no turn.
            is_compaction = kind == "compaction"
            read_before = seal.prefix if is_compaction else prefix.digest()
            is_past = index < last_question and not is_compaction
            reason = _removal_reason(seal, read_before, is_past, reader)
            if reason:
                id = item.get("id") or seal.item
                report = {"id": id, "type": "reasoning", "action": "removed"}
                removed.append({**report, "reason": reason})
                continue
            if is_compaction:  # it stands for everything before it
                read = []
                reasoning_tokens = 0
            reasoning_tokens += seal.tokens
        canonical = canonicalize_item(item)
        read.append(canonical)
        prefix.read(canonical)
    return Replay(tuple(read), tuple(removed), reasoning_tokens, prefix)


def _unseal_item(item: Item, index: int, reader: ReplayReader) -> Seal:
    """Return the seal of reasoning or of a compaction, or raise the refusal."""
    if read_item_type(item) == "reasoning":
        if not reader.model.reasons:
            raise refuse("reasoning_of_plain_model")
        if "status" in item and not reader.profile.accepts_reasoning_status:
            raise refuse("unknown_parameter", path=f"input[{index}].status")
        # Other servers send its text (musistudio/claude-code-router 1783,
        # router-for-me/CLIProxyAPI 5825, both of September 2026); that it is refused
        # next to encrypted content, too, is assumed.
        if item.get("content"):
            path = f"input[{index}].content"
            count = len(item["content"])
            raise refuse("array_length", path=path, limit=0, length=count)
    content = item.get("encrypted_content") or ""
    try:
        seal = unseal_content(content)
    except ForeignSeal as error:
        raise _refuse_unverifiable(content, UNREADABLE_TEXT) from error
    if seal.organization != reader.organization:
        raise _refuse_unverifiable(content, OTHER_ORGANIZATION_TEXT)
    # A model that drops reasoning of another family later accepts it at first.
    drops_it_later = reader.model.binds_reasoning_to_prefix
    is_tolerated = drops_it_later or reader.profile.accepts_foreign_family
    if seal.family != reader.model.family and not is_tolerated:
        raise _refuse_unverifiable(content, UNREADABLE_TEXT)
    return seal


def _refuse_unverifiable(content: str, reason: str) -> Refusal:
    ends = content if len(content) <= 16 else f"{content[:4]}...{content[-4:]}"
    return refuse("unverifiable", content=ends, reason=reason)


def _removal_reason(
    seal: Seal, prefix: str, is_past: bool, reader: ReplayReader
) -> str | None:
    """Return why the model does not read sealed content; None if it reads it."""
    boundary = "turn_boundary" if is_past and reader.current_turn_only else None
    if not reader.model.binds_reasoning_to_prefix:
        return boundary
    if seal.family != reader.model.family:
        return "model_mismatch"
    if seal.end_user != reader.end_user:
        return "end_user_mismatch"
    if seal.prefix != prefix:
        return "prefix_mismatch"
    return boundary
