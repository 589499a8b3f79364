"""Recorded requests against the simulator's rules."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recorded.rows import Difference, Recording
from simulator.accounts import ACCOUNTS, KEY, PROFILES
from simulator.answers import RequestOrigin, validate_request
from simulator.refusals import Refusal

Body = Mapping[str, Any]
FOREIGN_CONTENT = "invalid_encrypted_content"
"""The refusal of reasoning that the real API encrypted: the simulator cannot read it."""
GONE = ("refused here: model_not_found None", "(404, 'model_not_found', None) here")
REPLACEMENT_MODELS = {
    "o": "o3",
    "gpt-5-chat": "gpt-4.1-mini",
    "gpt-5": "gpt-5-mini",
    "gpt-4": "gpt-4.1-mini",
}
"""A current model for one that was shut down, by the beginning of its id."""


def compare_requests(recordings: Iterable[Recording]) -> list[Difference]:
    """Return where the simulator accepts what the API refused, or the reverse.

    Only OpenAI's own answers count: other servers have other rules. The refusal of a
    wrong key does not depend on the body.
    """
    differences: list[Difference] = []
    compared = 0
    for recording in recordings:
        if not (recording.is_openai and recording.creates_response):
            continue
        if recording.request is None or recording.status == 401:
            continue
        compared += 1
        differences += _compare_further(recording, recording.request)
    differing = {(row.recording.file, row.recording.number) for row in differences}
    print(f"requests: {compared} compared, {len(differing)} differ")
    return differences


def _compare_further(recording: Recording, body: Body) -> Iterator[Difference]:
    """Yield each difference: after one with a known reason, the rest is compared, too."""
    difference = _compare(recording, body)
    if difference is None:
        return
    yield difference
    changed = _without_known_refusal(difference, body)
    if changed != body:
        yield from _compare_further(recording, changed)


def _without_known_refusal(difference: Difference, body: Body) -> Body:
    """Return a request without what the simulator refuses for a known reason."""
    if difference.group.endswith(GONE):
        for prefix, model in REPLACEMENT_MODELS.items():
            if body["model"].startswith(prefix):
                return {**body, "model": model}
        return body
    if "previous_response_id" in difference.group:
        return {**body, "previous_response_id": None}
    return body


def _compare(recording: Recording, body: Body) -> Difference | None:
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


def _refusal_of(body: Body) -> Refusal | None:
    origin = RequestOrigin(ACCOUNTS[KEY], PROFILES["openai"], None, "chat")
    try:
        validate_request(body, origin)
    except Refusal as refusal:
        return refusal
    return None
