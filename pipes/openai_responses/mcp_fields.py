"""What each field of a remote MCP server's description may be."""

import re
from collections.abc import Callable, Mapping

from openai_responses.endpoint import url_parts

_SERVER_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def is_server_label(value: object) -> bool:
    """Say whether the API takes a text for a `server_label`."""
    return isinstance(value, str) and bool(_SERVER_LABEL.fullmatch(value))


def _is_address(value: object) -> bool:
    one_word = isinstance(value, str) and value.split() == [value]
    return one_word and url_parts(str(value)) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_headers(value: object) -> bool:
    texts = value.values() if isinstance(value, Mapping) else [None]
    return all(isinstance(text, str) for text in texts)


def _is_filter(value: object) -> bool:
    """Say whether a value chooses tools, by their names or by what they do."""
    forms = {"tool_names": _are_names, "read_only": _is_switch}
    return _has_forms(value, forms)


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _are_allowed(value: object) -> bool:
    return _are_names(value) or _is_filter(value)


def _is_consent(value: object) -> bool:
    by_filter = _has_forms(value, {"always": _is_filter, "never": _is_filter})
    return value in ("always", "never") or by_filter


def _has_forms(value: object, forms: Mapping[str, Callable[[object], bool]]) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(key in forms and forms[key](inner) for key, inner in value.items())


SERVER_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "server_label": (
        is_server_label,
        "a letter followed by up to 63 letters, digits, hyphens and underscores",
    ),
    "server_url": (_is_address, "an address that begins with http:// or https://"),
    "connector_id": (_is_text, "a text"),
    "authorization": (_is_text, "a text"),
    "headers": (_are_headers, "a JSON object of texts"),
    "allowed_tools": (_are_allowed, "a list of names, or an object that chooses tools"),
    "require_approval": (_is_consent, "`always`, `never` or an object of both"),
    "server_description": (_is_text, "a text"),
}
"""The keys that are sent, each with its test and the words for what it should be."""
