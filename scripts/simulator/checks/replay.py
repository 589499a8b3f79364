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
from simulator.refusals import (
    Refusal,
    refuse_array_length,
    refuse_unknown_parameter,
)
from simulator.sealing import (
    ForeignSeal,
    PrefixHash,
    Seal,
    canonicalize_item,
    shorten_seal,
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
    """Who asks: the organization, the end user, the model, the profile."""

    organization: str
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
    body: Mapping[str, Any], items: Sequence[Item], reader: ReplayReader
) -> Replay:
    """Return what the model reads of an input, or raise the refusal."""
    prefix = PrefixHash(serialize_bound_head(body, reader.model))
    kept: list[Item] = []
    removed: list[dict[str, str]] = []
    tokens = 0
    last_user = _last_user(items)
    for index, item in enumerate(items):
        if read_item_type(item) in SEALED_TYPES:
            seal = _unseal_item(item, index, reader)
            past = index < last_user
            compacts = read_item_type(item) == "compaction"
            read = seal.prefix if compacts else prefix.digest()
            reason = _removal(seal, read, past and not compacts, reader)
            if reason:
                id = item.get("id") or seal.item
                removed.append(_build_removal_report(id, reason))
                continue
            if compacts:  # it stands for all before it
                kept = []
                tokens = 0
            tokens += seal.tokens
        if read_item_type(item) == "mcp_call":
            continue  # taken, but never read: only a stored response gives it back
        kept.append(canonicalize_item(item))
        prefix.read(kept[-1])
    return Replay(tuple(kept), tuple(removed), tokens, prefix)


def _last_user(items: Sequence[Item]) -> int:
    users = [index for index, item in enumerate(items) if item.get("role") == "user"]
    return users[-1] if users else -1


def _build_removal_report(id: str, reason: str) -> dict[str, str]:
    return {"id": id, "type": "reasoning", "action": "removed", "reason": reason}


def _unseal_item(item: Item, index: int, reader: ReplayReader) -> Seal:
    if read_item_type(item) == "reasoning":
        if not reader.model.reasons:
            raise Refusal(
                "Reasoning input items can only be provided to a reasoning or computer "
                "use model. Remove reasoning items from your input and try again.",
                param="input",
            )
        if "status" in item and not reader.profile.accepts_reasoning_status:
            raise refuse_unknown_parameter(f"input[{index}].status")
        _refuse_plain_text(item, f"input[{index}].content")
    content = item.get("encrypted_content") or ""
    try:
        seal = unseal_content(content)
    except ForeignSeal as error:
        raise _refuse_unverifiable(content, UNREADABLE_TEXT) from error
    if seal.organisation != reader.organization:
        raise _refuse_unverifiable(content, OTHER_ORGANIZATION_TEXT)
    if seal.family != reader.model.family and not _is_tolerated(reader):
        raise _refuse_unverifiable(content, UNREADABLE_TEXT)
    return seal


def _refuse_plain_text(item: Item, path: str) -> None:
    """Refuse reasoning that brings its own text, as other servers send it.

    Source: musistudio/claude-code-router 1783, router-for-me/CLIProxyAPI 5825, both of
    September 2026; beside encrypted content it is assumed.
    """
    if item.get("content"):
        raise refuse_array_length(path, 0, len(item["content"]))


def _is_tolerated(reader: ReplayReader) -> bool:
    bound = reader.model.binds_reasoning_to_prefix
    return bound or reader.profile.accepts_foreign_family


def _refuse_unverifiable(content: str, reason: str) -> Refusal:
    return Refusal(
        f"The encrypted content {shorten_seal(content)} could not be verified. "
        f"Reason: {reason}",
        code="invalid_encrypted_content",
    )


def _removal(seal: Seal, prefix: str, past: bool, reader: ReplayReader) -> str | None:
    """Return why the model does not read something; older models do not report it."""
    boundary = "turn_boundary" if past and reader.current_turn_only else None
    if not reader.model.binds_reasoning_to_prefix:
        return boundary
    if seal.family != reader.model.family:
        return "model_mismatch"
    if seal.end_user != reader.end_user:
        return "end_user_mismatch"
    if seal.prefix != prefix:
        return "prefix_mismatch"
    return boundary
