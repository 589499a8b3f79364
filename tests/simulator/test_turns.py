"""What a later turn loses, keeps, and may not hold: reasoning, settings, tools, calls.

A simulator that forgave here would let a client forget what the API does not.
"""

from typing import Any

import pytest

from simulator.containers import MAX_IDLE_SECONDS
from simulator.files import CONTAINER
from simulator.transcripts import build_client_items, strip_item
from upstream.simulated import Client, bare

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "Hello"}
MORE: Json = {"role": "user", "content": "Go on, in JSON"}
LONG: Json = {"role": "user", "content": "rain " * 1200}
OLD = "gpt-5.6-sol"
NEW = "gpt-6.2-sol"
FUNCTION: Json = {
    "type": "function",
    "name": "look_up",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    "strict": False,
}
ADDED: Json = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}
CHOSEN: Json = {
    "type": "allowed_tools",
    "mode": "auto",
    "tools": [{"type": "function", "name": "look_up"}],
}
CODE: Json = {"type": "code_interpreter", "container": {"type": "auto"}}
CLOCKS: Json = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
}
MANAGED: Json = {
    "context_management": [{"type": "compaction", "compact_threshold": 1000}]
}


def update(effort: str, **more: Any) -> Json:
    return {"type": "configuration_update", "reasoning": {"effort": effort}, **more}


def answer_to(call: Json) -> Json:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}


async def first_turn(client: Client, model: str, **more: Any) -> list[Json]:
    """Return the output of a first turn, as a careful client sends it back."""
    reply = await client.ask([USER], **{"model": model, **more})
    return bare(reply.body["output"])


def cached(reply: Any) -> int:
    return int(reply.body["usage"]["input_tokens_details"]["cached_tokens"])


async def test_reasoning_that_cannot_be_read_is_refused(client: Client) -> None:
    output = await first_turn(client, OLD)
    sealed = output[0]["encrypted_content"]
    swapped = "B" if sealed[200] == "A" else "A"
    changed = sealed[:200] + swapped + sealed[201:]
    older = await first_turn(client, "gpt-5.2", reasoning={"effort": "low"})
    text = [{"type": "reasoning_text", "text": "So."}]

    for thought, key, code in (
        ({**output[0], "encrypted_content": changed}, "1", "invalid_encrypted_content"),
        (output[0], "2", "invalid_encrypted_content"),
        (older[0], "1", "invalid_encrypted_content"),
        ({**output[0], "content": text}, "1", "array_above_max_length"),
        ({**output[0], "status": "completed"}, "1", "unknown_parameter"),
    ):
        body = client.body([USER, thought, output[1], MORE])
        reply = await client.post(body, key=f"sk-simulator-{key}")
        assert (reply.status, reply.error["code"]) == (400, code)


async def test_openai_reads_past_what_other_servers_refuse(client: Client) -> None:
    older = await first_turn(client, "gpt-5.2", reasoning={"effort": "low"})
    items = [USER, {**older[0], "status": "completed"}, older[1], MORE]
    client.headers = {"X-Simulator-Profile": "openai"}

    assert (await client.post(client.body(items))).status == 200


async def test_reasoning_and_what_follows_it_come_together(client: Client) -> None:
    """With their ids; other reasoning may be between, a search finds its own by its seal."""
    output = (await client.ask("sim:annotations")).body["output"]
    reasoning, search, message = [strip_item(item) for item in output]
    search["status"] = "completed"
    await client.ask([USER, reasoning, search, message, USER])
    error = await client.refused(input=[USER, search, message, USER])

    assert "of type 'web_search_call' was provided without" in error["message"]


