"""A model whose answers are written down, for tests of those who ask one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, nullcontext

from openai_responses.endings import CUT, Ending
from openai_responses.items import Item
from openai_responses.loop.events import ModelAnswer, RunDone, RunEvent
from openai_responses.models.usage import Usage
from openai_responses.requests.build import ResponsesRequest
from runs.sample import run_of, shifted


class ScriptedProvider:
    """A provider with these answers; each counts 15 tokens, or more of the input.

    One that is empty breaks off, and so does the last one with `is_cut`. `requests` are
    those that it got, `asked` what they said: the input, and the names of the tools that
    may be called. `cost` and `tier` are what the server says of each answer.
    """

    def __init__(
        self, *answers: Sequence[Item], break_off: Ending = CUT, is_cut: bool = False
    ) -> None:
        self._answers = list(answers)
        self._break_off = break_off
        self._is_cut = is_cut
        self.cost: float | None = None
        self.input_tokens = 10
        self.tier = ""
        self.requests: list[ResponsesRequest] = []
        self.asked: list[tuple[list[Item], list[str]]] = []

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield the next answer."""
        may_call = request.tool_choice != "none"
        tools = request.tools or [] if may_call else []
        self.requests.append(request)
        self.asked.append((list(request.input), [str(tool["name"]) for tool in tools]))
        answer = self._answers.pop(0)
        *events, ended = run_of(*answer)
        assert isinstance(ended, RunDone)
        for event in events if answer else ():
            yield shifted(event, first_index)
        is_cut = not answer or (self._is_cut and not self._answers)
        yield ModelAnswer(
            ending=self._break_off if is_cut else ended.ending,
            request=request,
            items=tuple(enumerate(ended.output, first_index)),
            usages=tuple(map(self._counted, ended.usages)),
            last_usage=ended.last_usage,
            has_shown=bool(answer),
        )

    def _counted(self, usage: Usage) -> Usage:
        total = self.input_tokens + usage.output
        counted = usage._replace(input=self.input_tokens, total=total)
        return counted._replace(cost=self.cost, tier=self.tier)

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()
