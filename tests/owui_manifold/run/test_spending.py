"""What is counted of answers, what limits refuse, and what `/usage` tells."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

import calls.desk
from calls.outcomes import (
    chunks_of,
    closings,
    errors,
    grown,
    refused_with,
    split_id,
    statuses,
)
from calls.sample import IDS, TOOL, USER, chat
from calls.tools import with_tool
from calls.valves import expert
from chats.pictures import PNG, data_url
from openai_responses.clock import utc_today
from openai_responses.endings import Ending
from openai_responses.loop.events import ResponseDone, RunDone, RunEvent, Status
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter
from openai_responses.transport.stream import ItemAdded, TextDelta
from owui_administration.filter import Filter
from owui_administration.telemetry import Telemetry
from owui_administration.usage_table import UsageRow, UsageTable
from owui_chat.commands import without_commands
from owui_chat.messages import parse_messages
from owui_manifold.call.valves import UserValves
from owui_manifold.pipe import Pipe
from owui_manifold.run.spending import CallerPresence, event_words
from runs.tools import calling
from shells.administration import EventWords
from simulator import Simulator
from stand_in.host import StandInHost, host_request
from stand_in.usage_database import UsageDatabase
from upstream import wire
from upstream.server import (
    Answerer,
    Upstream,
    breaking,
    in_one_piece,
    in_turn,
    replying,
    streaming,
)

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
ID = "openai_responses_administration"
NATIVE: Json = {"__user__": USER, "__metadata__": IDS, "__request__": host_request()}
DAY = utc_today().isoformat()
ADMIN: Json = {"__user__": {**USER, "id": "admin", "role": "admin"}}
FREE = {"money": 1000, "per": "month", "show": True}
SPENT = UsageRow("user-1", DAY, "gpt-5.2", 1, 500, 0, 500, 2_000_000)


@pytest.fixture
def database(host: StandInHost, monkeypatch: pytest.MonkeyPatch) -> UsageDatabase:
    return UsageDatabase(monkeypatch, host)


class Desk(calls.desk.Desk):
    """A pipe with its filter, which has a limit that is far away."""

    usual = NATIVE

    def __init__(self, desk: calls.desk.Desk, database: UsageDatabase) -> None:
        super().__init__(desk.pipe, desk.sim, desk.host)
        self.database = database
        self.filter = Filter()
        self.host.filters.active = {ID: self.filter}
        self.limit(FREE)

    def limit(self, *rules: Json) -> None:
        """Set the rules as an administrator does."""
        self.host.filters.valves = {ID: {"USER_LIMITS_JSON": json.dumps(rules)}}

    async def refusal(self, body: Json | None = None, **given: Any) -> str:
        [message] = errors(await self.chunks(body or chat("Hi"), **given))
        return split_id(message)[0]

    async def counted(self, user_id: str = "user-1") -> list[UsageRow]:
        """What the table has of a user, as soon as it is written."""
        return sorted(await self.filter._usage.user_rows(user_id, "2026"))

    async def row(self, user_id: str = "user-1") -> UsageRow:
        [row] = await self.counted(user_id)
        return row

    @property
    def usages(self) -> list[Json]:
        return [r.response["usage"] for r in self.sim.requests if r.response]


@pytest.fixture
def desk(desk: calls.desk.Desk, database: UsageDatabase) -> Desk:
    return Desk(desk, database)


async def spent(row: UsageRow) -> None:
    """Write what a user has had, as another process of the server does."""
    table = UsageTable()
    table.add(row)
    await table.flush()


async def stop_at(is_last: Callable[[Json], object], answer: Any) -> None:
    """Read an answer up to a chunk, and stop it there."""
    async for chunk in answer:
        if is_last(chunk):
            break
    await answer.aclose()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (TextDelta(0, "text", 0, "canary"), EventWords("text")),
        (TextDelta(0, "refusal", 0, "canary"), EventWords("text")),
        (TextDelta(0, "summary", 0, "canary"), EventWords()),
        (Status("canary"), EventWords("retry")),
        (
            Status("canary", TriedRepair(LeaveOutParameter("metadata"))),
            EventWords("recovery"),
        ),
        (
            RunDone(Ending("failed", "server_error", "canary")),
            EventWords("end", "failed", "server_error", ""),
        ),
    ],
)
async def test_filter_is_told_the_kind_of_an_event_alone(
    event: RunEvent, words: EventWords
) -> None:
    assert event_words(event) == words


async def test_filter_observes_the_run_at_its_server_and_its_tools(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []

    def observe_run(_: Telemetry, events: object, *facts: object) -> object:
        told.extend(facts)
        return events

    async def observe_tool(_: Telemetry, name: str, work: Any, failed: Any) -> object:
        result = await work
        told.extend((name, failed(result)))
        return result

    monkeypatch.setattr(Telemetry, "observe_run", observe_run)
    monkeypatch.setattr(Telemetry, "observe_tool", observe_tool)
    body = chat("sim:tool", model="my_pipe.gpt-5.6-sol-high", tools=[TOOL])
    await desk.chunks(body, **with_tool())

    model = ["gpt-5.6-sol", "127.0.0.1", event_words]
    assert told == [*model, "get_weather", False]


async def test_nothing_is_counted_without_the_valve(
    pipe: Pipe, host: StandInHost, database: UsageDatabase
) -> None:
    """The host's database is not touched, nor is a model asked for `/usage`."""
    for command in ("/usage", "/Usage  7d csv\n", "/usage of commas?"):
        text = grown(await chunks_of(pipe, chat(command), **NATIVE))
        assert "Usage is not counted here" in text
        told = chat(command, text)["messages"]
        assert without_commands(parse_messages(told)[1]) == []
    assert database.opened == 0

    chunks = await chunks_of(pipe, chat("/usages of commas?"), **NATIVE)
    assert "This is turn 1." in grown(chunks)


