"""Code that the API ran, in the host's form.

The host has a card for code and puts its content into the text of later turns
(docs/reference/open-webui.md, "The stored output and the next turn"). There it takes
the place of the stored item. The host runs only code with `attributes` (the same,
"Rounds of tools").

The page shows the code between two fences and does not show `output` (observed on
0.12.4). So the text of the code closes the first block and opens a second one with its
output, which the page's last fence closes.
"""

from collections.abc import Iterable, Sequence

from openai_responses.items import Item, code_output
from openai_responses.json_input import JsonObject, as_text
from owui_chat.cards import without_cards
from owui_chat.host_tools import UNSTORED

CODE_CARD = "open_webui:code_interpreter"


def code_host_item(item: JsonObject) -> Item:
    """Return code and its output as the host's own item."""
    return {
        "type": CODE_CARD,
        "id": as_text(item.get("id")) or None,
        "status": as_text(item.get("status")) or "completed",
        "lang": "python",
        "code": replay_code(item, code_output(item)),
    }


def replay_code(item: JsonObject, printed: str) -> str:
    """Return code as the page shows it, with its output in a block below.

    It is found again in what the host has stored, so it has nothing else.
    """
    code = without_cards(UNSTORED.sub("", str(item.get("code") or "")))
    output = UNSTORED.sub("", printed).strip("\n").replace("```", "'''")
    output = without_cards(output)
    if not output:
        return code
    return f"{code}\n```\n```text\n{output}"


def code_text(code: str) -> str:
    """Return what the host puts into the text of a later turn for code."""
    return f"<code_interpreter>\n{code}\n</code_interpreter>"


_MAX_DELETED = 20
"""Deleted cards of one run that are searched for: each time all texts are read."""
_BETWEEN = "\0"
"""Separates the texts of a run while they are searched as one."""


def take_out_code(
    texts: Sequence[str], items: Iterable[Item]
) -> tuple[list[str], list[Item]]:
    """Return the texts of a run without what the host inserted for code.

    It is there in the order of the `items`. Return also the code that is not there:
    somebody has deleted its card.
    """
    whole = _BETWEEN.join(UNSTORED.sub("", text) for text in texts)
    pieces: list[str] = []
    deleted: list[Item] = []
    start = 0
    for item in items:
        code = code_host_item(item)["code"]
        if not code:
            continue
        inserted = code_text(code)
        position = -1
        if len(deleted) < _MAX_DELETED:
            position = whole.find(inserted, start)
        if position < 0:
            deleted.append(item)
        else:
            pieces.append(whole[start:position])
            start = position + len(inserted)
    pieces.append(whole[start:])
    remaining = "".join(pieces).split(_BETWEEN)
    # A text without code keeps the white space at its ends.
    cleaned = [
        before if before == after else after.strip()
        for before, after in zip(texts, remaining, strict=True)
    ]
    return cleaned, deleted
