"""Where requests go, and what is said of whom at the top of each."""

from dataclasses import replace

import pytest

from openai_responses.endpoint import (
    DEFAULT_BASE_URL,
    Compatibility,
    Endpoint,
    bare_key,
    proxy_for,
)
from openai_responses.errors import InvalidRequest, InvalidSetting, SettingFault

CANARY = "sk-proj-CANARY123"
KEY = "sk-endpoint-1"


@pytest.mark.parametrize(
    ("pasted", "address"),
    [
        ("", DEFAULT_BASE_URL),
        ("https://api.openai.com", "https://api.openai.com/v1"),
        (" https://api.openai.com/v1/\n", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/responses", "https://api.openai.com/v1"),
        ("https://host.tld/responses", "https://host.tld"),
        ("https://host.tld/gw/a/responses", "https://host.tld/gw/a"),
        ("https://us.openai.azure.com/responses", "https://us.openai.azure.com"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("HTTPS://Host.tld/v1", "https://Host.tld/v1"),
        ("https://host.tld/openai/v1#a", "https://host.tld/openai/v1"),
        ("https://host.tld/api/v2", "https://host.tld/api/v2"),
        ("https://host.tld/v1//responses", "https://host.tld/v1"),
    ],
)
def test_pasted_address_is_understood(pasted: str, address: str) -> None:
    assert Endpoint(pasted, "").url("") == address
    assert Endpoint(pasted, KEY).url("/responses") == f"{address}/responses"


@pytest.mark.parametrize(
    "pasted",
    [
        *("api.openai.com/v1", "ftp://host.tld/v1", "https://", "http://[::1"),
        *("http://host.tld:port/v1", "http://host.tld:99999/v1"),
        *("http://host.tld:0/v1", CANARY),
    ],
)
def test_addresses_that_are_none(pasted: str) -> None:
    for _ in range(2):  # the first refusal is not taken for an answer
        with pytest.raises(InvalidSetting, match="is not an http or https") as refused:
            Endpoint(pasted, KEY).url("/responses")
    assert refused.value.fault == SettingFault(("base_url",), "certain")
    assert refused.value.remedy == "setup"
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "pasted",
    [
        f"https://user:{CANARY}@host.tld/v1",
        f"https://{CANARY}@host.tld",
        "http://@h/v1",
    ],
)
def test_credentials_in_the_address(pasted: str) -> None:
    endpoint = Endpoint(pasted, KEY)
    with pytest.raises(InvalidRequest, match="user name or a password") as refused:
        endpoint.url("/responses")
    with pytest.raises(InvalidRequest):
        assert endpoint.host
    assert CANARY not in f"{refused.value} {endpoint!r} {endpoint}"


@pytest.mark.parametrize(
    "copied", [f" '{KEY}'\n", f"Bearer {KEY}", f'"bearer  \u201c{KEY}\u201d"']
)
def test_key_is_bare_however_it_was_copied(copied: str) -> None:
    assert bare_key(copied) == bare_key(KEY) == KEY


OLD_AZURE = (
    "https://us.openai.azure.com/openai/responses?api-version=2025-04-01-preview"
)


@pytest.mark.parametrize(
    ("pasted", "address"),
    [
        (
            "https://us.openai.azure.com/openai/v1/?api-version=preview",
            "https://us.openai.azure.com/openai/v1/responses?api-version=preview",
        ),
        (OLD_AZURE, OLD_AZURE),
        (
            "https://gw.tld/v1/acc/openai/responses/?a=1",
            "https://gw.tld/v1/acc/openai/responses?a=1",
        ),
        (" https://host.tld?a=1&b=2 \n", "https://host.tld/v1/responses?a=1&b=2"),
        ("https://host.tld/v1?", "https://host.tld/v1/responses"),
        ("https://host.tld/v1?a=1#part", "https://host.tld/v1/responses?a=1"),
    ],
)
def test_query_of_the_address(pasted: str, address: str) -> None:
    """It comes after the path: Azure's older versions are asked for there."""
    assert Endpoint(pasted, KEY).url("/responses") == address


AZURE = {"api-key": KEY, "Content-Type": "application/json"}
OTHERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("host", "path", "headers"),
    [
        ("us.openai.azure.com", "/openai/v1/responses", AZURE),
        ("us.services.ai.azure.com", "/openai/v1/responses", AZURE),
        ("us.cognitiveservices.azure.com", "/openai/v1/responses", AZURE),
        ("us.openai.azure.us", "/openai/v1/responses", AZURE),
        ("US.OpenAI.Azure.com", "/openai/v1/responses", AZURE),
        ("api.openai.com", "/v1/responses", OTHERS),
        ("azure.com.evil.tld", "/v1/responses", OTHERS),
        ("notazure.com", "/v1/responses", OTHERS),
        ("127.0.0.1:8080", "/v1/responses", OTHERS),
    ],
)
def test_azure_has_its_own_header_and_path(
    host: str, path: str, headers: dict[str, str]
) -> None:
    endpoint = Endpoint(f"https://{host}", f" {KEY}\n")
    assert endpoint.url("/responses") == f"https://{host}{path}"
    assert endpoint.headers() == headers


