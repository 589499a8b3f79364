"""The exceptions of the engine.

ResponsesError
 ├─ InvalidRequest         our own check refused it; nothing was sent
 ├─ ConnectionFailed       no connection, or it broke before an answer
 ├─ ApiRefused             an HTTP status of 400 or more
 ├─ UnreadableAnswer       an answer that is not what the API sends
 └─ MalformedEvent         one event of a stream that cannot be read

`str(error)` is a sentence of ours for a person: it holds no body, no header and no
key, so it may be shown in a chat and logged.
"""

from dataclasses import dataclass


class ResponsesError(Exception):
    """Anything this engine raises on purpose; the text may be shown to a person."""


class InvalidRequest(ResponsesError):
    """A request that we refuse to send, with the reason in words."""


class ConnectionFailed(ResponsesError):
    """The server could not be reached, or went away before it answered."""


class UnreadableAnswer(ResponsesError):
    """The server answered with something that is not a Responses API answer."""


class MalformedEvent(ResponsesError):
    """An event of a stream whose payload is not a JSON object."""


@dataclass(frozen=True, slots=True)
class ApiError:
    """What the API says went wrong (responses-api.md §4).

    The same four fields come in an HTTP body, in a `response.failed` and in both
    shapes of the `error` event. `message` is the server's text: it can quote a key or
    a prompt, so it is never shown as it is.
    """

    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status of 400 or more."""

    def __init__(self, sentence: str, status: int, error: ApiError) -> None:
        """Keep the `status` and the parsed `error` for those who decide on them."""
        super().__init__(sentence)
        self.status = status
        self.error = error
