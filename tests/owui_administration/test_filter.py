"""The filter in front of the agent pipeline's models."""

import asyncio
import json
import sqlite3
from types import SimpleNamespace
from typing import Any

import pytest

from calls.facts import call_facts
from owui_administration.agent import LimitReached
from owui_administration.filter import Filter
from owui_administration.usage_table import UsageRow
from stand_in.host import StandInHost
from stand_in.usage_database import UsageDatabase

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
ANN: Json = {"id": "u-1", "email": "ann@example.com", "role": "user"}
AGENT: Json = {"id": "gpt5_agent_strategies.gpt5_react", "pipeline": {}}
OWN_MODEL: Json = {"id": "openai_responses.gpt-5.2", "pipe": {"type": "pipe"}}
WORKSPACE: Json = {"id": "helper", "info": {"base_model_id": AGENT["id"]}}
ARENA: Json = {"id": "arena", "owned_by": "arena"}
REQUEST = SimpleNamespace(
    app=SimpleNamespace(state=SimpleNamespace(MODELS={AGENT["id"]: AGENT}))
)
USED: Json = {
    "input_tokens": 900,
    "output_tokens": 100,
    "prompt_tokens": 50,
    "input_tokens_details": {"cached_tokens": 300},
    "cost": 0.25,
}


@pytest.fixture
def limited(database: UsageDatabase) -> Filter:
    made = Filter()
    limit(made, {"tokens": 1000, "per": "day"})
    return made


def limit(made: Filter, *rules: Json) -> None:
    made.valves = made.Valves(USER_LIMITS_JSON=json.dumps(rules))


async def ask(made: Filter, model: Json = AGENT, **given: Any) -> Json:
    body: Json = given.pop("body", {"stream": True})
    given = {"__user__": ANN, "__model__": model, "__request__": REQUEST, **given}
    return dict(await made.inlet(body, **given))


def report(made: Filter, model: Json, **event: Any) -> None:
    given: Json = {"__user__": ANN, "__model__": model, "__request__": REQUEST}
    if model == ARENA:
        given["__metadata__"] = {"model": ARENA, "model_id": AGENT["id"]}
    assert made.stream(event, **given) == event


async def counted(made: Filter) -> list[UsageRow]:
    return await made._usage.user_rows("u-1", "2026")


@pytest.mark.parametrize(
    ("model", "asked"), [(AGENT, AGENT), (WORKSPACE, WORKSPACE), (AGENT, ARENA)]
)
async def test_agent_is_counted_and_refused(
    limited: Filter, model: Json, asked: Json
) -> None:
    await ask(limited, model)
    report(limited, asked, delta="Hi")
    report(limited, asked, usage=USED)

    [row] = await counted(limited)
    assert row[2:] == ("gpt5_react", 1, 900, 300, 100, 250_000)
    bought, _ = await limited._usage.purchases("2026", "u-1")
    assert (bought.agents, bought.agent_money) == (1, 250_000)
    with pytest.raises(LimitReached, match="Your limit of 1,000 tokens a day is used"):
        await ask(limited, model)


def odd(value: Any) -> Json:
    counts = dict.fromkeys(("input_tokens", "output_tokens", "cost"), value)
    return {**counts, "input_tokens_details": value}


@pytest.mark.parametrize(
    ("usage", "row"),
    [
        pytest.param(
            {
                "prompt_tokens": 900,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 300},
            },
            (900, 300, 100, 0),
            id="the names of Chat Completions",
        ),
        pytest.param({**USED, "cost": 5e11}, (900, 300, 100, 0), id="that is no cost"),
        (odd(-1), (0, 0, 0, 0)),
        (odd("many"), (0, 0, 0, 0)),
        (odd(1e300), (0, 0, 0, 0)),
        (odd(float("nan")), (0, 0, 0, 0)),
        (odd(True), (1, 0, 1, 0)),
        pytest.param(
            {**USED, "is_byok": True, "cost_details": {"upstream_inference_cost": 1}},
            (900, 300, 100, 1_250_000),
            id="OpenRouter, with a key of the provider",
        ),
    ],
)
async def test_what_other_pipelines_report_is_counted(
    limited: Filter, usage: Json, row: tuple[int, ...]
) -> None:
    report(limited, AGENT, usage=usage)

    [counts] = await counted(limited)
    assert counts[3:] == (1, *row)


