"""Which of their settings users may change."""

import pytest

from owui_manifold.call.config import read_config
from owui_manifold.call.valves import TOOL_SWITCHES, UserValves, Valves

ALL = UserValves(
    REASONING_EFFORT="max",
    REASONING_SUMMARY="detailed",
    VERBOSITY="high",
    WEB_SEARCH="on",
    IMAGE_GENERATION="on",
    CODE_INTERPRETER="on",
    FILE_INPUT="pdf",
    SERVICE_TIER="priority",
    SHOW_COST="on",
    LOG_LEVEL="DEBUG",
    API_KEY="sk-own",
    SHOW_LOG_ON_ERROR=True,
)
CHOSEN: dict[str, tuple[str, object]] = {
    "effort": ("effort", "max"),
    "summary": ("REASONING_SUMMARY", "detailed"),
    "verbosity": ("verbosity", "high"),
    "file_input": ("FILE_INPUT", "pdf"),
    "service_tier": ("SERVICE_TIER", "priority"),
    "show_cost": ("SHOW_COST", True),
    "log_level": ("LOG_LEVEL", "DEBUG"),
}
"""What these come to where they count, in addition to the kinds of tools."""


def left(may_change: str | None = None, role: str = "user") -> set[str]:
    """Return the settings that still count of a user who changed them all."""
    given = {} if may_change is None else {"USER_MAY_CHANGE": may_change}
    valves = Valves.model_validate({"USER_API_KEYS": "allowed", **given})
    config = read_config(valves, {"valves": ALL, "role": role})
    assert config.own_key == "sk-own"
    assert config.shows_log is (role == "admin")
    applied = {**config._asdict(), **dict(config.valves)}
    kept = {word for word, (name, value) in CHOSEN.items() if applied[name] == value}
    return kept | config.tool_kinds


def test_every_setting_of_a_user_is_tried() -> None:
    """A new one has to be added above: here it shows whether users may change it."""
    judged_elsewhere = {"API_KEY", "SHOW_LOG_ON_ERROR"}  # in `left`

    assert ALL.model_fields_set == UserValves.model_fields.keys()
    chosen = ALL.model_fields_set - judged_elsewhere
    assert len(CHOSEN) + len(TOOL_SWITCHES) == len(chosen)


def problems(may_change: str) -> tuple[str, ...]:
    return read_config(Valves(USER_MAY_CHANGE=may_change)).problems


EVERYTHING = {*CHOSEN, *TOOL_SWITCHES}


@pytest.mark.parametrize(
    ("may_change", "role", "counts"),
    [
        # Users cannot enable what is costly. Images have a switch, like the other tools.
        (None, "user", EVERYTHING - {"file_input", "service_tier"}),
        # The log of a failed answer is for administrators anyway; keys have a valve.
        ("", "user", set()),
        ("nothing", "user", set()),
        ("nothing", "admin", EVERYTHING),
        ("all", "user", EVERYTHING),
        ("Effort,VERBOSITY", "user", {"effort", "verbosity"}),
        ("file_input, service_tier", "user", {"file_input", "service_tier"}),
        ("image_generation", "user", {"image_generation"}),
    ],
)
def test_users_may_change_what_the_administrator_says(
    may_change: str | None, role: str, counts: set[str]
) -> None:
    assert left(may_change, role) == counts


def test_unknown_word_changes_nothing_and_is_reported() -> None:
    """It takes a right away, so the administrator is told."""
    [problem] = problems("efort, summary")
    assert problem.startswith(
        "USER_MAY_CHANGE contains unknown names: efort. Choose from"
    )
    assert "effort, summary" in problem
    assert left("efort, summary") == {"summary"}
    for good in ("", "all", "nothing", "effort , SUMMARY"):
        assert problems(good) == ()


def test_valves_that_need_permission_are_described_as_such() -> None:
    """Whoever changes one without effect has read that it may have none."""
    refused = read_config(Valves(), {"valves": ALL, "role": "user"}).refused

    marked = {
        name
        for name, field in UserValves.model_fields.items()
        if "(if allowed)" in (field.description or "")
    }
    assert marked == set(refused)


@pytest.mark.parametrize(
    ("parameter", "may_change", "role", "given", "is_refused"),
    [
        ("pdf", "file_input", "user", "pdf", False),
        ("pdf", "effort", "user", "all", True),
        ("pdf", "nothing", "admin", "pdf", False),
        (["pdf"], "all", "user", "off", False),
    ],
)
def test_a_chat_can_have_a_parameter_for_its_files(
    parameter: object, may_change: str, role: str, given: str, is_refused: bool
) -> None:
    """It comes before the user's own setting; both need the same permission."""
    valves = Valves(USER_MAY_CHANGE=may_change, FILE_INPUT="all")
    person = {"valves": UserValves(FILE_INPUT="off"), "role": role}

    config = read_config(valves, person, {}, {"file_input": parameter})

    assert given == config.valves.FILE_INPUT
    assert list(config.refused) == ["FILE_INPUT"] * is_refused
