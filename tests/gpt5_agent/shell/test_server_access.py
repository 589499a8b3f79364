"""Valves reach on the server only what its environment allows."""

import json
from typing import Any

import pytest

from gpt5_agent.shell.call import build_endpoint
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.server_access import ACCESS_VARIABLE, usable_settings
from gpt5_agent.shell.valves import Valves
from openai_responses.errors import InvalidRequest
from sandbox.options import SandboxOptions

REACHING: dict[str, Any] = {
    "API_KEY": "env:KEY_OF_OURS",
    "OPEN_WEBUI_API_KEY": "file:/run/secrets/owui",
    "PROXY": "env:PROXY_OF_OURS",
    "EXTRA_HEADERS": (
        '{"Host": "sealed:abc", "X-Team": "env:TEAM_KEY", "X-Plain": "sealed:abc"}'
    ),
    "SANDBOX": True,
    "SANDBOX_OPTIONS": '{"seconds": 60, "wheels": " /srv/wheels "}',
    "PRESETS_DIR": "/app/presets",
    "CA_BUNDLE": "/etc/ssl/company.pem",
    "VERIFY_SSL": False,
    "BASE_URL": "https://gateway.example/v1",
    "OPEN_WEBUI_URL": "http://open-webui:8080",
}
ALLOWS_ALL = (
    "SANDBOX, wheels, PRESETS_DIR, CA_BUNDLE, VERIFY_SSL, Host, env:*, "
    "file:/run/secrets/*, url:https://gateway.example, url:http://open-webui:8080"
)


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
    assert valves.VERIFY_SSL
    assert valves.OPEN_WEBUI_URL == ""
    told = "does not allow the address in BASE_URL"
    with pytest.raises(InvalidRequest, match=told) as refused:
        build_endpoint(valves, AgentLog("ID"))
    assert refused.value.remedy == "setup"
    assert len(problems) == 12
    assert all(ACCESS_VARIABLE in problem for problem in problems)
    named = ("env:KEY_OF_OURS", "BASE_URL:https://gateway.example/v1", "VERIFY_SSL")
    for entry in (*named, "env:NAME"):  # in the headers there may be several
        assert f"`{entry}`" in "".join(problems)


def test_no_reference_is_hidden_in_what_is_sealed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page shows what it has sealed: it can be copied to another valve."""
    monkeypatch.setenv("KEY_OF_OURS", "secret")
    sealed = Valves(PROXY='{"X-Team": "env:KEY_OF_OURS"}').PROXY
    assert sealed.startswith("sealed:")

    settings = usable_settings(Valves(API_KEY="sk-1", EXTRA_HEADERS=sealed))
    with pytest.raises(InvalidRequest, match="EXTRA_HEADERS is not a JSON object"):
        build_endpoint(settings.valves, AgentLog("ID"))


@pytest.mark.parametrize("allowed", ["", "Host"])
def test_no_header_names_another_server(
    allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several servers may share an address, and this header chooses among them."""
    monkeypatch.setenv(ACCESS_VARIABLE, allowed)
    typed = {"hOST": "evil.example", "Host ": "evil.example", "X-Color": "blue"}

    settings = usable_settings(Valves(API_KEY="sk-1", EXTRA_HEADERS=json.dumps(typed)))
    endpoint = build_endpoint(settings.valves, AgentLog("ID"))

    if allowed:
        assert (endpoint.extra_headers, settings.problems) == (typed, ())
    else:
        assert endpoint.extra_headers == {"X-Color": "blue"}
        assert "add `Host` to" in " ".join(settings.problems)


