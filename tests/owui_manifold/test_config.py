"""What valves come to: where to send, how long to wait, what to ask for."""

from typing import Any

import pytest

from openai_responses.endpoint import Network
from openai_responses.errors import InvalidRequest
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.tools import Approver, CallLimits
from openai_responses.requests.build import Settings
from openai_responses.transport.connections import Timeouts
from owui_manifold.config import (
    Capabilities,
    build_endpoint,
    build_toolset,
    read_config,
    request_settings,
    run_limits,
)
from owui_manifold.valves import UserValves, Valves
from tool_sample import MemoryTools

TOOL = {"type": "function", "name": "now"}


def valves(**given: Any) -> Valves:
    """Settings as they are stored."""
    return Valves.model_validate({"API_KEY": "sk-1", **given})


def chosen(
    administrator: dict[str, Any],
    user: dict[str, Any] | None = None,
    streams: bool = True,
    refused: Capabilities | None = None,
) -> Settings:
    """What holds for a request with one tool."""
    own = UserValves.model_validate(user or {})
    return request_settings(
        read_config(Valves.model_validate(administrator), {"valves": own}),
        streams=streams,
        tools=[TOOL],
        refused=refused or Capabilities(),
        defaults={},
    )


def secrets(valves: Valves, user: UserValves | None = None) -> list[str]:
    """What must be in no line."""
    return [*read_config(valves, {"valves": user}).secrets]


# ---------------------------------------------------------------- where to


def test_plain_valves_lead_to_openai() -> None:
    """With the key and nothing else."""
    endpoint = build_endpoint(valves())

    assert endpoint.url("/responses") == "https://api.openai.com/v1/responses"
    assert endpoint.headers() == {
        "Authorization": "Bearer sk-1",
        "Content-Type": "application/json",
    }
    assert endpoint.network == Network()
    assert endpoint.strict is False


def test_every_valve_of_the_connection_arrives() -> None:
    """Without the white space of a copy and paste."""
    endpoint = build_endpoint(
        valves(
            BASE_URL="https://gateway.example/openai",
            API_KEY=" sk-1\n",
            ORGANIZATION=" org-1 ",
            PROJECT=" proj-1 ",
            EXTRA_HEADERS='{"X-Team": "blue"}',
            COMPATIBILITY="strict",
            VERIFY_SSL=False,
            CA_BUNDLE=" /certificates.pem ",
            PROXY=" http://proxy:3128 ",
        )
    )

    assert endpoint.url("/responses") == "https://gateway.example/openai/responses"
    assert endpoint.headers() == {
        "Authorization": "Bearer sk-1",
        "Content-Type": "application/json",
        "OpenAI-Organization": "org-1",
        "OpenAI-Project": "proj-1",
        "X-Team": "blue",
    }
    assert endpoint.network == Network(False, "/certificates.pem", "http://proxy:3128")
    assert endpoint.strict is True


@pytest.mark.parametrize("key", ["", " \n"])
def test_no_key_says_who_has_to_do_what(key: str) -> None:
    """And where."""
    with pytest.raises(InvalidRequest) as caught:
        build_endpoint(valves(API_KEY=key))

    assert "no API key yet" in str(caught.value)
    assert "set API_KEY in the valves of this pipe" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"X-Team": "blue", "X-Cost": "7"}', {"X-Team": "blue", "X-Cost": "7"}),
    ],
)
def test_headers_are_a_json_object_of_texts(text: str, headers: dict[str, str]) -> None:
    """Or nothing."""
    assert build_endpoint(valves(EXTRA_HEADERS=text)).extra_headers == headers


@pytest.mark.parametrize(
    "text",
    [
        "X-Team: hunter2",
        '["hunter2"]',
        '"hunter2"',
        '{"hunter2": 7}',
        "{",
        "null",
        pytest.param("[" * 100_000, id="brackets"),
    ],
)
def test_other_headers_give_a_sentence_without_them(text: str) -> None:
    """They may hold a secret."""
    with pytest.raises(InvalidRequest) as caught:
        build_endpoint(valves(EXTRA_HEADERS=text))

    assert str(caught.value).startswith("EXTRA_HEADERS is not a JSON object of texts.")
    assert "hunter2" not in str(caught.value)


