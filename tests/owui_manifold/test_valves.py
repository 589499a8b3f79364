"""Settings have safe defaults, and a user's own choice wins."""

from typing import get_args

import pytest
from pydantic import ValidationError

from openai_responses.models import REASONING_EFFORTS, resolve_model
from owui_manifold.valves import UserValves, Valves, chosen_settings

TOOL = {"type": "function", "name": "now"}


def test_defaults_are_ready_for_a_key() -> None:
    """Whoever pastes the file has only the key to set."""
    valves = Valves()

    assert valves.BASE_URL == "https://api.openai.com/v1"
    assert valves.API_KEY == ""
    assert valves.ENABLE_STREAM is True
    assert valves.REASONING_SUMMARY == "auto"
    assert valves.PERSIST_REASONING_TOKENS == "conversation"
    assert valves.LOG_LEVEL == "INFO"


def test_models_that_are_offered_exist() -> None:
    """None of the defaults is an unknown id."""
    for name in Valves().MODEL_ID.split(","):
        assert resolve_model(name.strip()).facts.known_family


def test_key_is_a_password_and_never_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings page loads the schema, defaults included."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")

    schema = Valves.model_json_schema()

    assert schema["properties"]["API_KEY"]["input"] == {"type": "password"}
    assert "sk-from-the-environment" not in str((schema, Valves().model_dump()))


@pytest.mark.parametrize(
    ("own", "environment", "key"),
    [
        ("sk-own", "sk-environment", "sk-own"),
        (" sk-own\n", "", "sk-own"),
        ("", "sk-environment", "sk-environment"),
        (" ", " sk-environment ", "sk-environment"),
        ("", "", ""),
    ],
)
def test_key_of_the_environment_is_the_fallback(
    own: str, environment: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White space from a copy and paste is no part of a key."""
    monkeypatch.setenv("OPENAI_API_KEY", environment)

    assert Valves(API_KEY=own).effective_key() == key


def test_no_key_anywhere_is_an_empty_key() -> None:
    """The variable may not be there at all."""
    assert Valves().effective_key() == ""


def test_every_valve_explains_itself() -> None:
    """The page shows nothing else."""
    for model in (Valves, UserValves):
        for name, field in model.model_fields.items():
            assert name.isupper()
            assert (field.description or "").endswith(".")


def test_user_may_choose_every_effort_there_is() -> None:
    """Or leave it to the model."""
    choices = get_args(UserValves.model_fields["REASONING_EFFORT"].annotation)

    assert choices == ("inherit", *REASONING_EFFORTS)


@pytest.mark.parametrize(
    "wrong",
    [{"REASONING_SUMMARY": "long"}, {"LOG_LEVEL": "LOUD"}, {"MODEL_ID": None}],
)
def test_value_that_nothing_stands_for_is_refused(wrong: dict[str, object]) -> None:
    """The page says so when it is saved."""
    with pytest.raises(ValidationError):
        Valves.model_validate(wrong)


def test_user_who_inherits_gets_what_the_administrator_set() -> None:
    """And leaves effort and verbosity to the model."""
    valves = Valves(REASONING_SUMMARY="concise")

    settings = chosen_settings(valves, UserValves(), streams=True, tools=[TOOL])

    assert settings.summary == "concise"
    assert (settings.effort, settings.verbosity) == (None, None)
    assert settings.stream is True
    assert settings.encrypted_reasoning is True
    assert settings.tools == [TOOL]


def test_users_own_choice_wins() -> None:
    """In everything that is the user's to choose."""
    user = UserValves(
        REASONING_EFFORT="high", REASONING_SUMMARY="detailed", VERBOSITY="low"
    )

    settings = chosen_settings(
        Valves(REASONING_SUMMARY="disabled"), user, streams=True, tools=[]
    )

    assert settings.effort == "high"
    assert settings.summary == "detailed"
    assert settings.verbosity == "low"


@pytest.mark.parametrize(
    ("administrator", "user"), [("disabled", "inherit"), ("auto", "disabled")]
)
def test_disabled_summary_is_not_asked_for(administrator: str, user: str) -> None:
    """Whoever disabled it."""
    settings = chosen_settings(
        Valves.model_validate({"REASONING_SUMMARY": administrator}),
        UserValves.model_validate({"REASONING_SUMMARY": user}),
        streams=True,
        tools=[],
    )

    assert settings.summary is None


@pytest.mark.parametrize(
    ("streams", "enabled", "stream"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_stream_needs_the_caller_and_the_valve(
    streams: bool, enabled: bool, stream: bool
) -> None:
    """One of them alone is not enough."""
    valves = Valves(ENABLE_STREAM=enabled)

    settings = chosen_settings(valves, UserValves(), streams=streams, tools=[])

    assert settings.stream is stream


@pytest.mark.parametrize(
    ("persist", "asks"),
    [("disabled", False), ("response", True), ("conversation", True)],
)
def test_reasoning_is_asked_for_when_it_is_carried(persist: str, asks: bool) -> None:
    """Between the rounds of one answer too."""
    valves = Valves.model_validate({"PERSIST_REASONING_TOKENS": persist})

    settings = chosen_settings(valves, UserValves(), streams=True, tools=[])

    assert settings.encrypted_reasoning is asks