async def test_answers_add_up_in_one_row(desk: Desk) -> None:
    await desk.ask("Hi")
    second = {**IDS, "message_id": "m-2"}
    chunks = await desk.ask("Hi", __metadata__=second)

    row = await desk.row()
    assert row[:4] == ("user-1", DAY, "gpt-5.6-sol", 2)
    assert row.input == sum(usage["input_tokens"] for usage in desk.usages)
    assert row.output == sum(usage["output_tokens"] for usage in desk.usages)
    assert row.money > 0
    assert statuses(chunks)[-1].endswith("left this month")


async def test_every_round_of_tools_and_every_task_counts(desk: Desk) -> None:
    """Rounds and tasks that the page does not show cost money, too."""
    await desk.chunks(chat("sim:tool", tools=[TOOL]), **with_tool())
    await desk.result(chat("Hi"), __task__="title_generation")

    rows = await desk.counted()
    assert sum(row.requests for row in rows) == 3 == len(desk.usages)
    inputs = [usage["input_tokens"] for usage in desk.usages]
    assert sum(row.input for row in rows) == sum(inputs)


async def test_stopped_answer_is_estimated(desk: Desk) -> None:
    """Whoever stops every answer does not use the models for nothing."""
    text = ""

    def has_come(chunk: Json) -> bool:
        nonlocal text
        if "text.delta" in chunk.get("type", ""):
            text += chunk["delta"]
        return len(text) > 60

    asked = chat("sim:slow " + "word " * 400)
    await stop_at(has_come, await desk.answer(asked))

    row = await desk.row()
    assert row.requests == 1
    assert 400 <= row.input <= 800
    assert 10 <= row.output <= 100


async def test_all_that_was_sent_of_a_stopped_answer_is_estimated(desk: Desk) -> None:
    """Results of tools, instructions and tools are read, too; pictures are no text."""
    body = chat("Rain?", "", "sim:slow", tools=[TOOL])
    call = {"id": "call_1", "function": {"name": "get_weather", "arguments": "{}"}}
    large = data_url(PNG + bytes(30_000), "image/png")
    picture = {"type": "image_url", "image_url": {"url": large}}
    table = data_url(b"rain " * 800, "text/csv")
    scan = data_url(b"%PDF-" + bytes(30_000), "application/pdf")
    files = [
        {"type": "file", "file": {"filename": name, "file_data": data}}
        for name, data in (("a.csv", table), ("b.pdf", scan))
    ]
    question = [{"type": "text", "text": "sim:slow"}, picture, *files]
    [asked, answered, stopped] = body["messages"]
    body["messages"] = [
        {"role": "system", "content": "word " * 4_000},
        asked,
        {**answered, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain " * 8_000},
        {**stopped, "content": question},
    ]
    answer = await desk.answer(body)
    await anext(answer)
    await answer.aclose()

    row = await desk.row()
    assert 16_000 <= row.input < 18_000


async def test_later_round_that_is_stopped_is_estimated(desk: Desk) -> None:
    """While it thinks, too: all of the rounds before it was sent again."""
    body = chat("sim:tool-forever", tools=[TOOL])
    answer = await desk.answer(body, **with_tool())
    thoughts = 0

    def thinks_again(chunk: Json) -> bool:
        nonlocal thoughts
        is_added = chunk.get("type") == "response.output_item.added"
        thoughts += is_added and chunk["item"]["type"] == "reasoning"
        return thoughts == 2

    await stop_at(thinks_again, answer)

    row = await desk.row()
    first = desk.usages[0]
    assert row.requests == 2
    read_again = 2 * first["input_tokens"] + first["output_tokens"]
    assert read_again < row.input < read_again + 100  # with the output of the tool


@pytest.mark.parametrize("way", ["failed", "late-reason", "error-flat", "cut"])
async def test_answer_that_fails_is_estimated(way: str, desk: Desk) -> None:
    """Words at its end that a filter stops would make a long answer cost nothing."""
    await desk.chunks(chat(f"sim:{way} " + "word " * 400))

    row = await desk.row()
    assert row.requests == 1
    assert 400 <= row.input <= 800
    assert row.output > 0


@pytest.mark.parametrize("words", [None, 0, 100])
async def test_answer_that_fails_while_code_runs_is_estimated(
    words: int | None, desk: Desk
) -> None:
    """The text before the code counts, too."""
    begun: Json = {"type": "response.output_item.added", "output_index": 0}
    said = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
    events = [{**begun, "output_index": 1, "item": RAN}]
    if words is not None:
        events = [
            {**begun, "item": {**ANSWER, "content": []}},
            {**said, "item_id": ANSWER["id"], "delta": "word " * words},
            *events,
        ]
    stream = streaming(*(f"data: {json.dumps(e)}\n\n".encode() for e in events))
    async with Upstream(stream) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, ENABLE_CODE_INTERPRETER=True)
        await desk.chunks(chat("word " * 400))

    row = await desk.row()
    assert row.requests == 1
    assert row.output >= (words or 0)
    assert row.money >= 30_000


