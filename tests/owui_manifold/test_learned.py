"""A refusal is remembered for the account that met it, and for no other."""

from dataclasses import replace

import pytest

from openai_responses.endpoint import Endpoint
from owui_manifold.config import Learned, Lessons

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")


def test_new_pipe_has_learned_nothing() -> None:
    """Everything is asked for."""
    assert Lessons().of(ACCOUNT) == Learned(summary=False, stream=False)


@pytest.mark.parametrize(
    ("causes", "learned"),
    [
        (["summary"], Learned(summary=True)),
        (["stream"], Learned(stream=True)),
        (["summary", "stream"], Learned(summary=True, stream=True)),
        (["stream", "stream"], Learned(stream=True)),
        (["reasoning", "effort", "", "unheard of"], Learned()),
    ],
)
def test_refusals_add_up(causes: list[str], learned: Learned) -> None:
    """Those that concern one request alone teach nothing."""
    lessons = Lessons()

    for cause in causes:
        lessons.note(ACCOUNT, cause)

    assert lessons.of(ACCOUNT) == learned


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
    """It may be allowed what this one is not."""
    lessons = Lessons()

    lessons.note(ACCOUNT, "summary")

    assert lessons.of(other) == Learned()
    assert lessons.of(replace(ACCOUNT)) == Learned(summary=True)


def test_two_pipes_learn_apart() -> None:
    """A new upload asks again."""
    one, other = Lessons(), Lessons()

    one.note(ACCOUNT, "stream")

    assert other.of(ACCOUNT) == Learned()


def test_no_key_is_remembered() -> None:
    """Who looks into the memory of the pipe finds none there."""
    lessons = Lessons()

    lessons.note(ACCOUNT, "stream")

    assert "canary" not in str(vars(lessons))
