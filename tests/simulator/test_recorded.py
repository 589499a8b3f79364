"""The simulator does as recorded answers of the API show (docs/reference/recordings.md).

Each case names its source: the line of the recordings, with "28:" before it a line of
those of 2026-11-28, or that it was only read.
"""

from typing import Any

import pytest

from chats.pictures import PIXEL
from simulator.answers import STORED_PROMPT_MODEL
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
USER = {"role": "user", "content": "Hello"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
    "required": ["city"],
}
CLOSED = {**SCHEMA, "additionalProperties": False, "required": ["city", "unit"]}
FUNCTION = {"type": "function", "name": "look_up", "parameters": SCHEMA}
BARE_FUNCTION = {"type": "function", "name": "look_up"}
EMPTY_OBJECT: Json = {"type": "object", "properties": {}}
DEFERRED = {**FUNCTION, "strict": False, "defer_loading": True}
STRICT_FUNCTION = {**FUNCTION, "parameters": CLOSED, "strict": True}
CALL = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "look_up",
    "arguments": '{"city":"Oslo"}',
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
NOTE = {
    "type": "custom_tool_call",
    "call_id": "call_2",
    "name": "note",
    "input": "x",
    "status": "completed",
}
NOTED = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "noted"}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "sources": None},
}
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "1",
    "container_id": "cntr_1",
}
FOUND: Json = {"tools": [DEFERRED, {"type": "tool_search"}], "model": "gpt-5.4"}
SEARCHED = {
    "type": "tool_search_call",
    "call_id": "call_0",
    "execution": "client",
    "arguments": {"queries": ["weather"]},
    "status": "completed",
}
FOUND_BY_CLIENT = {
    "type": "tool_search_output",
    "call_id": "call_0",
    "execution": "client",
    "status": "completed",
}
NAMESPACE = {
    "type": "namespace",
    "name": "weather",
    "description": "Weather.",
    "tools": [DEFERRED],
}
NAMED = {**CALL, "namespace": "look_up"}
WEATHER = {**CALL, "namespace": "weather"}
SEARCHES: Json = {
    "tools": [{"type": "tool_search", "execution": "client"}],
    "model": "gpt-5.4",
}
APPENDED = {"type": "additional_tools", "role": "developer", "tools": [STRICT_FUNCTION]}
WEB = {"tools": [{"type": "web_search"}]}
OLDER = {"type": "web_search_preview"}
PICTURE = {"type": "input_image", "image_url": PIXEL}
ACCEPTED: dict[str, Json] = {
    "a function without strict (23)": {"tools": [FUNCTION]},
    "a picture without detail (264)": {"input": [{**USER, "content": [PICTURE]}]},
    "client_metadata (325)": {"client_metadata": {"x-installation": "1"}},
    "tool_choice null (307)": {"tool_choice": None},
    "sources null (806)": {"input": [SEARCH, USER]},
    "a call with status null (read)": {"input": [{**CALL, "status": None}, OUTPUT]},
    "a custom call with its status (read)": {"input": [NOTE, NOTED, USER]},
    "code without outputs (1210)": {"input": [CODE, USER]},
    "a deferred tool that is appended, too (999)": {**FOUND, "input": [USER, APPENDED]},
    "a call of a deferred tool with its namespace (856)": {
        **FOUND,
        "input": [USER, NAMED, OUTPUT],
    },
    "a function without parameters (28:287)": {"tools": [BARE_FUNCTION]},
    "a function in the form of Chat Completions, too (28:291)": {
        "tools": [{**BARE_FUNCTION, "function": FUNCTION}]
    },
    "parameters of nothing that are not strict (28:237)": {
        "tools": [{**BARE_FUNCTION, "parameters": {}, "strict": False}]
    },
    "a choice by the older name of the search (28:271)": {**WEB, "tool_choice": OLDER},
    "a choice among tools by the older name (read)": {
        **WEB,
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [OLDER]},
    },
    "a question with an id (read)": {"input": [{**USER, "id": "msg_1"}]},
    "a question of parts with an id (read)": {
        "input": [{**USER, "id": "msg_1", "content": [PICTURE]}]
    },
    "a rule with an id (read)": {
        "input": [{"role": "developer", "content": "Be brief.", "id": "msg_1"}, USER]
    },
    "a call of a tool that the client found (862)": {
        **SEARCHES,
        "input": [
            USER,
            SEARCHED,
            {**FOUND_BY_CLIENT, "tools": [DEFERRED]},
            NAMED,
            OUTPUT,
        ],
    },
    "a call of a tool in a namespace that the client found (read)": {
        **SEARCHES,
        "input": [
            USER,
            SEARCHED,
            {**FOUND_BY_CLIENT, "tools": [NAMESPACE]},
            WEATHER,
            {**OUTPUT, "namespace": "weather"},
        ],
    },
    "a call of a tool in a namespace of the request (types)": {
        "tools": [NAMESPACE, {"type": "tool_search"}],
        "model": "gpt-5.4",
        "input": [USER, WEATHER, OUTPUT],
    },
}


