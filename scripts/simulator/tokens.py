"""Tokens, counted well enough: four bytes each, and what reasoning comes to."""

import re
from collections import deque
from collections.abc import Hashable

LEAST_CACHED = 1024
STEP = 128
REMEMBERED = 64
REASONING_TOKENS = 64
SEALED = re.compile(rb'gAAAA[A-Za-z0-9_=-]+"')
BASE64 = re.compile(rb"data:[a-z/+.-]+;base64,[A-Za-z0-9+/=]+|gAAAA[A-Za-z0-9_=-]+")


def count_tokens(text: str | bytes) -> int:
    """Return how many tokens a text has, at least one."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return max(1, len(raw) // 4)


def count_prompt(prompt: bytes) -> int:
    """Count a prompt; pictures and sealed reasoning are not read as text."""
    return count_tokens(BASE64.sub(b"", prompt))


def common_prefix(one: bytes, other: bytes) -> int:
    """Return how many leading bytes two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class PromptCache:
    """The prompts seen under each cache key."""

    def __init__(self) -> None:
        """Start empty."""
        self._seen: dict[Hashable, deque[bytes]] = {}

    def read(self, key: Hashable, prompt: bytes) -> int:
        """Return how many tokens of the prompt were cached, then remember it."""
        seen = self._seen.setdefault(key, deque(maxlen=REMEMBERED))
        longest = max((common_prefix(prompt, earlier) for earlier in seen), default=0)
        seen.append(prompt)
        shared = prompt[:longest]
        tokens = count_prompt(shared) if shared else 0
        tokens += REASONING_TOKENS * len(SEALED.findall(shared))
        return tokens // STEP * STEP if tokens >= LEAST_CACHED else 0

    def forget(self) -> None:
        """Empty the cache."""
        self._seen.clear()
