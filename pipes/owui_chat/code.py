"""Code that the API ran, in the host's form.

The host has a card for code and puts its content into the text of later turns
(docs/reference/open-webui.md, "The stored output and the next turn"). There it takes
the place of the stored item. The host runs only code with `attributes` (the same,
"Rounds of tools").

The page draws the code between two fences and does not draw `output` (observed on
0.12.4). So the text of the code closes the first block and opens a second one with its
output, which the page's last fence closes.
"""

from collections.abc import Iterable, Iterator

from openai_responses.items import Item, code_output
from openai_responses.json_input import JsonObject

CODE_CARD = "open_webui:code_interpreter"


def code_host_item(item: JsonObject) -> Item:
    """Return code and its output as the host's own item."""
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": replay_code(item, code_output(item)),
    }


def replay_code(item: JsonObject, printed: str) -> str:
    """Return code as the page draws it, with its output in a block below."""
    code = str(item.get("code") or "")
    shown = printed.strip("\n").replace("```", "'''")
    return f"{code}\n```\n```text\n{shown}" if shown else code


def code_text(code: str) -> str:
    """Return what the host puts into the text of a later turn for code."""
    return f"<code_interpreter>\n{code}\n</code_interpreter>"


_MOST_DELETED = 20
"""Deleted cards of one run that are searched for: each time all texts are read."""


class CodeTexts:
    """The texts of a run, out of which the host's texts for stored code are taken.

    They stand in the order of the code.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Begin with the first text."""
        self._texts = list(texts)
        self._cuts: dict[int, list[int]] = {}
        self._place = self._start = self._deleted = 0

    def take_out(self, item: JsonObject) -> bool:
        """Take out what the host inserted for `item`.

        Return False if that is not there: somebody has deleted the card.
        """
        code = code_host_item(item)["code"]
        if not code or self._deleted >= _MOST_DELETED:
            return not code
        told = code_text(code)
        start = self._start
        for place in range(self._place, len(self._texts)):
            at = self._texts[place].find(told, start)
            if at >= 0:
                self._place, self._start = place, at + len(told)
                self._cuts.setdefault(place, []).extend([at, self._start])
                return True
            start = 0
        self._deleted += 1
        return False

    def rest(self) -> Iterator[tuple[int, str]]:
        """Yield what is left of the texts that became shorter, with their places."""
        for place, cuts in self._cuts.items():
            text = self._texts[place]
            ends = zip([0, *cuts[1::2]], [*cuts[::2], len(text)], strict=True)
            yield place, "".join(text[start:end] for start, end in ends).strip()