# ---------------------------------------------------------------- how long, how often


def test_limits_are_those_of_the_valves() -> None:
    """Four timeouts, two numbers of retries."""
    limits = run_limits(
        valves(
            CONNECT_TIMEOUT_SECONDS=5,
            FIRST_EVENT_TIMEOUT_SECONDS=60,
            IDLE_TIMEOUT_SECONDS=70,
            TOTAL_TIMEOUT_SECONDS=80,
            MAX_RETRIES=3,
            MAX_RETRY_WAIT_SECONDS=9,
        ),
        tools_ran=False,
    )

    assert limits.timeouts == Timeouts(5, 60, 70, 80)
    assert limits.retries == RetryPolicy(3, 9)


def test_nothing_is_sent_again_after_a_tool_ran() -> None:
    """Whatever the administrator allows."""
    limits = run_limits(valves(MAX_RETRIES=5), tools_ran=True)

    assert limits.retries.max_retries == 0
    assert limits.timeouts == run_limits(valves(), tools_ran=False).timeouts


# ---------------------------------------------------------------- what to ask for


def test_user_who_inherits_gets_what_the_administrator_set() -> None:
    """And leaves effort and verbosity to the model."""
    assert chosen({"REASONING_SUMMARY": "concise"}) == Settings(
        effort=None,
        summary="concise",
        verbosity=None,
        stream=True,
        encrypted_reasoning=True,
        tools=[TOOL],
    )


def test_users_own_choice_wins() -> None:
    """In everything that is the user's to choose."""
    user = {
        "REASONING_EFFORT": "high",
        "REASONING_SUMMARY": "detailed",
        "VERBOSITY": "low",
    }

    settings = chosen({"REASONING_SUMMARY": "disabled"}, user)

    assert settings.effort == "high"
    assert settings.summary == "detailed"
    assert settings.verbosity == "low"


@pytest.mark.parametrize(
    ("administrator", "user"), [("disabled", "inherit"), ("auto", "disabled")]
)
def test_disabled_summary_is_not_asked_for(administrator: str, user: str) -> None:
    """Whoever disabled it."""
    settings = chosen({"REASONING_SUMMARY": administrator}, {"REASONING_SUMMARY": user})

    assert settings.summary is None


@pytest.mark.parametrize(
    ("streams", "enabled", "refused", "stream"),
    [
        (True, True, Capabilities(), True),
        (True, True, Capabilities(summary=True), True),
        (True, True, Capabilities(stream=True), False),
        (True, False, Capabilities(), False),
        (False, True, Capabilities(), False),
    ],
)
def test_stream_needs_the_caller_the_valve_and_the_server(
    streams: bool, enabled: bool, refused: Capabilities, stream: bool
) -> None:
    """Two of them are not enough."""
    settings = chosen({"ENABLE_STREAM": enabled}, streams=streams, refused=refused)

    assert settings.stream is stream


@pytest.mark.parametrize(
    ("refused", "summary"),
    [
        (Capabilities(), "detailed"),
        (Capabilities(summary=True), None),
        (Capabilities(stream=True), "detailed"),
    ],
)
def test_refused_summary_is_not_asked_for_again(
    refused: Capabilities, summary: str | None
) -> None:
    """Even where a user wants it."""
    settings = chosen({}, {"REASONING_SUMMARY": "detailed"}, refused=refused)

    assert settings.summary == summary


@pytest.mark.parametrize(
    ("persist", "asks"),
    [("disabled", False), ("response", True), ("conversation", True)],
)
def test_reasoning_is_asked_for_when_it_is_carried(persist: str, asks: bool) -> None:
    """Between the rounds of one answer too."""
    assert chosen({"PERSIST_REASONING_TOKENS": persist}).encrypted_reasoning is asks


