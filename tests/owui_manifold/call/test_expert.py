"""EXPERT_JSON: each key is checked by itself, and what is wrong is told."""

from typing import Any

import pytest

from calls.valves import expert
from owui_manifold.call.config import read_config
from owui_manifold.call.expert import PipeExpertKeys
from owui_manifold.call.valves import Valves


def test_defaults_are_safe() -> None:
    """Silence has a limit, long reasoning has none; nothing extra goes out."""
    settings = PipeExpertKeys()

    assert (settings.max_retries, settings.max_retry_wait_seconds) == (2, 60)
    assert settings.connect_timeout_seconds == 30
    assert settings.first_event_timeout_seconds == 300
    assert settings.idle_timeout_seconds == 300
    assert settings.total_timeout_seconds == 0
    assert settings.audit_log is False
    assert settings.user_keys_get == "nothing"
    assert settings.caller_may_set == ""


def test_every_key_explains_itself() -> None:
    """The page of settings is generated from it."""
    for name, field in PipeExpertKeys.model_fields.items():
        assert name.islower()
        assert (field.description or "").endswith(".")


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("max_retries", "many"),
        ("connect_timeout_seconds", float("inf")),
        ("user_keys_get", "everything"),
        ("caller_may_set", ["service_tier"]),
        ("audit_log", None),
    ],
)
def test_wrong_value_costs_only_its_key(key: str, wrong: Any) -> None:
    """Its default applies, and administrators are told which values it takes."""
    text = expert(**{key: wrong, "fetch_models": False})
    config = read_config(Valves(EXPERT_JSON=text))

    assert config.expert == PipeExpertKeys(fetch_models=False)
    [problem] = config.problems
    assert problem.startswith(f"EXPERT_JSON: `{key}` cannot be ")
    assert problem.endswith(" Its default applies.")


@pytest.mark.parametrize(
    ("key", "wrong", "nearest"),
    [("max_retries", 6, 5), ("idle_timeout_seconds", 901, 900)],
)
def test_number_out_of_range_becomes_the_nearest(
    key: str, wrong: float, nearest: float
) -> None:
    """As specified; administrators are told which one applies."""
    text = expert(**{key: wrong, "fetch_models": False})
    config = read_config(Valves(EXPERT_JSON=text))

    assert getattr(config.expert, key) == nearest
    assert not config.expert.fetch_models
    [problem] = config.problems
    assert problem.startswith(f"EXPERT_JSON: `{key}` cannot be ")
    assert problem.endswith(f" {nearest} applies.")


def test_unknown_expert_keys_are_reported() -> None:
    """The message also lists the keys that exist."""
    config = read_config(Valves(EXPERT_JSON=expert(max_retires=3)))

    [problem] = config.problems
    assert problem.startswith("EXPERT_JSON contains unknown names: max_retires.")
    assert "max_retries" in problem


@pytest.mark.parametrize("text", ["[]", "{"])
def test_expert_json_that_is_not_an_object_is_reported(text: str) -> None:
    """Every key keeps its default."""
    config = read_config(Valves(EXPERT_JSON=text))

    assert config.expert == PipeExpertKeys()
    assert config.problems == (
        "EXPERT_JSON is not a JSON object, so its defaults apply.",
    )
