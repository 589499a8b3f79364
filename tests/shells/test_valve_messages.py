"""What administrators are told about their valves."""

from typing import get_args

import pytest

from gpt5_agent.shell.valves import Valves as AgentValves
from openai_responses.endings import Ending
from openai_responses.errors import (
    NO_FAULT,
    InvalidRequest,
    InvalidSetting,
    SettingFault,
    SettingName,
)
from owui_manifold.call.valves import Valves as PipeValves
from shells.valve_messages import (
    PIPE_SHELL,
    PIPELINE_SHELL,
    advised_ending,
    error_message,
    fault_advice,
    valve_error,
)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (NO_FAULT, ""),
        (
            SettingFault(("base_url", "ca_bundle", "verify_ssl")),
            "An administrator has to check BASE_URL, CA_BUNDLE and VERIFY_SSL in the "
            "valves of this pipe.",
        ),
        (
            SettingFault(("base_url",), "certain"),
            "An administrator has to correct BASE_URL in the valves of this pipe, for "
            "example https://api.openai.com/v1.",
        ),
    ],
)
def test_advice_depends_on_how_certain_the_cause_is(
    fault: SettingFault, advice: str
) -> None:
    assert fault_advice(fault, PIPE_SHELL) == advice


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        (("base_url",), "ENDPOINTS_JSON in the valves of the filter"),
        (
            ("base_url", "proxy"),
            "ENDPOINTS_JSON in the valves of the filter and PROXY in the valves of this "
            "pipe",
        ),
        (("proxy",), "PROXY in the valves of this pipe"),
    ],
)
def test_endpoint_of_the_filter_is_not_in_the_valves_of_the_pipe(
    settings: tuple[SettingName, ...], places: str
) -> None:
    shell = PIPE_SHELL._replace(in_entry=frozenset({"API_KEY", "BASE_URL"}))
    fault = SettingFault(settings, "possible")
    assert fault_advice(fault, shell) == (
        f"If the problem persists, an administrator has to check {places}."
    )


@pytest.mark.parametrize("valves", [PipeValves, AgentValves])
def test_every_setting_has_a_valve_in_both_shells(
    valves: type[PipeValves | AgentValves],
) -> None:
    """No advice sends an administrator to a valve that is not there."""
    for name in get_args(SettingName):
        words = fault_advice(SettingFault((name,)), PIPELINE_SHELL).split()
        assert set(words) & set(valves.model_fields), name


def test_errors_end_with_the_advice() -> None:
    error = InvalidSetting("proxy", "The proxy is wrong.")

    assert error_message(error, PIPELINE_SHELL) == (
        "The proxy is wrong. An administrator has to correct PROXY in the valves of "
        "this pipeline."
    )
    assert error_message(InvalidRequest("No."), PIPE_SHELL) == "No."


def test_endings_are_advised_once() -> None:
    ending = Ending("refused", "invalid_api_key", "No.", SettingFault(("api_key",)))

    advised = advised_ending(ending, PIPE_SHELL)

    assert advised.message == (
        "No. An administrator has to check API_KEY in the valves of this pipe."
    )
    assert advised_ending(advised, PIPE_SHELL) == advised
    assert (advised.kind, advised.code) == ("refused", "invalid_api_key")


def test_valve_that_cannot_be_read_is_no_fault_of_the_request() -> None:
    """A program gets a status of the server's own."""
    error = valve_error("HEADERS is no JSON", PIPE_SHELL, "{}")
    assert error.remedy == "setup"


def test_messages_have_no_key_that_stands_in_the_wrong_place() -> None:
    """An administrator pasted it as the name of a model, and everybody reads them."""
    words = f"The model sk-proj-{'a1' * 12} does not exist."
    hidden = "The model [redacted] does not exist."
    assert error_message(InvalidRequest(words), PIPE_SHELL) == hidden
    assert advised_ending(Ending("failed", message=words), PIPE_SHELL).message == hidden