BUSY = replying("{}", status=503, headers={"Retry-After": "30"})


@pytest.mark.parametrize(
    ("server", "outputs"),
    [
        (BUSY, []),
        (breaking(wire.on_the_wire(*wire.reasoning(["word " * 400])[:-1])), [500]),
    ],
    ids=["refused", "broken"],
)
async def test_what_came_before_the_next_attempt_is_estimated(
    server: Answerer, outputs: list[int], desk: Desk
) -> None:
    """Whoever does not wait for it has had nothing of a request that was refused."""
    async with Upstream(server) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, EXPERT_JSON='{"max_retries": 2}')
        answer = await desk.answer(chat("word " * 400))
        await stop_at(lambda chunk: "Trying again in " in str(chunk), answer)

    assert [row.output for row in await desk.counted()] == outputs


SORRY = {"code": "server_error", "message": "Sorry!"}
THOUGHT = wire.reasoning(["word " * 400])[:-1]
HALF_CALL = wire.function_call("get_weather", '{"city": "' + "a" * 400)[:-2]


@pytest.mark.parametrize(
    ("attempts", "least_input", "output"),
    [
        ([wire.reasoning()[:-1], THOUGHT, HALF_CALL], 3 * 500, 602),
        ([[*THOUGHT, wire.ended("failed", error=SORRY, usage=None)]], 500, 500),
        ([[*THOUGHT, wire.ended("failed", error=SORRY)]], 30, 12),
        ([[wire.ended("failed", error=SORRY)]], 30, 12),
        ([[]], 0, 0),
    ],
    ids=["broken", "failed", "with its usage", "with nothing else", "unbegun"],
)
async def test_attempts_before_the_answer_count(
    attempts: list[wire.Events], least_input: int, output: int, desk: Desk
) -> None:
    """Their tokens are billed as well: those that they named, or an estimate."""
    said = wire.message("Hi.")
    whole = wire.completed(said[-1]["item"])
    broken = [breaking(wire.on_the_wire(*events)) for events in attempts]
    answers = in_turn(*broken, streaming(wire.on_the_wire(*said, whole)))
    async with Upstream(answers) as server:
        retries = expert(max_retries=len(attempts))
        desk.set_valves(BASE_URL=server.base_url, EXPERT_JSON=retries)
        await desk.chunks(chat("word " * 400))

    row = await desk.row()
    assert (row.requests, row.output) == (1 + bool(output) * len(attempts), output + 12)
    assert row.input >= least_input + 30


async def test_denied_call_of_a_remote_tool_begins_no_response(desk: Desk) -> None:
    """It is shown after the response that asked, and the answer is stopped then."""
    server = {"server_label": "wiki", "server_url": "https://wiki.example/mcp"}
    desk.set_valves(
        REMOTE_MCP_SERVERS_JSON=json.dumps(server), TOOL_APPROVAL="wiki_*=deny"
    )
    answer = await desk.answer(chat("sim:mcp-approval"))
    await stop_at(
        lambda chunk: chunk.get("item", {}).get("type") == "function_call_output",
        answer,
    )

    row = await desk.row()
    assert row.requests == len(desk.sim.requests) == 1


async def test_response_that_begins_with_a_call_is_counted(desk: Desk) -> None:
    """Its arguments are the first that comes of it."""
    body = chat("sim:tool-twice", tools=[TOOL], reasoning_effort="none")
    assert not errors(await desk.chunks(body, **with_tool()))

    row = await desk.row()
    assert row.requests == len(desk.sim.requests) == 3


async def test_as_many_rounds_as_the_valve_says_make_their_calls(desk: Desk) -> None:
    """The model hears of the limit in one more."""
    desk.set_valves(MAX_FUNCTION_CALL_LOOPS=2)
    await desk.chunks(chat("sim:tool-forever", tools=[TOOL]), **with_tool())

    assert str(desk.bodies[-1]).count("Rain in ") == 2


async def test_own_key_at_a_gateway_counts(desk: Desk) -> None:
    """The gateway may serve anybody: only OpenAI bills whoever has the key."""
    desk.limit({"money": 0, "per": "day"})
    desk.set_valves(USER_API_KEYS="allowed")
    user = {**USER, "valves": UserValves(API_KEY=desk.sim.api_key)}

    chunks = await desk.ask("Hi", __user__=user)

    assert "limit of $0" in errors(chunks)[0]


