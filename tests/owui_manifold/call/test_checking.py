"""A call that cannot be answered is refused at one place, before anything is read."""

from typing import Any

import pytest

from calls.sample import arrived_call, chat
from openai_responses.errors import InvalidRequest
from owui_manifold.call.checking import check_call
from owui_manifold.call.valves import Valves
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"API_KEY": " "}, "set API_KEY in its valves"),
        ({"EXTRA_HEADERS": "X-Team: blue"}, "EXTRA_HEADERS is not a JSON object"),
        ({"BASE_URL": "ftp://example"}, "is not an http or https address"),
        ({"MODEL_OVERRIDES_JSON": "{"}, "MODEL_OVERRIDES_JSON"),
        ({"USER_API_KEYS": "required"}, "your own OpenAI API key"),
        ({"AUTH": "entra_id"}, "needs the filter openai_responses_administration"),
    ],
    ids=["key", "headers", "address", "models", "own key", "entra"],
)
async def test_unusable_setting_refuses_the_call(
    given: dict[str, Any], message: str, host: StandInHost
) -> None:
    """The message says who has to change what."""
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})

    with pytest.raises(InvalidRequest, match=message):
        await check_call(arrived_call(chat("Hi"), valves))
    assert host.chats.writes == []


async def test_checked_call_has_what_its_caller_may_set(host: StandInHost) -> None:
    """And the endpoint and the model that answer it."""
    body = chat("Hi", service_tier="priority", verbosity="low")
    arrived = arrived_call(body, Valves(API_KEY="sk-1"))

    checked = await check_call(arrived)

    assert "service_tier" not in checked.body
    assert checked.body["verbosity"] == "low"
    assert checked.messages == body["messages"]
    assert checked.endpoint.host == "api.openai.com"
    assert checked.model.id == "gpt-5.6-sol"
