"""What a test refuses is refused each time, in the words and the form asked for."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from simulator.faults import (
    DELIVERIES,
    FORMS,
    refuse_item,
    refuse_parameter,
    refuse_tool,
)
from simulator.faults.parts import RefusedPart
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

TOOL = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "action": {"type": "search", "query": "poison"},
    "status": "completed",
}
CALL = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": "{}",
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}


def ask(*items: Any) -> list[Any]:
    """An input with these items in front of a question."""
    before = {"role": "user", "content": "First"}
    return [before, *items, {"role": "user", "content": "Hello"}]


REFUSALS: dict[str, tuple[RefusedPart, dict[str, Any], str, str]] = {
    "item": (refuse_item("web_search_call"), {}, "input[1]", "invalid_value"),
    "text": (refuse_item(text="poison"), {}, "input[1]", "invalid_value"),
    "key": (
        refuse_item("web_search_call", key="status"),
        {},
        "input[1].status",
        "unknown_parameter",
    ),
    "missing": (
        refuse_item("function_call", key="id", missing=True),
        {},
        "input[2].id",
        "missing_required_parameter",
    ),
    "tool": (
        refuse_tool("get_weather"),
        {},
        "tools[1].parameters",
        "invalid_function_parameters",
    ),
    "hosted": (refuse_tool("web_search"), {}, "tools[0].type", "invalid_value"),
    "parameter": (
        refuse_parameter("text.verbosity"),
        {"text": {"verbosity": "low"}},
        "text.verbosity",
        "unknown_parameter",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_part_is_refused_wherever_it_stands(client: Client, name: str) -> None:
    """Param and code are those of the API, each time."""
    fault, more, param, code = REFUSALS[name]
    client.simulator.faults.append(fault)
    body = client.body(
        ask(SEARCH, CALL, OUTPUT), tools=[{"type": "web_search"}, TOOL], **more
    )

    replies = [await client.post(body) for _ in range(2)]

    for answer in replies:
        assert answer.status == 400
        assert (answer.error["param"], answer.error["code"]) == (param, code)
        assert param in answer.error["message"] or code.startswith("invalid_function")


async def test_a_request_without_the_part_passes(client: Client) -> None:
    """Nothing else is touched; what was forgotten is forgotten."""
    client.simulator.faults.append(refuse_item("web_search_call", chat="First"))

    assert (await client.post(client.body("Hello"))).status == 200
    assert (await client.post(client.body([SEARCH]))).status == 200
    assert (await client.post(client.body(ask(SEARCH)))).status == 400
    client.simulator.forget()
    assert (await client.post(client.body(ask(SEARCH)))).status == 200


@pytest.mark.parametrize(
    ("form", "delivery"),
    [
        *((form, "http") for form in FORMS),
        *(("fields", delivery) for delivery in DELIVERIES if delivery != "http"),
    ],
)
async def test_refusal_names_its_part_where_the_form_has_it(
    client: Client, form: str, delivery: str
) -> None:
    """The place is where the form has it, and nowhere else."""
    fault = refuse_item("function_call", form=form, delivery=delivery, status=404)
    client.simulator.faults.append(fault)
    body = client.body(ask(CALL, OUTPUT), stream=True)

    reply = await client.post(body)

    if delivery == "http":
        assert reply.status == 404
        error = reply.error
    else:
        assert reply.status == 200
        *begun, last = reply.events
        errors = ["error"] if delivery == "both" else []
        assert [event["type"] for event in begun] == [
            "response.created",
            "response.in_progress",
            *errors,
        ]
        failed = last.get("response") or {}
        error = failed.get("error") or last.get("error") or last
    written = json.dumps(error)
    assert ("input[1]" in written) == (form not in ("id", "phrase"))
    assert ("call_1" in written) == (form == "id")
    assert (error.get("param") is None) == (form != "fields")
    if form == "openrouter":
        assert json.loads(error["metadata"]["raw"])["error"]["param"] == "input[1]"
    if form == "litellm":
        assert "litellm.NotFoundError: OpenAIException - {" in error["message"]


async def test_a_picture_in_a_message(client: Client) -> None:
    """The path names the field of the content part."""
    picture = {
        "type": "input_image",
        "image_url": "https://x.example/a",
        "detail": "low",
    }
    text = {"type": "input_text", "text": "See"}
    client.simulator.faults.append(refuse_item("message", part="input_image"))

    reply = await client.post(
        client.body(ask({"role": "user", "content": [text, picture]}))
    )

    assert reply.error["param"] == "input[1].content[1].image_url"


async def test_a_tool_that_was_added_later(client: Client) -> None:
    """Tools of an item have their own places."""
    added = {"type": "additional_tools", "role": "developer", "tools": [TOOL]}
    client.simulator.faults.append(refuse_tool("get_weather"))

    reply = await client.post(client.body(ask(added), model="gpt-6-luna"))

    assert reply.error["param"] == "input[1].tools[0].parameters"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("fields", "Invalid value: 'configuration_update'. Supported values are: "),
        ("phrase", "The 'configuration_update' item type is not supported with pro"),
    ],
)
async def test_an_update_that_a_server_does_not_know(
    client: Client, form: str, words: str
) -> None:
    """In the words of servers that know fewer types, and of pro models."""
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    client.simulator.faults.append(refuse_item("configuration_update", form=form))

    reply = await client.post(client.body(ask(update), model="gpt-6-luna"))

    assert reply.error["message"].startswith(words)
    assert reply.error["param"] == ("input[1].type" if form == "fields" else None)


async def test_phrase_names_neither_a_place_nor_an_id(client: Client) -> None:
    """What neither names a place nor an id."""
    run = {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "code": "1",
        "container_id": "cntr_68e0000000000000000000000000000000000000",
        "outputs": None,
        "status": "completed",
    }
    cases: dict[str, tuple[Callable[..., RefusedPart], str, Any]] = {
        "Container is expired.": (refuse_item, "code_interpreter_call", {}),
        "The input holds a function call that cannot be read.": (
            refuse_item,
            "function_call",
            {},
        ),
        "Hosted tool 'web_search' is not supported": (
            refuse_tool,
            "web_search",
            {"tools": [{"type": "web_search"}]},
        ),
        "Unsupported parameter: 'top_logprobs'": (
            refuse_parameter,
            "top_logprobs",
            {"top_logprobs": 0, "reasoning": {"effort": "none"}},
        ),
    }
    for words, (refuse, name, more) in cases.items():
        client.simulator.forget()
        client.simulator.faults.append(refuse(name, form="phrase"))
        reply = await client.post(client.body(ask(run, CALL, OUTPUT), **more))
        assert reply.error["message"].startswith(words)
        assert reply.error["param"] is reply.error["code"] is None
