"""The simulator answers as each case of the live check assumes."""

import pytest

from live import (
    EDITS,
    HELD,
    MAX_DOLLARS,
    UNTRIED,
    Outcome,
    estimate_dollars,
    judge,
    read_outcome,
    redact,
    run_cases,
    write_report,
)
from live_cases import list_cases
from simulator import Simulator

CASES = list_cases()
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.asyncio
async def test_the_simulator_holds_every_case(sim: Simulator) -> None:
    """Status, param, code and words, those that are not sent to OpenAI, too."""
    results = await run_cases(CASES, sim.base_url, sim.api_key, all_of_them=True)

    assert [
        (result.case.name, result.verdict, result.line, result.outcome)
        for result in results
        if result.verdict != HELD
    ] == []


def test_cases_have_unique_names_and_sources() -> None:
    assert len(BY_NAME) == len(CASES)
    assert all(case.source and case.edit in EDITS for case in CASES)


def test_cases_cost_less_than_half_the_limit() -> None:
    assert sum(map(estimate_dollars, CASES)) < MAX_DOLLARS / 2
    assert {estimate_dollars(case) for case in CASES if case.untried} == {0.0}


@pytest.mark.asyncio
async def test_the_limit_ends_the_run(sim: Simulator) -> None:
    results = await run_cases(CASES[:3], sim.base_url, sim.api_key, limit=0.0)

    assert {result.verdict for result in results} == {UNTRIED}
    assert sim.requests == []


@pytest.mark.asyncio
async def test_unusable_key_or_server_is_reported_as_untried(
    sim: Simulator, unused_tcp_port: int
) -> None:
    case = BY_NAME["seed: 1"]
    limited = "sk-simulator-limited"

    wrong = await run_cases([case], sim.base_url, "sk-wrong")
    refused = await run_cases([case], sim.base_url, limited)
    nowhere = await run_cases([case], f"http://127.0.0.1:{unused_tcp_port}", "sk")

    assert [result[0].verdict for result in (wrong, refused, nowhere)] == [
        UNTRIED,
        HELD,
        UNTRIED,
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"code": "c", "param": "p", "message": "m"}}',
        'data: {"type": "error", "code": "c", "param": "p", "message": "m"}\n\n',
        'data: {"type": "response.failed", "response": {"error": '
        '{"code": "c", "param": "p", "message": "m"}}}\n\n',
    ],
)
def test_errors_of_all_forms_are_read(text: str) -> None:
    assert read_outcome(400, text) == Outcome(400, "p", "c", "m")


def test_the_report_holds_no_secrets() -> None:
    text = f"sk-abc123 org-x1 proj_y2 req_z3 me@example.com {'gAAAA' * 20} a|b"
    outcome = Outcome(400, message=text, output=({"type": "message", "t": "spoken"},))
    report = write_report([judge(CASES[0], outcome)], "https://secret.example/v1")

    assert redact(text) == "… … … … … … a/b"
    for secret in ("sk-", "org-x1", "proj_", "req_", "@", "gAAAA", "spoken", "secret"):
        assert secret not in report
