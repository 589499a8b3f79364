"""The demo on somebody's own server: `scripts/demo --server URL --model NAME`.

llama-server, Ollama, LM Studio, vLLM and others need no key, so none is sent: a key in
the environment is OpenAI's.
"""

import json
import urllib.error
import urllib.request
from typing import Any

NO_KEY = "none"
"""What the pipe sends instead of a key, because it does not ask without one."""
ANSWER_SECONDS = 10
MISSING = (
    "What does not work with a server of your own: web search, images and the code "
    "interpreter,\nwhich run at OpenAI; encrypted reasoning (a thought is not sent "
    "again in later turns); background\nanswers; costs, without prices of your own. A "
    "small model calls tools unreliably and makes\nthings up. docs/servers.md says what "
    "each server does."
)


def describe_server(url: str, model: str) -> str:
    """Return what the demo says about a server at its start; raises OSError.

    A server without `GET /models`, or with another name for its model, may answer all
    the same: llama-server takes any name.
    """
    lines = [f"The pipe talks to {model} at {url}, without a key."]
    names = list_server_models(url)
    if names and model not in names:
        known = ", ".join(names[:5])
        lines.append(f"The server does not list this model; it lists {known}.")
    return "\n".join([*lines, MISSING])


def list_server_models(url: str) -> list[str]:
    """Return the names that a server lists; raises OSError if none answers."""
    base = url.rstrip("/").removesuffix("/responses")
    request = urllib.request.Request(f"{base}/models")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            listed: Any = json.load(answer)
    except urllib.error.HTTPError:
        return []
    except urllib.error.URLError as error:
        raise OSError(f"No server answers at {url}: {error.reason}") from None
    except ValueError:
        return []
    rows = listed.get("data") if isinstance(listed, dict) else None
    return [
        str(row["id"]) for row in rows or () if isinstance(row, dict) and "id" in row
    ]


def own_server_valves(url: str, model: str) -> dict[str, Any]:
    """Return the valves of the pipe; None restores a default."""
    return {
        "BASE_URL": url,
        "API_KEY": NO_KEY,
        "MODEL_ID": model,
        "COMPATIBILITY": None,
    }
