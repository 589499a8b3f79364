"""What the valves may reach on the Pipelines server, by a variable of its environment.

The server lets anybody change the valves who can reach its port, also a page in the
browser of somebody who can: it answers pages of every origin and wants no key. So a
valve that starts a program, names a file or a variable of the server, or sends keys and
chats to another address is inactive unless the server itself allows it, where no request
can.
"""

import json
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any
from urllib.parse import SplitResult, unquote

from gpt5_agent.shell.callers import find_unknown_keys
from gpt5_agent.shell.sealing import UNREADABLE_SECRET
from gpt5_agent.shell.valves import Valves, ValveSettings, read_valve_settings
from openai_responses.endpoint import url_parts
from openai_responses.json_input import parse_json_object
from shells.valve_texts import comma_list

ACCESS_VARIABLE = "GPT5_AGENT_ALLOW"

_ALWAYS_ALLOWED = {"API_KEY": "env:OPENAI_API_KEY"}
"""What an empty valve would use as well."""
_HEADERS = "EXTRA_HEADERS"
_REFERENCES = ("env:", "file:")
_ADDRESS_ENTRY = "url:"
"""Of an address that each valve may have; one valve's alone begins with its name."""
_OPENAI_HOST = ".api.openai.com"
"""Also of its regions, such as eu.api.openai.com."""
_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9:/._~%?=&\[\]-]+")
"""No password, and nothing that two readers of an address could take differently."""
_PLAIN_SERVER = re.compile(r"[^\[\]]*|\[[0-9a-f:.]+\](?::\d+)?")
"""A name, or an IPv6 address with nothing around its brackets but a port."""
BLOCKED_ADDRESS = "blocked:"
"""Stands for an address that is not allowed; nothing can be sent to it."""
_BLOCKED = {"BASE_URL": BLOCKED_ADDRESS, "OPEN_WEBUI_URL": ""}
"""The valves with addresses, and what takes the place of one that is not allowed."""
_HOST = "Host"
"""The header that chooses among the servers that share an address."""
_WHEELS = "wheels"
"""Of SANDBOX_OPTIONS: a folder of packages."""


def usable_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say, as the environment of this server allows it.

    The problems begin with words that open nothing to requests, and what is inactive.
    """
    settings = read_valve_settings(valves)
    allowed = _allowed_entries()
    disabled = _disabled_valves(valves, allowed)
    secrets = _changed_secrets(valves, allowed)
    inactive = list(disabled)
    for name, secret in secrets.items():
        values = parse_json_object(secret) or {}  # of the headers it may be one value
        if UNREADABLE_SECRET in (secret, *values.values()):
            inactive.append(name)
    headers = parse_json_object(secrets.get(_HEADERS, valves.EXTRA_HEADERS)) or {}
    kept = {name: headers[name] for name in headers if name.strip().lower() != "host"}
    if len(kept) < len(headers) and _HOST not in allowed:
        secrets[_HEADERS] = json.dumps(kept)
        inactive.append(_HOST)
    sandbox = settings.sandbox
    if sandbox.wheels and _WHEELS not in allowed:
        sandbox = sandbox.model_copy(update={_WHEELS: ""})
        inactive.append(_WHEELS)
    unknown_keys = find_unknown_keys(settings.expert.caller_may_set)
    problems = [unknown_keys] if unknown_keys else []
    problems += [_inactive_valve(valves, name) for name in inactive]
    return settings._replace(
        valves=valves.model_copy(update={**disabled, **secrets}),
        sandbox=sandbox,
        problems=(*problems, *settings.problems),
    )


def usable_secrets(valves: Valves) -> Valves:
    """Return the valves with the secrets that this server allows; reads nothing else."""
    return valves.model_copy(update=_changed_secrets(valves, _allowed_entries()))


def _allowed_entries() -> Sequence[str]:
    """Return what the environment of this server allows."""
    return comma_list(os.environ.get(ACCESS_VARIABLE, ""))


def _disabled_valves(valves: Valves, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the valves that would reach what is not allowed, by name.

    Each has the value that takes its effect away.
    """
    disabled: dict[str, Any] = {}
    if not valves.VERIFY_SSL and "VERIFY_SSL" not in allowed:
        disabled["VERIFY_SSL"] = True
    addresses = {"BASE_URL": valves.BASE_URL, "OPEN_WEBUI_URL": valves.OPEN_WEBUI_URL}
    for name, address in addresses.items():
        if not _is_usable_address(address, name, allowed):
            disabled[name] = _BLOCKED[name]
    if valves.SANDBOX and "SANDBOX" not in allowed:
        disabled["SANDBOX"] = False
    files = {"PRESETS_DIR": valves.PRESETS_DIR, "CA_BUNDLE": valves.CA_BUNDLE}
    for name, path in files.items():
        if path.strip() and name not in allowed:
            disabled[name] = ""
    return disabled