@pytest.mark.parametrize("case", ACCEPTED)
async def test_recorded_request_is_accepted(client: Client, case: str) -> None:
    """Each of them was refused here once."""
    reply = await client.post({**client.body(), **ACCEPTED[case]})

    assert reply.status == 200, reply.raw


@pytest.mark.parametrize("call", [CALL, NOTE])
async def test_a_namespace_that_nothing_has(
    client: Client, call: dict[str, Any]
) -> None:
    """A search of the client lets in what it found, and nothing else."""
    found = {**FOUND_BY_CLIENT, "tools": [NAMESPACE, DEFERRED]}
    items = [USER, SEARCHED, found, {**call, "namespace": "other"}]
    items.append(
        {**NOTED, "type": f"{call['type']}_output", "call_id": call["call_id"]}
    )
    reply = await client.post(client.body(items, **SEARCHES))

    assert reply.status == 400
    assert reply.error["param"] == "input[3].namespace"


async def test_a_prompt_brings_its_model(client: Client) -> None:
    """Neither a model nor an input has to be sent with a stored prompt (30)."""
    reply = await client.post({"prompt": {"id": "pmpt_1", "version": "2"}})

    assert reply.status == 200, reply.raw
    assert reply.body["model"].startswith(STORED_PROMPT_MODEL)


async def test_a_drawn_picture_is_looked_up_by_its_id(client: Client) -> None:
    """Nothing but the id is required (960); here nothing is kept."""
    items = [{"type": "image_generation_call", "id": "ig_1"}, USER]
    reply = await client.post(client.body(items))

    assert reply.status == 404
    assert reply.error["message"].startswith("Item with id 'ig_1' not found.")


async def test_a_function_without_strict_is_strict(client: Client) -> None:
    """Its optional properties become required (269), so the model gives them all."""
    reply = await client.ask("sim:tool", tools=[FUNCTION])
    loose = await client.ask("sim:tool", tools=[{**FUNCTION, "strict": False}])
    call = reply.body["output"][-1]

    expected = {"description": None, "parameters": CLOSED, "strict": True}
    assert reply.body["tools"] == [{**FUNCTION, **expected}]
    assert '"unit"' in call["arguments"]
    assert '"unit"' not in loose.body["output"][-1]["arguments"]


async def test_a_schema_that_cannot_be_strict_stays_as_it_is(client: Client) -> None:
    """Without strict it is used as it is (read)."""
    free = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}}}
    reply = await client.ask(tools=[{**FUNCTION, "parameters": free}])

    expected = {"description": None, "parameters": free, "strict": False}
    assert reply.body["tools"] == [{**FUNCTION, **expected}]


