"""Code that the API ran, in the host's own words.

The host has a card for code, and puts what the card holds into the text of later turns
(utils/misc.py:565): there it stands for the item that was kept.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.items import Item, content_parts, item_type

CODE_CARD = "open_webui:code_interpreter"

_DID_NOT_RUN = "The code did not run to its end."


def is_code(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is code that the API ran."""
    return item_type(item) == "code_interpreter_call"


def code_card(item: Mapping[str, Any]) -> Item:
    """Return code and what it printed as the host's own item.

    The host runs only code with `attributes` (middleware.py:6133).
    """
    outputs = content_parts(item.get("outputs"))
    printed = "".join(str(part.get("logs") or "") for part in outputs)
    failed = item.get("status") in ("failed", "incomplete")
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": code_with_output(item, _DID_NOT_RUN if failed else printed),
    }


def code_with_output(item: Mapping[str, Any], printed: str) -> str:
    """Return code as the page draws it, with what it printed in a block below.

    The page draws the code between two fences, and of the host's `output` nothing
    (measured on 0.12.4): a second block opens inside, which the last fence closes.
    """
    code = str(item.get("code") or "")
    shown = printed.strip("\n").replace("```", "'''")
    return f"{code}\n```\n```text\n{shown}" if shown else code


def without_code(text: str, item: Mapping[str, Any]) -> str | None:
    """Return `text` without what the host put there for kept code.

    None where it put nothing: somebody has deleted the card.
    """
    code = code_card(item)["code"]
    told = f"<code_interpreter>\n{code}\n</code_interpreter>" if code else ""
    before, found, after = text.partition(told) if told else (text, "nothing", "")
    return f"{before}{after}".strip() if found else None
