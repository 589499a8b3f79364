"""
title: Hands on the bytes of a response as they come

A function for Open WebUI: `inside.py` installs it beside the pipe, to see what any
function costs.
"""

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
from pydantic import BaseModel


class Pipe:
    """Sends the question as it is, and yields each event of the answer."""

    class Valves(BaseModel):
        """Where the simulator answers."""

        BASE_URL: str = ""
        API_KEY: str = ""

    def __init__(self) -> None:
        """Connect at the first question."""
        self.valves = self.Valves()
        self._session: aiohttp.ClientSession | None = None

    async def pipe(self, body: dict[str, Any]) -> AsyncGenerator[str, None]:
        """Yield the lines that carry events."""
        self._session = self._session or aiohttp.ClientSession()
        payload = {
            "model": "gpt-5.6-sol",
            "input": body["messages"],
            "stream": True,
            "store": False,
            "reasoning": {"summary": "auto"},
            "include": ["reasoning.encrypted_content"],
        }
        url = f"{self.valves.BASE_URL}/responses"
        headers = {"Authorization": f"Bearer {self.valves.API_KEY}"}
        async with self._session.post(url, json=payload, headers=headers) as response:
            async for line in response.content:
                if line.startswith(b"data:"):
                    yield line.decode().strip()
