"""
title: A function that asks another model
"""

# A test chooses which of the classes Open WebUI finds: it takes the first of Pipe,
# Filter and Action, and of a toolkit only Tools.

import json
from collections.abc import AsyncIterator
from typing import Any

from open_webui.models.users import Users
from open_webui.utils.chat import generate_chat_completion

MODEL = "openai_responses.gpt-6.1-sol"
QUESTION = "sim:short what do you say?"
WITH_TOOLS = False


async def pieces_from(
    request: Any, user: dict[str, Any], metadata: dict[str, Any]
) -> AsyncIterator[str]:
    """Yield an answer as it comes, from where Chat Completions has its text."""
    asked = {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": True,
        "metadata": metadata,
    }
    if WITH_TOOLS:
        offered = metadata["tools"].values()
        asked["tools"] = [{"type": "function", "function": t["spec"]} for t in offered]
    model = await Users.get_user_by_id(user["id"])
    response = await generate_chat_completion(request, asked, user=model)
    async for line in response.body_iterator:
        shown = line.decode() if isinstance(line, bytes) else line
        text = shown.removeprefix("data:").strip()
        if text and text != "[DONE]":
            for choice in json.loads(text).get("choices", []):
                yield choice["delta"].get("content") or ""


async def answer_from(
    request: Any, user: dict[str, Any], metadata: dict[str, Any]
) -> str:
    return "".join([piece async for piece in pieces_from(request, user, metadata)])


class Pipe:
    """Passes the answer on."""

    async def pipe(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any],
        __metadata__: dict[str, Any],
        __request__: Any,
    ) -> AsyncIterator[str]:
        """Yield it as it comes."""

        async def quoted() -> AsyncIterator[str]:
            yield "It says: "
            async for piece in pieces_from(__request__, __user__, __metadata__):
                yield piece

        return quoted()


class Filter:
    """Adds the answer to the question."""

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any],
        __metadata__: dict[str, Any],
        __request__: Any,
    ) -> dict[str, Any]:
        answer = await answer_from(__request__, __user__, __metadata__)
        body["messages"][-1]["content"] += f" It says: {answer}"
        return body


class Action:
    """Says the answer below a message."""

    async def action(
        self, body: dict[str, Any], __user__: dict[str, Any], __request__: Any
    ) -> dict[str, Any]:
        """Return it as a content."""
        answer = await answer_from(__request__, __user__, {})
        return {"content": f"It says: {answer}"}


class Tools:
    """Gives the answer to the model that calls."""

    async def ask(
        self,
        city: str,
        __user__: dict[str, Any],
        __metadata__: dict[str, Any],
        __request__: Any,
    ) -> str:
        """
        Ask another model.
        :param city: what is asked about
        """
        answer = await answer_from(__request__, __user__, __metadata__)
        return f"It says: {answer}"
