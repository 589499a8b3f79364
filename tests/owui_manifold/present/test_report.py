"""The logs tell how a run went, under one id, and only the server is quoted."""

import logging
import re
from typing import Any

import pytest

from calls.sample import MODEL, RUN_ID, TOOL, call_of, chat
from openai_responses.endings import COMPLETED, CUT, ending_of_failure
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, SpentLimit, Trace
from openai_responses.models.usage import Usage
from owui_manifold.call.capabilities import AccountCapabilities
from owui_manifold.call.context import Caller, CheckedCall
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import PreparedRequest
from owui_manifold.present.report import (
    report_end,
    report_request,
)
from runs.sample import call, message, output, search
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

KEY = "sk-canary-5d1f"
DIARY = "my secret diary"
LIMIT = ApiError("rate_limit_exceeded", "requests", "input", f"{DIARY}, key {KEY}")
FAILED = RunDone(
    ending_of_failure("failed", LIMIT),
    Usage(10, 5, 15),
    trace=Trace("req_1", "gpt-5.6-sol-2026", 200, LIMIT),
)


def asked(
    valves: dict[str, Any] | None = None, caller: Caller | None = None
) -> CheckedCall:
    """A question with a tool."""
    given = {"API_KEY": KEY, "LOG_LEVEL": "DEBUG", **(valves or {})}
    body = chat(DIARY, tools=[TOOL])
    return call_of(body, Valves.model_validate(given), caller)


async def job_of(valves: dict[str, Any] | None = None) -> PreparedRequest:
    """The same, ready to be sent."""
    return await build_chat_request(asked(valves))


def lines_of(prepared: PreparedRequest) -> list[tuple[str, str]]:
    """What the run keeps: level and text."""
    lines = prepared.call.log.text().splitlines()
    pairs = [line.split(maxsplit=3)[2:] for line in lines]
    return [(level, text) for level, text in pairs]


# ---------------------------------------------------------------- lines


async def test_request_is_logged_as_counts(host: StandInHost) -> None:
    """The log counts items and tools, and quotes neither."""
    prepared = await job_of()

    report_request(prepared)

    assert lines_of(prepared) == [
        (
            "DEBUG",
            "request to api.openai.com: gpt-5.6-sol, 1 input items, 1 tools, "
            "stream True, background False, stored True, native True",
        )
    ]


async def test_omitted_settings_are_logged_by_name(host: StandInHost) -> None:
    """Of the body's keys, and of what the user chose for another model."""
    body = chat(DIARY, temperature=1, seed=4711, max_tokens=100)
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


async def test_completed_answer_is_logged_and_unchanged(host: StandInHost) -> None:
    """With the tokens, if they are known, and OpenAI's own id."""
    prepared = await job_of()
    output = (message("1", "Hello."),)
    usage = Usage(10, 5, 15)
    trace = Trace("req_1")
    ended = RunDone(COMPLETED, usage, output=output, trace=trace)

    assert report_end(prepared, ended) == ended
    assert report_end(prepared, ended._replace(usage=None)).usage is None

    assert lines_of(prepared) == [
        ("DEBUG", "completed, 15 tokens, request id req_1"),
        ("DEBUG", "completed, request id req_1"),
    ]


