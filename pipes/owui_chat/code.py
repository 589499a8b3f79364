"""Code that the API ran, in the host's form.

The host has a card for code and puts its content into the text of later turns
(docs/reference/open-webui.md, "The stored output and the next turn"). There it takes
the place of the stored item. The host runs only code with `attributes` (the same,
"Rounds of tools").

The page draws the code between two fences and does not draw `output` (observed on
0.12.4). So the text of the code closes the first block and opens a second one with its
output, which the page's last fence closes.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.items import Item, content_parts, item_type

CODE_CARD = "open_webui:code_interpreter"

_DID_NOT_RUN = "The code did not run to its end."


def is_code(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is code that the API ran."""
    return item_type(item) == "code_interpreter_call"


def code_host_item(item: Mapping[str, Any]) -> Item:
    """Return code and its output as the host's own item."""
    outputs = content_parts(item.get("outputs"))
    printed = "".join(str(part.get("logs") or "") for part in outputs)
    failed = item.get("status") in ("failed", "incomplete")
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": replay_code(item, _DID_NOT_RUN if failed else printed),
    }


def replay_code(item: Mapping[str, Any], printed: str) -> str:
    """Return code as the page draws it, with its output in a block below."""
    code = str(item.get("code") or "")
    shown = printed.strip("\n").replace("```", "'''")
    return f"{code}\n```\n```text\n{shown}" if shown else code


def remove_code(text: str, item: Mapping[str, Any]) -> str | None:
    """Return `text` without what the host inserted for stored code.

    None if that is not in it: somebody has deleted the card.
    """
    code = code_host_item(item)["code"]
    if not code:
        return text.strip()
    told = f"<code_interpreter>\n{code}\n</code_interpreter>"
    before, found, after = text.partition(told)
    return f"{before}{after}".strip() if found else None
