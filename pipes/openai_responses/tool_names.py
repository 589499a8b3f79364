"""Names of tools that the API forbids, there and back."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from openai_responses.items import Item

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_STEM = 51  # of 64; the rest is `_` and the digest
_DIGEST = 12


@dataclass(frozen=True, slots=True)
class ToolNames:
    """What each tool is called in a request; `known` are the tools' own names.

    What a name becomes depends on itself, so that it is the same in the next request;
    only a known tool that has that very name already makes a difference.
    """

    known: tuple[str, ...] = ()

    def sent(self, name: str) -> str:
        """Return the name that the API gets: 1 to 64 letters, digits, `_` and `-`."""
        if _ALLOWED.fullmatch(name):
            return name
        stem, seed = _FORBIDDEN.sub("_", name)[:_STEM], name
        while True:
            seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
            sent = f"{stem}_{seed[:_DIGEST]}"
            if sent not in self.known:
                return sent

    def original(self, sent: str) -> str:
        """Return the tool's own name of the one that the model used."""
        return next((name for name in self.known if self.sent(name) == sent), sent)

    def sent_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        return [self._sent_tool(tool) for tool in tools]

    def _sent_tool(self, tool: Item) -> Item:
        if tool.get("type") not in ("function", "custom"):
            return tool
        return {**tool, "name": self.sent(tool["name"])}