@pytest.mark.parametrize(
    "more", [{}, {"function": FUNCTION}, {"parameters": None}, {"description": ""}]
)
async def test_a_function_without_parameters_takes_an_empty_object(
    client: Client, more: dict[str, Any]
) -> None:
    """It is strict, and a field that the API does not know is gone (25 of 25)."""
    reply = await client.ask(tools=[{**BARE_FUNCTION, **more}])

    closed = {**EMPTY_OBJECT, "additionalProperties": False, "required": []}
    expected = {"description": None, "parameters": closed, "strict": True}
    assert reply.body["tools"] == [{**BARE_FUNCTION, **expected}]


async def test_parameters_of_nothing_become_an_empty_object(client: Client) -> None:
    """They stay open (28:237); strict ones are refused as before."""
    loose = {**BARE_FUNCTION, "parameters": {}, "strict": False}
    reply = await client.ask(tools=[loose])
    strict = await client.post(client.body(tools=[{**loose, "strict": True}]))

    expected = {**loose, "description": None, "parameters": EMPTY_OBJECT}
    assert reply.body["tools"] == [expected]
    assert strict.error["param"] == "tools[0].parameters"


@pytest.mark.parametrize(
    ("kind", "format", "status"),
    [
        ("integer", "int64", 200),
        (["integer", "null"], "uint8", 200),
        ("number", "double", 200),
        ("string", "uuid", 200),
        ("string", "int64", 400),
        ("string", "uri", 400),
        ("integer", "uri", 400),
    ],
)
async def test_strict_schemas_have_the_formats_of_numbers(
    client: Client, kind: Any, format: str, status: int
) -> None:
    """Lines 28:73 and 28:31, `double` only read; other formats are refused."""
    closed = {
        "type": "object",
        "properties": {"size": {"type": kind, "format": format}},
        "required": ["size"],
        "additionalProperties": False,
    }
    strict = {**BARE_FUNCTION, "parameters": closed, "strict": True}
    form = {"type": "json_schema", "name": "a", "schema": closed, "strict": True}
    tool = await client.post(client.body(tools=[strict]))
    text = await client.post(client.body(text={"format": form}))

    assert (tool.status, text.status) == (status, status)


async def test_reasoning_may_come_back_with_content_null(client: Client) -> None:
    """As Codex sends it (28:146); the model reads it like reasoning without."""
    include = ["reasoning.encrypted_content"]
    first = await client.ask("Hello", include=include, model="gpt-6.2-sol")
    reasoning, answer = first.body["output"]
    items = [{**USER, "content": "Hello"}, {**reasoning, "content": None}, answer, USER]
    reply = await client.ask(items, model="gpt-6.2-sol")

    assert reply.body["input_transformations"] == []


@pytest.mark.parametrize("keyword", [{"default": "x"}, {"minLength": 1}])
async def test_strict_schemas_have_defaults_and_least_lengths(
    client: Client, keyword: dict[str, Any]
) -> None:
    """Other keywords that narrow a value down are refused."""
    city = {"type": "string", **keyword}
    closed = {
        "type": "object",
        "properties": {"city": city},
        "required": ["city"],
        "additionalProperties": False,
    }
    reply = await client.ask(tools=[{**FUNCTION, "parameters": closed, "strict": True}])

    assert reply.body["tools"][0]["parameters"] == closed


async def test_a_format_without_strict_is_strict(client: Client) -> None:
    """It comes back with `strict` and a description (404), without `$schema` (332)."""
    schema = {**CLOSED, "$schema": "http://json-schema.org/draft-07/schema#"}
    format = {"type": "json_schema", "name": "reply", "schema": schema}
    reply = await client.ask(text={"format": format})

    assert reply.body["text"]["format"] == {
        "type": "json_schema",
        "description": None,
        "name": "reply",
        "schema": CLOSED,
        "strict": True,
    }


async def test_deep_research_with_its_own_tools_has_ended(client: Client) -> None:
    """Only the tools are looked at first: the models were shut down in July 2026."""
    tools = [{"type": "web_search_preview"}]
    reply = await client.post(client.body(model="o3-deep-research", tools=tools))

    assert reply.status == 404
    assert reply.error["code"] == "model_not_found"


