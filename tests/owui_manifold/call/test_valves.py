"""Settings have safe defaults, explain themselves, and take what people type."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from openai_responses.models.resolve import REASONING_EFFORTS, resolve_model
from owui_manifold.call.config import named_models
from owui_manifold.call.valves import UserValves, Valves

PROPERTIES: dict[str, Any] = Valves.model_json_schema()["properties"]
PASSWORDS = {
    "API_KEY",
    "EXTRA_HEADERS",
    "PROXY",
    "REMOTE_MCP_SERVERS_JSON",
    "STORE_ENCRYPTION_KEY",
}


def test_defaults_are_safe() -> None:
    """Certificates are checked, and calls that go on and on end."""
    valves = Valves()

    assert valves.VERIFY_SSL is True
    assert (valves.MAX_FUNCTION_CALL_LOOPS, valves.MAX_TOOL_CALLS) == (10, 100)
    assert valves.COMPATIBILITY == "auto"
    assert UserValves().SHOW_LOG_ON_ERROR is False


def test_models_that_are_offered_exist() -> None:
    known = named_models(Valves())
    for name in Valves().MODEL_ID.split(","):
        assert resolve_model(name.strip(), known).facts.known_family


@pytest.mark.parametrize(
    ("name", "sentence"), [("VERIFY_SSL", "Default: on."), ("PROXY", "Default: empty.")]
)
def test_default_is_named_where_the_page_only_says_default(
    name: str, sentence: str
) -> None:
    assert PROPERTIES[name]["description"].endswith(f" {sentence}")


@pytest.mark.parametrize("model", [Valves, UserValves])
def test_every_valve_is_a_field_that_the_page_can_draw_and_explains_itself(
    model: type[Valves | UserValves],
) -> None:
    """One plain type each, nothing that is one of several or nothing at all."""
    schema = model.model_json_schema()

    assert set(schema) <= {"title", "description", "type", "properties"}
    for name, drawn in schema["properties"].items():
        assert name.isupper()
        assert drawn["description"].endswith(".")
        assert drawn["description"].count(" Default: ") == 1
        assert drawn["type"] in {"string", "boolean", "integer", "number"}
        assert "default" in drawn
        assert not {"anyOf", "allOf", "oneOf", "$ref", "const"} & set(drawn)


def test_secrets_are_passwords_on_the_page() -> None:
    """No one reads them over a shoulder."""
    hidden = {name for name, drawn in PROPERTIES.items() if "input" in drawn}

    assert hidden == PASSWORDS
    assert all(PROPERTIES[name]["input"] == {"type": "password"} for name in hidden)


def test_no_secret_is_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings page loads the schema, defaults included."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("HTTPS_PROXY", "http://u:sk-from-the-environment@proxy:1")
    monkeypatch.setenv("WEBUI_SECRET_KEY", "sk-from-the-environment")

    shown = str((Valves.model_json_schema(), Valves().model_dump()))

    assert "sk-from-the-environment" not in shown
    assert all(PROPERTIES[name]["default"] == "" for name in PASSWORDS)


@pytest.mark.parametrize(
    ("own", "environment", "key"),
    [
        ("sk-own", "sk-environment", "sk-own"),
        (" sk-own\n", "", "sk-own"),
        (" ", " sk-environment ", "sk-environment"),
    ],
)
def test_key_of_the_environment_is_the_fallback(
    own: str, environment: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White space from a copy and paste is no part of a key."""
    monkeypatch.setenv("OPENAI_API_KEY", environment)

    assert Valves(API_KEY=own).effective_key() == key


def test_value_that_nothing_stands_for_is_refused() -> None:
    """By the name of its valve; the page says so when it is saved."""
    with pytest.raises(ValidationError) as caught:
        Valves.model_validate({"REASONING_SUMMARY": "long"})

    [error] = caught.value.errors()
    assert error["loc"] == ("REASONING_SUMMARY",)
    assert error["msg"].startswith("Input should be")


def test_user_may_choose_every_effort_there_is() -> None:
    """Or leave it to the model."""
    choices = get_args(UserValves.model_fields["REASONING_EFFORT"].annotation)

    assert choices == ("inherit", *REASONING_EFFORTS)


def test_own_key_is_not_longer_than_a_key() -> None:
    """It is looked for in each line of the log, on the event loop."""
    assert UserValves(API_KEY="k" * 2000)
    with pytest.raises(ValidationError):
        UserValves(API_KEY="k" * 2001)
