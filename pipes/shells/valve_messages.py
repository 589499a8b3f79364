"""Messages about valves for administrators, for pipe and agents.

Apart from the names of a `Shell` they are the same in both.

`openai_responses` names a setting by its field (`errors.SettingFault`). Here it gets the
name of its valve, which is the same in both shells, and the page with the valves.
"""

from collections.abc import Mapping
from typing import NamedTuple

from openai_responses.endings import Ending
from openai_responses.endpoint import DEFAULT_BASE_URL
from openai_responses.errors import (
    NO_FAULT,
    InvalidRequest,
    ResponsesError,
    SettingFault,
    SettingName,
)
from openai_responses.redaction import hide_keys


class Shell(NamedTuple):
    """The names of a shell in messages."""

    noun: str
    """Like "pipe"."""
    valves_page: str
    """How an administrator gets to its valves."""
    in_entry: frozenset[str] = frozenset()
    """The valves that an entry of ENDPOINTS_JSON has in its own way, for one call."""

    @property
    def valves(self) -> str:
        """Where its valves are, as a part of a message."""
        return f"the valves of this {self.noun}"


PIPE_SHELL = Shell("pipe", "Admin Panel > Functions > the gear next to it")
PIPELINE_SHELL = Shell("pipeline", "Admin Panel > Settings > Pipelines")

HEADERS_EXAMPLE = '{"X-Team": "blue"}'

_VALVES: Mapping[SettingName, str] = {
    "api_key": "API_KEY",
    "base_url": "BASE_URL",
    "ca_bundle": "CA_BUNDLE",
    "compatibility": "COMPATIBILITY",
    "extra_headers": "EXTRA_HEADERS",
    "organization": "ORGANIZATION",
    "project": "PROJECT",
    "proxy": "PROXY",
    "verify_ssl": "VERIFY_SSL",
}
_EXAMPLES: Mapping[SettingName, str] = {
    "base_url": DEFAULT_BASE_URL,
    "extra_headers": HEADERS_EXAMPLE,
}


def fault_advice(fault: SettingFault, shell: Shell) -> str:
    """Return what an administrator can do about a failure; empty if nothing."""
    settings = fault.settings
    if not settings:
        return ""
    names = [_VALVES[name] for name in settings]
    if fault.certainty == "certain":
        example = _EXAMPLES.get(settings[0], "")
        return _correct_valve(_join_names(names), shell, example)
    places: list[str] = []
    valves = [name for name in names if name not in shell.in_entry]
    if len(valves) < len(names):
        places.append("ENDPOINTS_JSON in the valves of the filter")
    if valves:
        places.append(f"{_join_names(valves)} in {shell.valves}")
    checked = f"An administrator has to check {' and '.join(places)}."
    if fault.certainty == "possible":
        return f"If the problem persists, a{checked[1:]}"
    return checked


def error_message(error: ResponsesError, shell: Shell) -> str:
    """Return the message of an error, with what an administrator can do."""
    return hide_keys(f"{error} {fault_advice(error.fault, shell)}".strip())


def advised_ending(ending: Ending, shell: Shell) -> Ending:
    """Return an ending whose message says what an administrator can do."""
    advice = fault_advice(ending.fault, shell)
    message = hide_keys(f"{ending.message} {advice}".strip())
    return ending._replace(message=message, fault=NO_FAULT)


def valve_message(problem: str, shell: Shell, example: str = "") -> str:
    """Return the message about a valve; `problem` names it and has no full stop."""
    return f"{problem}. {_correct_valve('it', shell, example)}"


def valve_error(problem: str, shell: Shell, example: str = "") -> InvalidRequest:
    """Return the error of a valve without which nothing is sent."""
    return InvalidRequest(valve_message(problem, shell, example), remedy="setup")


def _correct_valve(valves: str, shell: Shell, example: str) -> str:
    """Return the message that asks an administrator to correct valves."""
    shown = f", for example {example}" if example else ""
    return f"An administrator has to correct {valves} in {shell.valves}{shown}."


def _join_names(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
