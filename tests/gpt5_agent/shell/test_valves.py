"""Settings load whatever is stored, show no secret, explain themselves."""

import json
import math
from typing import Any, get_args

import pytest

from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.valves import Valves, read_valve_settings
from openai_responses.models.resolve import REASONING_EFFORTS, resolve_model
from sandbox.options import SandboxOptions
from settings.expert_keys import AgentExpertKeys
from settings.shared_valves import SHARED
from settings.table import page_texts

PROPERTIES: dict[str, Any] = Valves.model_json_schema()["properties"]
SECRETS = {"API_KEY", "EXTRA_HEADERS", "OPEN_WEBUI_API_KEY", "PROXY"}
SECRET = "sk-simulator-12345"


def test_defaults_of_the_requirements() -> None:
    """Six rounds, thoughts shown, the full policies (R5, R6)."""
    valves = Valves()

    assert valves.MAXIMUM_ITERATIONS == 6
    assert valves.EMIT_INTERMEDIATE_THOUGHTS is True
    assert valves.POLICY_STYLE == "full"
    assert valves.BASE_URL == "https://api.openai.com/v1"
    assert valves.VERIFY_SSL is True
    assert resolve_model(valves.MODEL).facts.known_family


def test_every_valve_explains_itself() -> None:
    """The page shows nothing else; a text that is typed in has an example."""
    texts = page_texts(Valves, "pipelines", SHARED)
    assert texts.keys() == Valves.model_fields.keys()
    for name, text in texts.items():
        assert name.isupper()
        assert text.endswith((".", ".`"))
        is_typed = Valves.model_fields[name].annotation is str
        assert ("xample: `" in text) is is_typed, name
    for drawn in PROPERTIES.values():  # the page draws only fields of one plain type
        assert drawn["type"] in {"string", "boolean", "integer"}
        assert not {"anyOf", "allOf", "oneOf", "$ref", "const"} & set(drawn)
        assert "`" not in drawn["description"]  # nor does it know Markdown


def test_the_help_shows_both_forms_of_overrides() -> None:
    """Text and JSON; and what context is, in addition to the policy of that name."""
    overrides = PROPERTIES["PROMPT_POLICY_OVERRIDES"]["description"]
    assert "Answer in French." in overrides
    assert '{"tool_preamble_policy": ' in overrides
    assert "context_gathering_policy" in PROPERTIES["CONTEXT"]["description"]


def test_every_effort_of_a_model_can_be_chosen() -> None:
    efforts = get_args(Valves.model_fields["REASONING_EFFORT"].annotation)

    assert set(efforts) == {"", *REASONING_EFFORTS}


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        (0, 1),
        (math.inf, 30),
        (" 7 ", 7),
        ("many", 6),
    ],
)
def test_iterations_are_clamped(stored: object, meant: int) -> None:
    """From 1 to 30, and 6 where nothing can be meant; nothing is refused (R5)."""
    valves = Valves.model_validate({"MAXIMUM_ITERATIONS": stored})

    assert meant == valves.MAXIMUM_ITERATIONS


BAD: list[object] = [None, [], {"a": 1}, "nonsense", -1, 10**400, math.nan, b"\xff"]
BAD.append("half \ud83d")


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_nothing_that_is_stored_is_refused(value: object) -> None:
    """A refusal would end the whole server, and quote the value (R5, R30)."""
    for name in Valves.model_fields:
        valves = Valves.model_validate({name: value, "UNKNOWN": value})

        assert Valves.model_validate(valves.model_dump()) == valves, name
        json.dumps(valves.model_dump(), allow_nan=False)
        assert valves.model_dump_json()  # the page asks for them


def test_an_unset_text_is_null() -> None:
    """The page saves no empty field; empty texts that were stored are unset too."""
    empty = [name for name, drawn in PROPERTIES.items() if drawn["default"] == ""]
    stored = Valves.model_validate(dict.fromkeys(empty, ""))
    loaded = Valves(**stored.model_dump())

    assert empty
    for name in empty:
        assert stored.model_dump()[name] is None, name
        assert json.loads(stored.model_dump_json())[name] is None, name
        assert getattr(loaded, name) == "", name


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_secret_is_never_shown(name: str) -> None:
    """Neither to who asks for the valves nor in the file; it can still be used (R30)."""
    given = json.dumps({"X-Key": SECRET}) if name == "EXTRA_HEADERS" else SECRET

    shown = Valves.model_validate({name: given}).model_dump()

    assert SECRET not in json.dumps(shown)
    assert "sealed:" in shown[name]
    again = Valves(**shown).model_dump()
    assert again == shown
    stored = json.loads(again[name])["X-Key"] if "{" in again[name] else again[name]
    assert reveal_secret(stored, name) == SECRET


def test_secrets_are_passwords_on_the_page() -> None:
    """No one reads them over a shoulder."""
    assert {name for name, drawn in PROPERTIES.items() if "input" in drawn} == SECRETS


def test_no_secret_is_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page loads the schema, defaults included."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    assert SECRET not in json.dumps(Valves.model_json_schema())
    assert SECRET not in Valves().model_dump_json()


def test_empty_valves_are_the_defaults() -> None:
    """Among them one retry, as specified; the pipe has two."""
    settings = read_valve_settings(Valves())

    assert settings.expert == AgentExpertKeys(max_retries=1)
    assert settings.sandbox == SandboxOptions()
    assert settings.problems == ()


def test_keys_hold_beside_the_defaults_of_others() -> None:
    valves = Valves(
        EXPERT_JSON=json.dumps({"max_retries": 4}),
        SANDBOX_OPTIONS=json.dumps({"seconds": 60, "wheels": "/srv/wheels"}),
    )

    settings = read_valve_settings(valves)

    assert settings.expert == AgentExpertKeys(max_retries=4)
    assert settings.sandbox == SandboxOptions(seconds=60, wheels="/srv/wheels")


@pytest.mark.parametrize(
    ("valve", "text", "words"),
    [
        ("EXPERT_JSON", '{"max_retires": 3}', "unknown names: max_retires"),
        ("EXPERT_JSON", '{"max_retries": 9}', "`max_retries` cannot be 9"),
        ("SANDBOX_OPTIONS", '{"memory_mb": 1}', "`memory_mb` cannot be 1"),
        ("SANDBOX_OPTIONS", "60", "is not a JSON object"),
        ("TOOL_TIMEOUTS", "default: soon", "'default: soon'"),
        ("MODEL", " gpt-5-auto ", "only the pipe chooses a model"),
    ],
)
def test_problem_names_its_valve(valve: str, text: str, words: str) -> None:
    [problem] = read_valve_settings(Valves.model_validate({valve: text})).problems

    assert problem.startswith(valve)
    assert words in problem
