"""Answers in which a call occurs twice, or lacks what a call needs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from agents.sample import calls
from event_loops.skipping_loop import run_skipping
from openai_responses.items import Item
from openai_responses.loop.events import (
    GIVEN_UP,
    ModelAnswer,
    ResponseDone,
    RunEvent,
)
from openai_responses.loop.run import Provider
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from runs.against_server import asking
from runs.sample import custom_call, message, reasoning
from runs.scripted import ScriptedProvider
from strategies.merged_calls import MergingProvider

FIRST = calls("get_weather", 1, "Bern")
AGAIN = {**calls("get_weather", 1, "Basel"), "id": "fc_other"}
OTHER = calls("get_weather", 2, "Chur")
NAMELESS = {**calls("", 3), "id": "fc_nameless"}


async def told_by(provider: Provider) -> tuple[list[RunEvent], ModelAnswer]:
    """What a provider tells of an answer from index 5, and what it comes to."""
    parts = provider.generate(asking(), 5)
    events: list[RunEvent] = []
    answers: list[ModelAnswer] = []
    async for part in parts:
        if isinstance(part, ModelAnswer):
            answers.append(part)
        else:
            events.append(part)
    [answer] = answers
    return events, answer


@pytest.mark.parametrize(
    ("answer", "shown", "items"),
    [
        ([reasoning("1"), FIRST, OTHER], [5, 6, 7], [reasoning("1"), FIRST, OTHER]),
        ([FIRST, AGAIN, OTHER], [5, 7], [AGAIN, OTHER]),
        ([FIRST, OTHER, AGAIN], [5, 6], [AGAIN, OTHER]),
        ([NAMELESS, OTHER, message("1", "Hi")], [6, 7], [OTHER, message("1", "Hi")]),
        ([custom_call("4", "x")], [5], [custom_call("4", "x")]),
    ],
)
def test_r12_each_call_occurs_once(
    answer: Sequence[Item], shown: list[int], items: list[Item]
) -> None:
    """The last form counts, at the place of the first; others keep their indexes."""
    provider = ScriptedProvider(list(answer))
    events, last = run_skipping(told_by(MergingProvider(provider)))

    assert [e.output_index for e in events if isinstance(e, ItemAdded)] == shown
    assert {e.output_index for e in events if isinstance(e, TextDelta)} <= set(shown)
    assert {e.output_index for e in events if isinstance(e, ItemDone)} == set(shown)
    assert isinstance(events[-1], ResponseDone)
    assert last.output == items
    assert [index for index, _ in last.items] == shown
    if items == answer:  # nothing waits for the end of a call
        assert events == run_skipping(told_by(ScriptedProvider(items)))[0]


class NamingAtTheEnd(ScriptedProvider):
    """A server that announces calls without their names."""

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield the events of the script, the names left out of the beginnings."""
        async with aclosing(super().generate(request, first_index)) as parts:
            async for part in parts:
                if isinstance(part, ItemAdded):
                    yield part._replace(item={**part.item, "name": ""})
                else:
                    yield part


def test_call_that_is_named_at_its_end_is_made() -> None:
    """It begins there, once; the run without an agent makes it, too."""
    provider = MergingProvider(NamingAtTheEnd([FIRST, OTHER, AGAIN]))

    events, last = run_skipping(told_by(provider))

    begun = [e for e in events if isinstance(e, ItemAdded)]
    assert [e.item["name"] for e in begun] == ["get_weather"] * 2
    assert [e.output_index for e in begun] == [5, 6]
    assert [index for index, _ in last.items] == [5, 6]
    assert last.output == [AGAIN, OTHER]


class GivingUp(NamingAtTheEnd):
    """A server whose stream breaks after each item."""

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield the events of the script; each item that ends is given up."""
        async with aclosing(super().generate(request, first_index)) as parts:
            async for part in parts:
                yield part
                if isinstance(part, ItemDone):
                    yield part._replace(item=GIVEN_UP)


def test_call_that_is_given_up_leaves_the_page() -> None:
    """Also one that began at its end."""
    events, _ = run_skipping(told_by(MergingProvider(GivingUp([FIRST]))))

    assert [type(event) for event in events[:2]] == [ItemAdded, ItemDone]
    assert events[2] == ItemDone(5, GIVEN_UP)


def test_time_is_counted_by_the_provider() -> None:
    """It alone knows what of it is the server's."""
    provider = ScriptedProvider()

    assert type(MergingProvider(provider).paused()) is type(provider.paused())
