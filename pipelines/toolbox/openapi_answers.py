"""What a server answered to a call -> what the model is told of it."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from toolbox.remote_tools import failed_result, shortened

_LONGEST_ERROR = 2_000


@dataclass(frozen=True, slots=True)
class OpenApiAnswer:
    """An answer: a text, or else the content of a file.

    Without `is_whole` the text is only the beginning.
    """

    status: int
    media_type: str
    text: str = ""
    content: bytes = b""
    is_whole: bool = True

    def result(self) -> dict[str, Any]:
        """Return what the model is told, in MCP's form.

        A value stands in a part of its own: taken as a list of parts it could name
        files of ours.
        """
        if self.status >= 300:
            reason = shortened(self.text, _LONGEST_ERROR) or "no reason given"
            return failed_result(f"HTTP {self.status}: {reason}")
        return {"content": [self._part()]}

    def _part(self) -> dict[str, Any]:
        if self.content:
            encoded = base64.b64encode(self.content).decode("ascii")
            return {"type": "blob", "data": encoded, "mimeType": self.media_type}
        if self.is_whole and self.media_type.endswith("json"):
            try:
                return {"type": "json", "json": json.loads(self.text)}
            except (ValueError, RecursionError):
                pass
        cut = "" if self.is_whole else "\n[the rest is left out]"
        told = self.text or f"HTTP {self.status}, with no content."
        return {"type": "text", "text": told + cut}


def is_text_type(media_type: str) -> bool:
    """Say whether what has that type is a text."""
    return media_type.startswith("text/") or media_type.endswith(("json", "xml"))
