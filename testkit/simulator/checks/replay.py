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
        """How many reasoning items the model was given back."""
        return sum(item["type"] == "reasoning" for item in self.items)


def read_replay(
    body: Mapping[str, Any], items: Sequence[Item], reader: ReplayReader
) -> Replay:
    """Return what the model reads of an input, or raise the refusal."""
    prompt = _ReplayedPrompt(PrefixHash(serialize_bound_head(body, reader.model)))
    last_question = _last_question_index(items)
    for index, item in enumerate(items):
        kind = read_item_type(item)
        if kind in SEALED_TYPES:
            seal = _unseal_item(item, index, reader)
            if kind == "compaction":
                prompt.read_compaction(item, seal, reader)
            else:
                prompt.read_reasoning(item, seal, reader, index < last_question)
        elif kind != "mcp_call":  # accepted, but only a stored response gives it back
            prompt.read(item)
    return prompt.replay()


class _ReplayedPrompt:
    """What the model has read of an input so far."""

    def __init__(self, prefix: PrefixHash) -> None:
        self._prefix = prefix
        self._items: list[Item] = []
        self._removed: list[dict[str, str]] = []
        self._reasoning_tokens = 0

    def read(self, item: Item) -> None:
        """Read one more item."""
        canonical = canonicalize_item(item)
        self._items.append(canonical)
        self._prefix.read(canonical)

    def read_reasoning(
        self, item: Item, seal: Seal, reader: ReplayReader, is_past: bool
    ) -> None:
        """Read reasoning, or remove it; ``is_past`` says that a question follows it."""
        reason = _removal_reason(seal, self._prefix.digest(), is_past, reader)
        if reason:
            self._report_removal(item, seal, reason)
            return
        self._reasoning_tokens += seal.tokens
        self.read(item)

    def read_compaction(self, item: Item, seal: Seal, reader: ReplayReader) -> None:
        """Read a compaction in place of everything before it, or remove it.

        It is bound to no prefix, and belongs to no turn.
        """
        reason = _removal_reason(seal, seal.prefix, False, reader)
        if reason:
            self._report_removal(item, seal, reason)
            return
        self._items = []
        self._reasoning_tokens = seal.tokens
        self.read(item)

    def _report_removal(self, item: Item, seal: Seal, reason: str) -> None:
        report = {
            "id": item.get("id") or seal.item,
            "type": "reasoning",
            "action": "removed",
            "reason": reason,
        }
        self._removed.append(report)

    def replay(self) -> Replay:
        """Return the whole input as it was read."""
        return Replay(
            items=tuple(self._items),
            removed=tuple(self._removed),
            reasoning_tokens=self._reasoning_tokens,
            prefix=self._prefix,
        )


def _last_question_index(items: Sequence[Item]) -> int:
    """Return the index of the last user message; -1 if there is none."""
    questions = [i for i, item in enumerate(items) if item.get("role") == "user"]
    return questions[-1] if questions else -1


def _unseal_item(item: Item, index: int, reader: ReplayReader) -> Seal:
    """Return the seal of reasoning or of a compaction, or raise the refusal."""
    if read_item_type(item) == "reasoning":
        if not reader.model.reasons:
            raise refuse("reasoning_of_plain_model")
        if "status" in item and not reader.profile.accepts_reasoning_status:
            raise refuse("unknown_parameter", path=f"input[{index}].status")
        _refuse_plain_text(item, f"input[{index}].content")
    content = item.get("encrypted_content") or ""
    try:
        seal = unseal_content(content)
    except ForeignSeal as error:
        raise _refuse_unverifiable(content, UNREADABLE_TEXT) from error
    if seal.organization != reader.organization:
        raise _refuse_unverifiable(content, OTHER_ORGANIZATION_TEXT)
    if seal.family != reader.model.family and not _is_tolerated(reader):
        raise _refuse_unverifiable(content, UNREADABLE_TEXT)
    return seal


def _refuse_plain_text(item: Item, path: str) -> None:
    """Refuse reasoning whose text is not encrypted, as other servers send it.

    Source: musistudio/claude-code-router 1783, router-for-me/CLIProxyAPI 5825, both of
    September 2026; next to encrypted content it is assumed.
    """
    if item.get("content"):
        raise refuse("array_length", path=path, limit=0, length=len(item["content"]))


def _is_tolerated(reader: ReplayReader) -> bool:
    """Tell whether reasoning of another family is accepted, if not read."""
    drops_it_later = reader.model.binds_reasoning_to_prefix
    return drops_it_later or reader.profile.accepts_foreign_family


def _refuse_unverifiable(content: str, reason: str) -> Refusal:
    return refuse("unverifiable", content=shorten_seal(content), reason=reason)


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