CHANGES = [
    ({"tools": [{"type": "web_search"}]}, "prefix_mismatch"),
    ({"reasoning": {"effort": "high"}}, "prefix_mismatch"),
    ({"text": {"format": {"type": "json_object"}}}, "prefix_mismatch"),
    ({"safety_identifier": "someone-else"}, "end_user_mismatch"),
    ({"model": "gpt-6.2-astra", "input": "edited"}, "prefix_mismatch"),
    ({"reasoning": {"context": "current_turn"}}, "turn_boundary"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
async def test_newer_models_drop_reasoning_with_a_changed_prefix(
    client: Client, change: Json, reason: str
) -> None:
    """The answer is still 200; the drop is reported, and older models do not drop."""
    fields = {"model": NEW, **change}
    question = {**USER, "content": fields.pop("input", "Hello")}
    output = await first_turn(client, NEW)
    reply = await client.ask([question, *output, MORE], **fields)
    older = await first_turn(client, OLD)
    read = await client.ask([question, *older, MORE], **{**fields, "model": OLD})

    (removed,) = reply.body["input_transformations"]
    assert removed.pop("id").startswith("rs_")
    assert removed == {"type": "reasoning", "action": "removed", "reason": reason}
    assert "I was given 0 reasoning items back" in reply.text
    count = 0 if reason == "turn_boundary" else 1
    assert f"I was given {count} reasoning item" in read.text
    assert "input_transformations" not in read.body


async def test_newer_models_drop_reasoning_of_an_older_one(client: Client) -> None:
    reply = await client.ask([USER, *await first_turn(client, OLD), MORE], model=NEW)

    (removed,) = reply.body["input_transformations"]
    assert removed["reason"] == "model_mismatch"


async def test_reasoning_behind_an_edit_goes_and_no_other(client: Client) -> None:
    """An edited question, and a message whose phase was dropped, are edits."""
    first = await first_turn(client, NEW)
    reply = await client.ask([USER, *first, MORE], model=NEW)
    second = bare(reply.body["output"])
    unphased = {name: value for name, value in first[1].items() if name != "phase"}

    for edited in (
        [USER, *first, {**MORE, "content": "Something else"}],
        [USER, first[0], unphased, MORE],
    ):
        again = await client.ask([*edited, *second, MORE], model=NEW)
        (removed,) = again.body["input_transformations"]
        assert removed["reason"] == "prefix_mismatch"
        assert "I was given 1 reasoning item back" in again.text


@pytest.mark.parametrize(
    ("model", "context", "count"),
    [
        ("gpt-5.5", None, 0),
        ("gpt-5.5", "auto", 0),
        ("gpt-5.5", "all_turns", 1),
        (OLD, "auto", 1),
        (OLD, "current_turn", 0),
    ],
)
async def test_which_turns_are_read(
    client: Client, model: str, context: str | None, count: int
) -> None:
    """Before 5.6 a model reads what it thought in this turn, unless asked otherwise."""
    output = await first_turn(client, model)
    more: Json = {"reasoning": {"context": context}} if context else {}
    reply = await client.ask([USER, *output, MORE], model=model, **more)

    assert f"I was given {count} reasoning item" in reply.text


async def test_configuration_update_applies_until_the_next(client: Client) -> None:
    """An effort of none ends the reasoning; at request level it costs cache and more."""
    first = await client.ask([LONG], model=NEW, reasoning={"effort": "low"})
    items = [LONG, *bare(first.body["output"])]
    kept = await client.ask(
        [*items, update("high"), MORE, update("max"), MORE],
        model=NEW,
        reasoning={"effort": "low"},
    )
    lost = await client.ask([*items, MORE], model=NEW, reasoning={"effort": "high"})
    silent = await client.ask([USER, update("none"), MORE], model="gpt-6-luna")

    assert kept.body["reasoning"]["effort"] == "max"
    assert cached(kept) > 0.9 * first.body["usage"]["input_tokens"]
    assert kept.body["input_transformations"] == []
    assert cached(lost) == 0
    assert len(lost.body["input_transformations"]) == 1
    assert [item["type"] for item in silent.body["output"]] == ["message"]


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-6.1-sol", NEW])
async def test_call_of_an_added_tool_goes_back_with_its_namespace(
    client: Client, model: str
) -> None:
    more: Json = {} if model == "gpt-5.4" else {"tool_choice": CHOSEN}
    items = [ADDED, {"role": "user", "content": "sim:tool"}]
    reply = await client.ask(items, model=model, **more)
    *before, call = bare(reply.body["output"])
    named = {**call, "namespace": "look_up"}
    unnamed = {name: value for name, value in call.items() if name != "namespace"}
    await client.ask([*items, *before, named, answer_to(call)], model=model, **more)
    error = await client.refused(
        input=[*items, *before, unnamed, answer_to(call)], model=model, **more
    )

    assert ("namespace" in call) == (model == "gpt-5.4")
    assert error["message"].startswith("Missing namespace for function_call 'look_up'.")
    assert error["param"] == f"input[{len(items) + len(before)}].namespace"


@pytest.mark.parametrize("scenario", ["tool", "code", "hidden-tool"])
async def test_the_model_calls_only_what_is_allowed(
    client: Client, scenario: str
) -> None:
    """A tool that stays declared is not called."""
    weather = {**FUNCTION, "name": "get_weather"}
    reply = await client.ask(
        f"sim:{scenario}",
        model="gpt-6.1-sol",
        tools=[FUNCTION, weather, CODE, {"type": "web_search"}],
        tool_choice={**CHOSEN, "tools": [{"type": "web_search"}]},
    )

    assert [item["type"] for item in reply.body["output"]] == ["reasoning", "message"]


@pytest.mark.parametrize("keeps_all", [True, False])
async def test_compaction_replaces_what_came_before(
    client: Client, keeps_all: bool
) -> None:
    """The newest settings come right after it; appended tools are in it."""
    items = [LONG, update("high"), ADDED, MORE]
    first = await client.ask(items, model=NEW, **MANAGED)
    output = bare(first.body["output"])
    before = [*items, *output[:2]] if keeps_all else []
    asked = {"role": "user", "content": "sim:tool"}
    more: Json = {"model": NEW, **MANAGED}
    reply = await client.ask([*before, *output[2:], asked], **more, tool_choice=CHOSEN)
    again = client.body([*before, *output[2:], ADDED, asked], **more)

    kinds = ["reasoning", "message", "compaction", "configuration_update"]
    assert [item["type"] for item in output] == kinds
    assert output[3] == update("high", text={"format": {"type": "text"}})
    assert reply.body["reasoning"]["effort"] == "high"
    assert reply.body["output"][-1]["name"] == "look_up"
    assert reply.body["input_transformations"] == []
    assert reply.body["usage"]["input_tokens"] < 1000
    assert (await client.post(again)).status == 400


@pytest.mark.parametrize(
    ("content", "wish"),
    [
        (MORE, MANAGED),
        (LONG, {}),
        (LONG, {"context_management": [{"type": "compaction"}]}),
    ],
)
async def test_nothing_is_compacted_otherwise(
    client: Client, content: Json, wish: Json
) -> None:
    reply = await client.ask([content], **wish)

    assert [item["type"] for item in reply.body["output"]] == ["reasoning", "message"]


async def test_compaction_of_another_organization_is_refused(client: Client) -> None:
    """It is sealed as reasoning is."""
    first = await client.ask([LONG], **MANAGED)
    compaction = bare(first.body["output"])[-1:]
    reply = await client.post(client.body([*compaction, MORE]), "sk-simulator-2")

    assert reply.error["code"] == "invalid_encrypted_content"


async def compared(client: Client, earlier: str, items: Any, **more: Any) -> Any:
    options = {"comparison_response_id": earlier}
    body: Json = {"model": NEW, **more, "prompt_cache_options": options}
    events = await client.stream(items, **body)
    opened, closed = (events.events[n]["response"] for n in (0, -1))
    assert opened["prompt_cache_diagnostics"] == {"type": "unavailable"}
    return closed["prompt_cache_diagnostics"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "gpt-6.2-astra"}, "model_changed"),
        ({"prompt_cache_key": "b"}, "prompt_cache_key_changed"),
        ({"tools": [FUNCTION]}, "tools_changed"),
        ({"text": {"format": {"type": "json_object"}}}, "text_format_changed"),
        ({"reasoning": {"effort": "high"}}, "reasoning_effort_changed"),
        ({"text": {"verbosity": "low"}}, "verbosity_changed"),
        ({"service_tier": "flex"}, "service_tier_changed"),
    ],
)
async def test_the_reason_of_a_miss(client: Client, change: Json, reason: str) -> None:
    first = await client.ask([LONG], model=NEW)
    items = [LONG, *bare(first.body["output"]), MORE]
    diagnosis = await compared(client, first.body["id"], items, **change)

    assert (diagnosis["type"], diagnosis["reason"]) == ("cache_miss", reason)
    assert diagnosis["cache_missed_tokens"] > 1000
    assert diagnosis["comparison_reusable_tokens"] == 0