@pytest.mark.parametrize(("answers_a_call", "status"), [(False, 400), (True, 200)])
async def test_item_after_reasoning_with_an_id_may_need_its_own_id(
    client: Client, answers_a_call: bool, status: int
) -> None:
    """A message without an id is refused (986), a call without one is not (1009)."""
    text = "sim:tool" if answers_a_call else "Hello"
    first = await client.ask(
        text, tools=[FUNCTION], include=["reasoning.encrypted_content"]
    )
    reasoning, answer = first.body["output"]
    bare = {key: value for key, value in answer.items() if key not in ("id", "status")}
    items = [USER, reasoning, bare]
    if answers_a_call:
        items.append({**OUTPUT, "call_id": answer["call_id"]})
    reply = await client.post(client.body(items))

    assert reply.status == status, reply.raw
    if status == 400:
        assert reply.error["param"] == "input"
        assert reply.error["code"] is None


REASONING = {"effort": "low", "summary": "auto"}
ANSWERS = [
    # Lines 521, 325, 636 and 1242.
    ("gpt-5-nano", REASONING, "in_memory", 1.0, "current_turn"),
    ("gpt-5.4-mini", REASONING, "24h", 0.98, "current_turn"),
    ("gpt-5.6-terra", REASONING, "24h", 0.98, "all_turns"),
    ("gpt-6-astra", REASONING, "24h", 0.98, "all_turns"),
]


@pytest.mark.parametrize(("model", "asked", "retention", "top_p", "turns"), ANSWERS)
async def test_the_fields_of_a_response(
    client: Client, model: str, asked: Any, retention: str, top_p: float, turns: str
) -> None:
    """The defaults depend on the model."""
    reply = await client.ask(model=model, reasoning=asked)

    assert reply.body["reasoning"] == {
        "context": turns,
        "effort": "low",
        "mode": "standard",
        "summary": "detailed",
    }
    assert reply.body["prompt_cache_retention"] == retention
    assert (reply.body["temperature"], reply.body["top_p"]) == (1.0, top_p)
    assert reply.body["store"] is False
    assert reply.body["billing"] == {"payer": "developer"}
    assert reply.body["frequency_penalty"] == reply.body["presence_penalty"] == 0.0
    assert reply.body["moderation"] is None
    assert "status" not in reply.body["output"][0]


async def test_a_model_that_does_not_reason(client: Client) -> None:
    """Its answer says so with nulls (25)."""
    reply = await client.ask(model="gpt-4o-mini")

    assert reply.body["reasoning"] == {"context": None, "effort": None, "summary": None}


async def test_encrypted_content_of_the_final_object(client: Client) -> None:
    """It differs from that of the finished item; both can be sent again."""
    events = await client.stream("Hello", include=["reasoning.encrypted_content"])
    finished = [
        event["item"]
        for event in events.events
        if event["type"] == "response.output_item.done"
    ]
    final = events.events[-1]["response"]["output"]

    assert finished[0]["encrypted_content"] != final[0]["encrypted_content"]
    assert finished[1] == final[1]
    for reasoning in (finished[0], final[0]):
        items = [{**USER, "content": "Hello"}, reasoning, final[1], USER]
        again = await client.ask(items, model="gpt-5.6-sol")
        assert again.body["usage"]["input_tokens"] > 64


async def test_a_citation_ends_behind_its_last_character(client: Client) -> None:
    """`end_index` is exclusive: 148 of 149 recorded citations."""
    reply = await client.ask("sim:web-search", tools=[{"type": "web_search"}])
    part = reply.body["output"][-1]["content"][0]
    places = [(note["start_index"], note["end_index"]) for note in part["annotations"]]
    cited = [part["text"][start:end] for start, end in places]

    assert cited
    assert all(text.startswith("([") and text.endswith("))") for text in cited)
