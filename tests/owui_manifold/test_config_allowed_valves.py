"""Which of their settings users may change."""

import pytest

from owui_manifold.config import allowed_user_valves, permission_error
from owui_manifold.valves import UserValves, Valves

ALL = UserValves(
    REASONING_EFFORT="max",
    REASONING_SUMMARY="detailed",
    VERBOSITY="high",
    WEB_SEARCH="on",
    IMAGE_GENERATION="on",
    CODE_INTERPRETER="on",
    SERVICE_TIER="priority",
    SHOW_COST="on",
    LOG_LEVEL="DEBUG",
    API_KEY="sk-own",
    SHOW_LOG_ON_ERROR=True,
)
ALWAYS = {"API_KEY", "SHOW_LOG_ON_ERROR"}


def left(may_change: str | None = None, is_admin: bool = False) -> set[str]:
    """Return the settings that still count of a user who changed them all."""
    given = {} if may_change is None else {"USER_MAY_CHANGE": may_change}
    valves = Valves.model_validate(given)
    permitted = allowed_user_valves(ALL, valves, is_admin).model_dump()
    return {
        name for name, value in ALL.model_dump().items() if permitted[name] == value
    }


def test_what_costs_much_is_not_the_users_to_switch_on() -> None:
    """Unless the administrator says so."""
    everything = set(ALL.model_dump())
    assert everything - left() == {"IMAGE_GENERATION", "SERVICE_TIER"}
    assert left("image_generation, service_tier") >= {
        "IMAGE_GENERATION",
        "SERVICE_TIER",
    }


@pytest.mark.parametrize("may_change", ["", " , ", "nothing"])
def test_nothing(may_change: str) -> None:
    """The log of a failed answer is for administrators anyway; keys have a valve."""
    assert left(may_change) == ALWAYS


def test_everything() -> None:
    """For all, or for administrators."""
    assert left("all") == left("nothing", is_admin=True) == set(ALL.model_dump())


def test_words_are_read_as_people_write_them() -> None:
    """In capitals, without blanks."""
    assert left("Effort,VERBOSITY") == {"REASONING_EFFORT", "VERBOSITY", *ALWAYS}


def test_a_word_that_means_nothing() -> None:
    """It takes a right away, so the administrator is told."""
    told = permission_error(Valves(USER_MAY_CHANGE="efort, summary"))
    assert told.startswith("USER_MAY_CHANGE holds efort, which is no setting")
    assert "effort, summary" in told
    assert left("efort, summary") == {"REASONING_SUMMARY", *ALWAYS}
    for good in ("", "all", "nothing", "effort , SUMMARY"):
        assert permission_error(Valves(USER_MAY_CHANGE=good)) == ""
