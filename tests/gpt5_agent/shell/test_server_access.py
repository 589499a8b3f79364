"""Valves reach on the server only what its environment allows."""

import json
from typing import Any

import pytest

from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.server_access import ACCESS_VARIABLE, usable_settings
from gpt5_agent.shell.valves import Valves
from openai_responses.errors import InvalidRequest
from toolbox.sandbox.options import SandboxOptions

REACHING: dict[str, Any] = {
    "API_KEY": "env:KEY_OF_OURS",
    "OPEN_WEBUI_API_KEY": "file:/run/secrets/owui",
    "PROXY": "env:PROXY_OF_OURS",
    "EXTRA_HEADERS": '{"X-Team": "env:TEAM_KEY", "X-Plain": "sealed:abc"}',
    "SANDBOX": True,
    "SANDBOX_OPTIONS": '{"seconds": 60, "wheels": "/srv/wheels"}',
    "PRESETS_DIR": "/app/presets",
    "CA_BUNDLE": "/etc/ssl/company.pem",
}
ALLOWS_ALL = "SANDBOX, wheels, PRESETS_DIR, CA_BUNDLE, env:*, file:/run/secrets/*"


@pytest.fixture(autouse=True)
def _nothing_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server whose administrator did nothing."""
    monkeypatch.delenv(ACCESS_VARIABLE, raising=False)


def test_nothing_of_the_server_is_reached_unless_it_allows_it() -> None:
    """A page in a browser can change the valves: the server answers every origin."""
    settings = usable_settings(Valves(**REACHING))
    valves = settings.valves
    problems = settings.problems

    for name in ("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY"):
        with pytest.raises(InvalidRequest, match=f"secret in {name} cannot be read"):
            reveal_secret(getattr(valves, name), name)
    headers = json.loads(valves.EXTRA_HEADERS)
    assert headers == {"X-Team": "sealed:", "X-Plain": "sealed:abc"}
    assert not valves.SANDBOX
    assert settings.sandbox == SandboxOptions(seconds=60, wheels="")
    assert (valves.PRESETS_DIR, valves.CA_BUNDLE) == ("", "")
    assert len(problems) == 8
    assert all(ACCESS_VARIABLE in problem for problem in problems)
    assert "`env:KEY_OF_OURS`" in "".join(problems)


def test_server_allows_what_its_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Valves by name, references by pattern."""
    monkeypatch.setenv(ACCESS_VARIABLE, ALLOWS_ALL)

    settings = usable_settings(Valves(**REACHING))

    assert settings.valves == Valves(**REACHING)
    assert settings.sandbox == SandboxOptions(seconds=60, wheels="/srv/wheels")
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("allowed", "reference", "is_used"),
    [
        ("", "env:OPENAI_API_KEY", True),
        ("", "env: OPENAI_API_KEY ", True),
        ("env:OTHER", "env:KEY", False),
        ("env:KEY", "file:KEY", False),
        ("file:/run/*", "file:/run/../etc/shadow", False),
        ("file:/run/*", "file:/run/./key", True),
        ("*", "env:KEY", True),
        ("", "sealed:abc", True),
        ("", "", True),
    ],
)
def test_reference_of_a_secret(
    monkeypatch: pytest.MonkeyPatch, allowed: str, reference: str, *, is_used: bool
) -> None:
    """The key of the environment is used without any valve."""
    monkeypatch.setenv(ACCESS_VARIABLE, allowed)

    settings = usable_settings(Valves(API_KEY=reference))

    assert (settings.valves.API_KEY != "sealed:") is is_used
    assert bool(settings.problems) is not is_used