async def test_used_up_limit_refuses_with_the_time_when_it_begins_anew(
    desk: Desk,
) -> None:
    await spent(SPENT)
    desk.limit({"group": "students", "money": 2, "per": "day"})

    assert not errors(await desk.ask("Hi"))
    desk.host.groups.members["students"] = {"user-1"}
    sent = len(desk.sim.requests)
    message = await desk.refusal()
    title = await desk.result(chat("Hi"), __task__="title_generation")

    assert message.startswith("Your limit of $2.00 a day is used up: $2.0")
    assert "resets on" in message
    assert title["choices"][0]["message"]["content"] == ""
    assert len(desk.sim.requests) == sent
    other = {**USER, "id": "user-2"}
    assert not errors(await desk.ask("Hi", __user__=other))


async def test_answer_ends_between_rounds_a_tenth_above(desk: Desk) -> None:
    """Its text and its calls are kept, each call has an output, and it says why."""
    desk.limit({"tokens": 1100, "per": "day"})
    await spent(SPENT)

    body = chat("sim:tool-twice " + "word " * 400, tools=[TOOL])
    chunks = await desk.chunks(body, **with_tool())

    [message] = errors(chunks)
    assert "Your limit of 1,100 tokens a day is used up" in message
    assert len(desk.sim.requests) == 1
    done = [c["item"] for c in chunks if c.get("type") == "response.output_item.done"]
    for kind in ("function_call", "function_call_output"):
        assert len({item["call_id"] for item in done if item["type"] == kind}) == 1


async def test_rules_restrict_models_efforts_and_tools(desk: Desk) -> None:
    desk.limit(
        {"efforts": ["none", "low"], "tools": ["file_search"]},
        {"role": "admin", "models": ["gpt-6-*"]},
    )
    lacking = '{"gpt-5.6-sol": {"lacks": ["file_search"]}}'
    desk.set_valves(
        ENABLE_WEB_SEARCH=True,
        MAP_WEB_SEARCH=True,
        FILE_SEARCH_VECTOR_STORES="vs_1",
        MODEL_OVERRIDES_JSON=lacking,
    )
    body = chat("Hi", reasoning_effort="high")

    assert not errors(await desk.chunks(body))
    sent = desk.sent
    assert sent["reasoning"]["effort"] == "low"
    assert "tools" not in sent
    desk.set_valves(FILE_SEARCH_VECTOR_STORES="")
    message = await desk.refusal(**ADMIN)
    assert message == "GPT-5.6 Sol is not available to you. You may use: gpt-6-*."

    requests = len(desk.bodies)
    await desk.chunks({**body, "model": "my_pipe.mine"})  # of which nothing is known
    assert desk.bodies[requests]["reasoning"]["effort"] == "low"
    desk.limit({"efforts": ["minimal"]})
    assert "effort" in await desk.refusal()  # the model has no such one


async def test_log_says_what_limits_took(
    caplog: pytest.LogCaptureFixture, desk: Desk
) -> None:
    desk.limit({"efforts": ["none", "low"], "tools": ["file_search"]})
    search = UserValves(WEB_SEARCH="on")
    given = {"__user__": {**USER, "valves": search}}
    desk.set_valves(USER_MAY_CHANGE="all")

    for _ in range(2):
        await desk.chunks(chat("Hi", reasoning_effort="high"), **given)

    lines = [text for text in caplog.messages if "left out of requests of" in text]
    assert [line.split("user-1: ")[1] for line in lines] == [
        "web_search (forbidden by limits)",
        "the effort high (limits allow low)",
    ]


async def test_effort_of_a_merge_is_lowered_too(desk: Desk) -> None:
    """It is done at the model's own effort, as an answer."""
    desk.limit({"efforts": ["none", "low"]})
    body = chat("Hi", model="my_pipe.gpt-5.6-sol-high")

    await desk.chunks(body, __task__="moa_response_generation")

    assert desk.sent["reasoning"] == {"effort": "low"}


async def test_agents_are_judged_and_counted_by_their_model(desk: Desk) -> None:
    """The name of an agent opens nothing, and closes nothing."""
    body = chat("Hi", model="my_pipe.gpt5_function_calling")
    desk.limit({"models": ["gpt5_*"]})
    refused = "GPT-6.1 Sol is not available to you. You may use: gpt5_*."
    assert await desk.refusal(body) == refused

    desk.limit({"models": ["gpt-6.1-*"], "money": 1000, "per": "month"})
    assert not errors(await desk.chunks(body))
    row = await desk.row()
    assert (row.model, row.requests) == ("gpt-6.1-sol", 1)


