"""An entry of a server as an administrator types it, with what can be wrong in it."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

_EXPECTED: Mapping[str, str] = {
    "server_label": "a letter followed by up to 31 letters, digits, hyphens and "
    "underscores",
    "server_url": "an address that begins with http:// or https:// and holds no "
    "password",
    "base_url": "an address that begins with http:// or https:// and holds no password",
    "authorization": "a text",
    "headers": "a JSON object of texts",
    "allowed_tools": "a list of names",
    "timeout": "a number of seconds from 1 to 600",
    "command": "a list of texts, the program first",
    "env": "a JSON object of texts",
}
_ENTRY_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def _is_web_address(text: str) -> bool:
    """Say whether a text is an http or https address, without a password in it."""
    try:
        parts = urlsplit(text)
        is_sound = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:  # brackets without an address, a port that is no number
        return False
    one_word = text.split() == [text]
    return is_sound and one_word and parts.scheme in ("http", "https")


def is_label(text: object) -> bool:
    """Say whether a text can be the label of a server."""
    return isinstance(text, str) and bool(_ENTRY_LABEL.fullmatch(text))


Texts = Mapping[str, str]


class ServerRow(BaseModel):
    """An entry as it is typed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    server_label: str
    authorization: str | None = None
    headers: Texts = {}
    allowed_tools: list[str] | None = None
    timeout: float = Field(default=60.0, ge=1, le=600)

    @field_validator("server_label", "server_url", "base_url", check_fields=False)
    @classmethod
    def _refuse_what_is_none(cls, text: str, about: ValidationInfo) -> str:
        is_fine = is_label if about.field_name == "server_label" else _is_web_address
        if not is_fine(text):
            raise ValueError
        return text


class McpRow(ServerRow):
    """An MCP server as it is typed."""

    server_url: str | None = None
    command: list[str] = []
    env: Texts = {}


class OpenApiRow(ServerRow):
    """A server with an OpenAPI document as it is typed."""

    server_url: str
    base_url: str | None = None


def row_misfit(error: ValidationError) -> str:
    """Return what is wrong, of the first key of which something is."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        named = f" ({key})" if key.isidentifier() and len(key) <= 40 else ""
        return f"it has a key that is not known here{named}"
    if first["type"] == "missing":
        return f"it has no {key}"
    return f"its {key} is not {_EXPECTED[key]}"
