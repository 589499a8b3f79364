"""A failure for a program is a response of its own."""

import json

from manifold.http_failures import failed_answer


def test_failure_has_its_status_its_headers_and_whole_characters() -> None:
    """Half a character cannot be sent: it would be a failure of the server."""
    result = {"error": {"message": "half \ud83d"}}
    made = failed_answer(lambda *parts: parts, result, 429, {"Retry-After": "7"})

    body, status, headers = made.model_dump()
    assert json.loads(body) == {"error": {"message": "half \ufffd"}}
    assert status == 429
    assert headers == {"Content-Type": "application/json", "Retry-After": "7"}