@pytest.mark.parametrize(
    ("mode", "rule", "problem"),
    [
        (
            "high",
            {"models": ["gpt-6.1-sol"]},
            "GPT-6.1 Sol pro is not available to you",
        ),
        ("research", {"models": ["gpt-6.1-sol"]}, "Sol Research is not available to"),
        ("research", {"tools": []}, "you may not use web search"),
        ("research", {"models": ["gpt-6.1-sol-research"]}, ""),
        ("pro", {"models": ["gpt-6.1-sol"]}, "GPT-6.1 Sol pro is not available to you"),
        ("pro", {"models": ["gpt-6.1-sol-pro"]}, ""),
    ],
)
async def test_pro_and_research_are_models_of_their_own(
    mode: str, rule: Json, problem: str, desk: Desk
) -> None:
    """They cost many times as much, also where the request asks for the mode."""
    desk.limit(rule)
    body = {**chat("Hi"), "model": f"my_pipe.gpt-6.1-sol-{mode}"}
    if mode == "high":
        desk.set_valves(EXPERT_JSON=expert(caller_may_set="reasoning.mode"))
        body["reasoning"] = {"mode": "pro"}

    chunks = await desk.chunks(body)

    assert problem in str(errors(chunks))
    assert bool(errors(chunks)) == bool(problem)


async def test_title_of_a_research_chat_is_no_research(desk: Desk) -> None:
    """It counts as what its own model is."""
    desk.limit({"models": ["gpt-6-luna"]})
    desk.set_valves(TASK_MODEL="gpt-6-luna")
    body = {**chat("### Task: a title"), "model": "my_pipe.gpt-6.1-sol-research"}

    await desk.result(body, __task__="title_generation")

    assert desk.bodies[0]["model"] == "gpt-6-luna"


async def test_money_needs_a_price(desk: Desk) -> None:
    body = {**chat("Hi"), "model": "my_pipe.unheard-of"}

    message = await desk.refusal(body)

    assert "the price of unheard-of is not known" in message
    assert desk.bodies == []


async def test_broken_rule_closes_but_for_administrators(desk: Desk) -> None:
    """Who are told of it above the answer."""
    desk.limit({"mony": 5})
    desk.host.chats.rows.clear()  # the chat is not somebody else's

    assert "A rule about your usage is invalid, so you get no" in await desk.refusal()
    chunks = await desk.ask("Hi", **ADMIN)
    assert not errors(chunks)
    assert any("Rule 1 of USER_LIMITS_JSON" in line for line in statuses(chunks))


async def test_unwritten_usage_is_written_with_the_next_answer(desk: Desk) -> None:
    """The answer is not touched, and an administrator is told at the next one."""
    desk.limit()
    desk.host.chats.rows.clear()  # the chat is not somebody else's
    desk.database.failing = 2  # the pipe looks at the chat's messages before

    assert not errors(await desk.ask("Hi", **ADMIN))
    await until_written(desk.filter)
    desk.database.failing = 2  # the pipe looks at the chat's messages before
    chunks = await desk.ask("Hi", **ADMIN)

    assert any("Usage is not counted" in line for line in statuses(chunks))
    await until_written(desk.filter)
    row = await desk.row("admin")
    assert row.requests == 2


async def until_written(asked: Filter) -> None:
    """Wait for the write that nothing waits for."""
    writer = asked._usage._writer
    assert writer is not None
    await asyncio.wait_for(writer, 60)


async def test_usage_tells_people_their_own_sums(desk: Desk) -> None:
    await spent(SPENT)
    await spent(SPENT._replace(user_id="user-2", model="secret"))

    text = grown(await desk.ask("/usage 7d"))

    assert desk.sim.requests == []
    assert "| today | 2.0000 | 1 | 500 | 0 | 500 |" in text
    assert "| this month, gpt-5.2 | 2.0000 | 1 | 500 | 0 | 500 |" in text
    assert "- $998.00 of $1,000.00 left this month" in text
    assert "secret" not in text


async def test_tasks_about_usage_ask_no_model(desk: Desk) -> None:
    """The host takes the command itself as the title."""
    metadata = {"task_body": {"messages": chat("/usage 7d csv")["messages"]}}
    given: dict[str, Any] = {"__metadata__": metadata}
    body = {**chat("Write a title."), "stream": False}
    result: Any = await desk.answer(body, **given, __task__="title_generation")

    assert result["choices"][0]["message"]["content"] == ""
    assert desk.sim.requests == []


@pytest.mark.parametrize("form", ["chat", "task"])
async def test_usage_is_told_to_no_model(form: str, desk: Desk) -> None:
    """The next request is as if it had never been asked for."""
    await spent(SPENT._replace(user_id="ann@school.example"))
    told = grown(await desk.ask("/usage", **ADMIN))
    assert "ann@school.example" in told
    if form == "chat":
        later = chat("Hi", "Hello.", "/usage", told, "And now?")
        await desk.chunks(later, **ADMIN)
    else:
        quoted = f"USER: /usage\nASSISTANT: {told}\nUSER: And now?"
        later = chat(f"Write a title.\n<chat_history>\n{quoted}\n</chat_history>")
        await desk.result(later, **ADMIN, __task__="title_generation")

    [request] = desk.sim.requests
    sent = json.dumps(request.body)
    assert "And now?" in sent
    assert "/usage" not in sent
    assert "school.example" not in sent