async def test_models_of_the_pipe_are_left_to_it(limited: Filter) -> None:
    limit(limited, {"tokens": 0, "per": "day"}, {"models": []})

    await ask(limited, OWN_MODEL)
    report(limited, OWN_MODEL, usage=USED)
    limited.stream({"usage": USED}, None, AGENT, REQUEST)  # whoever asked

    assert await counted(limited) == []


async def test_rules_name_agents_as_they_are_listed(limited: Filter) -> None:
    limit(limited, {"models": ["gpt5_react"]}, {"models": ["gpt5_agent_*"]})
    await ask(limited)
    limit(limited, {"models": ["gpt-6-*"]})
    with pytest.raises(LimitReached, match="You may use: gpt-6-"):
        await ask(limited)
    limit(limited, {"models": ["llama-3.1"]})
    await ask(limited, {"id": "others.llama-3.1", "pipeline": {}})


async def test_rules_for_a_role_hold_for_agents(limited: Filter) -> None:
    limit(limited, {"role": "admin", "models": ["gpt-6-*"]})
    await ask(limited)
    with pytest.raises(LimitReached):
        await ask(limited, __user__={"role": "admin"})
    await ask(limited, __user__=None)


async def test_money_of_agents_is_what_their_server_reports(limited: Filter) -> None:
    """So a limit of money needs no price of the model."""
    limit(limited, {"money": 1, "per": "day"})
    await ask(limited)
    report(limited, AGENT, usage={**USED, "cost": 1})

    with pytest.raises(LimitReached, match=r"limit of \$1\.00 a day is used up"):
        await ask(limited)


async def test_model_of_the_workspace_needs_the_request(limited: Filter) -> None:
    """Without it the host's models are not known, and nothing is counted."""
    limit(limited, {"models": []})
    given: Json = {"__user__": ANN, "__request__": REQUEST}
    assert limited.stream({"usage": USED}, **given) == {"usage": USED}
    assert await limited.inlet({"stream": True}, **given) == {"stream": True}

    await ask(limited, WORKSPACE, __request__=None)
    with pytest.raises(LimitReached, match="is not available to you"):
        await ask(limited, AGENT, __request__=None)


@pytest.mark.parametrize(
    ("mode", "rule", "is_refused"),
    [
        ("legacy", {"tokens": 10**9, "per": "day"}, True),
        ("legacy", {"models": ["gpt5_react"]}, False),
        ("native", {"tokens": 10**9, "per": "day"}, False),
    ],
)
async def test_amounts_need_all_requests_to_be_counted(
    limited: Filter, mode: str, rule: Json, *, is_refused: bool
) -> None:
    """In the older mode Open WebUI asks the agent twice, once without any filter."""
    limit(limited, rule)
    asked = ask(limited, __metadata__={"params": {"function_calling": mode}})
    if is_refused:
        with pytest.raises(LimitReached, match="Function Calling set to Legacy"):
            await asked
    else:
        await asked


async def test_usage_counts_while_the_database_refuses_writes(
    limited: Filter, database: UsageDatabase
) -> None:
    """A disk that is full can still be read."""
    database.failing = 1
    report(limited, AGENT, usage=USED)

    with pytest.raises(LimitReached, match="used up"):
        await ask(limited)


@pytest.mark.parametrize("error", [sqlite3.IntegrityError, sqlite3.ProgrammingError])
async def test_usage_is_written_if_another_session_makes_the_table(
    limited: Filter, database: UsageDatabase, error: type[Exception]
) -> None:
    """This filter may never be asked again: Open WebUI can have loaded a later one."""
    database.lost_race = error
    database.racing = 1
    report(limited, AGENT, usage=USED)
    writer = limited._usage._writer
    assert writer
    await writer

    database.racing = 1
    [row] = await counted(Filter())
    assert row[2:] == ("gpt5_react", 1, 900, 300, 100, 250_000)
    assert limited._usage.problem == ""


async def test_unwritten_usage_is_one_row_a_day(
    limited: Filter, database: UsageDatabase
) -> None:
    """A database that fails for days costs no memory for each answer."""
    database.failing = 3
    for _ in range(3):
        report(limited, AGENT, usage=USED)
        await asyncio.sleep(0)

    assert len(limited._usage._due) == 1
    database.failing = 0
    [row] = await counted(limited)
    assert row[2:] == ("gpt5_react", 3, 2700, 900, 300, 750_000)


