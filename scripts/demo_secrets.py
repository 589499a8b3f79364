"""What guards the demo from web pages in the browser of whoever runs it.

A page of any site can send requests to ports of this machine, and its server can give
its own name to 127.0.0.1. An administrator of Open WebUI runs code, so the password must
be one that no page knows.
"""

import json
import os
import secrets
from functools import partial
from pathlib import Path

_FILE = "demo-secrets.json"
PASSWORD = "WEBUI_ADMIN_PASSWORD"
_SIGNING_KEY = "WEBUI_SECRET_KEY"


def demo_secrets(folder: Path | None) -> dict[str, str]:
    """Return the administrator's password and the server's key, as its variables.

    In a folder that is kept, they are those of its first demo.
    """
    made = {PASSWORD: secrets.token_hex(8), _SIGNING_KEY: secrets.token_hex(32)}
    if folder is None:
        return made
    file = folder / _FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        opener = partial(os.open, mode=0o600)
        with open(file, "x", encoding="utf-8", opener=opener) as written:
            json.dump(made, written)
    kept: dict[str, str] = json.loads(file.read_text("utf-8"))
    return kept
