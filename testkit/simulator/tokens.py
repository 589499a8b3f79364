"""Token counts, the prompt cache and server-side compaction.

Four bytes count as one token.
"""

import contextlib
import re
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

from simulator.refusals import refuse_range, refuse_value
from simulator.sealing import ForeignSeal, unseal_content

MIN_CACHED_TOKENS = 1024
CACHE_STEP_TOKENS = 128
MAX_CACHED_PROMPTS = 64
REASONING_TOKENS = 64
SEALED_PATTERN = re.compile(rb'(gAAAA[A-Za-z0-9_=-]+)"')
BASE64_PATTERN = re.compile(
    rb"data:[a-z/+.-]+;base64,[A-Za-z0-9+/=]+|gAAAA[A-Za-z0-9_=-]+"
)


def count_tokens(text: str | bytes) -> int:
    """Return how many tokens a text has, at least one."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return max(1, len(raw) // 4)


def count_prompt(prompt: bytes) -> int:
    """Count a prompt; images and sealed reasoning are not read as text."""
    return count_tokens(BASE64_PATTERN.sub(b"", prompt))


def count_common_prefix(first: bytes, second: bytes) -> int:
    """Return how many leading bytes two texts share."""
    low = 0
    high = min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def count_prefix(shared: bytes) -> int:
    """Count the beginning of a prompt with the sealed reasoning in it."""
    if not shared:
        return 0
    sealed = 0
    for content in SEALED_PATTERN.findall(shared):
        with contextlib.suppress(ForeignSeal):  # a text that only looks like it
            sealed += unseal_content(content.decode()).tokens
    return sealed + count_prompt(shared)


class PromptCache:
    """The prompts seen under each cache key."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, deque[bytes]] = {}

    def read(self, key: Hashable, prompt: bytes) -> int:
        """Return how many tokens of the prompt were cached, then remember it."""
        seen = self._seen.setdefault(key, deque(maxlen=MAX_CACHED_PROMPTS))
        longest = max(
            (count_common_prefix(prompt, earlier) for earlier in seen), default=0
        )
        seen.append(prompt)
        tokens = count_prefix(prompt[:longest])
        if tokens < MIN_CACHED_TOKENS:
            return 0
        return tokens // CACHE_STEP_TOKENS * CACHE_STEP_TOKENS

    def forget(self) -> None:
        self._seen.clear()


SEALED_TYPES = ("reasoning", "compaction")
MIN_COMPACT_THRESHOLD = 1000


def check_compaction(body: Mapping[str, Any]) -> None:
    """Raise the refusal for an unknown way to manage the context.

    Source: types of openai 3.54.0; that 1,000 is taken is recorded. That less is not,
    and in which words, is assumed.
    """
    for index, way in enumerate(body.get("context_management") or []):
        path = f"context_management[{index}]"
        if way["type"] != "compaction":
            raise refuse_value(f"{path}.type", way["type"], ("compaction",))
        threshold = way.get("compact_threshold")
        if threshold is not None and threshold < MIN_COMPACT_THRESHOLD:
            threshold_path = f"{path}.compact_threshold"
            raise refuse_range(
                threshold_path, "integer", f">= {MIN_COMPACT_THRESHOLD}", threshold
            )


def is_to_be_compacted(body: Mapping[str, Any], tokens: int) -> bool:
    """Tell whether an input of this many tokens has to be compacted."""
    ways = body.get("context_management") or []
    limits = [way.get("compact_threshold") for way in ways]
    return any(limit is not None and tokens > limit for limit in limits)
