"""A refusal is remembered for the account that met it, and for no other."""

from dataclasses import replace

import pytest

from openai_responses.endpoint import Endpoint
from owui_manifold.config import AccountCapabilities

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")


def test_new_pipe_has_learned_nothing() -> None:
    """Everything is asked for."""
    assert set(AccountCapabilities().refused(ACCOUNT)) == set()


@pytest.mark.parametrize(
    ("causes", "learned"),
    [
        (["summary"], {"summary"}),
        (["stream"], {"stream"}),
        (["summary", "stream"], {"summary", "stream"}),
        (["stream", "stream"], {"stream"}),
        (["reasoning", "effort", "", "unheard of"], set()),
    ],
)
def test_refusals_add_up(causes: list[str], learned: set[str]) -> None:
    """Those that concern one request alone teach nothing."""
    lessons = AccountCapabilities()

    for cause in causes:
        lessons.note(ACCOUNT, cause)

    assert set(lessons.refused(ACCOUNT)) == learned


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
    lessons = AccountCapabilities()

    lessons.note(ACCOUNT, "summary")

    assert set(lessons.refused(other)) == set()
    assert set(lessons.refused(replace(ACCOUNT))) == {"summary"}


def test_two_pipes_learn_apart() -> None:
    """A new upload asks again."""
    one, other = AccountCapabilities(), AccountCapabilities()

    one.note(ACCOUNT, "stream")

    assert set(other.refused(ACCOUNT)) == set()


def test_no_key_is_remembered() -> None:
    """Who looks into the memory of the pipe finds none there."""
    lessons = AccountCapabilities()

    lessons.note(ACCOUNT, "stream")

    assert "canary" not in str(vars(lessons))
