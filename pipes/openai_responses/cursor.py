"""How far the stream of a response has been read."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from openai_responses.sse import ServerSentEvent

_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
"""What may stand in a path; other servers put base64 into their ids."""


class Cursor:
    """The response that is read, and the number of its last event.

    `response_id` is empty until the server has named it, `last` is None as long as no
    event had a number.
    """

    def __init__(self, named: Callable[[], object] = lambda: None) -> None:
        """Start before the first event; `named` is called once there is an id."""
        self._named = named
        self.response_id = ""
        self.last: int | None = None

    def passes(self, event: ServerSentEvent) -> bool:
        """Note an event that could be read; say whether it had not come before."""
        # Read a second time: few events of a background run come in a second.
        wire = {} if event.data == "[DONE]" else json.loads(event.data)
        self.note(wire.get("response"))
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        if self.last is not None and number <= self.last:
            return False
        self.last = number
        return True

    def note(self, response: object) -> None:
        """Remember the id of a response object; what cannot be one is none."""
        told: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
        named = told.get("id")
        if isinstance(named, str) and _ID.fullmatch(named):
            self.response_id = named
            self._named()