FIRST_FILE = "/api/v1/files/file-1/content"


@pytest.mark.parametrize(
    ("user", "chat_id", "most_bytes", "is_linked", "words"),
    [
        ("user-1", "chat-1", 1000, True, f".csv]({FIRST_FILE}): 1 line "),
        ("user-1", "temporary:1", 1000, False, f".csv]({FIRST_FILE}): 1 line "),
        ("user-1", "chat-1", 1, None, "```csv"),
        ("user-1", "channel:1", 1000, None, "```csv"),
        ("gone@example.com", "chat-1", 1000, None, "```csv"),
    ],
    ids=["row", "temporary", "refused by the host", "channel", "no user"],
)
async def test_page_gets_usage_in_a_file(
    user: str,
    chat_id: str,
    most_bytes: int,
    is_linked: bool | None,
    words: str,
    desk: Desk,
) -> None:
    """It is the user's own, and goes with a chat that the host stores."""
    desk.host.files.most_bytes = most_bytes
    await spent(SPENT._replace(user_id=user))
    metadata = {**IDS, "chat_id": chat_id}
    given: Json = {"__user__": {**USER, "id": user}, "__metadata__": metadata}
    told = grown(await desk.ask("/usage 90d csv", **given))

    assert words in told
    assert "None" not in told
    assert [row.user_id for row in desk.host.files.rows.values()] == (
        [] if is_linked is None else ["user-1"]
    )
    link = ("chat-1", "m-1", "file-1", "user-1")
    assert desk.host.chats.links == ([link] if is_linked else [])


