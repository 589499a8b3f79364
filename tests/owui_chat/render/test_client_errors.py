"""A failure in OpenAI's form, and which status of HTTP goes with it."""

from typing import Any

import pytest

from openai_responses.endings import (
    COMPRESSED,
    CUT,
    UNREADABLE,
    Ending,
    ending_of_exception,
    ending_of_failure,
)
from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    ConnectionFailed,
    Failure,
    InvalidParameter,
    InvalidRequest,
    InvalidSetting,
    ResponsesError,
    SettingFault,
    TimedOut,
)
from openai_responses.loop.events import RunDone, Trace
from owui_chat.render.client_errors import (
    client_error,
    ending_error,
    ending_status,
    exception_error,
    exception_status,
    refused_run,
    seconds_to_wait,
)

KEY = "sk-proj-0123456789abcdef"


def refused(status: int, **fields: Any) -> RunDone:
    """A run whose request was answered with a status."""
    error = ApiError(**fields)
    failure = Failure(status, error)
    ending = ending_of_exception(ApiRefused("No.", failure), has_begun=False)
    return RunDone(ending, trace=Trace(status=status, error=error))


def raised(error: ResponsesError) -> RunDone:
    return RunDone(ending_of_exception(error, has_begun=True))


def failed(code: str = "") -> RunDone:
    error = ApiError(code=code or None)
    return RunDone(ending_of_failure("failed", error), trace=Trace("", "", 200, error))


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        pytest.param(refused(400), 400, id="the server's 400"),
        pytest.param(refused(401, code="invalid_api_key"), 401, id="wrong key"),
        pytest.param(refused(404), 404, id="the server's 404"),
        pytest.param(refused(429), 429, id="the server's 429"),
        pytest.param(refused(503), 503, id="the server's 503"),
        pytest.param(refused(599), 599, id="the last one"),
        pytest.param(refused(302), 502, id="a redirection"),
        pytest.param(refused(600), 502, id="no status of HTTP"),
        pytest.param(
            refused(200, code="rate_limit_exceeded"), 429, id="an error with 200"
        ),
        pytest.param(failed("rate_limit_exceeded"), 429, id="limit in a stream"),
        pytest.param(failed("insufficient_quota"), 429, id="quota in a stream"),
        pytest.param(failed("server_is_overloaded"), 503, id="overload in a stream"),
        pytest.param(failed("cyber_policy"), 400, id="a policy in a stream"),
        pytest.param(failed("invalid_image"), 400, id="an image in a stream"),
        pytest.param(failed("context_length_exceeded"), 400, id="too long"),
        pytest.param(failed("model_not_found"), 404, id="no such model"),
        pytest.param(failed("slow_down"), 429, id="slow down"),
        pytest.param(failed("flex_unavailable"), 429, id="no flex capacity"),
        pytest.param(
            failed("request_above_rate_limit"), 429, id="more than a minute's limit"
        ),
        pytest.param(failed("invalid_api_key"), 401, id="wrong key in a stream"),
        pytest.param(failed("server_error"), 500, id="server error"),
        pytest.param(failed("a_new_word"), 500, id="unknown code"),
        pytest.param(failed(), 500, id="no code"),
        pytest.param(failed("418"), 418, id="a gateway's number"),
        pytest.param(raised(TimedOut("idle_timeout")), 504, id="raised: timeout"),
        pytest.param(raised(AnswerTooLarge()), 502, id="raised: too large"),
        pytest.param(raised(ConnectionFailed("No.")), 502, id="raised: no connection"),
        pytest.param(RunDone(CUT), 502, id="cut"),
        pytest.param(RunDone(CUT, trace=Trace(status=400)), 502, id="cut refusal"),
        pytest.param(RunDone(UNREADABLE), 502, id="unreadable"),
        pytest.param(RunDone(COMPRESSED), 502, id="compressed"),
        pytest.param(RunDone(Ending("unreachable")), 502, id="unreachable"),
        pytest.param(RunDone(Ending("invalid")), 500, id="unusable setting"),
        pytest.param(RunDone(Ending("error")), 500, id="an event that is an error"),
        *(
            pytest.param(RunDone(Ending(f"{kind}_timeout")), 504, id=f"{kind} timeout")
            for kind in ("first_event", "idle", "total")
        ),
    ],
)
def test_status_of_a_run(ended: RunDone, status: int) -> None:
    """The server's own, else the one that OpenAI sends with the code."""
    assert ending_status(ended) == status


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(InvalidRequest("Nothing to answer."), 400, id="the request"),
        pytest.param(InvalidRequest("Not you.", remedy="rule"), 403, id="a rule"),
        pytest.param(InvalidRequest("No key.", remedy="setup"), 500, id="no key"),
        pytest.param(
            InvalidRequest("No upload.", SettingFault(("proxy",))), 500, id="a fault"
        ),
        pytest.param(InvalidSetting("base_url", "No address."), 500, id="a setting"),
        pytest.param(ApiRefused("No.", Failure(403)), 403, id="an upload refused"),
        pytest.param(ApiRefused("No.", Failure(200)), 502, id="an error with 200"),
        pytest.param(ConnectionFailed("No."), 502, id="no connection"),
        pytest.param(ResponsesError("No."), 502, id="the server"),
        pytest.param(RuntimeError("a secret"), 500, id="our own fault"),
    ],
)
def test_status_of_an_exception(error: Exception, status: int) -> None:
    """Who can change it: the caller, or only an administrator."""
    assert exception_status(error) == status


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "invalid_request_error"),
        (429, "rate_limit_error"),
        (499, "invalid_request_error"),
        (500, "server_error"),
        (504, "server_error"),
    ],
)
def test_type_without_one_of_the_server(status: int, kind: str) -> None:
    error = client_error("No.", status, ApiError())["error"]
    assert error["type"] == kind
    assert error["status"] == status
    assert error["param"] is error["code"] is None


