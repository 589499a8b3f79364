"""Tokens, added up over the turns of a run."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of one response, or of several added together.

    `cached` is part of `input`, `reasoning` part of `output` (responses-api.md §4).
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum, field by field; what was not told counts as nothing."""
    if one is None or other is None:
        return one or other
    pairs = zip(astuple(one), astuple(other), strict=True)
    return Usage(*(a + b for a, b in pairs))


def read_usage(wire: object) -> Usage | None:
    """Return the counts of a response's `usage`, or None when it has none.

    Other servers leave fields out or send null; what is missing counts as nothing.
    """
    if not isinstance(wire, Mapping):
        return None
    inputs = _mapping(wire.get("input_tokens_details"))
    outputs = _mapping(wire.get("output_tokens_details"))
    given, made = _count(wire.get("input_tokens")), _count(wire.get("output_tokens"))
    return Usage(
        input=given,
        output=made,
        total=_count(wire.get("total_tokens")) or given + made,
        cached=_count(inputs.get("cached_tokens")),
        cache_writes=_count(inputs.get("cache_write_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
