"""Answers while something else changes in the server; others are in test_contract.py."""

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import PLUGINS
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

NEW = "openai_responses.gpt-6.1-sol"


FILTER = (PLUGINS / "choices_filter.py").read_text()


@pytest.mark.asyncio
async def test_stream_filter_that_reads_choices_keeps_the_answer(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Filters written for Chat Completions do not erase the answer."""
    await admin.install_function("choices_filter", FILTER)
    await admin.set_global("choices_filter", True)
    try:
        turn = await tab.send(NEW, "hello")
    finally:
        await admin.delete_function("choices_filter")

    assert (await tab.message(turn))["content"].endswith("That is all for now.")


@pytest.mark.asyncio
async def test_an_upload_during_a_stream_disturbs_nothing(
    tab: Tab, admin: User, pipe_source: str, simulator: Simulator
) -> None:
    """The old version finishes its answer; the new one answers the next."""
    turn = await tab.begin(NEW, "sim:chat,hold=60")
    await turn.until(lambda seen: "Here is" in seen.text)

    await admin.install_function("openai_responses", pipe_source + "\n# newer\n")
    simulator.release()
    await turn.finished.wait()
    await tab.settle(turn)

    assert turn.error is None
    assert (await tab.message(turn))["content"].endswith("That is all for now.")
    after = await tab.send(NEW, "again", chat_id=turn.chat_id)
    assert "I was given 1 reasoning item back" in after.text
