"""EXPERT_JSON: each key is checked by itself, and what is wrong is told."""

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
    ("key", "wrong", "nearest"),
    [
        ("max_retries", 6, 5),
        ("idle_timeout_seconds", 901, 900),
        ("max_retries", "many", None),
        ("connect_timeout_seconds", float("inf"), None),
        ("user_keys_get", "everything", None),
        ("caller_may_set", ["service_tier"], None),
        ("audit_log", None, None),
    ],
)
def test_wrong_value_costs_only_its_key(
    key: str, wrong: object, nearest: int | None
) -> None:
    """tests/shells/test_valve_texts_json.py has the messages; here they are told."""
    text = expert(**{key: wrong, "fetch_models": False})
    config = read_config(Valves(EXPERT_JSON=text))

    applied = {} if nearest is None else {key: nearest}
    expected = {"fetch_models": False, **applied}
    assert config.expert == PipeExpertKeys.model_validate(expected)
    [problem] = config.problems
    assert problem.startswith(f"EXPERT_JSON: `{key}` cannot be ")
    applies = f" {nearest}, which applies." if nearest else " Its default applies."
    assert problem.endswith(applies)