async def test_an_address_draws_nothing_in_the_table(desk: Desk) -> None:
    """Whoever signs up writes it; Open WebUI takes any text around an @."""
    address = "![a](https://evil.example/a.png)WWW.evil.example\n```\n# <b>`x`</b>@example.com"
    desk.database.add_users(("user-1", address))
    await spent(SPENT)

    program = {**ADMIN, "__metadata__": {}}
    for words, given in (("/usage", ADMIN), ("/usage csv", program)):
        result = await desk.result(chat(words), **given)
        text = result["choices"][0]["message"]["content"]

        *_, line = [row for row in text.splitlines() if "evil.example" in row]
        assert not set(line) & set("![]<>`#"), words
        assert "://" not in line  # the page makes a link of a bare address, too
        assert "www." not in line.lower()
        assert "example.com, gpt-5.2" in line
        assert text.count("```") == 2


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("is_counted", "account"),
    [
        (False, (USER, None)),
        (True, (USER, None)),
        (True, (USER, USER)),
        (False, (USER, RuntimeError("the database is away"))),
        (False, ({}, None)),
        (False, (USER, {"role": "pending"})),
    ],
    ids=["gone", "gone, counted", "there", "unknown", "nobody in particular", "off"],
)
async def test_answer_ends_with_its_round_once_its_user_is_gone(
    is_counted: bool,
    account: tuple[Json, Json | RuntimeError | None],
    pipe: Pipe,
    sim: Simulator,
    host: StandInHost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tools would go on acting for somebody who was deleted."""
    if is_counted:
        host.filters.active = {ID: Filter()}
        host.filters.valves = {ID: {"USER_LIMITS_JSON": "[]"}}
    called: list[str] = []
    asks, found = account
    role = found.get("role", "") if isinstance(found, dict) else ""
    get_user = host.users.get_user_by_id

    async def get_user_unless_deleted(id: str) -> Any:
        if called and isinstance(found, RuntimeError):
            raise found
        if called and found is None:
            return None
        user: Any = await get_user(id)
        user.role = role if called and role else user.role
        return user

    async def weather(city: str) -> str:
        called.append(city)
        return "rain"

    monkeypatch.setattr(host.users, "get_user_by_id", get_user_unless_deleted)
    body = chat("sim:tool-twice,delay=2000", tools=[TOOL])
    given = {**NATIVE, **with_tool(weather), "__user__": asks}
    shown = await chunks_of(pipe, body, **given)

    is_gone = bool(asks) and (found is None or bool(role))
    assert len(sim.requests) == 3 - is_gone
    assert ["account is gone" in error for error in errors(shown)] == [True] * is_gone


async def test_account_is_looked_for_once_a_second_at_most(host: StandInHost) -> None:
    """At the end of responses with calls."""
    presence = CallerPresence("user-1")
    looks: list[bool] = []
    waits = (1.1, ""), (0, "look"), (0.9, "look"), (0.2, ""), (1.1, "")
    for seconds, tool in waits:
        await asyncio.sleep(seconds)
        if tool:
            presence.is_due(ItemAdded(0, calling(tool)))
        looks.append(presence.is_due(ResponseDone()))
        if looks[-1]:
            await presence.look()

    assert looks == [False, True, False, True, False]


async def test_pictures_count_against_a_limit_in_money(desk: Desk) -> None:
    """Until then each costs its tokens of text alone, and a user draws without end."""
    desk.limit({"money": 0.03, "per": "day"})
    desk.set_valves(ENABLE_IMAGE_GENERATION=True, SHOW_COST=True)

    [closing] = closings(await desk.ask("sim:draw"))
    await desk.ask("sim:draw")

    assert " · about $0.017 · " in closing
    row = await desk.row()
    words = row.input * 4 + row.output * 20
    assert row.money == words + 2 * 272 * 30  # two of 1024 x 1024, low
    assert (await desk.refusal(chat("sim:draw"))).startswith("Your limit of $0.03 ")


RAN: Json = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "1",
    "container_id": "cntr_1",
    "outputs": [],
}
SEARCHED: Json = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
CALLED = calling("get_weather")
ANSWER: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Rain.", "annotations": []}],
}
CHOICE: Json = {"type": "function", "name": "choose"}
USAGE: Json = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "total_tokens": 15,
}


@pytest.mark.parametrize(
    ("output", "usage", "expected"),
    [
        ([ANSWER], None, [(1, 505, 1)]),
        ([], None, []),
        ([ANSWER], {"input_tokens": 0, "output_tokens": 0}, [(1, 505, 1)]),
        ([ANSWER], {"output_tokens": 7}, [(1, 505, 7)]),
        ([ANSWER], {"input_tokens": 9, "output_tokens": -7}, [(1, 9, 1)]),
        ([ANSWER], {"input_tokens": 10**9, "output_tokens": 7}, [(1, 505, 7)]),
    ],
    ids=["words", "nothing came of it", "zeros", "output", "input", "no such count"],
)
async def test_answer_of_a_server_without_usage_is_estimated(
    output: list[Json],
    usage: Json | None,
    expected: list[tuple[int, int, int]],
    desk: Desk,
) -> None:
    """Else a limit in tokens is none there."""
    async with Upstream(in_one_piece(*output, usage=usage)) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, ENABLE_STREAM=False)
        await desk.chunks(chat("word " * 400))

    rows = await desk.counted()
    assert [(row.requests, row.input, row.output) for row in rows] == expected


async def test_next_round_is_estimated_with_what_tools_returned(desk: Desk) -> None:
    """Whoever leaves before its first word has had a long text read for nothing.

    A request that was refused before it had nothing read.
    """
    asked = asyncio.Event()

    async def wait(_: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async def weather(city: str) -> str:
        return "rain " * 4_000

    body = chat("Hi", tools=[TOOL])
    first = in_one_piece(SEARCHED, CALLED, usage=USAGE)
    both = in_one_piece(*(calling("get_weather", n) for n in (2, 3)), usage=USAGE)
    async with Upstream(in_turn(first, both, BUSY, wait)) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, ENABLE_STREAM=False)
        desk.set_valves(EXPERT_JSON=expert(max_retries=1))
        answering = asyncio.create_task(desk.chunks(body, **with_tool(weather)))
        await asked.wait()
        answering.cancel()
        await asyncio.wait([answering])

    row = await desk.row()
    assert row.requests == 3
    assert row.input == 2 * 10 + (10 + 5 + 2 * 20_000 // 4)
    assert row.cached == 3 * 4
    bought, _ = await desk.filter._usage.purchases("2026", "user-1")
    assert bought.searches == 1


async def test_silence_of_a_counted_answer_is_told(desk: Desk) -> None:
    told: list[object] = []

    async def emit(event: object) -> None:
        told.append(event)

    await desk.chunks(chat("sim:chat,wait=30000"), __event_emitter__=emit)

    assert "Still thinking, 20 s" in str(told)


async def test_a_container_is_paid_for_once_in_all_rounds(desk: Desk) -> None:
    """Code that runs in another one costs again."""
    again = {**RAN, "id": "ci_2"}
    other = {**RAN, "id": "ci_3", "container_id": "cntr_2"}
    rounds = in_turn(
        in_one_piece(RAN, {**RAN, "id": "ci_4"}, CALLED, usage=USAGE),
        in_one_piece(again, other, calling("get_weather", 2), usage=USAGE),
        in_one_piece({**RAN, "id": "ci_5"}, ANSWER, usage=USAGE),
    )
    async with Upstream(rounds) as upstream:
        desk.set_valves(
            BASE_URL=upstream.base_url,
            ENABLE_STREAM=False,
            ENABLE_CODE_INTERPRETER=True,
        )
        body = chat("Hi", tools=[TOOL])
        assert not errors(await desk.chunks(body, **with_tool()))

    await desk.counted()
    bought, _ = await desk.filter._usage.purchases("2026", "user-1")
    assert bought.containers == 2


@pytest.mark.parametrize(
    ("asked", "options", "sign", "least"),
    [
        pytest.param("draw", {}, "'type': 'files'", 272 * 30, id="a picture"),
        pytest.param(
            "draw",
            {"partial_images": 2, "quality": "low"},
            "chat:message:files",
            272 * 30,
            id="a sketch shows all of a picture",
        ),
        pytest.param(
            "count",
            {},
            "open_webui:code_interpreter",
            30_000,
            id="a container is paid for from its start",
        ),
    ],
)
async def test_what_a_stopped_answer_made_counts(
    asked: str, options: Json, sign: str, least: int, desk: Desk
) -> None:
    """The API tells nothing of an answer whose end is not read."""
    desk.set_valves(ENABLE_IMAGE_GENERATION=True, ENABLE_CODE_INTERPRETER=True)
    desk.set_valves(IMAGE_GENERATION_OPTIONS=json.dumps(options))
    answer = await desk.answer(chat(f"sim:{asked},delay=200"))
    await stop_at(lambda chunk: sign in str(chunk), answer)

    row = await desk.row()
    assert row.output < 100
    assert least <= row.money < 2 * least


@pytest.mark.parametrize(
    ("rule", "model", "message"),
    [
        ({"models": ["gpt-6-*"]}, "gpt-6.1-sol", "You may use: gpt-6-*."),
        ({"tools": []}, "gpt-6.1-sol-research", "you may not use web search"),
    ],
)
async def test_program_learns_that_a_rule_forbids_its_request(
    rule: Json, model: str, message: str, desk: Desk
) -> None:
    """Not that it has a mistake."""
    desk.limit(rule)
    given = {"__user__": USER, "__request__": host_request()}

    status, error = await refused_with(
        desk.pipe, chat("Hi", model=f"my_pipe.{model}"), **given
    )

    assert status == 403
    assert message in error["message"]


async def test_sketch_that_nobody_asked_for_breaks_no_answer(desk: Desk) -> None:
    """A gateway may have tools of its own."""
    sketch = {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "partial_image_index": 0,
        "partial_image_b64": b64encode(PNG).decode(),
    }
    begun = wire.added({"type": "image_generation_call", "id": "ig_1"})
    events = wire.whole_stream([begun, sketch], wire.message("Rain.", at=1))
    whole = wire.on_the_wire(*events)
    async with Upstream(streaming(whole)) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url)
        chunks = await desk.chunks(chat("Hi"))

    assert not errors(chunks)
    assert "Rain." in str(chunks)


@pytest.mark.parametrize(
    ("asked", "default"),
    [
        ("data:," + "word " * 4_000, None),
        ("\N{CJK UNIFIED IDEOGRAPH-6C34}" * 6_000, None),
        ("Hi", {"type": "input_image", "image_url": "word " * 4_000}),
    ],
)
async def test_no_form_of_a_question_makes_a_stopped_answer_cheap(
    asked: str, default: object, desk: Desk
) -> None:
    """It begins like a picture, has letters of more than a byte, or is in a tool."""
    tool = {**CHOICE, "parameters": {"properties": {"a": {"default": default}}}}
    answer = await desk.answer(chat(asked, "", "sim:slow", tools=[tool]))
    await anext(answer)
    await answer.aclose()

    assert 4_000 <= (await desk.row()).input < 6_000


async def test_tier_without_a_price_costs_as_the_standard_one(desk: Desk) -> None:
    """Servers have names of their own for it; else a limit in money is none there."""
    told = in_one_piece(ANSWER, usage=USAGE, service_tier="on_demand")
    async with Upstream(told) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, ENABLE_STREAM=False)
        await desk.chunks(chat("Hi"))

    assert (await desk.row()).money > 0


async def test_answers_at_once_leave_a_limit_in_force(desk: Desk) -> None:
    """Each may take a fiftieth of it: a thousand that begin below it were all answered."""
    await spent(SPENT)
    desk.limit({"money": 2.25, "per": "month"})
    answers = [await desk.answer(chat("sim:chat,hold=1")) for _ in "123456"]
    begun = [asyncio.ensure_future(anext(answer)) for answer in answers]
    await asyncio.wait(begun)

    assert await desk.refusal() == (
        "6 of your answers under way may use up your limit of $2.25 a month. "
        "Ask again when one is complete."
    )
    await answers[0].aclose()
    desk.sim.release()
    assert not errors(await desk.ask("Hi"))
    for answer in answers:
        await answer.aclose()


async def test_answers_that_wait_meanwhile_are_counted_before_the_request(
    desk: Desk,
) -> None:
    """All of them were below the limit when they came, and showed a first line."""
    await spent(SPENT)
    desk.limit({"money": 2.25, "per": "month"})
    window = json.dumps({"background_window": "8h"})
    desk.set_valves(BACKGROUND_MODELS="*-pro", EXPERT_JSON=window)
    body = {**chat("sim:chat,hold=1"), "model": "my_pipe.gpt-6.1-sol-pro"}
    answers = [await desk.answer(body) for _ in "1234567"]
    for answer in answers:
        while "up to 8 hours" not in str(await anext(answer)):
            pass
    begun = [asyncio.ensure_future(anext(answer)) for answer in answers[:-1]]
    await asyncio.wait(begun)

    last = [chunk async for chunk in answers[-1]]

    assert "6 of your answers under way may use up your limit" in str(errors(last))
    desk.sim.release()
    for answer in answers:
        await answer.aclose()