async def test_where_the_input_changed_or_nothing_did(client: Client) -> None:
    first = (await client.ask([LONG, USER], model=NEW)).body
    items = [LONG, USER, *bare(first["output"]), MORE]
    changed = await compared(client, first["id"], [LONG, MORE])

    assert changed["reason"] == "input_changed"
    assert changed["comparison_reusable_tokens"] > 1000
    assert changed["cache_missed_tokens"] < 100
    assert await compared(client, first["id"], items) == {"type": "cache_hit"}
    unknown = await compared(client, "resp_unknown", items)
    assert unknown == {"type": "comparison_response_not_found"}
    older = await compared(client, first["id"], [LONG], model="gpt-5.5")
    assert older == {"type": "unavailable"}


@pytest.mark.parametrize("approve", [True, False])
async def test_an_approval_decides_about_the_call(
    client: Client, approve: bool
) -> None:
    """The tools are listed once; a call is made after a yes, and costs nothing later."""
    question = {"role": "user", "content": "sim:mcp-approval"}
    first = await client.ask([question], tools=[CLOCKS])
    output = first.body["output"]
    answers = [{**item, "approve": approve} for item in build_client_items(output)]
    sent = [strip_item(item) for item in output]
    second = await client.ask([question, *sent, *answers], tools=[CLOCKS])

    assert [item["type"] for item in output].count("mcp_list_tools") == 1
    kinds = [item["type"] for item in second.body["output"]]
    assert "mcp_list_tools" not in kinds
    assert kinds.count("mcp_call") == int(approve)


async def test_a_container_dies_of_idleness(client: Client) -> None:
    """Each use starts the twenty minutes anew; what died stays dead until it is forgotten."""
    first = await client.ask("sim:count", tools=[CODE])
    call = next(item for item in first.body["output"] if "container_id" in item)
    items = [{**call, "id": "ci_1"}, USER]  # its own would ask for the reasoning
    body = client.body(items, tools=[CODE])
    for _ in range(2):
        client.simulator.pass_time(MAX_IDLE_SECONDS - 60)
        assert (await client.post(body)).status == 200

    client.simulator.pass_time(MAX_IDLE_SECONDS + 60)
    for _ in range(2):
        reply = await client.post(body)
        assert reply.error["message"] == (
            f"Container is expired. Expected container_id: {CONTAINER}."
        )
    tools = [{**CODE, "container": CONTAINER}]
    assert (await client.refused(tools=tools))["message"] == "Container is expired."
    client.simulator.forget()
    assert (await client.post(body)).status == 200
