"""What the judge of an agent remembers of approvals, and for how long."""

import asyncio

from agents.sample import WeatherTool, question
from gpt5_agent.agent.calls import ChatJudge
from gpt5_agent.agent.earlier_rounds import EarlierRounds
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.request import OwnToolSettings
from gpt5_agent.tools.confirmations import compute_confirmation_id
from openai_responses.loop.tools import Approver

CITY = {"city": "Bern"}


def test_approval_of_a_call_counts_once() -> None:
    """A call of the same id and arguments, made again, is not allowed by it."""
    approval = compute_confirmation_id("call_1", "ask_weather", CITY)
    own = OwnToolSettings(
        tools=(WeatherTool("ask_weather"),),
        approver=Approver([("ask_*", "ask")], "auto"),
        asks_in_chat=True,
    )
    asked = question(own=own)
    earlier = EarlierRounds(answers={approval: "once"})
    prepared = prepare_run(asked)._replace(earlier_rounds=earlier)
    approver = ChatJudge(asked, prepared).build_toolset(asked).approver

    async def refusals() -> list[str | None]:
        return [
            await approver.refusal("call_2", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", {"city": "Rome"}),
            await approver.refusal("call_1", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", CITY),
        ]

    assert [why is None for why in asyncio.run(refusals())] == [
        False,
        False,
        True,
        False,
    ]