async def test_sum_that_cannot_be_read_refuses(
    limited: Filter, database: UsageDatabase
) -> None:
    database.failing = 1

    with pytest.raises(LimitReached, match="cannot be read at the moment") as caught:
        await ask(limited)

    assert "locked" not in str(caught.value)
    assert caught.value.__cause__ is None


NO_STREAM = [False, "false", "no", "off", "0", 0, [], None, "later"]
"""What Open WebUI or a Pipelines server reads as no stream, or cannot read.

A Pipelines server streams where nothing is said, Open WebUI does not.
"""


@pytest.mark.parametrize(
    "body", [{}, *({"stream": value} for value in NO_STREAM)], ids=repr
)
async def test_amounts_need_a_stream(limited: Filter, body: Json) -> None:
    """Without one the host tells the filter no usage."""
    with pytest.raises(LimitReached, match="counted only in a stream"):
        await ask(limited, body=body)
    limit(limited, {"models": ["gpt5_*"]})

    assert (await ask(limited, body=body))["stream"] is False


async def test_limit_that_is_reached_is_told_first(limited: Filter) -> None:
    """It would also hold with a stream, and with the other mode."""
    limit(limited, {"tokens": 0, "per": "day"})
    legacy = {"params": {"function_calling": "legacy"}}

    with pytest.raises(LimitReached, match="is used up"):
        await ask(limited, body={}, __metadata__=legacy)


@pytest.mark.parametrize("value", [True, "true", "yes", "on", "1", 1], ids=repr)
async def test_stream_is_a_boolean_for_host_and_pipe(
    limited: Filter, value: Any
) -> None:
    """The host, the pipe and a Pipelines server read the body after the filter."""
    for model in (AGENT, OWN_MODEL):
        assert (await ask(limited, model, body={"stream": value}))["stream"] is True


async def test_without_rules_nothing_is_counted(
    limited: Filter, database: UsageDatabase
) -> None:
    limited.valves = limited.Valves(USER_LIMITS_JSON=" \n")

    await ask(limited)
    report(limited, AGENT, usage=USED)

    assert database.opened == 0
    assert await counted(limited) == []


async def test_wrong_filter_id_is_reported_to_administrators(limited: Filter) -> None:
    statuses: list[Json] = []

    async def emit(event: Json) -> None:
        statuses.append(event["data"])

    for role, id in (
        ("user", "x"),
        ("admin", "x"),
        ("admin", "openai_responses_administration"),
    ):
        who = {**ANN, "role": role}
        await ask(limited, OWN_MODEL, __user__=who, __id__=id, __event_emitter__=emit)

    no_page = {"__id__": "x", "__event_emitter__": None}
    await ask(limited, OWN_MODEL, __user__={**ANN, "role": "admin"}, **no_page)

    [status] = statuses
    assert "The id of this filter is x" in status["content"]
    assert status["content"].endswith("id openai_responses_administration.")


async def test_host_that_is_too_old_is_told_by_the_pipe(host: StandInHost) -> None:
    """The two files have classes of their own, so only words reach the pipe."""
    host.provide("models.groups")
    made = Filter()
    limit(made, {"group": "staff", "tokens": 1000, "per": "day"})

    account = await made.begin(call_facts(user_id="u-1", model="gpt-5.2"))

    assert account.endpoints
    assert account.endpoints.problem.startswith(
        "This version of Open WebUI has no Groups in open_webui.models.groups"
    )


@pytest.mark.parametrize("is_away", [True, False])
async def test_valves_that_the_host_could_not_read_are_no_rules(
    is_away: bool, limited: Filter, host: StandInHost
) -> None:
    """It gives the filter its defaults then, so whoever keeps the database busy would
    have no limits."""
    host.filters.is_database_away = is_away
    host.filters.valves = {"openai_responses_administration": dict(limited.valves)}
    limited.valves = limited.Valves()

    with pytest.raises(LimitReached, match="The limits cannot be read at the moment"):
        await ask(limited)

    await ask(limited, OWN_MODEL)


async def test_field_that_was_emptied_has_no_rules(
    limited: Filter, host: StandInHost
) -> None:
    limited.valves = limited.Valves(USER_LIMITS_JSON="\n")
    host.filters.valves = {"openai_responses_administration": dict(limited.valves)}

    await ask(limited)


async def test_rules_that_the_host_has_given_are_not_read_again(
    limited: Filter, host: StandInHost
) -> None:
    """A database that is away for a moment stops nobody whose rules are known."""
    host.filters.is_database_away = True

    await ask(limited)
