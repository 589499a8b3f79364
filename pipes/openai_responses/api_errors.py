"""What the API says went wrong, read from any place where it says so."""

from collections.abc import Mapping

from openai_responses.errors import ApiError


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, of a response or of either shape of the event."""
    while isinstance(wire, Mapping) and isinstance(wire.get("error"), Mapping | str):
        wire = wire["error"]
    if isinstance(wire, str):
        return ApiError(message=wire)
    if not isinstance(wire, Mapping):
        return ApiError()
    message = wire.get("message") or wire.get("detail")
    return ApiError(
        code=_text_or_none(wire.get("code")),
        type=_text_or_none(wire.get("type")),
        param=_text_or_none(wire.get("param")),
        message=message if isinstance(message, str) else "",
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
