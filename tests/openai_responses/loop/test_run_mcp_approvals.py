"""Calls of remote servers that need a person's consent, against a strict server."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.loop.events import ToolOutput
from openai_responses.loop.spending import Budget
from openai_responses.loop.tools import Approval, Approver, AskedCall, Toolset
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import refused_pair, replay_items, replay_output
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone
from runs.against_server import asking, end_of, report_with_tools, simulated
from runs.log import answer_text
from runs.tools import CITY, MemoryTools
from simulator import Simulator
from upstream import wire
from upstream.server import Upstream, in_turn, streaming

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "parameters": CITY,
    "strict": False,
}
CLOCKS = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
}
NO = "The user did not approve this call of clocks_now. Continue without it."


class Person:
    """Answers questions and remembers them; after the last answer it is always no.

    Of `asked`, each entry is one question with its calls.
    """

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.asked: list[list[AskedCall]] = []

    async def __call__(self, calls: Sequence[AskedCall]) -> list[bool]:
        """Return the next answers."""
        self.asked.append([*calls])
        return [bool(self._answers and self._answers.pop(0)) for _ in calls]


def offering(text: str, **more: Any) -> ResponsesRequest:
    """A request with a remote server and a function, which asks for its reasoning."""
    update = {
        "tools": [CLOCKS, FUNCTION],
        "include": ["reasoning.encrypted_content"],
        **more,
    }
    return asking(text).model_copy(update=update)


def toolset_for(person: Person | None, **more: Any) -> Toolset:
    """Tools in memory, and who is asked."""
    return Toolset(MemoryTools(), Approver(ask=person), **more)


def inputs(sim: Simulator) -> list[list[Item]]:
    """What each request sent."""
    return [request.body["input"] for request in sim.requests]


def received(sim: Simulator, index: int) -> list[Item]:
    """What one of the responses said, as a later request gives it back."""
    response = sim.requests[index].response
    assert response is not None
    return replay_output(response["output"], with_reasoning=True)


def request_in(items: list[Item], index: int = 0) -> Item:
    """One of the API's questions."""
    requests = [i for i in items if i.get("type") == "mcp_approval_request"]
    return requests[index]


def answer_to(request: Item, reason: str | None = None) -> Item:
    """What the API is told."""
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": request["id"],
        "approve": reason is None,
    }
    return answer if reason is None else {**answer, "reason": reason}


async def test_a_call_that_is_allowed(connections: Connections, sim: Simulator) -> None:
    """The person sees the name, the arguments; the API makes the call and goes on."""
    person = Person(True)
    request = offering("sim:mcp-approval")
    events = await report_with_tools(
        connections, simulated(sim), request, toolset_for(person)
    )

    [[call]] = person.asked
    assert (call.name, call.arguments) == ("clocks_now", {"zone": "UTC"})
    first, second = inputs(sim)
    asked = received(sim, 0)
    assert second == [*first, *asked, answer_to(request_in(asked))]
    assert answer_text(events) == "1 of the calls were made. It said: 12:00."
    assert not end_of(events).ending.is_failure
    assert not [event for event in events if isinstance(event, ToolOutput)]


async def test_a_call_that_is_not_allowed(
    connections: Connections, sim: Simulator
) -> None:
    """The API is told why; a viewer sees a call that failed."""
    request = offering("sim:mcp-approval")
    events = await report_with_tools(
        connections, simulated(sim), request, toolset_for(Person(False))
    )

    asked = received(sim, 0)
    assert inputs(sim)[1][-1] == answer_to(request_in(asked), NO)
    assert answer_text(events) == "0 of the calls were made. I go on without."
    call, output = refused_pair(request_in(asked), NO)
    [answered] = [event for event in events if isinstance(event, ToolOutput)]
    assert answered.failed
    assert answered.item == output
    begun, ended = (
        event
        for event in events
        if isinstance(event, ItemAdded | ItemDone)
        and event.item["type"] == "function_call"
    )
    assert begun.item == ended.item == {**call, "id": f"fc_{call['call_id']}"}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [("", {}), (None, {}), ("{}", {}), ('{"zone', {"arguments": '{"zone'})],
)
async def test_arguments_that_are_no_object(
    connections: Connections, arguments: object, shown: dict[str, object]
) -> None:
    """None are none; what is not JSON is shown as it is."""
    question = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "clocks",
        "name": "now",
        "arguments": arguments,
    }
    stream = wire.whole_stream([wire.added(question), wire.done(question)])
    person = Person(False)
    async with Upstream(
        in_turn(
            streaming(wire.on_the_wire(*stream)),
            streaming(wire.on_the_wire(*wire.whole_stream(wire.message("Well.")))),
        )
    ) as upstream:
        await report_with_tools(
            connections, upstream.endpoint, offering("Hi"), toolset_for(person)
        )

    [[call]] = person.asked
    assert (call.name, call.arguments) == ("clocks_now", shown)


