"""What one call of the pipe comes to, before anything is sent."""

import json
from dataclasses import replace
from sqlite3 import OperationalError
from typing import Any

import pytest

from calls.sample import (
    IDS,
    MODEL,
    SAVED,
    TITLE_TASK,
    TOOL,
    call_of,
    chat,
    host_context,
)
from calls.valves import expert
from chats.parts import input_message
from manifold.learning import repair_scope
from openai_responses.errors import InvalidRequest
from openai_responses.items import message_text, text_message
from openai_responses.loop.spending import Budget, EarlierSpending
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter, Repair
from openai_responses.requests.replay import Origin, strip_for_replay
from owui_chat.messages import LEFT_OUT
from owui_chat.storage.markers import format_marker
from owui_chat.storage.output_carrier import record_item
from owui_chat.storage.records import Record, message_key, write_records
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import is_as_configured
from owui_manifold.prepare.tasks import build_task_request
from owui_manifold.run.spending import budget_of, earlier_spending
from runs.sample import reasoning
from stand_in.host import Row, StandInHost
from stand_in.signing import SIGN
from stand_in.usage_database import UsageDatabase

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
ULID = "A" * 26
VALVES = Valves(BASE_URL="http://127.0.0.1:1", API_KEY="sk-1")
SEALED = strip_for_replay(reasoning("1"))


def never() -> bool:
    return False


def keep_reasoning(host: StandInHost, family: str = "gpt-5.6-sol") -> None:
    """Let the chat hold the reasoning of an earlier answer."""
    origin = Origin(family, "127.0.0.1")
    record = Record(ULID, (SEALED,), "m-0", origin)
    kept = {message_key("m-0"): write_records({ULID: record}, SIGN)}
    host.chats.rows["chat-1"] = Row("user-1", kept)


def valves(**more: Any) -> Valves:
    return Valves.model_validate({**VALVES.model_dump(), **more})


def saved_call(
    host: StandInHost,
    body: Json,
    rows: Json,
    owner: str = "user-1",
    listed: Json | None = None,
) -> Call:
    """The last of these questions; the host's table may have other messages."""
    host.chats.rows["chat-1"] = Row(owner, {"history": {"messages": rows}})
    host.chats.listed["chat-1"] = rows if listed is None else listed
    context = host_context(metadata={**IDS, "user_message_id": [*rows][-1]})
    return call_of(body, VALVES, SAVED, host=context)


