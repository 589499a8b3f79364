"""A repair is remembered for a model of the account that needs it, and for no other."""

from dataclasses import replace

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.requests.repairs import Repair
from owui_manifold.config import AccountCapabilities

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")
MODEL = "gpt-6.1-sol"
NO_SUMMARY = Repair("parameter", "reasoning.summary", '"auto"')
NO_STREAM = Repair("parameter", "stream", "true")


def test_new_pipe_has_learned_nothing() -> None:
    """Everything is asked for."""
    assert AccountCapabilities().repairs(ACCOUNT, MODEL, "user-1") == ()


def test_repairs_add_up() -> None:
    """Each is remembered on its own, in the order in which they were needed."""
    lessons = AccountCapabilities()

    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)
    assert lessons.repairs(ACCOUNT, MODEL, "user-1") == (NO_STREAM,)
    lessons.learn(ACCOUNT, MODEL, "", NO_SUMMARY)
    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)

    assert lessons.repairs(ACCOUNT, MODEL, "user-1") == (NO_STREAM, NO_SUMMARY)


def test_what_one_user_needs_changes_nothing_for_others() -> None:
    """What was refused may have been their own choice."""
    lessons = AccountCapabilities()

    lessons.learn(ACCOUNT, MODEL, "user-1", NO_SUMMARY)
    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)

    assert lessons.repairs(ACCOUNT, MODEL, "user-1") == (NO_STREAM, NO_SUMMARY)
    assert lessons.repairs(ACCOUNT, MODEL, "user-2") == (NO_STREAM,)
    assert lessons.repairs(ACCOUNT, MODEL, "") == (NO_STREAM,)


@pytest.mark.parametrize(
    "other",
    [
        replace(ACCOUNT, api_key="sk-canary-2"),
        replace(ACCOUNT, base_url="https://gateway.example/v1"),
        replace(ACCOUNT, organization="org-2"),
    ],
    ids=["key", "address", "organisation"],
)
def test_another_account_is_asked_anew(other: Endpoint) -> None:
    """It may be allowed what this one is not; so may another model."""
    lessons = AccountCapabilities()

    lessons.learn(ACCOUNT, MODEL, "", NO_SUMMARY)

    assert lessons.repairs(other, MODEL, "") == ()
    assert lessons.repairs(ACCOUNT, "gpt-5", "") == ()
    assert lessons.repairs(replace(ACCOUNT), MODEL, "") == (NO_SUMMARY,)


def test_two_pipes_learn_apart() -> None:
    """A new upload asks again."""
    one, other = AccountCapabilities(), AccountCapabilities()

    one.learn(ACCOUNT, MODEL, "", NO_STREAM)

    assert other.repairs(ACCOUNT, MODEL, "") == ()


def test_a_repair_is_forgotten_after_a_day() -> None:
    """The organisation may have been verified since; if not, it is learned again."""
    times = [0.0, 86_399.0]
    lessons = AccountCapabilities(lambda: times[0])
    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)

    times.pop(0)
    assert lessons.repairs(ACCOUNT, MODEL, "") == (NO_STREAM,)
    times[0] += 1
    assert lessons.repairs(ACCOUNT, MODEL, "") == ()
    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)

    assert lessons.repairs(ACCOUNT, MODEL, "") == (NO_STREAM,)


def test_nobody_fills_the_memory_of_the_server() -> None:
    """Many models, keys, repairs and notices take a bounded place."""
    lessons = AccountCapabilities()

    for number in range(5_000):
        account = replace(ACCOUNT, api_key=f"sk-{number}")
        lessons.learn(account, MODEL, "", NO_STREAM)
        lessons.learn(ACCOUNT, MODEL, "", Repair("tool", str(number)))
        lessons.first_time(f"notice {number}")

    assert len(lessons._ends) <= 5000
    assert len(lessons._repairs) <= 1000
    assert sum(map(len, lessons._repairs.values())) <= 5000
    assert lessons.repairs(ACCOUNT, MODEL, "")


def test_no_key_is_remembered() -> None:
    """Who looks into the memory of the pipe finds none there."""
    lessons = AccountCapabilities()

    lessons.learn(ACCOUNT, MODEL, "", NO_STREAM)

    assert "canary" not in str(vars(lessons))
