"""A refusal is remembered for a model of the account that met it, and for no other."""

from dataclasses import replace

import pytest

from openai_responses.endpoint import Endpoint
from owui_manifold.config import AccountCapabilities

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")
MODEL = "gpt-6.1-sol"


def test_new_pipe_has_learned_nothing() -> None:
    """Everything is asked for."""
    lessons = AccountCapabilities()

    assert not lessons.refuses(ACCOUNT, MODEL, "summary")
    assert not lessons.refuses(ACCOUNT, MODEL, "stream")


def test_refusals_add_up() -> None:
    """Each is remembered on its own."""
    lessons = AccountCapabilities()

    lessons.note(ACCOUNT, MODEL, "stream")
    assert not lessons.refuses(ACCOUNT, MODEL, "summary")
    lessons.note(ACCOUNT, MODEL, "summary")

    assert lessons.refuses(ACCOUNT, MODEL, "summary")
    assert lessons.refuses(ACCOUNT, MODEL, "stream")


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

    lessons.note(ACCOUNT, MODEL, "summary")

    assert not lessons.refuses(other, MODEL, "summary")
    assert not lessons.refuses(ACCOUNT, "gpt-5", "summary")
    assert lessons.refuses(replace(ACCOUNT), MODEL, "summary")


def test_two_pipes_learn_apart() -> None:
    """A new upload asks again."""
    one, other = AccountCapabilities(), AccountCapabilities()

    one.note(ACCOUNT, MODEL, "stream")

    assert not other.refuses(ACCOUNT, MODEL, "stream")


def test_a_refusal_is_forgotten_after_a_day() -> None:
    """The organisation may have been verified since."""
    times = [0.0, 86_399.0]
    lessons = AccountCapabilities(lambda: times[0])
    lessons.note(ACCOUNT, MODEL, "stream")

    times.pop(0)
    assert lessons.refuses(ACCOUNT, MODEL, "stream")
    times[0] += 1

    assert not lessons.refuses(ACCOUNT, MODEL, "stream")


def test_nobody_fills_the_memory_of_the_server() -> None:
    """Many models, keys and notices take a bounded place."""
    lessons = AccountCapabilities()

    for number in range(5_000):
        lessons.note(replace(ACCOUNT, api_key=f"sk-{number}"), MODEL, "stream")
        lessons.first_time(f"notice {number}")

    assert len(lessons._ends) <= 5000


def test_no_key_is_remembered() -> None:
    """Who looks into the memory of the pipe finds none there."""
    lessons = AccountCapabilities()

    lessons.note(ACCOUNT, MODEL, "stream")

    assert "canary" not in str(vars(lessons))