def test_words_of_the_server_are_passed_on() -> None:
    """Programs act on them; they are the API's, so they quote nothing."""
    given = {"type": "insufficient_quota", "code": "insufficient_quota"}
    ended = refused(429, param="input[3].content", message=f"key {KEY}", **given)

    [error] = ending_error(ended).values()
    words = {"message": "No.", "param": "input[3].content", **given}
    assert error == {**words, "status": 429}


def test_code_of_the_ending_where_the_server_has_none() -> None:
    """Some servers say it in words alone."""
    error = ApiError(message="Incorrect API key provided: x")
    ended = RunDone(ending_of_failure("failed", error), trace=Trace(error=error))

    assert ending_error(ended)["error"]["code"] == "invalid_api_key"
    assert ending_status(ended) == 401


def test_type_is_no_code() -> None:
    ended = refused(400, type="invalid_request_error")

    assert ended.ending.code == "invalid_request_error"
    assert ending_error(ended)["error"]["code"] is None


@pytest.mark.parametrize(
    ("waits", "seconds"), [(None, None), (0.0, 0), (2.0, 2), (2.1, 3)]
)
def test_seconds_to_wait_are_whole_ones(
    waits: float | None, seconds: int | None
) -> None:
    """Not too early; without a word of the server there is no such field."""
    ended = refused(429)
    ended = ended._replace(trace=ended.trace._replace(retry_after=waits))

    assert seconds_to_wait(ended) == seconds
    error = ending_error(ended)["error"]
    assert error.get("retry_after") == seconds
    assert ("retry_after" in error) is (seconds is not None)


@pytest.mark.parametrize(
    ("error", "param", "status"),
    [
        (InvalidParameter("tools", "No."), "tools", 400),
        (InvalidRequest("No.", remedy="rule"), None, 403),
        (RuntimeError("tools"), None, 500),
    ],
)
def test_error_of_a_request_names_its_parameter(
    error: Exception, param: str | None, status: int
) -> None:
    """Clients of OpenAI show it next to the message."""
    told = exception_error(str(error), error)["error"]

    assert (told["param"], told["status"]) == (param, status)
    assert told["message"] == str(error)
    if isinstance(error, ResponsesError):
        assert ending_error(refused_run(error))["error"] == {**told, "code": None}


def test_what_is_no_word_is_not_passed_on() -> None:
    """A server may quote a key, or the chat, in any field."""
    ended = refused(400, code=KEY, type=f"Bearer {KEY}", param="My diary", message=KEY)

    told = str(ending_error(ended))

    assert KEY not in told
    assert "diary" not in told
