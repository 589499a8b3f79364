"""What the valves may reach on the Pipelines server, by a variable of its environment.

The server lets anybody change the valves who can reach its port, also a page in the
browser of somebody who can: it answers pages of every origin and wants no key. So a
valve that starts a program or names a file or a variable of the server is inactive
unless the server itself allows it, where no request can.
"""

import json
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from gpt5_agent.shell.json_valves import ValveSettings, read_valve_settings
from gpt5_agent.shell.sealing import UNREADABLE_SECRET
from gpt5_agent.shell.valves import Valves
from openai_responses.json_input import parse_json_object
from shells.valve_words import comma_list

ACCESS_VARIABLE = "GPT5_AGENT_ALLOW"

_ALWAYS_ALLOWED = {"API_KEY": "env:OPENAI_API_KEY"}
"""What an empty valve would use as well."""
_SECRETS = ("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY")
_HEADERS = "EXTRA_HEADERS"
_FILES = ("PRESETS_DIR", "CA_BUNDLE")
_WHEELS = "wheels"
"""Of SANDBOX_OPTIONS: a folder of packages."""


def usable_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say, as the environment of this server allows it.

    The problems begin with what is inactive.
    """
    settings = read_valve_settings(valves)
    allowed = _allowed_entries()
    disabled = _disabled_valves(valves, allowed)
    secrets = _changed_secrets(valves, allowed)
    inactive = list(disabled)
    for name, secret in secrets.items():
        if UNREADABLE_SECRET in secret:
            inactive.append(name)
    sandbox = settings.sandbox
    if sandbox.wheels.strip() and _WHEELS not in allowed:
        sandbox = sandbox.model_copy(update={_WHEELS: ""})
        inactive.append(_WHEELS)
    problems = [_inactive_valve(valves, name) for name in inactive]
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
    """Return the valves that would start a program or read a file, without effect."""
    disabled: dict[str, Any] = {}
    if valves.SANDBOX and "SANDBOX" not in allowed:
        disabled["SANDBOX"] = False
    for name in _FILES:
        if getattr(valves, name).strip() and name not in allowed:
            disabled[name] = ""
    return disabled


def _changed_secrets(valves: Valves, allowed: Sequence[str]) -> dict[str, str]:
    """Return the secrets whose references are not used as they are stored."""
    changed: dict[str, str] = {}
    for name in _SECRETS:
        secret = _usable_secret(getattr(valves, name), name, allowed)
        if secret != getattr(valves, name):
            changed[name] = secret
    headers = _usable_headers(valves.EXTRA_HEADERS, allowed)
    if headers != valves.EXTRA_HEADERS:
        changed[_HEADERS] = headers
    return changed


def _usable_secret(stored: str, valve: str, allowed: Sequence[str]) -> str:
    """Return a secret, or what cannot be read in place of a reference.

    The path of a file is used as it is compared, so that no `..` leads elsewhere.
    """
    kind, _, named = stored.strip().partition(":")
    named = named.strip()
    if kind == "file":
        named = os.path.normpath(named)
    elif kind != "env":
        return stored
    reference = f"{kind}:{named}"
    patterns = [*allowed, _ALWAYS_ALLOWED.get(valve, "")]
    is_allowed = any(fnmatchcase(reference, pattern) for pattern in patterns)
    return reference if is_allowed else UNREADABLE_SECRET


def _usable_headers(stored: str, allowed: Sequence[str]) -> str:
    """Return EXTRA_HEADERS with each of its values as it may be used."""
    headers = parse_json_object(stored)
    if headers is None:
        return _usable_secret(stored, _HEADERS, allowed)
    usable: dict[str, Any] = {}
    for name, value in headers.items():
        usable[name] = value
        if isinstance(value, str):
            usable[name] = _usable_secret(value, _HEADERS, allowed)
    return stored if usable == headers else json.dumps(usable)


def _inactive_valve(valves: Valves, name: str) -> str:
    """Return the message about a valve; references are quoted, as they are no secrets."""
    entry = name
    stored = getattr(valves, name, "")
    if name in _SECRETS:
        entry = stored.strip()
    elif name == _HEADERS:
        entry = "env:NAME"
    return (
        f"{name} is inactive, because this server does not allow it. An administrator "
        f"of the server can add `{entry}` to its environment variable "
        f"{ACCESS_VARIABLE}, and restart it."
    )