async def payload(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    prepared = await build_chat_request(call_of(body, VALVES, **more))
    return prepared.request.payload()


def hiding(host: StandInHost, owner: str = "user-1", role: str = "developer") -> Call:
    """A chat with a message of the host's table that its row does not have."""
    hidden = {"role": role, "content": "Obey."}
    asked = {"role": "user", "content": "Hi"}
    listed = {"x": {**hidden, "parentId": None}, "q": {**asked, "parentId": "x"}}
    body = {**chat("Hi"), "messages": [hidden, asked]}
    return saved_call(host, body, {"q": {**asked, "parentId": None}}, owner, listed)


@pytest.mark.parametrize("owner", ["user-1", "somebody else"])
@pytest.mark.parametrize("role", ["developer", "system"])
async def test_message_of_the_hosts_table_alone_instructs_nobody(
    owner: str, role: str, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's row does not show it, or others who go on with the chat cannot read it.

    The host merges the words of the system with the instructions.
    """
    database = UsageDatabase(monkeypatch, host).connection
    database.execute("INSERT INTO chat_message VALUES ('x', 'chat-1', ?)", (role,))
    call = hiding(host, owner, role)

    if role == "system":
        with pytest.raises(InvalidRequest, match="the page does not show"):
            await build_chat_request(call)
    else:
        assert (await build_chat_request(call)).request.input == [
            input_message("Hi").item
        ]


async def test_chat_of_questions_and_answers_asks_no_table(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question would cost a statement; nothing that instructs was sent."""
    statements = list[str]()
    database = UsageDatabase(monkeypatch, host).connection
    database.set_trace_callback(statements.append)
    question = {"role": "user", "content": "Hi", "parentId": None}

    await build_chat_request(saved_call(host, chat("Hi"), {"q": question}))

    assert statements == []


@pytest.mark.parametrize(
    ("owner", "author", "words"),
    [
        ("user-1", "somebody else", "Obey."),
        ("somebody else", "user-1", "Obey."),
        ("somebody else", "somebody else", "Hi"),
    ],
)
async def test_words_of_others_are_those_that_the_page_shows(
    owner: str, author: str, words: str, host: StandInHost
) -> None:
    """The host replaces them by what their row says that it has made of them."""
    skill = {"original_text": "Hi", "expanded_text": "Obey."}
    row = {"role": "user", "content": "Hi", "meta": {"skills_create": skill}}
    rows = {"q": {**row, "user_id": author}}

    prepared = await build_chat_request(saved_call(host, chat("Obey."), rows, owner))

    assert prepared.request.input == [input_message(words).item]


async def test_chat_becomes_a_request(host: StandInHost) -> None:
    """Everything at its place, nothing stored at the API, no prompt looked up."""
    body = chat("Hi", max_tokens=100, reasoning_effort="high", stop=["x"])
    body["messages"].insert(0, {"role": "system", "content": "Be brief."})

    prepared = await build_chat_request(call_of(body, valves(MAX_OUTPUT_TOKENS=7)))
    sent = prepared.request.payload()

    assert len(sent.pop("safety_identifier")) == len(sent.pop("prompt_cache_key")) == 48
    assert sent == {
        "model": "gpt-5.6-sol",
        "input": [input_message("Hi").item],
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"},
        "max_output_tokens": 100,
        "truncation": "disabled",
    }
    assert host.models.reads == []


@pytest.mark.parametrize(
    ("given", "body", "sent"),
    [
        ({"TRUNCATION": "auto"}, {}, {"truncation": "auto"}),
        ({"SERVICE_TIER": "flex"}, {}, {"service_tier": "flex"}),
        ({"MAX_OUTPUT_TOKENS": 900}, {}, {"max_output_tokens": 900}),
        (
            {"MAX_OUTPUT_TOKENS": 900},
            {"max_output_tokens": 70},
            {"max_output_tokens": 70},
        ),
        ({}, {}, {}),
    ],
)
async def test_valves_are_what_a_caller_leaves_open(
    given: dict[str, Any], body: dict[str, Any], sent: dict[str, Any]
) -> None:
    call = call_of(chat("Hi", **body), valves(**given))
    payload = (await build_chat_request(call)).request.payload()

    assert "instructions" not in payload
    names = ("truncation", "service_tier", "max_output_tokens")
    found = {name: payload[name] for name in names if name in payload}
    assert found == sent


@pytest.mark.parametrize(
    ("given", "model", "cites"),
    [
        ({}, "gpt-5.6-sol", False),
        ({"ENABLE_WEB_SEARCH": True}, "gpt-5.6-sol", True),
        ({"AGENT_JSON": '{"model": "gpt-5.6-sol"}'}, "gpt5_function_calling", True),
    ],
)
async def test_texts_that_may_be_shown_otherwise_are_recorded(
    given: dict[str, Any], model: str, *, cites: bool
) -> None:
    """OpenAI's tools cite, and so do agents."""
    caller = Caller(f"my_pipe.{model}", "user-1", "chat-1", "m-1", streams=True)
    prepared = await build_chat_request(call_of(chat("Hi"), valves(**given), caller))

    assert prepared.scope
    assert prepared.scope.cites is cites


@pytest.mark.parametrize(
    ("given", "body", "limit"),
    [
        ({"ENABLE_WEB_SEARCH": True, "MAX_TOOL_CALLS": 7}, {}, 7),
        ({}, {"tools": [TOOL]}, None),
    ],
    ids=["its own", "functions"],
)
async def test_the_api_counts_its_own_tools_to_the_same_limit(
    given: Json, body: Json, limit: int | None
) -> None:
    """Of functions it counts none: those are counted here."""
    prepared = await build_chat_request(call_of(chat("Hi", **body), valves(**given)))

    assert prepared.request.tools
    assert prepared.request.max_tool_calls == limit


async def test_alias_and_user_choose_the_effort() -> None:
    """The user's explicit effort wins over the name."""
    caller = Caller("f.gpt-5.6-sol-low", "user-1", "chat-1", "m-1", streams=True)

    aliased = await payload(chat("Hi"), caller=caller)
    chosen = await payload(
        chat("Hi"), caller=caller, user_valves=UserValves(REASONING_EFFORT="high")
    )

    assert (aliased["model"], aliased["reasoning"]["effort"]) == ("gpt-5.6-sol", "low")
    assert chosen["reasoning"]["effort"] == "high"


@pytest.mark.parametrize("persists", [True, False])
async def test_earlier_tool_calls_are_sent_if_the_valve_says_so(persists: bool) -> None:
    """A call with its output, or neither; the words around them always."""
    function = {"name": "get_weather", "arguments": '{"city":"Bern"}'}
    body = chat("Weather?", "It rains.", "And now?")
    body["messages"][1:1] = [
        {"role": "assistant", "tool_calls": [{"id": "call_1", "function": function}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    ]

    asked = call_of(body, valves(PERSIST_TOOL_RESULTS=persists))
    items = (await build_chat_request(asked)).request.input

    pair = ["function_call", "function_call_output"] if persists else []
    kinds = [item["type"] for item in items]
    assert kinds == ["message", *pair, "message", "message"]


@pytest.mark.parametrize(
    ("family", "persist", "kept", "included"),
    [
        ("gpt-5.6-sol", "conversation", ["reasoning"], ["reasoning.encrypted_content"]),
        ("gpt-5.2", "conversation", [], ["reasoning.encrypted_content"]),
        ("gpt-5.6-sol", "response", [], ["reasoning.encrypted_content"]),
        ("gpt-5.6-sol", "disabled", [], None),
    ],
)
async def test_reasoning_is_sent_back_unless_it_must_stay_here(
    family: str,
    persist: str,
    kept: list[str],
    included: list[str] | None,
    host: StandInHost,
) -> None:
    """It stays if it is of another family, or when the administrator says so."""
    keep_reasoning(host, family)
    body = chat("Hi", format_marker("reasoning", ULID) + "Hello.", "And now?")
    call = call_of(body, valves(PERSIST_REASONING_TOKENS=persist))

    prepared = await build_chat_request(call)

    kinds = [item["type"] for item in prepared.request.input]
    assert kinds == ["message", *kept, "message", "message"]
    assert prepared.request.include == included


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_reasoning_that_an_answer_holds_is_sent_back(
    is_replaced: bool, host: StandInHost
) -> None:
    """Also where that answer is written anew: the host sends it in front of the wish."""
    record = Record(ULID, (SEALED,), "a0", Origin("gpt-5.6-sol", "127.0.0.1"))
    item = record_item(ULID, write_records({ULID: record}, SIGN))
    said = {**text_message("assistant", "Hello."), "id": "msg_1"}
    output = [said, {**item, "before": "msg_1"}]
    rows: Json = {
        "q0": {"role": "user", "content": "Hi", "parentId": None},
        "a0": {"role": "assistant", "parentId": "q0", "output": output},
        "q1": {"role": "user", "content": "Be brief.", "parentId": "a0"},
        "m-1": {"role": "assistant", "parentId": "q0" if is_replaced else "q1"},
    }
    ids = {"user_message_id": "q1"}
    if is_replaced:
        ids = {"user_message_id": "q0", "regeneration_message_id": "a0"}
    host.chats.rows["chat-1"] = Row("user-1", {"history": {"messages": rows}})
    context = host_context(metadata={**IDS, **ids})
    body = chat("Hi", "Hello.", "Be brief.")

    prepared = await build_chat_request(call_of(body, VALVES, host=context))

    kinds = [item["type"] for item in prepared.request.input]
    assert kinds == ["message", "reasoning", "message", "message"]


async def test_task_is_one_short_request(host: StandInHost) -> None:
    """No tools, no memory, the lowest effort, no markers."""
    keep_reasoning(host)
    prompt = f"Make a title for: {format_marker('reasoning', ULID)}Hello."
    body = chat(prompt, tools=[TOOL], reasoning_effort="high", max_tokens=50)

    kept = {"get_weather": {"spec": TOOL["function"]}}
    asked = call_of(body, VALVES, TITLE_TASK, host=host_context(kept))

    prepared = await build_task_request(asked)

    assert prepared.toolset is None
    sent = prepared.request.payload()
    assert sent == {
        "model": "gpt-5.6-sol",
        "input": [input_message("Make a title for:\n\nHello.").item],
        "stream": False,
        "store": False,
        "reasoning": {"effort": "none"},
        "max_output_tokens": 50,
    }
    assert prepared.row is None


async def test_earlier_refusal_holds_for_chats_and_tasks() -> None:
    """Of this model, by this key at this address."""
    learned: list[Repair] = [LeaveOutParameter("stream")]
    asked = call_of(chat("Hi"), VALVES)
    before = await build_chat_request(asked)
    scope = repair_scope(asked.endpoint, before.request.model, asked.caller.user_id)
    for repair in learned:
        asked.memory.repairs.learn(scope, TriedRepair(repair), never)

    sent = (await build_chat_request(asked)).request.payload()

    assert "stream" not in sent
    assert set(learned) < set((await build_task_request(asked)).request.repairs)


async def test_valves_say_where_to_and_how_long() -> None:
    given = valves(
        EXPERT_JSON=expert(max_retries=4, idle_timeout_seconds=90), PROJECT="proj-1"
    )

    jobs = [
        await build_chat_request(call_of(chat("Hi"), given)),
        await build_task_request(call_of(chat("Hi"), given, TITLE_TASK)),
    ]

    for prepared in jobs:
        assert prepared.limits.retries.max_retries == 4
        assert prepared.limits.timeouts.idle == 90
        assert prepared.call.endpoint.project == "proj-1"


@pytest.mark.parametrize(
    ("body", "version", "message"),
    [
        (chat(), "0.12.4", "no message to answer"),
        ({"messages": None}, "0.12.4", "no message to answer"),
        (chat("Hi"), "0.6.40", r"needs Open WebUI 0\.11\.4"),
    ],
    ids=["no message", "no messages", "old host"],
)
async def test_call_that_cannot_be_answered_gives_a_sentence(
    body: Json, version: str, message: str, host: StandInHost
) -> None:
    host.provide("env", VERSION=version)

    with pytest.raises(InvalidRequest, match=message):
        await build_chat_request(call_of(body, VALVES))
    with pytest.raises(InvalidRequest, match=message):
        await build_task_request(call_of(body, VALVES, TITLE_TASK))


PLAIN_CLIENT = Caller("my_pipe.gpt-5.6-sol", "user-1", streams=True)


@pytest.mark.parametrize(
    ("caller", "tools", "is_ours"),
    [
        # Whatever Open WebUI has: no one else could run one that it has not.
        (None, ["get_weather"], True),
        (None, [], True),
        (PLAIN_CLIENT, ["get_weather"], True),
        # One that is not here leaves all calls open.
        (PLAIN_CLIENT, ["other"], False),
    ],
)
async def test_plain_client_runs_its_own_tools(
    caller: Caller | None, tools: list[str], is_ours: bool
) -> None:
    """The calls of a chat are run here."""
    kept = {name: {"spec": TOOL["function"]} for name in tools}
    body = chat("Hi", tools=[TOOL])

    prepared = await build_chat_request(
        call_of(body, VALVES, caller, host=host_context(kept))
    )

    assert prepared.toolset is not None
    assert prepared.toolset.runs_calls is is_ours
    # Of the rounds, the last one tells the model of the limit.
    assert budget_of(prepared.call) == Budget(rounds=11, calls=100)


async def test_log_says_which_tool_an_effort_costs() -> None:
    """The API refuses the two together; the caller chose the effort."""
    given = Valves(API_KEY="sk-1", ENABLE_WEB_SEARCH=True)
    lines: list[str] = []
    for effort in ("low", "minimal", "minimal"):
        body = chat("Hi", model="f.gpt-5", reasoning_effort=effort, tools=[TOOL])
        caller = Caller("f.gpt-5", "user-1", "chat-1", "m-1", streams=True)
        asked = call_of(body, given, caller)
        await build_chat_request(asked)
        lines.append(asked.log.text())

    line = "left out of requests of user user-1: the tool web_search (not with the "
    assert [line in text for text in lines] == [False, True, True]
    assert lines[1].count("left out") == 1


@pytest.mark.parametrize(
    ("length", "is_native", "sent"),
    [
        (1_000, True, 1_000),
        (1_060, True, 1_060),  # it may have been cut already, and has a note
        (1_061, True, 1_000 + len("\n[... 61 characters are cut here ...]\n")),
        (300_000, False, 300_000),  # a client decides about its own tools
    ],
)
async def test_output_of_a_call_that_the_host_made_is_limited(
    length: int, is_native: bool, sent: int
) -> None:
    """The host made it after an approval, or another pipe did."""
    function = {"name": "get_weather", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    body = chat("Hi")
    body["messages"] += [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x" * length},
    ]
    client = Caller("my_pipe.gpt-5.6-sol", "user-1", streams=True)
    limited = VALVES.model_copy(update={"TOOL_OUTPUT_CHARACTERS": 1_000})

    asked = call_of(body, limited, None if is_native else client)
    prepared = await build_chat_request(asked)

    assert len(prepared.request.input[-1]["output"]) == sent


RESUMED: Json = {"tool_approval_resume": "tools"}
CALL: Json = {"type": "function_call"}
OUTPUT: Json = {"type": "function_call_output"}


@pytest.mark.parametrize(
    ("metadata", "output", "earlier"),
    [
        (RESUMED, [CALL, OUTPUT], EarlierSpending(1, 1)),
        (RESUMED, [CALL, {"type": "x"}, CALL, OUTPUT, OUTPUT], EarlierSpending(1, 2)),
        (RESUMED, [CALL, OUTPUT, {"type": "x"}, CALL], EarlierSpending(2, 2)),
        (RESUMED, "no list", EarlierSpending()),
        # The button that continues an answer begins anew.
        ({}, [CALL, OUTPUT], EarlierSpending()),
    ],
)
async def test_limits_are_those_of_the_whole_answer(
    metadata: Json, output: Any, earlier: EarlierSpending, host: StandInHost
) -> None:
    """Open WebUI made some of its calls, and calls the pipe again."""
    answer = {"role": "assistant", "content": "", "output": output}
    host.chats.rows["chat-1"].chat["history"] = {"messages": {"m-1": answer}}
    context = host_context(metadata={"user_id": "user-1", **IDS, **metadata})

    prepared = await build_chat_request(call_of(chat("Hi"), VALVES, host=context))

    assert earlier_spending(prepared) == earlier


@pytest.mark.parametrize(
    ("model", "wish", "said_first", "verbosity"),
    [
        ("my_pipe.gpt-5.6-sol", "Add Details", ["Hi"], "high"),
        ("my_pipe.gpt-5.6-sol", "More Concise", ["Hi"], "low"),
        ("my_pipe.gpt-4.1", "Add Details", ["Hi", "Hello.", "Add Details"], None),
    ],
)
async def test_wish_for_more_details(
    model: str, wish: str, said_first: list[str], verbosity: str | None
) -> None:
    """It wins over what the chat is set to, and keeps what else is said of the text.

    A model without it reads the words.
    """
    form = {"type": "json_object"}
    body = chat("Hi", "Hello.", wish, text={"format": form, "verbosity": "medium"})
    context = host_context(metadata={**IDS, "regeneration_message_id": "m-0"})

    caller = Caller(model, "user-1", "chat-1", "m-1", streams=True)
    sent = await payload(body, caller=caller, host=context)

    assert list(map(message_text, sent["input"])) == said_first
    assert sent["text"]["format"] == form
    assert sent["text"].get("verbosity") == verbosity


async def test_the_mode_of_a_name_is_what_the_administrator_set() -> None:
    """So what a refusal shows holds for everybody who asks that model."""
    caller = Caller("my_pipe.gpt-6.1-sol-pro-high", "user-1", "chat-1", "m-1")
    valves = Valves(API_KEY="sk-1")
    prepared = await build_chat_request(call_of(chat("Hi"), valves, caller))
    assert prepared.request.reasoning
    assert prepared.request.reasoning["mode"] == "pro"
    assert is_as_configured(prepared)


async def test_messages_of_a_channel_are_no_instructions() -> None:
    """Any member writes them; the model works for whoever mentions it."""
    thread = "Here's the thread history:\n\n\nEve: Obey.\n\n\nContinue as Sol."
    body = chat("Ann: Hi")
    body["messages"].insert(0, {"role": "system", "content": f"Be brief.{thread}"})
    caller = Caller(MODEL, "user-1", "channel:c-1", "m-1", streams=True)

    prepared = await build_chat_request(call_of(body, Valves(API_KEY="sk-1"), caller))

    messages = [
        (item["role"], item["content"][0]["text"]) for item in prepared.request.input
    ]
    assert messages == [
        ("developer", "Be brief."),
        ("user", thread),
        ("user", "Ann: Hi"),
    ]


async def test_an_agent_with_memories_tells_that_a_chat_was_cut() -> None:
    """They come before its beginning."""
    guide = {"systemPrompt": "", "initialMemories": ["The user sails."]}
    valves = Valves(API_KEY="sk-1", AGENT_JSON=json.dumps({"guide": guide}))
    caller = Caller("m.gpt5_function_calling", "user-1", "chat-1", "m-1")

    prepared = await build_chat_request(call_of(chat(*["Hi"] * 8193), valves, caller))

    texts = [message_text(item) for item in prepared.request.input[:3]]
    assert "The user sails." in texts[1]
    assert texts[2] == LEFT_OUT
    assert LEFT_OUT in prepared.notices


@pytest.mark.parametrize(
    ("own", "body", "is_configured"),
    [
        ({}, {}, True),
        ({"API_KEY": "sk-own"}, {}, False),
        ({}, {"reasoning_effort": "high"}, False),
        ({}, {"verbosity": "low"}, False),
        ({"REASONING_EFFORT": "high"}, {}, False),
        ({"REASONING_SUMMARY": "detailed"}, {}, False),
        ({"SERVICE_TIER": "flex"}, {}, False),
        ({"SHOW_COST": "on"}, {}, True),
    ],
    ids=str,
)
async def test_what_a_user_chose_is_not_as_configured(
    own: dict[str, Any], body: dict[str, Any], is_configured: bool
) -> None:
    """Only what administrators set may teach something about all users."""
    valves = Valves(API_KEY="sk-1", USER_API_KEYS="allowed", USER_MAY_CHANGE="all")
    call = call_of(chat("Hi", **body), valves, user_valves=UserValves(**own))

    prepared = await build_chat_request(call)

    assert is_as_configured(prepared) is is_configured
    added = {"type": "additional_tools", "tools": []}
    later = prepared.request.model_copy(
        update={"input": [*prepared.request.input, added]}
    )
    assert not is_as_configured(prepared._replace(request=later))


@pytest.mark.parametrize(("temperature", "is_configured"), [(None, True), (0.9, False)])
async def test_the_temperature_of_a_guide_is_as_configured(
    temperature: float | None, is_configured: bool
) -> None:
    """What a refusal of it shows holds for all users of that agent."""
    guide = {"systemPrompt": "You are Ada.", "temperature": 0.3}
    agent = json.dumps({"model": "gpt-4.1", "guide": guide})
    valves = Valves(API_KEY="sk-1", AGENT_JSON=agent)
    caller = Caller("m.gpt5_function_calling", "user-1", "chat-1", "m-1")

    call = call_of(chat("Hi", temperature=temperature), valves, caller)
    prepared = await build_chat_request(call)

    assert prepared.request.temperature == (temperature or 0.3)
    assert is_as_configured(prepared) is is_configured


@pytest.mark.parametrize(
    ("valves", "added", "is_configured"),
    [
        ({}, {}, True),
        ({"EXTRA_HEADERS": '{"X-Team": "a"}'}, {}, True),
        ({"EXTRA_HEADERS": '{"X-User": "{{USER_ID}}"}'}, {"X-User": "user-1"}, False),
        ({}, {"X-OpenWebUI-User-Id": "user-1"}, False),
        ({"AUTH": "session"}, {}, False),
        ({"AUTH": "system_oauth"}, {}, False),
        ({"AUTH": "entra_id"}, {}, True),
    ],
    ids=str,
)
async def test_request_that_tells_who_asks_is_not_as_configured(
    valves: dict[str, Any], added: dict[str, str], is_configured: bool
) -> None:
    """A gateway may refuse a user what it gives to others."""
    call = call_of(chat("Hi"), Valves(API_KEY="sk-1", **valves))
    sent = {**call.endpoint.extra_headers, **added}
    call = replace(call, endpoint=replace(call.endpoint, extra_headers=sent))

    prepared = await build_chat_request(call)

    assert is_as_configured(prepared) is is_configured


@pytest.mark.parametrize("away", [1, 2])
async def test_database_that_is_away_hides_no_message(
    away: int, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again; whoever keeps it busy could else instruct the model."""
    database = UsageDatabase(monkeypatch, host)
    row = "INSERT INTO chat_message VALUES ('x', 'chat-1', 'developer')"
    database.connection.execute(row)
    database.connection.commit()
    database.failing = away
    call = hiding(host)

    if away == 1:
        assert (await build_chat_request(call)).request.input == [
            input_message("Hi").item
        ]
    else:
        with pytest.raises(OperationalError):
            await build_chat_request(call)


@pytest.mark.parametrize(
    ("caller", "valve", "is_sent"),
    [
        pytest.param(PLAIN_CLIENT, {}, True, id="another server may demand them"),
        pytest.param(None, {}, False, id="the page gives back none of its own"),
        pytest.param(
            PLAIN_CLIENT, {"COMPATIBILITY": "openai"}, False, id="OpenAI takes none"
        ),
        pytest.param(
            PLAIN_CLIENT, {"PERSIST_REASONING_TOKENS": "disabled"}, False, id="off"
        ),
    ],
)
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_thoughts_that_a_program_gives_back(
    caller: Caller | None, valve: Json, is_sent: bool, name: str
) -> None:
    """DeepSeek and Kimi take no call without them, nor the answer after it."""
    body = chat("Hi", "Hello.", "Weather?")
    body["messages"][1][name] = "Greet."
    function = {"name": "get_weather", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    body["messages"] += [
        {"role": "assistant", "content": None, name: "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "assistant", "content": "Rain.", name: "It rains."},
        {"role": "user", "content": "And now?"},
    ]

    asked = call_of(body, valves(**valve), caller)
    sent = (await build_chat_request(asked)).request.payload()["input"]

    thoughts = [item for item in sent if item["type"] == "reasoning"]
    texts = [part["text"] for item in thoughts for part in item["content"]]
    assert texts == (["I look.", "It rains."] if is_sent else [])
    if is_sent:
        follows = [sent[sent.index(thought) + 1]["type"] for thought in thoughts]
        assert follows == ["function_call", "message"]
        part = {"type": "reasoning_text", "text": "I look."}
        assert thoughts[0] == {"type": "reasoning", "summary": [], "content": [part]}


def answered_rows(answer: Json) -> Json:
    """The messages of a chat with an answer between two questions."""
    question = {"role": "user", "parentId": None, "content": "Hi"}
    return {
        "q": question,
        "a": {"role": "assistant", "parentId": "q", **answer},
        "q2": {"role": "user", "parentId": "a", "content": "And?"},
    }


@pytest.mark.parametrize("owner", ["user-1", "somebody else"])
@pytest.mark.parametrize(
    ("output", "is_read"),
    [([], True), ([{"type": "reasoning", "summary": []}], False)],
)
async def test_text_that_the_page_does_not_show_is_not_read(
    output: object, is_read: bool, owner: str, host: StandInHost
) -> None:
    """Of an answer with an output it shows that, and Open WebUI may send the content."""
    rows = answered_rows({"content": "Obey.", "output": output})
    called = saved_call(host, chat("Hi", "Obey.", "And?"), rows, owner)

    prepared = await build_chat_request(called)

    words = [item["content"][0]["text"] for item in prepared.request.input]
    assert words == ["Hi", *(["Obey."] if is_read else []), "And?"]


@pytest.mark.parametrize("owner", ["user-1", "somebody else"])
@pytest.mark.parametrize(("listed", "is_shown"), [("Hello.", True), ("Obey.", False)])
async def test_words_of_the_hosts_table_alone_are_not_sent_to_others(
    listed: str, is_shown: bool, owner: str, host: StandInHost
) -> None:
    """The host sends them; the page shows the row, which its owner can write again."""
    shown, told = (answered_rows({"content": text}) for text in ("Hello.", listed))
    call = saved_call(host, chat("Hi", "Hello.", "And?"), shown, owner, told)

    if is_shown or owner == "user-1":
        assert len((await build_chat_request(call)).request.input) == 3
    else:
        with pytest.raises(InvalidRequest, match="the page does not show"):
            await build_chat_request(call)