def test_server_allows_what_its_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCESS_VARIABLE, ALLOWS_ALL)

    settings = usable_settings(Valves(**REACHING))

    assert settings.valves == Valves(**REACHING)
    assert settings.sandbox == SandboxOptions(seconds=60, wheels="/srv/wheels")
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("valve", "allowed", "value", "is_used"),
    [
        ("API_KEY", "", "env:OPENAI_API_KEY", True),
        ("API_KEY", "", "env: OPENAI_API_KEY ", True),
        ("API_KEY", "env:OTHER", "env:KEY", False),
        ("API_KEY", "env:OTHER", " env:KEY", False),
        ("API_KEY", "env:KEY", "file:KEY", False),
        ("API_KEY", "file:/run/*", "file:/run/../etc/shadow", False),
        ("API_KEY", "file:/run/*", "file:/run/./key", True),
        ("API_KEY", "*", "env:KEY", True),
        ("API_KEY", "", "sealed:abc", True),
        ("API_KEY", "", "", True),
        ("PROXY", "", "http://evil.example:3128", False),
        ("PROXY", "PROXY", "http://10.0.0.1:3128", True),
        ("PROXY", "env:PROXY_OF_OURS", "env:PROXY_OF_OURS", True),
        ("PROXY", "", " ", True),
        ("PRESETS_DIR", "", " ", True),
    ],
)
def test_secret_is_used_only_where_the_server_allows_it(
    monkeypatch: pytest.MonkeyPatch,
    valve: str,
    allowed: str,
    value: str,
    *,
    is_used: bool,
) -> None:
    """The key of the environment needs no entry; a proxy reads keys without TLS."""
    monkeypatch.setenv(ACCESS_VARIABLE, allowed)

    settings = usable_settings(Valves.model_validate({valve: value}))

    assert (getattr(settings.valves, valve) != "sealed:") is is_used
    assert bool(settings.problems) is not is_used
    assert "sealed:" not in "".join(settings.problems)


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ({"X-A": "env: TEAM_KEY", "X-B": "blue"}, []),
        ({"X-A": "env: TEAM_KEY", "X-B": "env:OTHER"}, ["EXTRA_HEADERS"]),
        ("X-A: blue", []),
        ("env: OTHER", ["EXTRA_HEADERS"]),
    ],
)
def test_headers_are_inactive_only_if_one_of_them_is(
    headers: object, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference that is only written differently is used, and a sealed value is one."""
    monkeypatch.setenv(ACCESS_VARIABLE, "env:TEAM_KEY")
    typed = headers if isinstance(headers, str) else json.dumps(headers)

    problems = usable_settings(Valves(EXTRA_HEADERS=typed)).problems

    assert [problem.partition(" is inactive")[0] for problem in problems] == names


ENTRIES = (
    "url: http://open-webui:8080, url:http://127.0.0.1:*, url:https://gate.example/v1/US/,"
    "url:https://*.company.example, PROXY"
)


@pytest.mark.parametrize(
    ("address", "is_used"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        (" ", True),
        (" http://open-webui:8080/v1", True),
        ("HTTP://Open-WebUI:8080/", True),
        ("http://127.0.0.1:4000/v1", True),
        ("https://gate.example/v1/US/openai?api-version=1", True),
        ("https://a.company.example/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com.evil.example", False),
        ("https://evilapi.openai.com", False),
        ("https://api.openai.com@evil.example", False),
        ("https://evil.example\\@api.openai.com", False),
        ("https://evil.example\t.company.example", False),
        ("http://127.0.0.1:80@evil.example", False),
        ("https://gate.example/v1/THEM", False),
        ("https://gate.example/v1/USE", False),
        ("https://gate.example/v1/US/../THEM", False),
        ("https://gate.example/v1/US/%2e%2e/THEM", False),
        ("https://gate.example/v1/US/%252e%252e/THEM", False),
        ("https://[2001:db8::1].company.example", False),
        ("http://127.0.0.1:[2001:db8::1]/v1", False),
        ("https://evil.example/a.company.example", False),
        ("https://evil.example?.company.example", False),
        ("https://evil.example#.company.example", False),
        ("file:///etc/passwd", False),
    ],
)
def test_base_url_is_used_only_where_the_server_allows_it(
    monkeypatch: pytest.MonkeyPatch, address: str, *, is_used: bool
) -> None:
    """OpenAI's is allowed anyway; an entry is the beginning of an address."""
    monkeypatch.setenv(ACCESS_VARIABLE, ENTRIES)

    settings = usable_settings(Valves(BASE_URL=address))

    assert (address == settings.valves.BASE_URL) is is_used
    assert bool(settings.problems) is not is_used


def test_key_of_open_webui_does_not_go_to_openai() -> None:
    """The address that needs no entry is that of the API."""
    settings = usable_settings(Valves(OPEN_WEBUI_URL="https://api.openai.com/v1"))

    assert settings.valves.OPEN_WEBUI_URL == ""
    assert len(settings.problems) == 1


def test_key_of_open_webui_does_not_go_to_a_gateway_of_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor the API's key to Open WebUI: an entry with a valve's name is for it alone."""
    gateway, host = "https://gateway.example/v1", "http://open-webui:8080"
    entries = f"url:http://old.example, BASE_URL:{gateway}, OPEN_WEBUI_URL:{host}"
    monkeypatch.setenv(ACCESS_VARIABLE, entries)
    right = Valves(BASE_URL=gateway, OPEN_WEBUI_URL=host)
    assert usable_settings(right).problems == ()

    for wrong in (
        Valves(BASE_URL=host, OPEN_WEBUI_URL=gateway),
        Valves(BASE_URL="http://old.example", OPEN_WEBUI_URL="http://old.example"),
    ):
        settings = usable_settings(wrong)
        assert len(settings.problems) == 2
        assert settings.valves.OPEN_WEBUI_URL == ""

    monkeypatch.setenv(ACCESS_VARIABLE, f"BASE_URL:{gateway}")
    assert usable_settings(Valves(OPEN_WEBUI_URL=gateway)).problems


@pytest.mark.parametrize(
    ("valve", "value"),
    [
        ("BASE_URL", "https://gateway.example/v1"),
        ("BASE_URL", "HTTPS://Gateway.Example/v1/"),
        ("BASE_URL", "https://gateway.example/v1?api-version=1"),
        ("OPEN_WEBUI_URL", "http://open-webui:8080/a/../%6Fwui"),
        ("API_KEY", "env: KEY_OF_OURS "),
        ("API_KEY", "file:/run/./secrets//key"),
        ("EXTRA_HEADERS", "env: HEADERS_OF_OURS"),
    ],
)
def test_entry_that_a_message_names_helps(
    monkeypatch: pytest.MonkeyPatch, valve: str, value: str
) -> None:
    """It is written as it is compared, however the valve is written."""
    valves = Valves.model_validate({valve: value})
    (problem,) = usable_settings(valves).problems
    _, entry, _ = problem.split("`")
    monkeypatch.setenv(ACCESS_VARIABLE, entry)

    assert usable_settings(valves).problems == ()


@pytest.mark.parametrize(
    "address",
    ["https://user:secret@gateway.example/v1", "localhost:8080", "ftp://gate.example"],
)
def test_no_entry_is_named_for_an_address_that_none_allows(address: str) -> None:
    """A password in it is not quoted: the message goes to the log."""
    (problem,) = usable_settings(Valves(BASE_URL=address)).problems

    assert problem.startswith("BASE_URL is inactive")
    assert ACCESS_VARIABLE not in problem
    assert address not in problem
