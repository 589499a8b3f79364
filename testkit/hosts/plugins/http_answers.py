"""
title: Answers with responses of HTTP
"""

from collections.abc import AsyncIterator
from typing import Any

from open_webui.functions import Response, StreamingResponse
from pydantic import BaseModel

HEADERS = {"Retry-After": "7"}


class Dumped(BaseModel):
    """A model of pydantic whose contents are a response."""

    response: Any

    def model_dump(self, **_: Any) -> Any:
        return self.response


class Pipe:
    """Refuses each question, in the form that its model is called after."""

    def pipes(self) -> list[dict[str, str]]:
        return [{"id": form, "name": form} for form in ("streamed", "dumped")]

    async def pipe(self, body: dict[str, Any]) -> Any:
        """Return a response with a status and a header."""
        if body["model"].endswith("dumped"):
            return Dumped(response=Response(b'{"error": {}}', 429, HEADERS))
        kind = "text/event-stream" if body.get("stream") else "application/json"
        return StreamingResponse(self.lines(), 429, HEADERS, kind)

    async def lines(self) -> AsyncIterator[str]:
        yield 'data: {"error": {}}\n\n'