async def test_share_of_the_window_is_that_of_the_last_response(
    host: StandInHost,
) -> None:
    """Of a chat whose model is known; the sum of all rounds says nothing."""
    prepared = await build_chat_request(asked())
    window = prepared.call.model.facts.max_input_tokens or 0
    last = Usage(window // 2, window // 4, window // 4 * 3)
    whole = Usage(4 * window, window, 5 * window)
    ended = RunDone(COMPLETED, whole, last, output=(message("1", "Hello."),))

    assert report_end(prepared, ended).window_share in (74, 75)


async def test_many_tools_explain_a_large_first_number(host: StandInHost) -> None:
    """Once, and only where they are much of the input."""
    wide: dict[str, object] = {"parameters": {}, "description": "w" * 2000}
    names = [f"get_{number}" for number in range(28)]
    tools = [{"type": "function", "function": {**wide, "name": n}} for n in names]
    valves = Valves.model_validate({"API_KEY": KEY})
    used = Usage(20_000, 5, 20_005)
    ended = RunDone(COMPLETED, used, usages=(used,), output=(message("1", "Hello."),))

    capabilities = AccountCapabilities()

    async def remark(
        *texts: str,
        offered: int = 28,
        usage: Usage = used,
        chat_id: str = "c-1",
        is_admin: bool = True,
    ) -> str:
        caller = Caller(MODEL, "user-1", chat_id, "m-1", is_admin=is_admin)
        call = call_of(chat(*texts, tools=tools[:offered]), valves, caller)
        call = call._replace(capabilities=capabilities)
        end = ended._replace(usage=usage)
        return report_end(await build_chat_request(call), end).usage_note

    assert await remark(DIARY, is_admin=False) == ""
    line = await remark(DIARY)
    assert re.fullmatch(r"about 1[45],\d00 tokens describe 28 tools", line)
    assert await remark(DIARY) == ""
    assert await remark(DIARY, "Yes.", "And?", chat_id="c-2") == ""
    for number, (offered, read, told) in enumerate(
        (
            (28, 1001, "about 1,000 tokens describe 28 tools"),
            (28, 1000, ""),
            (8, 20_000, "about 4,200 tokens describe 8 tools"),
            (7, 20_000, ""),  # under 4,000
            (7, 7000, "about 3,700 tokens describe 7 tools"),
            (7, 8000, ""),  # less than half
            (1, 1000, ""),
        )
    ):
        usage = Usage(read, 5, read + 5)
        chat_id = f"chat {number}"
        assert (
            await remark(DIARY, offered=offered, usage=usage, chat_id=chat_id) == told
        )


@pytest.mark.parametrize(
    ("removed", "level"),
    [
        ({"prefix_mismatch": 2, "turn_boundary": 1}, "WARNING"),
        ({"turn_boundary": 3}, "DEBUG"),
    ],
)
async def test_reasoning_that_the_api_left_out_is_told(
    removed: dict[str, int], level: str, host: StandInHost
) -> None:
    """That past turns leave may be what was asked for."""
    prepared = await job_of()

    report_end(prepared, RunDone(COMPLETED, trace=Trace("req_1", removed=removed)))

    counts = ", ".join(f"{count} {reason}" for reason, count in removed.items())
    counted = removed if level == "WARNING" else {}
    assert prepared.call.capabilities.dropped == counted
    line = f"the API left out earlier reasoning of the input: {counts}"
    assert lines_of(prepared)[0] == (level, line)


async def test_failure_gets_its_id_in_the_sentence_and_in_the_log(
    host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything else of the end stays as it was."""
    prepared = await job_of()

    ended = report_end(prepared, FAILED)

    sentence = f"{FAILED.ending.message} (Error id: {RUN_ID})"
    assert ended == FAILED._replace(ending=FAILED.ending._replace(message=sentence))
    [line] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert line == (
        f"{RUN_ID} failed: HTTP 200, code rate_limit_exceeded, type requests, "
        "param input, request id req_1. "
        f"The model's server said: {DIARY}, key [redacted]"
    )


async def test_words_of_the_server_are_in_the_log_without_secrets(
    host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """On one line, with what they are about; a code may be none."""
    prepared = await job_of()
    words = f"No.\nkey {KEY}, Bearer sk-proj-abcdefghijklmnopqrstuv1234567890"
    odd = ApiError(DIARY, f"Bearer {KEY}", KEY, words)
    trace = Trace("req_1", "", 400, odd, subject="tools[3] is get_weather.")

    report_end(prepared, FAILED._replace(trace=trace))

    for text in (caplog.text, prepared.call.log.text()):
        [line] = text.strip().splitlines()
        assert "HTTP 400, code None, type None, param None" in line
        assert "The model's server said: tools[3] is get_weather. No." in line
        assert DIARY not in text
        assert KEY not in text
        assert "sk-proj" not in text


@pytest.mark.parametrize(("length", "role"), [(500, "user"), (1_000_000, "admin")])
async def test_words_of_the_server_are_cut(
    length: int, role: str, host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """A secret that lies across the cut is in no line, either."""
    prepared = await build_chat_request(asked(caller=by(role)))
    words = ("x " * length)[: 500 - len(KEY) // 2] + KEY + "y" * length
    trace = Trace("req_1", "", 400, ApiError(message=words))

    ended = report_end(prepared, FAILED._replace(trace=trace))

    for text in (caplog.text, ended.ending.message):
        assert len(text) < 1000
        assert KEY[:8] not in text


def by(role: str) -> Caller:
    """A person of this role."""
    return Caller(
        MODEL, "user-1", "chat-1", "m-1", streams=True, is_admin=role == "admin"
    )


@pytest.mark.parametrize("role", ["user", "admin"])
async def test_words_of_the_server_are_shown_to_administrators(
    role: str, host: StandInHost
) -> None:
    """Others get the message: the words may quote what is set for everybody."""
    prepared = await build_chat_request(asked(caller=by(role)))

    sentence = report_end(prepared, FAILED).ending.message

    words = (
        f" The model's server said: {DIARY}, key [redacted]" if role == "admin" else ""
    )
    assert sentence == f"{FAILED.ending.message} (Error id: {RUN_ID}){words}"


async def test_a_server_that_said_nothing_is_not_quoted(
    host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    prepared = await build_chat_request(asked(caller=by("admin")))

    sentence = report_end(prepared, RunDone(CUT)).ending.message

    assert sentence == f"{CUT.message} (Error id: {RUN_ID})"
    assert "The model's server said" not in caplog.text


# ---------------------------------------------------------------- no answer

RAN = (call("1"), output("1"))
REMOTE: Item = {"type": "mcp_call", "name": "now", "server_label": "clocks"}


@pytest.mark.parametrize(
    ("items", "limit", "words"),
    [
        pytest.param((), None, "ended without an answer", id="nothing"),
        pytest.param((search("1"),), None, "ended without an answer", id="a search"),
        pytest.param(RAN, None, "", id="a tool ran"),
        pytest.param((*RAN, message("1", "")), None, "", id="then an empty message"),
        pytest.param((REMOTE,), None, "", id="a tool of a remote server ran"),
        pytest.param((*RAN, message("1", "")), "calls", "more tool calls", id="calls"),
        pytest.param((), "seconds", "the time or the tokens", id="seconds"),
        pytest.param(RAN, "tokens", "the time or the tokens", id="tokens"),
        pytest.param((*RAN, message("1", "Rain.")), "calls", "", id="an answer"),
    ],
)
async def test_complete_response_without_an_answer(
    items: tuple[Item, ...], limit: SpentLimit | None, words: str, host: StandInHost
) -> None:
    """What limited the run is the reason; after tools there may be nothing to add."""
    prepared = await job_of()

    ended = report_end(prepared, RunDone(COMPLETED, output=items, limit=limit))

    assert ended.ending.is_failure == bool(words)
    assert words in ended.ending.message


async def test_outputs_of_a_clients_tools_are_tools_that_ran(host: StandInHost) -> None:
    """Only if they are what the model answers."""
    prepared = await job_of()
    for rest in ((), (prepared.request.input[-1],)):
        items = [*prepared.request.input, *RAN, *rest]
        request = prepared.request.model_copy(update={"input": items})

        ended = report_end(prepared._replace(request=request), RunDone(COMPLETED))

        assert ended.ending.is_failure == bool(rest)
