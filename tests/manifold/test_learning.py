"""What the refusals of a run teach, in a chat with a row and without."""

import pytest

from manifold.learning import (
    RepairLearning,
    has_fields_of,
    known_repairs,
    repair_scope,
)
from openai_responses.endpoint import Endpoint
from openai_responses.loop.events import Status
from openai_responses.repairs.chat_repairs import LeaveOutImages, LeaveOutItem
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.repairs.request_repairs import (
    LeaveOutParameter,
    Repair,
    TextOutputs,
)
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import TextDelta

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")
SCOPE = RepairScope(ACCOUNT.account(), "gpt-6.1-sol", "user-1")
OF_CHAT = LeaveOutItem("rs_1")
OF_MODEL = LeaveOutImages()
OF_REQUEST = LeaveOutParameter("reasoning.summary")


def learned(
    *repairs: Repair, has_row: bool, is_lasting: bool = True
) -> tuple[list[Repair], list[Repair]]:
    """What the row keeps, and what the memory has, after an accepted request."""
    memory = RepairMemory()
    learning = RepairLearning(memory, SCOPE, lambda: True, has_row=has_row)
    for repair in repairs:
        tried = TriedRepair(repair, is_named=True, is_lasting=is_lasting)
        learning.note(Status("Again.", tried=tried))
    kept = learning.note(TextDelta(0, "text", 0, "Hello"))
    assert learning.note(TextDelta(0, "text", 0, " you")) == []
    return [*kept], [*memory.repairs(SCOPE)]


def test_a_row_keeps_what_is_about_its_chat() -> None:
    assert learned(OF_CHAT, has_row=True) == ([OF_CHAT], [])
    assert learned(OF_REQUEST, has_row=True) == ([], [OF_REQUEST])


def test_the_way_of_a_model_is_not_learned_by_each_chat_alone() -> None:
    """It changes items of the chat all the same."""
    assert learned(OF_MODEL, has_row=True) == ([], [OF_MODEL])


@pytest.mark.parametrize("has_row", [True, False])
def test_a_step_that_was_taken_blindly_is_forgotten(has_row: bool) -> None:
    assert learned(OF_CHAT, has_row=has_row, is_lasting=False) == ([], [])


def test_without_a_row_its_user_needs_it() -> None:
    assert learned(OF_CHAT, has_row=False) == ([], [OF_CHAT])


def test_nothing_is_learned_before_the_server_accepts() -> None:
    memory = RepairMemory()
    learning = RepairLearning(memory, SCOPE, lambda: True)
    learning.note(Status("Again.", tried=TriedRepair(OF_REQUEST)))

    assert memory.repairs(SCOPE) == ()


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"input": [{"role": "user", "content": "Hi"}]}, True),
        ({"instructions": "Be brief."}, True),
        ({"repairs": (OF_REQUEST,)}, True),
        ({"temperature": 0.5}, False),
        ({"tools": [{"type": "web_search"}]}, False),
        ({"model": "gpt-5.1"}, False),
    ],
)
def test_chats_and_repairs_are_no_fields(
    change: dict[str, object], is_same: bool
) -> None:
    """What was asked for by whom decides for whom a repair is learned."""
    asked = ResponsesRequest(model="gpt-5.2", input=[])

    assert has_fields_of(asked.model_copy(update=change), asked) is is_same


def test_scope_of_a_repair_is_account_model_and_user() -> None:
    assert repair_scope(ACCOUNT, "gpt-6.1-sol", "user-1") == SCOPE


@pytest.mark.parametrize(
    ("base_url", "given"),
    [
        ("https://api.openai.com/v1", []),
        ("https://gateway.example/v1", [TextOutputs(keeps_files=True)]),
    ],
)
def test_images_of_tools_follow_their_results_at_servers_that_may_read_texts_alone(
    base_url: str, given: list[Repair]
) -> None:
    """They would take them for words, and say nothing."""
    memory = RepairMemory()
    endpoint = Endpoint(base_url, "sk-canary-1")
    scope = repair_scope(endpoint, "m", "user-1")
    memory.learn(scope, TriedRepair(OF_REQUEST), lambda: False)

    assert [*known_repairs(memory, endpoint, "m", "user-1")] == [*given, OF_REQUEST]
