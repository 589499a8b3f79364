"""The pipe and the filter are files of their own, and have to fit together."""

import inspect

import pytest

from openai_responses.recent_texts import UserReports
from openai_responses.transport.entra import EntraTokens
from owui_administration.account import Account
from owui_administration.endpoints import EndpointChoice
from owui_administration.filter import Filter
from owui_administration.limits import UserLimits
from owui_administration.telemetry import ServerWords, Telemetry
from shells.administration import (
    UNKNOWN_CALL,
    Administration,
    CallAccount,
    EndpointQueue,
    UsageAllowance,
)

ENDPOINTS = EndpointChoice([], "", UserReports(), "user-1")
ACCOUNT = Account(
    UserLimits(), Telemetry(UNKNOWN_CALL, ServerWords()), EntraTokens(), ENDPOINTS
)
FITS: tuple[Administration, CallAccount, UsageAllowance, EndpointQueue] = (
    Filter(),
    ACCOUNT,
    ACCOUNT.limits,
    ENDPOINTS,
)
"""mypy checks the types here."""


CLASSES: dict[type, type] = {
    Administration: Filter,
    CallAccount: Account,
    UsageAllowance: UserLimits,
    EndpointQueue: EndpointChoice,
}
METHODS = [
    (protocol, name)
    for protocol in CLASSES
    for name, member in vars(protocol).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


@pytest.mark.parametrize(("protocol", "name"), METHODS)
def test_filter_takes_what_the_pipe_gives(protocol: type, name: str) -> None:
    """Each method has the parameters of the protocol, by name and in their order."""
    asked, offered = (
        list(inspect.signature(getattr(part, name)).parameters)
        for part in (protocol, CLASSES[protocol])
    )

    assert offered == asked