def _run_unasked(request: Mapping[str, Any]) -> Approval:
    """The server only asks because there are rules."""
    assert (request["server_label"], request["name"]) == ("clocks", "now")
    return "auto"


@pytest.mark.parametrize(
    ("approver", "words"),
    [
        (Approver(), "did not approve"),
        (Approver(rules=[("clocks_*", "deny")]), "does not allow clocks_now"),
        (Approver(rules=[("clocks_*", "auto")]), None),
        (Approver(rules=[("*_now", "ask")]), "did not approve"),
        (Approver(rules=[("now", "auto")]), "did not approve"),
        (Approver(remote_default=_run_unasked), None),
        (Approver([("now", "deny")], remote_default=_run_unasked), "does not allow"),
    ],
)
async def test_rules_come_before_people(
    connections: Connections, sim: Simulator, approver: Approver, words: str | None
) -> None:
    """By the name of the card; with no rule and no one to ask it is a no."""
    toolset = Toolset(MemoryTools(), approver)
    await report_with_tools(
        connections, simulated(sim), offering("sim:mcp-approval"), toolset
    )

    answer = inputs(sim)[1][-1]
    assert answer["approve"] is (words is None)
    assert (words or "") in answer.get("reason", "")


@pytest.mark.parametrize("runs_calls", [True, False])
async def test_several_questions_beside_a_call(
    connections: Connections, sim: Simulator, runs_calls: bool
) -> None:
    """One answer each, in their order; a call of ours gets its output as always."""
    person = Person(True, False)
    toolset = toolset_for(person, runs_calls=runs_calls)
    events = await report_with_tools(
        connections, simulated(sim), offering("sim:mcp-approvals"), toolset
    )

    [together] = person.asked
    assert [call.name for call in together] == ["clocks_now", "clocks_zones"]
    output = list(end_of(events).output)
    if not runs_calls:
        assert len(inputs(sim)) == 1
        assert output[-3] == answer_to(request_in(output))
        assert [item["type"] for item in output[-2:]] == [
            "function_call",
            "function_call_output",
        ]
        return
    asked = received(sim, 0)
    no = NO.replace("clocks_now", "clocks_zones")
    yes = request_in(asked)
    refused = request_in(asked, 1)
    sent = inputs(sim)[1][len(inputs(sim)[0]) + len(asked) :]
    assert sent[:2] == [answer_to(yes), answer_to(refused, no)]
    assert [item["type"] for item in sent[2:]] == ["function_call_output"]
    assert answer_text(events) == "1 of the calls were made. It said: 12:00."


async def test_answered_approval_is_replayed_as_a_call(
    connections: Connections, sim: Simulator
) -> None:
    """The next question comes with the last one told as a call: no approval twice."""
    request = offering("sim:mcp-approval-forever")
    toolset = toolset_for(Person(False, True), budget=Budget(3))
    events = await report_with_tools(connections, simulated(sim), request, toolset)

    first, second, third, fourth = inputs(sim)
    asked = received(sim, 0)
    again = received(sim, 1)
    assert second == [*first, *asked, answer_to(request_in(asked), NO)]
    rest = [item for item in asked if item != request_in(asked)]
    refused = refused_pair(request_in(asked), NO)
    assert third == [*first, *rest, *refused, *again, answer_to(request_in(again))]
    limit = "clocks_now was not run: the limit of tool rounds is reached."
    assert fourth[-1]["reason"].startswith(limit)
    assert [r.body.get("tool_choice") for r in sim.requests][-1] == "none"
    assert not end_of(events).ending.is_failure


async def test_a_call_made_in_the_run_is_read_by_its_next_turn(
    connections: Connections, sim: Simulator
) -> None:
    """The model knows what the server said when it gets the output of a function."""
    request = offering("sim:mcp-then-tool")
    events = await report_with_tools(
        connections, simulated(sim), request, toolset_for(None)
    )

    assert answer_text(events) == "They said: 12:00 | Rain in Zürich."
    [made] = [i for i in end_of(events).output if i["type"] == "mcp_call"]
    pair = replay_items(made)
    sent = inputs(sim)[1]
    assert [item for item in sent if item.get("call_id") == made["id"]] == pair


@pytest.mark.parametrize("carries", [True, False])
async def test_the_reasoning_goes_with_the_answer(
    connections: Connections, sim: Simulator, carries: bool
) -> None:
    """Also where it is not remembered: without it the API refuses its question."""
    toolset = toolset_for(Person(True), carries_reasoning=carries)
    await report_with_tools(
        connections, simulated(sim), offering("sim:mcp-approval"), toolset
    )

    assert [request.status for request in sim.requests] == [200, 200]


async def test_a_broken_answer_is_not_asked_about(
    connections: Connections, sim: Simulator
) -> None:
    """What the API wanted it will want again."""
    person = Person(True)
    request = offering("sim:mcp-approval,cut=10")
    events = await report_with_tools(
        connections, simulated(sim), request, toolset_for(person)
    )

    assert end_of(events).ending.is_failure
    assert person.asked == []
