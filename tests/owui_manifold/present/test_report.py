"""The logs tell how a run went, under one id, and only the server is quoted."""

import logging
import re
from dataclasses import replace
from typing import Any

import pytest

from calls.sample import MODEL, RUN_ID, TOOL, call_of, chat
from openai_responses.endings import COMPLETED, ending_of_failure
from openai_responses.errors import ApiError
from openai_responses.loop.events import RunDone, Trace
from openai_responses.loop.spending import Budget, Spending
from openai_responses.models.usage import Usage
from owui_chat.events import AnswerReport
from owui_manifold.call.agent import AgentMode
from owui_manifold.call.context import Caller, PipeMemory
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import Prepared
from owui_manifold.present.report import report_end, report_request
from runs.sample import call, message, output
from strategies.parameters import StrategyParameters

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]

KEY = "sk-canary-5d1f"
DIARY = "my secret diary"
LIMIT = ApiError("rate_limit_exceeded", "requests", "input", f"{DIARY}, key {KEY}")
SAID = (message("1", "Hello."),)
FAILED = RunDone(
    ending_of_failure("failed", LIMIT),
    Usage(10, 5, 15),
    trace=Trace("req_1", "gpt-5.6-sol-2026", 200, LIMIT),
)


async def job_of(is_admin: bool = False) -> Prepared:
    caller = Caller(MODEL, "user-1", "chat-1", "m-1", streams=True, is_admin=is_admin)
    valves = Valves(API_KEY=KEY, LOG_LEVEL="DEBUG")
    return await build_chat_request(call_of(chat(DIARY, tools=[TOOL]), valves, caller))


def end_of(prepared: Prepared, ended: RunDone) -> tuple[AnswerReport, RunDone]:
    return report_end(prepared, ended, Spending(Budget()))


def lines_of(prepared: Prepared) -> list[tuple[str, str]]:
    """What the run keeps: level and text."""
    lines = prepared.call.log.text().splitlines()
    pairs = [line.split(maxsplit=3)[2:] for line in lines]
    return [(level, text) for level, text in pairs]


async def test_request_is_logged_as_counts() -> None:
    prepared = await job_of()

    report_request(prepared)

    assert lines_of(prepared) == [
        (
            "DEBUG",
            "request to api.openai.com: gpt-5.6-sol, 1 input items, 1 tools, "
            "stream True, background False, stored True, native True",
        )
    ]


async def test_omitted_settings_are_logged_by_name() -> None:
    body = chat(DIARY, temperature=1, seed=4711, max_tokens=100, file_input="pdf")
    own = UserValves(VERBOSITY="low", REASONING_EFFORT="minimal")
    prepared = await build_chat_request(
        call_of(body, Valves(API_KEY=KEY), user_valves=own)
    )

    report_request(prepared)
    report_request(prepared)

    assert lines_of(prepared)[1:-1] == [
        (
            "INFO",
            "left out of requests of user user-1: reasoning.effort (not taken by "
            "gpt-5.6-sol), seed (not known to the API), temperature (not taken by "
            "gpt-5.6-sol)",
        )
    ]


async def test_completed_answer_is_logged_and_unchanged() -> None:
    prepared = await job_of()
    ended = RunDone(COMPLETED, Usage(10, 5, 15), output=SAID, trace=Trace("req_1"))

    assert end_of(prepared, ended) == (AnswerReport(), ended)
    assert lines_of(prepared) == [("DEBUG", "completed, 15 tokens, request id req_1")]


