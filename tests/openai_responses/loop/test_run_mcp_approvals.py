"""Calls of remote servers that need a person's consent, against a strict server."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from openai_responses.items import Item
from openai_responses.loop.events import ToolOutput
from openai_responses.loop.spending import Budget, Spending
from openai_responses.loop.tools import Approval, Approver, AskedCall, Toolset
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import refused_pair, replay_items, replay_output
from openai_responses.transport.stream import ItemAdded, ItemDone
from runs.against_server import AT_ONCE, Runs, Told, asking
from runs.tools import CITY, MemoryTools
from simulator import Simulator
from upstream import wire
from upstream.server import streaming

pytestmark = pytest.mark.asyncio

LOOK = {"type": "function", "name": "get_weather"}
FUNCTION = {**LOOK, "parameters": CITY, "strict": False}
URL = "https://clocks.example/mcp"
CLOCKS = {"type": "mcp", "server_label": "clocks", "server_url": URL}
NO = "The user did not approve this call of clocks_now. Continue without it."


class Person:
    """Answers questions and remembers them; after the last answer it is always no.

    Of `asked`, each entry is one question with its calls.
    """

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.asked: list[list[AskedCall]] = []

    async def __call__(self, calls: Sequence[AskedCall]) -> list[bool]:
        self.asked.append([*calls])
        return [bool(self._answers and self._answers.pop(0)) for _ in calls]


def offering(text: str) -> ResponsesRequest:
    """A request with a remote server and a function, which asks for its reasoning."""
    update = {"tools": [CLOCKS, FUNCTION], "include": ["reasoning.encrypted_content"]}
    return asking(text).model_copy(update=update)


def toolset_for(person: Person | None, **more: Any) -> Toolset:
    return Toolset(MemoryTools(), Approver(ask=person), **more)


async def told_of(
    runs: Runs,
    sim: Simulator,
    toolset: Toolset,
    scenario: str = "mcp-approval",
    spending: Spending | None = None,
) -> tuple[Told, list[list[Item]]]:
    """What the run of a scenario tells, and the input of each request."""
    request = offering(f"sim:{scenario}")
    told = await runs.of(sim, request, toolset=toolset, spending=spending)
    return told, [body["input"] for body in told.sent]


def received(sim: Simulator, index: int) -> list[Item]:
    """What one of the responses said, as a later request gives it back."""
    response = sim.requests[index].response
    assert response is not None
    return replay_output(response["output"], with_reasoning=True)


def request_in(items: list[Item], index: int = 0) -> Item:
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


async def test_a_call_that_is_allowed(runs: Runs, sim: Simulator) -> None:
    """The person sees the name, the arguments; the API makes the call and goes on."""
    person = Person(True)
    told, (first, second) = await told_of(runs, sim, toolset_for(person))

    [[call]] = person.asked
    assert (call.name, call.arguments) == ("clocks_now", {"zone": "UTC"})
    asked = received(sim, 0)
    assert second == [*first, *asked, answer_to(request_in(asked))]
    assert told.text == "1 of the calls were made. It said: 12:00."
    assert not told.ending.is_failure
    assert told.of(ToolOutput) == []


async def test_a_call_that_is_not_allowed(runs: Runs, sim: Simulator) -> None:
    """The API is told why; a viewer sees a call that failed."""
    told, (_, second) = await told_of(runs, sim, toolset_for(Person(False)))

    asked = received(sim, 0)
    assert second[-1] == answer_to(request_in(asked), NO)
    assert told.text == "0 of the calls were made. I go on without."
    call, output = refused_pair(request_in(asked), NO)
    [answered] = told.of(ToolOutput)
    assert (answered.item, answered.failed) == (output, True)
    items = [e.item for e in told.events if isinstance(e, ItemAdded | ItemDone)]
    begun, ended = [item for item in items if item["type"] == "function_call"]
    assert begun == ended == {**call, "id": f"fc_{call['call_id']}"}


TWICE = '{"to": {"zone": "Bern", "zone": "Rome"}}'


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (None, {}),
        ("{}", {}),
        ('{"zone', {"arguments": '{"zone'}),
        (TWICE, {"arguments": TWICE}),
    ],
)
async def test_arguments_that_are_no_object(
    runs: Runs, arguments: object, shown: dict[str, object]
) -> None:
    """None are none; what is not JSON, or read in two ways, is shown as it is."""
    named = {"server_label": "clocks", "name": "now", "arguments": arguments}
    question = {"type": "mcp_approval_request", "id": "mcpr_1", **named}
    streams = [
        wire.whole_stream([wire.added(question), wire.done(question)]),
        wire.whole_stream(wire.message("Well.")),
    ]
    answers = [streaming(wire.on_the_wire(*stream)) for stream in streams]
    person = Person(False)

    await runs.against(*answers, request=offering("Hi"), toolset=toolset_for(person))

    [[call]] = person.asked
    assert (call.name, call.arguments) == ("clocks_now", shown)


def _run_unasked(request: Mapping[str, Any]) -> Approval:
    """The server only asks because there are rules."""
    assert (request["server_label"], request["name"]) == ("clocks", "now")
    return "auto"


@pytest.mark.parametrize(
    ("approver", "words"),
    [
        (Approver(), "Nobody was there"),
        (Approver(rules=[("clocks_*", "deny")]), "does not allow clocks_now"),
        (Approver(rules=[("clocks_*", "auto")]), None),
        (Approver(rules=[("*_now", "ask")]), "Nobody was there"),
        (Approver(rules=[("now", "auto")]), "Nobody was there"),
        (Approver(remote_default=_run_unasked), None),
        (Approver([("now", "deny")], remote_default=_run_unasked), "does not allow"),
    ],
)
async def test_rules_come_before_people(
    runs: Runs, sim: Simulator, approver: Approver, words: str | None
) -> None:
    """By the name of the card; with no rule and no one to ask it is a no."""
    _, (_, second) = await told_of(runs, sim, Toolset(MemoryTools(), approver))
    answer = second[-1]
    assert answer["approve"] is (words is None)
    assert (words or "") in answer.get("reason", "")


async def test_several_questions_beside_a_call(runs: Runs, sim: Simulator) -> None:
    """One answer each, in their order; a call of ours gets its output as always."""
    person = Person(True, False)
    toolset = toolset_for(person)
    told, (first, second) = await told_of(runs, sim, toolset, "mcp-approvals")

    [together] = person.asked
    assert [call.name for call in together] == ["clocks_now", "clocks_zones"]
    asked = received(sim, 0)
    no = NO.replace("clocks_now", "clocks_zones")
    *answers, output = second[len(first) + len(asked) :]
    yes = answer_to(request_in(asked))
    assert answers == [yes, answer_to(request_in(asked, 1), no)]
    assert output["type"] == "function_call_output"
    assert told.text == "1 of the calls were made. It said: 12:00."


async def test_several_questions_beside_a_call_that_is_left(
    runs: Runs, sim: Simulator
) -> None:
    toolset = toolset_for(Person(True, False), runs_calls=False)
    told, _ = await told_of(runs, sim, toolset, "mcp-approvals")

    assert len(told.sent) == 1
    answer, *refused = told.output[-3:]
    assert answer == answer_to(request_in(told.output))
    pair = ["function_call", "function_call_output"]
    assert [item["type"] for item in refused] == pair


async def test_answered_approval_is_replayed_as_a_call(
    runs: Runs, sim: Simulator
) -> None:
    """The next question comes with the last one told as a call: no approval twice."""
    toolset = toolset_for(Person(False, True))
    spending = Spending(Budget(3))
    told, inputs = await told_of(runs, sim, toolset, "mcp-approval-forever", spending)

    first, second, third, fourth = inputs
    asked = received(sim, 0)
    again = received(sim, 1)
    assert second == [*first, *asked, answer_to(request_in(asked), NO)]
    rest = [item for item in asked if item != request_in(asked)]
    refused = refused_pair(request_in(asked), NO)
    assert third == [*first, *rest, *refused, *again, answer_to(request_in(again))]
    limit = "clocks_now was not run: the limit of tool rounds is reached."
    assert fourth[-1]["reason"].startswith(limit)
    assert told.sent[-1].get("tool_choice") == "none"
    assert not told.ending.is_failure


async def test_a_call_made_in_the_run_is_read_by_its_next_turn(
    runs: Runs, sim: Simulator
) -> None:
    """The model knows what the server said when it gets the output of a function."""
    told, (_, second) = await told_of(runs, sim, toolset_for(None), "mcp-then-tool")

    assert told.text == "They said: 12:00 | Rain in Zürich."
    [made] = [item for item in told.output if item["type"] == "mcp_call"]
    pair = [item for item in second if item.get("call_id") == made["id"]]
    assert pair == replay_items(made)


async def test_the_reasoning_goes_with_the_answer(runs: Runs, sim: Simulator) -> None:
    """Also where it is not remembered: without it the API refuses its question."""
    await told_of(runs, sim, toolset_for(Person(True), carries_reasoning=False))
    assert [request.status for request in sim.requests] == [200, 200]


async def test_a_broken_answer_is_not_asked_about(runs: Runs, sim: Simulator) -> None:
    """What the API wanted it will want again."""
    person = Person(True)
    toolset = toolset_for(person)
    told, _ = await told_of(runs, sim, toolset, "mcp-approval,cut=10")
    assert told.ending.is_failure
    assert person.asked == []


async def test_limit_that_is_used_up_asks_for_no_approval(
    runs: Runs, sim: Simulator
) -> None:
    """The answer to it would be one more request, which costs."""
    limits = AT_ONCE._replace(count_response=lambda *_: "The limit is used up.")
    person = Person(True)

    told = await runs.of(
        sim, offering("sim:mcp-approval"), toolset=toolset_for(person), within=limits
    )

    assert (told.kind, told.ending.message) == ("incomplete", "The limit is used up.")
    assert (len(told.sent), person.asked) == (1, [])
