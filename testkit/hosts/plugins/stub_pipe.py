"""
title: Stub
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel


class Pipe:
    """Answers with the number of questions so far, a word, and the question.

    Where the request says which tool to call, the question holds its arguments. Open
    WebUI runs that call, and the answer is what the tool returned.
    """

    class Valves(BaseModel):
        WORD: str = "echo"

    class UserValves(BaseModel):
        LOUD: bool = False

    def __init__(self) -> None:
        self.valves = self.Valves()

    def pipes(self) -> list[dict[str, str]]:
        return [{"id": "one", "name": "One"}, {"id": "two", "name": "Two"}]

    async def pipe(self, body: dict[str, Any], __user__: dict[str, Any]) -> Any:
        asked = [
            message["content"]
            for message in body["messages"]
            if message["role"] == "user"
        ]
        text = asked[-1].upper() if __user__["valves"].LOUD else asked[-1]
        answer = [f"{len(asked)} {self.valves.WORD}: ", text]
        if "tool_choice" in body:
            return self.tool_round(body, asked[0])
        return self.chunks(answer) if body.get("stream") else "".join(answer)

    async def tool_round(
        self, body: dict[str, Any], arguments: str
    ) -> AsyncIterator[dict[str, Any]]:
        # Open WebUI puts a picture of the tool after its output, as a user's message.
        returned = [
            message for message in body["messages"] if message["role"] == "tool"
        ]
        if returned:
            text = returned[0]["content"]
            yield {"choices": [{"index": 0, "delta": {"content": text}}]}
            return
        name = body["tool_choice"]["function"]["name"]
        function = {"name": name, "arguments": arguments}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    async def chunks(self, answer: list[str]) -> AsyncIterator[dict[str, Any]]:
        for text in answer:
            if text == "forever":
                await asyncio.Event().wait()
            yield {"choices": [{"index": 0, "delta": {"content": text}}]}