async def test_share_of_the_window_is_that_of_the_last_response() -> None:
    """Of a chat whose model is known; the sum of all rounds says nothing."""
    prepared = await job_of()
    window = prepared.call.model.facts.max_input_tokens or 0
    last = Usage(window // 2, window // 4, window // 4 * 3)
    whole = Usage(4 * window, window, 5 * window)

    report, _ = end_of(prepared, RunDone(COMPLETED, whole, last, output=SAID))

    assert report.window_share in (74, 75)


async def test_many_tools_explain_a_large_first_number() -> None:
    wide: dict[str, object] = {"parameters": {}, "description": "w" * 2000}
    names = [f"get_{number}" for number in range(28)]
    tools = [{"type": "function", "function": {**wide, "name": n}} for n in names]
    valves = Valves.model_validate({"API_KEY": KEY})
    used = Usage(20_000, 5, 20_005)
    ended = RunDone(COMPLETED, used, usages=(used,), output=SAID)
    memory = PipeMemory()

    async def remark(
        *texts: str,
        offered: int = 28,
        usage: Usage = used,
        responses: int = 1,
        chat_id: str = "c-1",
        is_admin: bool = True,
    ) -> str:
        caller = Caller(MODEL, "user-1", chat_id, "m-1", is_admin=is_admin)
        body = chat(*texts, tools=tools[:offered])
        body["messages"].insert(0, {"role": "system", "content": "Be brief."})
        call = call_of(body, valves, caller)
        call = replace(call, memory=memory)
        end = ended._replace(usage=usage, usages=(usage,) * responses)
        report, _ = end_of(await build_chat_request(call), end)
        return report.usage_note

    assert await remark(DIARY, is_admin=False) == ""
    line = await remark(DIARY)
    assert re.fullmatch(r"about 1[45],\d00 tokens describe 28 tools", line)
    assert await remark(DIARY) == ""
    assert await remark(DIARY, "Yes.", "And?", chat_id="c-2") == ""
    for offered, read, responses, told in (
        (28, 1001, 1, "about 1,000 tokens describe 28 tools"),
        (28, 1000, 1, ""),
        (8, 20_000, 1, "about 4,200 tokens describe 8 tools"),
        (7, 20_000, 1, ""),  # under 4,000
        (4, 20_000, 2, "about 4,200 tokens describe 4 tools"),  # each reads them
        (7, 7000, 1, "about 3,700 tokens describe 7 tools"),
        (7, 8000, 1, ""),  # less than half
        (1, 1000, 1, ""),
    ):
        line = await remark(
            DIARY,
            offered=offered,
            usage=Usage(read, 5, read + 5),
            responses=responses,
            chat_id=f"chat {offered} {read}",
        )
        assert line == told
    half = r'{"vector_store_ids": "vs_1", "filters": {"key": "\ud83d"}}'
    valves.FILE_SEARCH_VECTOR_STORES = half  # with half a character
    assert "29 tools" in await remark(DIARY, chat_id="c-3")


@pytest.mark.parametrize(
    ("removed", "is_counted"),
    [({"prefix_mismatch": 2, "turn_boundary": 1}, True), ({"turn_boundary": 3}, False)],
)
async def test_reasoning_that_the_api_left_out_is_counted(
    removed: dict[str, int], is_counted: bool
) -> None:
    """That past turns leave may be what was asked for."""
    prepared = await job_of()

    end_of(prepared, RunDone(COMPLETED, trace=Trace("req_1", removed=removed)))

    assert prepared.call.memory.dropped == (removed if is_counted else {})


@pytest.mark.parametrize(
    ("is_admin", "words"),
    [(False, ""), (True, f" The model's server said: {DIARY}, key [redacted]")],
)
async def test_failure_gets_its_id_in_the_message_and_in_the_log(
    is_admin: bool, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server's words may quote what is set for everybody."""
    prepared = await job_of(is_admin)

    _, ended = end_of(prepared, FAILED)

    told = f"{FAILED.ending.message} (Error id: {RUN_ID}){words}"
    assert ended == FAILED._replace(ending=FAILED.ending._replace(message=told))
    [line] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert line == (
        f"{RUN_ID} failed: model gpt-5.6-sol, HTTP 200, code rate_limit_exceeded, "
        "type requests, param input, request id req_1. "
        f"The model's server said: {DIARY}, key [redacted]"
    )


async def test_outputs_of_a_clients_tools_are_tools_that_ran() -> None:
    """Only if they are what the model answers: then it may have nothing to add."""
    prepared = await job_of()
    ran = (call("1"), output("1"))
    for rest in ((), (prepared.request.input[-1],)):
        items = [*prepared.request.input, *ran, *rest]
        request = prepared.request.model_copy(update={"input": items})

        _, ended = end_of(prepared._replace(request=request), RunDone(COMPLETED))

        assert ended.ending.is_failure == bool(rest)


USED = Usage(input=250_000, output=0, total=250_000)
ENDED = RunDone(COMPLETED, USED, usages=(USED,))
GATEWAY = "https://gateway.example/v1"
OWN = '{"gpt-5.6-sol": {"input": 1, "output": 1}}'
OWN_PRICES = {"CUSTOM_MODEL_PRICING_JSON": OWN}
STATED = ENDED._replace(usages=(USED._replace(cost=0.75),))
PARTLY = ENDED._replace(usages=(USED, USED._replace(cost=0.75)))
BY_OPENAI = "by OpenAI's prices"


@pytest.mark.parametrize(
    ("ended", "given", "dollars", "source"),
    [
        (ENDED, {}, 1.0, BY_OPENAI),
        (STATED, {}, 0.75, "api.openai.com says so"),
        (STATED, {"BASE_URL": GATEWAY}, 0.75, "gateway.example says so"),
        (STATED, OWN_PRICES, 0.25, "CUSTOM_MODEL_PRICING_JSON"),
        (ENDED, {"BASE_URL": GATEWAY, **OWN_PRICES}, 0.25, "CUSTOM_MODEL_PRICING_JSON"),
        (ENDED, {"BASE_URL": GATEWAY}, None, ""),
        (ENDED, {"BASE_URL": GATEWAY, "COMPATIBILITY": "openai"}, 1.0, BY_OPENAI),
        (ENDED, {"BASE_URL": "https://me.openai.azure.com"}, 1.0, BY_OPENAI),
        (PARTLY, {}, 1.75, "some of it, the rest by OpenAI's prices"),
        (PARTLY, {"BASE_URL": GATEWAY}, None, ""),
        pytest.param(RunDone(COMPLETED), {}, None, "", id="a server that counts none"),
        pytest.param(
            ENDED, {"CUSTOM_MODEL_PRICING_JSON": "{"}, None, "", id="unreadable prices"
        ),
        pytest.param(
            *(ENDED, {"CUSTOM_MODEL_PRICING_JSON": OWN.replace("sol", "x")}),
            *(1.0, BY_OPENAI),
            id="prices of another model",
        ),
    ],
)
async def test_who_says_what_an_answer_costs(
    ended: RunDone, given: Json, dollars: float | None, source: str
) -> None:
    """The administrator, then the server, then the catalog; the log names the source."""
    valves = Valves.model_validate({"API_KEY": KEY, "SHOW_COST": True, **given})
    asked = call_of(chat("Hi"), valves)

    report, _ = end_of(await build_chat_request(asked), ended)

    expected = None if dollars is None else pytest.approx(dollars)
    assert (report.cost and report.cost.dollars) == expected
    lines = [line for line in asked.log.text().splitlines() if " cost " in line]
    assert len(lines) == bool(source)
    assert all(line.endswith(source) for line in lines)


async def test_cost_that_is_not_shown_is_in_the_log() -> None:
    asked = call_of(chat("Hi"), Valves(API_KEY=KEY))

    report, _ = end_of(await build_chat_request(asked), ENDED)

    assert report.cost is None
    assert asked.log.text().count(" cost ") == 1


@pytest.mark.parametrize("shows", [True, False])
async def test_metadata_of_an_agent_hides_the_cost_where_it_is_hidden(
    shows: bool,
) -> None:
    """The log has it all the same."""
    valves = Valves(API_KEY=KEY, SHOW_COST=shows)
    prepared = await build_chat_request(call_of(chat("Hi"), valves))
    agent = AgentMode("gpt5_function_calling", StrategyParameters(), is_listed=True)
    prepared = prepared._replace(call=replace(prepared.call, agent=agent))

    report, _ = end_of(prepared, ENDED)

    assert report.metadata["total_price"] == pytest.approx(1.0 if shows else 0.0)
