"""The headers and the key that both shells read alike."""

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from settings.shared_valves import SharedValves
from shells.endpoint_valves import (
    endpoint_of_valves,
    environment_key,
    missing_key_error,
    read_headers,
)
from shells.valve_messages import PIPE_SHELL, PIPELINE_SHELL, Shell


@pytest.mark.parametrize(
    "text",
    [
        "X-Team: hunter2",
        '{"hunter2": 7}',
        pytest.param("[" * 100_000, id="brackets"),
    ],
)
def test_other_headers_are_refused_without_quoting_them(text: str) -> None:
    """They may hold a secret; the message shows the form and where the valve is."""
    assert read_headers(" \n", PIPE_SHELL) == {}
    assert read_headers('{"X-Cost": "7"}', PIPE_SHELL) == {"X-Cost": "7"}
    with pytest.raises(InvalidRequest) as refused:
        read_headers(text, PIPELINE_SHELL)

    assert str(refused.value) == (
        "EXTRA_HEADERS is not a JSON object with texts as values. An administrator has to "
        'correct it in the valves of this pipeline, for example {"X-Team": "blue"}.'
    )


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        (
            PIPE_SHELL,
            "This pipe has no API key yet. An administrator has to set API_KEY in its "
            "valves (Admin Panel > Functions > the gear next to it).",
        ),
        (
            PIPELINE_SHELL,
            "This pipeline has no API key yet. An administrator has to set API_KEY in "
            "its valves (Admin Panel > Settings > Pipelines).",
        ),
    ],
)
def test_missing_key_says_where_to_set_it(shell: Shell, message: str) -> None:
    error = missing_key_error(shell)
    assert (str(error), error.remedy) == (message, "setup")


def test_key_of_the_environment_has_no_white_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may come from a file with a line break."""
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1\n")
    assert environment_key() == "sk-1"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert environment_key() == ""


def test_endpoint_has_what_the_valves_say() -> None:
    """The agents' valves may hold secrets in another form, so these are arguments."""
    valves = SharedValves(
        API_KEY="sealed",
        PROXY="sealed",
        BASE_URL="https://gw.example/v1",
        ORGANIZATION=" org-1 ",
        PROJECT=" proj-1\n",
        CA_BUNDLE=" /etc/ca.pem ",
        VERIFY_SSL=False,
        COMPATIBILITY="strict",
    )

    endpoint = endpoint_of_valves(
        valves, api_key="sk-1", proxy="http://p", headers={"X": "1"}, token="t-1"
    )

    assert endpoint == Endpoint(
        "https://gw.example/v1",
        "sk-1",
        token="t-1",
        organization="org-1",
        project="proj-1",
        extra_headers={"X": "1"},
        verify_ssl=False,
        ca_bundle="/etc/ca.pem",
        proxy="http://p",
        compatibility="strict",
    )
    checked = valves.model_copy(update={"VERIFY_SSL": True})
    assert endpoint_of_valves(checked, api_key="", proxy="", headers={}).verify_ssl