def _changed_secrets(valves: Valves, allowed: Sequence[str]) -> dict[str, str]:
    """Return the secrets that are not used as they are stored, by the valve's name."""
    changed: dict[str, str] = {}
    secrets = {
        "API_KEY": valves.API_KEY,
        "OPEN_WEBUI_API_KEY": valves.OPEN_WEBUI_API_KEY,
        "PROXY": valves.PROXY,
    }
    headers = parse_json_object(valves.EXTRA_HEADERS)
    if headers is None:  # all of them are one secret
        secrets[_HEADERS] = valves.EXTRA_HEADERS
    for name, stored in secrets.items():
        secret = _usable_secret(stored, name, allowed)
        # A proxy reads requests without TLS. A reference was allowed by itself: no one
        # else can change what it stands for.
        is_typed = bool(secret) and not secret.startswith(_REFERENCES)
        if name == "PROXY" and is_typed and "PROXY" not in allowed:
            secret = UNREADABLE_SECRET
        if secret != stored:
            changed[name] = secret

    usable = dict(headers or {})
    for name, value in usable.items():
        if isinstance(value, str):
            usable[name] = _usable_secret(value, _HEADERS, allowed)
    if headers and usable != headers:
        changed[_HEADERS] = json.dumps(usable)
    return changed


def _usable_secret(stored: str, valve: str, allowed: Sequence[str]) -> str:
    """Return a secret, or `UNREADABLE_SECRET` for a reference that is not allowed."""
    reference = _plain_reference(stored)
    if not reference:
        return stored
    patterns = [*allowed, _ALWAYS_ALLOWED.get(valve, "")]
    if any(fnmatchcase(reference, pattern) for pattern in patterns):
        return reference
    return UNREADABLE_SECRET


def _plain_reference(stored: str) -> str:
    """Return a reference as it is compared and used; empty for any other secret.

    No `..` in the path of a file leads elsewhere.
    """
    kind, _, target = stored.strip().partition(":")
    target = target.strip()
    if kind == "file":
        return f"file:{os.path.normpath(target)}"
    return f"env:{target}" if kind == "env" else ""


def _is_usable_address(stored: str, valve: str, allowed: Sequence[str]) -> bool:
    """Say whether keys and chats may go to an address.

    An entry allows what is the same or begins with it. Its `*` matches any text without
    a slash, so that it leads to no other server. If entries have the name of the valve,
    these alone count: the key of Open WebUI must not go to a gateway of models.
    """
    if not stored.strip():
        return True
    parts = _plain_address(stored)
    if parts is None:
        return False
    host = f".{parts.hostname}"  # with a dot, so that `notapi.openai.com` is another
    is_openai = parts.scheme == "https" and host.endswith(_OPENAI_HOST)
    if is_openai and valve == "BASE_URL":
        return True
    own = [entry for entry in allowed if entry.startswith(f"{valve}:")]
    shared = [entry for entry in allowed if entry.startswith(_ADDRESS_ENTRY)]
    for entry in own or shared:
        beginning = entry.partition(":")[2].strip().rstrip("/")
        pattern = re.escape(beginning).replace(r"\*", "[^/]*")
        if re.fullmatch(f"{pattern}(/.*)?", parts.geturl()):
            return True
    return False


def _plain_address(stored: str) -> SplitResult | None:
    """Return an address as it is compared; None for one that no entry allows."""
    address = stored.strip()
    parts = url_parts(address)
    if parts is None or not _PLAIN_ADDRESS.fullmatch(address):
        return None
    path = normpath(unquote(parts.path or "/"))
    netloc = parts.netloc.lower()
    # Two servers in a row may each decode a path. What is around the brackets of a number
    # is read by some as a part of the name, and by others not at all.
    if "%" in path or not _PLAIN_SERVER.fullmatch(netloc):
        return None
    return parts._replace(netloc=netloc, path=path, query="", fragment="")


def _inactive_valve(valves: Valves, name: str) -> str:
    """Return the message about a valve; references are quoted, as they are no secrets."""
    stored = str(dict(valves).get(name, ""))
    entry = _plain_reference(stored) or name
    if name in _BLOCKED:
        address = _plain_address(stored)
        if address is None:  # it is not quoted, because it may have a password
            return (
                f"{name} is inactive, because it is no plain http or https address. An "
                "administrator has to correct it."
            )
        entry = f"{name}:{address.geturl().rstrip('/')}"
    elif entry == _HEADERS:
        entry = "env:NAME"
    return (
        f"{name} is inactive, because the Pipelines server does not allow it. An "
        f"administrator of the server can add `{entry}` to its environment variable "
        f"{ACCESS_VARIABLE}, and restart it."
    )
