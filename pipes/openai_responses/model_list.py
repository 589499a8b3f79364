"""Which models to offer when nobody listed them: the newest of each family.

A family is what stands behind the version: `gpt-6.2-sol` and `gpt-5.6-sol` are two
versions of sol, `gpt-5.4-mini` is a mini. Models for a closed circle, retired ones and
those that have a successor are left to administrators who list them.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from openai_responses.catalog import CATALOG_ROWS

_VERSIONED_ID = re.compile(r"gpt-(\d+(?:\.\d+)?)(?:-([a-z]+))?$")
_CHAT_ID = re.compile(r"(?:gpt-\d|o\d|chatgpt-|gpt-[a-z]+-)[a-z0-9.\-]*$")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
)
_OTHER_KINDS = ("text-", "whisper", "dall-e", "davinci", "babbage", "sora", "omni-")
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})


def listed_ids(answer: object) -> list[str]:
    """Return the ids of `GET /models`, of chat models alone."""
    rows = answer.get("data") if isinstance(answer, Mapping) else None
    found = (_id(row) for row in (rows if isinstance(rows, list) else ()))
    return [name for name in found if is_chat_model(name)]


def is_chat_model(name: str) -> bool:
    """Say whether an id is that of a model that answers in text.

    Ids of other servers, which follow no rule of OpenAI's, count as such.
    """
    if name in CATALOG_ROWS:
        return True
    if not name or _NO_CHAT.search(name):
        return False
    return bool(_CHAT_ID.match(name)) or not name.startswith(_OTHER_KINDS)


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    """Return the newest model of each family, newest first.

    `today` is an ISO date; `usable` holds what the key can use, None when nobody knows.
    """
    known = CATALOG_ROWS if usable is None else usable
    names = [name for name in known if _is_offered(name, today)]
    newest: dict[str, str] = {}
    for name in sorted(names, key=_version):
        newest[_family(name)] = name
    return sorted(newest.values(), key=_version, reverse=True)


def _is_offered(name: str, today: str) -> bool:
    row = CATALOG_ROWS.get(name)
    retired = bool(row and (row.successor or (row.shutdown or "9") <= today))
    closed = _family(name) in _CLOSED_CIRCLES
    return not retired and not closed and bool(_VERSIONED_ID.match(name))


def _family(name: str) -> str:
    match = _VERSIONED_ID.match(name)
    return (match[2] or "") if match else ""


def _version(name: str) -> tuple[tuple[int, ...], str]:
    """Return what sorts ids by age; a plain name stands behind a longer one."""
    match = _VERSIONED_ID.match(name)
    numbers: Iterable[str] = match[1].split(".") if match else ()
    return tuple(map(int, numbers)), name


def _id(row: Any) -> str:
    name = row.get("id") if isinstance(row, Mapping) else None
    return name if isinstance(name, str) else ""
