"""What the pipe asks of the filter for one call."""

import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from calls.facts import call_facts
from openai_responses.clock import utc_today
from openai_responses.transport.entra import EntraTokens
from owui_administration.account import Account
from owui_administration.limits import UserLimits
from owui_administration.rules import LimitRule
from owui_administration.telemetry import ServerWords, Telemetry
from owui_administration.usage_table import UsageRow, UsageTable
from shells.administration import ResponseCounts

pytestmark = pytest.mark.asyncio


class Credential:
    """An identity of the server; `asked` are the scopes of its tokens."""

    asked: list[str]

    def get_token(self, scope: str) -> SimpleNamespace:
        """Return a token, unless it is for a scope that nobody knows."""
        self.asked.append(scope)
        if scope == "unknown":
            raise RuntimeError("no such tenant")
        return SimpleNamespace(token=f"token for {scope}", expires_on=2**40)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scopes that the identity of this server is asked for."""
    scopes: list[str] = []
    Credential.asked = scopes
    identity = SimpleNamespace(DefaultAzureCredential=Credential)
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    return scopes


def account() -> Account:
    """The account of a call about which nothing is known."""
    telemetry = Telemetry(call_facts(), ServerWords())
    return Account(UserLimits(), telemetry, EntraTokens())


@pytest.mark.parametrize(
    ("address", "scope", "sent"),
    [
        (
            "https://a.openai.azure.com",
            "",
            "https://cognitiveservices.azure.com/.default",
        ),
        (
            "https://a.openai.azure.us",
            " ",
            "https://cognitiveservices.azure.us/.default",
        ),
        ("https://a.openai.azure.us", " api://mine ", "api://mine"),
    ],
)
async def test_token_of_entra_id_is_for_the_server_or_the_set_scope(
    address: str, scope: str, sent: str, asked: list[str]
) -> None:
    assert await account().entra_token(address, scope) == (f"token for {sent}", "")
    assert asked == [sent]


async def test_token_that_is_not_issued_is_a_problem(asked: list[str]) -> None:
    """The pipe decides who is told of it."""
    token, problem = await account().entra_token("https://a.example", "unknown")

    assert (token, asked) == ("", ["unknown"])
    assert "issued no token for this server" in problem
    assert "no such tenant" in problem


async def test_run_ends_at_the_limit_of_its_user() -> None:
    rule = LimitRule(tokens=0, per="day")
    limits = UserLimits([rule], table=UsageTable())

    made = replace(account(), limits=limits)
    told = made.count_responses("gpt-5.2", ResponseCounts(0, 0, 0, 0), None)

    assert told.startswith("Your limit of 0 tokens a day is used up")


@pytest.mark.usefixtures("host")
async def test_answer_under_way_may_use_up_what_is_left() -> None:
    """Each of fifty may take a share of the limit; one that has ended takes none."""

    async def run() -> AsyncGenerator[str, None]:
        yield "Hi"

    asked: Any = ("m", "a.example", None)
    row = UsageRow("u-1", utc_today().isoformat(), "m", 1, 980, 0, 0, 0)
    rules = [LimitRule(tokens=1000, per="day")]
    limits = UserLimits(rules, [row], call_facts(user_id="u-1"), UsageTable())

    events = replace(account(), limits=limits).observe_run(run(), *asked)
    refusals = [limits.refusal("m", has_price=True)]
    assert await anext(events) == "Hi"
    refusals.append(limits.refusal("m", has_price=True))
    await events.aclose()
    refusals.append(limits.refusal("m", has_price=True))

    told = "1 of your answers under way may use up your limit of 1,000 tokens a day."
    assert [refusal.partition(" Ask")[0] for refusal in refusals] == ["", told, ""]
    free = replace(account(), limits=replace(limits, rules=()))
    assert free.observe_run(events, *asked) is events


async def test_entries_are_tried_at_the_address_of_the_valves() -> None:
    made = replace(
        account(),
        limits=UserLimits(facts=call_facts(base_url="https://valves.example/v1")),
        endpoints_text='[{"api_key": "sk-1"}, {"api_key": "sk-2"}]',
    )

    trials = made.endpoint_trials(["gpt-5.2"])

    assert [trial.endpoints.valves()["API_KEY"] for trial in trials] == ["sk-1", "sk-2"]
    chosen = trials[0].endpoints
    assert chosen.lost_reasoning_notice("valves.example", "") == ""
    assert chosen.lost_reasoning_notice("east.example", "") != ""
