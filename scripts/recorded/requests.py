"""Recorded requests against the simulator's rules."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from recorded.rows import Difference, Recording
from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import RequestOrigin, validate_request
from simulator.refusals import Refusal

FOREIGN_CONTENT = "invalid_encrypted_content"
"""Reasoning sealed by the real API: the simulator cannot open it, and need not."""


def compare_requests(recordings: Iterable[Recording]) -> list[Difference]:
    """Return where the simulator accepts or refuses what the API did not.

    Only OpenAI's own answers count: other servers have other rules. A wrong key is no
    matter of the body.
    """
    differences: list[Difference] = []
    compared = 0
    for recording in recordings:
        if not (recording.is_openai and recording.creates_response):
            continue
        if recording.request is None or recording.status == 401:
            continue
        compared += 1
        difference = _compare(recording, recording.request)
        if difference:
            differences.append(difference)
    print(f"requests: {compared} compared, {len(differences)} differ")
    return differences


def _compare(recording: Recording, body: Mapping[str, Any]) -> Difference | None:
    refusal = _refusal_of(body)
    if recording.status < 400:
        if refusal is None or refusal.code == FOREIGN_CONTENT:
            return None
        group = f"accepted by the API, refused here: {refusal.code} {refusal.param}"
        return Difference(group, recording, refusal.message)
    recorded = json.loads(recording.body)["error"]
    if refusal is None:
        group = f"refused by the API, accepted here: {recorded['code']}"
        return Difference(group, recording, recorded["message"])
    ours = (refusal.status, refusal.code, refusal.param)
    theirs = (recording.status, recorded["code"], recorded["param"])
    if ours == theirs:
        return None
    group = f"refused in another way: {theirs} recorded, {ours} here"
    return Difference(group, recording, recorded["message"])


def _refusal_of(body: Mapping[str, Any]) -> Refusal | None:
    asker = RequestOrigin(ACCOUNTS[KEY], PROFILES["openai"], None, "chat")
    try:
        validate_request(body, asker)
    except Refusal as refusal:
        return refusal
    return None
