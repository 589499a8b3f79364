"""The pipeline as its server calls it: from threads, with a body that passed the inlet."""

import asyncio
from typing import Any

from calls.outcomes import body_of
from golden_run.normal_form import is_beat
from gpt5_agent.pipeline import Pipeline
from simulator import Simulator

Json = dict[str, Any]
METADATA = {"chat_id": "c-1", "message_id": "m-1"}
AGENT = "gpt5_function_calling"


def question_messages(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


class Desk:
    """A pipeline that talks to the simulator, and who asks it."""

    def __init__(self, sim: Simulator) -> None:
        """Let nobody have asked yet."""
        self.sim = sim
        self.pipeline = Pipeline()
        self.pipeline.valves = Pipeline.Valves(
            BASE_URL=sim.base_url, API_KEY=sim.api_key
        )

    def set_valves(self, **valves: Any) -> None:
        """Save some valves, as the page does."""
        stored = self.pipeline.valves.model_dump()
        self.pipeline.valves = Pipeline.Valves(**stored | valves)

    async def asked(
        self,
        messages: list[Json],
        metadata: Json | None = METADATA,
        user: Json | None = None,
        **more: Any,
    ) -> Any:
        """What `pipe()` returns after the inlet has seen the body.

        Without metadata a plain client asks, of whom the inlet is not told.
        """
        body = {
            "model": f"agents.{AGENT}",
            "messages": messages,
            "stream": True,
            **more,
        }
        if metadata is not None:
            body = await self.pipeline.inlet({**body, "metadata": metadata}, user)
            del body["metadata"]
        return await asyncio.to_thread(
            self.pipeline.pipe,
            user_message=None,
            model_id=AGENT,
            messages=messages,
            body=body,
        )

    async def pieces(
        self, question: str | list[Json], metadata: Json | None = METADATA, **more: Any
    ) -> list[Any]:
        """All that a stream yields, beats left out."""
        messages = (
            question_messages(question) if isinstance(question, str) else question
        )
        answer = await self.asked(messages, metadata, **more)
        pulled = await asyncio.to_thread(list, answer)
        return [piece for piece in pulled if not is_beat(piece)]

    async def chunks(
        self, question: str | list[Json], metadata: Json | None = METADATA, **more: Any
    ) -> list[Json]:
        """The same, without the end of the stream."""
        pieces = await self.pieces(question, metadata, **more)
        return [piece for piece in pieces if isinstance(piece, dict)]

    async def result(
        self, text: str, metadata: Json | None = METADATA, **more: Any
    ) -> Json:
        """The one answer where nothing streams; a program gets a failure as a response."""
        messages = question_messages(text)
        answer = await self.asked(messages, metadata, stream=False, **more)
        return answer if isinstance(answer, dict) else body_of(answer.model_dump())
