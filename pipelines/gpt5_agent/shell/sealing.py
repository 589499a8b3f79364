"""Secrets in the valves: named by a reference, or encrypted.

The Pipelines server shows the valves to anyone who asks, and writes them to a file. So
a secret that was typed in plainly is encrypted first, with a key in a file of its own
next to the pipelines, which the server never shows. Where there is no server, as in a
terminal, the key is in memory.
"""

import base64
import json
import os
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from tempfile import mkstemp

from openai_responses.errors import InvalidRequest
from openai_responses.json_input import parse_json_object

_SEALED_PREFIX = "sealed:"
UNREADABLE_SECRET = _SEALED_PREFIX
"""Stands for a secret that cannot be encrypted or read, and is not missing."""
_SECRET_PREFIXES = ("env:", "file:", _SEALED_PREFIX)
_FERNET = "cryptography.fernet"  # the Pipelines server's requirements bring it
_KEY_FILE = "gpt5_agent.key"
_MAX_SECRET_CHARACTERS = 65_536

_MIN_KEY_CHARACTERS = 14
_MIN_DIFFERENT_CHARACTERS = 8
"""Of an API key that nobody guesses; those that servers make have more."""


def seal_secret(typed: str) -> str:
    """Return a secret in a form that may be shown; a reference stays as it is."""
    text = typed.strip()
    if not text or text.startswith(_SECRET_PREFIXES):
        return text
    try:
        fernet_class = import_module(_FERNET).Fernet
        token = fernet_class(_open_sealing_key()).encrypt(text.encode())
    except (ImportError, OSError, ValueError):
        return UNREADABLE_SECRET
    return f"{_SEALED_PREFIX}{token.decode()}"


def seal_values(typed: str) -> str:
    """Return a JSON object with its texts sealed; other text is sealed as a whole."""
    values = parse_json_object(typed.strip())
    if values is None:
        return seal_secret(typed)
    sealed = dict(values)
    for name, value in values.items():
        if isinstance(value, str):
            sealed[name] = seal_secret(value)
    return json.dumps(sealed)


def is_sealed(stored: str) -> bool:
    """Say whether a whole text was sealed; anybody can copy it to another valve."""
    return stored.strip().startswith(_SEALED_PREFIX)


def signing_secret(api_key: str) -> str:
    """Return what signatures are made with: the API key, which no caller has.

    All copies of the pipeline have the same. Servers that need no key get a placeholder
    (`EMPTY`, `none`, `sk-no-key-required`), which anybody can guess: this server's own
    secret takes its place.
    """
    key = api_key.strip()
    has_digit = any(character.isdigit() for character in key)
    is_varied = len(set(key)) >= _MIN_DIFFERENT_CHARACTERS
    if len(key) >= _MIN_KEY_CHARACTERS and is_varied and has_digit:
        return key
    try:
        return _open_sealing_key().decode()
    except (OSError, ValueError):  # without a file, the secret of the process
        return _process_key().decode()


def reveal_secret(stored: str, valve: str) -> str:
    """Return the secret that `stored` stands for; raises InvalidRequest without it."""
    text = stored.strip()
    kind, _, reference = text.partition(":")
    match kind:
        case "env":
            secret = os.environ.get(reference.strip(), "")
        case "file":
            secret = ""
            path = reference.strip()
            with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                secret = file.read(_MAX_SECRET_CHARACTERS)
        case "sealed":
            secret = _decrypt(reference)
        case _:
            return text
    if secret.strip():
        return secret.strip()
    raise InvalidRequest(
        f"The secret in {valve} cannot be read. An administrator has to enter it again "
        "in the valves of this pipeline, as env:NAME of a variable or file:PATH of a "
        "file that the Pipelines server can read.",
        remedy="setup",
    )


def _decrypt(token: str) -> str:
    """Return what was sealed; empty if the key or the package is not there."""
    try:
        package = import_module(_FERNET)
    except ImportError:
        return ""
    try:
        fernet = package.Fernet(_read_sealing_key())
        return str(fernet.decrypt(token.encode()).decode())
    except (OSError, ValueError, package.InvalidToken):
        return ""


def _open_sealing_key() -> bytes:
    """Return the key of this server, which is made if there is none.

    Raises OSError, or ValueError for a file without a key.
    """
    folder = pipelines_folder()
    path = os.path.join(folder, _KEY_FILE)
    if folder and not os.path.exists(path):
        # The file appears with its content: no process reads it before, and a full disk
        # leaves none. The key of the first process stays.
        made, made_path = mkstemp(prefix=_KEY_FILE, dir=folder)  # for its owner alone
        try:
            with open(made, "wb") as file:
                file.write(_new_key())
            try:
                os.link(made_path, path)
            except FileExistsError:
                pass
            except OSError:  # some volumes have no links
                os.replace(made_path, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(made_path)
    return _read_sealing_key()


def _read_sealing_key() -> bytes:
    """Return the key of this server; raises OSError without its file.

    Raises ValueError for an empty one, with which everybody could sign.
    """
    folder = pipelines_folder()
    if not folder:
        return _process_key()
    with open(os.path.join(folder, _KEY_FILE), "rb") as file:
        key = file.read().strip()
    if not key:
        raise ValueError("the key's file is empty")
    return key


def _new_key() -> bytes:
    """Return a key in the form that Fernet takes."""
    return base64.urlsafe_b64encode(os.urandom(32))


@lru_cache(maxsize=1)
def _process_key() -> bytes:
    """Return a key that is the same as long as the process runs."""
    return _new_key()


def pipelines_folder() -> str:
    """Return the folder of the server's pipelines, where no request reaches the key.

    Empty where no server is: a checkout has a folder of that name, too. Without the
    variable, only the server's module `config` says which folder it reads (config.py).
    """
    named = os.environ.get("PIPELINES_DIR", "")
    if named:
        return named
    return str(getattr(sys.modules.get("config"), "PIPELINES_DIR", ""))
