"""A failure for a program is a response of its own."""

import json

from manifold.http_failures import NOT_AGAIN, failed_answer, failure_headers
from openai_responses.endings import CUT
from openai_responses.loop.events import RunDone, Trace


def test_failure_has_its_status_its_headers_and_whole_characters() -> None:
    """Half a character cannot be sent: it would be a failure of the server."""
    result = {"error": {"message": "half \ud83d"}}
    made = failed_answer(lambda *parts: parts, result, 429, {"Retry-After": "7"})

    body, status, headers = made.model_dump()
    assert json.loads(body) == {"error": {"message": "half \ufffd"}}
    assert status == 429
    assert headers == {"Content-Type": "application/json", "Retry-After": "7"}


def test_headers_say_whether_and_when_to_ask_again() -> None:
    """An answer that was paid for is not to be paid for again."""
    assert failure_headers(RunDone(CUT)) == {}
    later = RunDone(CUT, trace=Trace(retry_after=6.2))
    assert failure_headers(later) == {"Retry-After": "7"}
    assert failure_headers(RunDone(CUT, output=({},))) == {NOT_AGAIN: "false"}