@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION"])
def test_headers_of_the_administrator(name: str) -> None:
    """They win over ours however they are written, and nothing is sent twice."""
    extra = {name: "Basic 123", "X-Team": "a", "OPENAI-PROJECT": "proj_2"}
    ours = Endpoint("", KEY, organization="org_1", project="proj_1")
    headers = replace(ours, extra_headers=extra).headers()
    named = {"Content-Type": "application/json", "OpenAI-Organization": "org_1"}
    assert headers == {**named, **extra}
    assert ours.headers() == {**OTHERS, **named, "OpenAI-Project": "proj_1"}


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("", "OpenAI"),
        ("https://eu.api.openai.com/v1", "OpenAI"),
        ("https://us.openai.azure.com", "us.openai.azure.com"),
        ("http://127.0.0.1:8080/v1", "127.0.0.1"),
        ("https://api.openai.com.evil.tld", "api.openai.com.evil.tld"),
    ],
)
def test_sentences_name_the_server_that_spoke(address: str, named: str) -> None:
    endpoint = Endpoint(address, KEY)
    assert endpoint.name_server("OpenAI has OpenAI's limit.") == (
        f"{named} has {named}'s limit."
    )
    # The message about a bad address stays.
    assert Endpoint("nowhere", KEY).name_server("It is bad.") == "It is bad."


@pytest.mark.parametrize(
    "address", ["https://ours.openai.azure.com", "https://x.example"]
)
def test_token_takes_the_place_of_the_key(address: str) -> None:
    """Also at Azure; it changes all the time, the account does not."""
    plain = Endpoint(address, "")
    signed = Endpoint(address, "", token="token-1")

    assert signed.headers()["Authorization"] == "Bearer token-1"
    assert "api-key" not in signed.headers()
    assert replace(signed, api_key=" ").sends_token_alone
    assert not replace(signed, api_key=KEY).sends_token_alone
    assert signed.account() == plain.account()
    assert signed.reasoning_scope_id() == plain.reasoning_scope_id()


KINDS = {
    "openai": {"openai", "services", "models"},
    "azure": {"services", "models"},
    "like openai": {"openai", "services", "models", "gateway"},
    "azure, strict": {"models"},
    "gateway": {"gateway"},
}
"""What is true of a server: it takes OpenAI's own kinds of input, has the tools that
OpenAI runs, has OpenAI's models and prices, is somebody else's."""


@pytest.mark.parametrize(
    ("address", "compatibility", "kind"),
    [
        ("https://api.openai.com/v1", "auto", "openai"),
        ("https://eu.api.openai.com/v1", "auto", "openai"),
        ("https://api.openai.com/v1", "openai", "openai"),
        ("https://api.openai.com/v1", "strict", "azure, strict"),
        ("https://ours.openai.azure.us", "auto", "azure"),
        ("https://ours.openai.azure.us", "openai", "azure"),
        ("https://ours.openai.azure.us", "strict", "azure, strict"),
        ("https://notopenai.com", "auto", "gateway"),
        ("http://127.0.0.1:4000", "auto", "gateway"),
        ("http://127.0.0.1:4000", "strict", "gateway"),
        ("http://127.0.0.1:4000", "openai", "like openai"),
    ],
)
def test_what_is_known_of_a_server(
    address: str, compatibility: Compatibility, kind: str
) -> None:
    """Gateways may learn who asks; OpenAI and Azure do not, unless a valve says so."""
    server = Endpoint(address, "", compatibility=compatibility)

    found = {
        "openai": server.is_openai,
        "services": server.has_own_services,
        "models": server.serves_openai,
        "gateway": server.is_gateway,
    }
    assert {name for name, is_true in found.items() if is_true} == KINDS[kind]


def test_secrets_are_all_that_opens_something() -> None:
    """Also the word after `Bearer`, and a password without its escapes; none is shown."""
    endpoint = Endpoint(
        "https://host.tld/v1?code=code-1&api-version=preview",
        "sk-1",
        token="token-1",
        extra_headers={"X-Gateway": "Bearer gate-1", "X-Empty": " "},
        proxy="http://me:pass%2F1@proxy.tld",
    )

    assert set(endpoint.secrets) == {
        *("sk-1", "token-1", "Bearer gate-1", "gate-1"),
        *("http://me:pass%2F1@proxy.tld", "pass/1", "code-1"),
    }
    assert Endpoint("", "", proxy="http://proxy.tld").secrets == ("http://proxy.tld",)
    for secret in ("sk-1", "token-1", "gate-1", "pass%2F1"):
        assert secret not in f"{endpoint!r} {endpoint}"


def test_unreadable_proxy_of_the_environment_is_no_fault_of_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No valve can help; the address is not quoted, which may hold a password."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "socks5://user:hunter2@proxy.example:1080")

    with pytest.raises(InvalidRequest, match="environment names") as refused:
        proxy_for(Endpoint("https://api.example/v1", "k"), "https://api.example/v1")

    assert refused.value.remedy == "setup"
    assert refused.value.fault.settings == ()
    assert "hunter2" not in str(refused.value)


def test_digest_of_the_account_has_no_key_where_an_organization_is_known() -> None:
    """Chats store it, and a short key could be guessed."""
    ids = [
        Endpoint("https://x.example", key, "org").reasoning_scope_id() for key in "ab"
    ]

    # What earlier versions stored is found again.
    assert ids == ["5eb3523e3dacc4ee"] * 2
    assert Endpoint("https://x.example", "a").reasoning_scope_id() not in ids