@pytest.mark.parametrize(("parallel", "sent"), [(True, None), (False, False)])
def test_several_calls_at_once_are_the_apis_default(
    parallel: bool, sent: bool | None
) -> None:
    """Only the other choice has to be said."""
    assert chosen({"PARALLEL_TOOL_CALLS": parallel}).parallel_tool_calls is sent


def test_toolset_is_what_the_valves_say() -> None:
    """Limits, rounds and whether reasoning is carried between them."""
    tools, approver, lines = MemoryTools(), Approver(default_rule="ask"), list[str]()
    given = valves(
        MAX_FUNCTION_CALL_LOOPS=3,
        MAX_TOOL_CALLS=7,
        TOOL_TIMEOUT_SECONDS=11,
        TOOL_OUTPUT_CHARACTERS=1_700,
    )

    toolset = build_toolset(given, tools, approver, lines.append)

    assert toolset.tools is tools
    assert toolset.approver is approver
    assert toolset.limits == CallLimits(8, 11, 55, 1_700)
    assert (toolset.rounds, toolset.most_calls) == (3, 7)
    toolset.log("a line")
    assert lines == ["a line"]


@pytest.mark.parametrize(
    ("persist", "carries"),
    [("disabled", False), ("response", True), ("conversation", True)],
)
def test_reasoning_is_carried_between_rounds_unless_disabled(
    persist: str, carries: bool
) -> None:
    """As it is asked for."""
    given = valves(PERSIST_REASONING_TOKENS=persist)

    toolset = build_toolset(given, MemoryTools(), Approver(), str)

    assert toolset.carries_reasoning is carries


@pytest.mark.parametrize(
    ("administrator", "user", "level"),
    [
        ("WARNING", "inherit", "WARNING"),
        ("WARNING", "DEBUG", "DEBUG"),
        ("DEBUG", "CRITICAL", "CRITICAL"),
    ],
)
def test_level_of_the_log_is_the_users_for_its_own_chats(
    administrator: str, user: str, level: str
) -> None:
    """Or the administrator's."""
    own = UserValves.model_validate({"LOG_LEVEL": user})

    config = read_config(valves(LOG_LEVEL=administrator), {"valves": own})

    assert config.log_level == level


# ---------------------------------------------------------------- what is secret


def test_every_secret_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys, the proxy and its password, the seal, each header."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    given = valves(
        API_KEY="",
        PROXY="http://ada:hunter%2F2@proxy:1",
        STORE_ENCRYPTION_KEY="long and random",
        EXTRA_HEADERS='{"X-One": "first", "X-Two": "second"}',
    )

    assert set(secrets(given, UserValves(API_KEY=" sk-own\n"))) == {
        "sk-environment",
        "sk-own",
        "http://ada:hunter%2F2@proxy:1",
        "hunter/2",
        "long and random",
        "first",
        "second",
    }


def test_token_behind_its_scheme_is_secret_too() -> None:
    """A server may repeat it alone."""
    given = valves(EXTRA_HEADERS='{"Authorization": "Token hunter2-token"}')

    found = secrets(given)

    assert {"Token hunter2-token", "hunter2-token"} <= set(found)


def test_headers_that_cannot_be_read_are_secret_as_they_are() -> None:
    """Whoever mistyped them meant them."""
    assert "X-Team: hunter2" in secrets(valves(EXTRA_HEADERS="X-Team: hunter2"))


@pytest.mark.parametrize("proxy", ["ada:hunter2@proxy", "http://[", "http://proxy:1"])
def test_proxy_without_a_password_is_secret_as_it_is(proxy: str) -> None:
    """Also one that is no address."""
    assert secrets(valves(PROXY=proxy)) == ["sk-1", proxy]


def test_nothing_set_is_no_secret() -> None:
    """An empty text would be found everywhere."""
    blank = valves(API_KEY=" ", PROXY=" ", EXTRA_HEADERS='{"X-Team": " "}')

    assert secrets(blank, UserValves(API_KEY=" ")) == []
