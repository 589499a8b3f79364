"""A conversation, and what its user interface is told."""

import asyncio
from collections.abc import Callable

import pytest

from agents.sample import WeatherTool, calls, question
from event_loops.skipping_loop import run_skipping
from gpt5_agent.events import AgentEvent, AgentState, NewMessage, ToolCallRequested
from gpt5_agent.ports import UserInterface
from gpt5_agent.request import OwnToolSettings
from gpt5_agent.terminal.session import Session
from openai_responses.items import Item, is_call_output, is_reasoning
from openai_responses.loop.tools import Approver
from openai_responses.requests.replay import replay_output
from runs.sample import message, reasoning
from runs.scripted import ScriptedProvider

SAID = message("9", "It rains.")
LOOKING = [reasoning("1"), message("1", "I look."), calls("delete_weather", 1)]


class Notebook:
    """A user interface that writes down what it is told, and answers at once."""

    def __init__(self, answer: Callable[[ToolCallRequested], None]) -> None:
        self.told: list[object] = []
        self._answer = answer

    def on_new_message(self, message: NewMessage) -> None:
        self.told.append(message)

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        self.told.append(request)
        self._answer(request)

    def on_ready_for_input(self) -> None:
        self.told.append("ready")

    def on_agent_state_change(self, state: AgentState) -> None:
        self.told.append(state)


class Conversation:
    """A session with an interface that answers its requests with `approves`.

    None leaves them without an answer.
    """

    def __init__(
        self,
        *answers: list[Item],
        approves: bool | None = True,
        pattern: str = "delete_*",
    ) -> None:
        self.tool = WeatherTool("delete_weather")
        self.provider = ScriptedProvider(*answers)
        self.shown: list[AgentEvent] = []
        self.interface = Notebook(self._answer)
        checked: UserInterface = self.interface
        own = OwnToolSettings(tools=[self.tool], approver=Approver([(pattern, "ask")]))
        self.session = Session(
            question(own=own)._replace(messages=()),
            lambda _asked: self.provider,
            checked,
            self.shown.append,
        )
        self.taken: list[bool] = []
        self._approves = approves

    def _answer(self, request: ToolCallRequested) -> None:
        """Answer twice: no one may wait for the second."""
        if self._approves is None:
            return
        for _ in range(2):
            taken = self.session.provide_confirmation(
                request.confirmation_id, self._approves
            )
            self.taken.append(taken)


def test_interface_gets_every_event() -> None:
    talk = Conversation(LOOKING, [SAID])

    run_skipping(talk.session.submit_user_input("Weather?"))

    events = talk.interface.told
    [request] = [event for event in events if isinstance(event, ToolCallRequested)]
    assert events == [
        *("thinking", "executing_tool", "waiting_for_confirmation", request),
        *("executing_tool", "thinking", NewMessage("It rains.", "markdown")),
        *("idle", "ready"),
    ]
    assert (request.tool_name, request.args) == ("delete_weather", {"city": "Bern"})
    assert request.confirmation_id
    warning = {"level": "high", "reason": "It can delete things."}
    assert request.security_warning == warning
    assert talk.tool.called == [{"city": "Bern"}]


@pytest.mark.parametrize("approves", [True, False])
def test_r33_confirmation_counts_once(approves: bool) -> None:
    talk = Conversation(LOOKING, [SAID], approves=approves)

    run_skipping(talk.session.submit_user_input("Weather?"))

    assert talk.taken == [True, False]
    assert bool(talk.tool.called) is approves
    [output] = [i for i in talk.provider.asked[1][0] if is_call_output(i)]
    assert ("did not approve" in output["output"]) is not approves
    assert not talk.session.provide_confirmation("unknown", True)


def test_later_input_replays_the_conversation_with_reasoning() -> None:
    talk = Conversation(LOOKING, [reasoning("2"), SAID], [SAID], pattern="")

    async def work() -> None:
        await talk.session.submit_user_input("Weather?")
        await talk.session.submit_user_input("And now?")

    run_skipping(work())

    before, after = (history for history, _ in talk.provider.asked[1:])
    answer = replay_output([reasoning("2"), SAID], with_reasoning=True)
    assert after[:-1] == [*before, *answer]
    assert len(list(filter(is_reasoning, after))) == 2


def test_inputs_are_answered_one_after_the_other() -> None:
    """A listener may be heard while the agent answers."""
    talk = Conversation([SAID], [SAID])

    async def work() -> None:
        inputs = (talk.session.submit_user_input(text) for text in ("One?", "Two?"))
        await asyncio.gather(*inputs)

    run_skipping(work())

    roles = [message["role"] for message in talk.session.messages]
    assert roles == ["user", "assistant"] * 2


def test_cancelled_input_waits_for_nobody() -> None:
    talk = Conversation(LOOKING, [SAID], approves=None)

    async def work() -> None:
        task = asyncio.create_task(talk.session.submit_user_input("Weather?"))
        for _ in range(99):  # until the person is asked
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await talk.session.submit_user_input("And now?")

    run_skipping(work())

    events = talk.interface.told
    [request] = [event for event in events if isinstance(event, ToolCallRequested)]
    assert not talk.session.provide_confirmation(request.confirmation_id, True)
    assert talk.tool.called == []
    assert talk.session.messages[-1]["content"] == "It rains."


def test_input_waits_while_a_person_is_asked() -> None:
    talk = Conversation(LOOKING, [SAID], [SAID], approves=None)

    async def work() -> list[str]:
        inputs = [
            asyncio.create_task(talk.session.submit_user_input(text))
            for text in ("One?", "Two?")
        ]
        for _ in range(99):  # until the person is asked
            await asyncio.sleep(0)
        said = [str(message["content"]) for message in talk.session.messages]
        events = talk.interface.told
        [request] = [each for each in events if isinstance(each, ToolCallRequested)]
        talk.session.provide_confirmation(request.confirmation_id, True)
        await asyncio.gather(*inputs)
        return said

    assert "Two?" not in run_skipping(work())
    asked = [m["content"] for m in talk.session.messages if m["role"] == "user"]
    assert asked == ["One?", "Two?"]
