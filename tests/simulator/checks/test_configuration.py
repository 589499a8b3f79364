"""Settings and tools that are appended: what is refused, what holds, what it keeps."""

from typing import Any

import pytest

from simulator import Simulator
from upstream.simulated import Client, bare

pytestmark = pytest.mark.asyncio

USER = {"type": "message", "role": "user", "content": "Hello"}
MORE = {"type": "message", "role": "user", "content": "Go on"}
LONG = {"role": "user", "content": "rain " * 1200}
SOL = "gpt-6.1-sol"
LAST = "gpt-6.2-sol"
OLD = "gpt-5.6-sol"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
JSON = {"type": "json_schema", "name": "reply", "schema": SCHEMA}


def update(effort: str | None = None, format: Any = None) -> dict[str, Any]:
    """Return an update of the configuration."""
    reasoning = {"reasoning": {"effort": effort}} if effort else {}
    text = {"text": {"format": format}} if format else {}
    return {"type": "configuration_update", **reasoning, **text}


def function(name: str = "look_up") -> dict[str, Any]:
    """Return a function tool."""
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    return {
        "type": "function",
        "name": name,
        "parameters": parameters,
        "strict": False,
    }


def added(*tools: Any, role: str = "developer") -> dict[str, Any]:
    """Return an item that adds tools."""
    return {"type": "additional_tools", "role": role, "tools": list(tools)}


def allowed(*tools: Any, mode: str = "auto") -> dict[str, Any]:
    """Return a choice that leaves all other tools out."""
    named = [{k: tool[k] for k in ("type", "name") if k in tool} for tool in tools]
    return {"type": "allowed_tools", "mode": mode, "tools": named}


UPDATES = [
    ([update("low"), update("high"), USER], {}, "Consecutive 'configuration_update'"),
    ([update(), USER], {}, "Missing required parameter: 'input[0].reasoning'."),
    ([update("none"), USER], {}, "Unsupported value: 'none' is not supported with"),
    ([update("huge"), USER], {}, "Invalid value: 'huge'."),
    ([update("low") | {"verbosity": "low"}, USER], {}, "Unknown parameter: "),
    ([update(format={"type": "json_object"}), USER], {}, "Invalid value: 'json_object"),
    ([update(format={**JSON, "name": "a b"}), USER], {}, "Invalid 'input[0].text."),
    ([update("low"), USER], {"model": OLD}, "The 'configuration_update' item type"),
    (
        [update("low"), USER],
        {"reasoning": {"mode": "pro"}},
        "The 'configuration_update' item type is not supported with pro or tournament "
        "models.",
    ),
    ([update("low"), USER], {"truncation": "auto"}, "The 'configuration_update' item"),
]


@pytest.mark.parametrize("kind", ["configuration_update", "additional_tools"])
async def test_other_servers_do_not_know_the_items(client: Client, kind: str) -> None:
    """They list the types that they know."""
    item = update("low") if kind == "configuration_update" else added(function())
    client.headers = {"X-Simulator-Profile": "azure"}
    error = await client.refused(model=SOL, input=[item, USER])

    assert error["message"].startswith(f"Invalid value: '{kind}'. Supported values are")
    assert f"'{kind}', " not in error["message"]
    assert error["param"] == "input[0].type"


async def test_configuration_update_applies_until_the_next(client: Client) -> None:
    """Until the next one; each setting for itself."""
    items = [USER, update("high", JSON), MORE, update("low"), MORE]
    reply = await client.ask(items, model=SOL, reasoning={"effort": "medium"})

    assert reply.body["reasoning"]["effort"] == "low"
    settled = {**JSON, "description": None, "strict": True}
    assert reply.body["text"]["format"] == settled


async def test_an_effort_of_none_ends_the_reasoning(client: Client) -> None:
    """The model thinks as the newest update says."""
    reply = await client.ask([USER, update("none"), MORE], model="gpt-6-luna")

    assert [item["type"] for item in reply.body["output"]] == ["message"]


@pytest.mark.parametrize("model", [SOL, LAST])
async def test_appended_settings_keep_cache_and_reasoning(
    client: Client, model: str
) -> None:
    """The same change at request level costs both, from 6.2 on."""
    first = await client.ask([LONG], model=model, reasoning={"effort": "low"})
    items = [LONG, *bare(first.body["output"])]
    kept = await client.ask(
        [*items, update("high"), MORE], model=model, reasoning={"effort": "low"}
    )
    lost = await client.ask([*items, MORE], model=model, reasoning={"effort": "high"})

    known = kept.body["usage"]["input_tokens_details"]["cached_tokens"]
    assert known > 0.9 * first.body["usage"]["input_tokens"]
    assert lost.body["usage"]["input_tokens_details"]["cached_tokens"] == 0
    assert not kept.body.get("input_transformations")
    assert len(lost.body.get("input_transformations", ())) == (model == LAST)


TOOLS = [
    ([added(function(), role="user"), USER], {}, "Invalid value: 'user'."),
    (
        [added(function()), USER],
        {"tools": [function()]},
        "Duplicate tool name found: look_up.",
    ),
    ([added(function()), USER, added(function()), MORE], {}, "Duplicate tool name"),
    (
        [added({"type": "web_search"}), USER],
        {"tools": [{"type": "web_search"}]},
        "Duplicate tool found: web_search.",
    ),
    (
        [added(*(function(f"f{n}") for n in range(100))), USER],
        {"tools": [function(f"g{n}") for n in range(29)]},
        "Invalid 'tools': array too long.",
    ),
    (
        [added(function()), USER],
        {"model": "gpt-5.5", "tool_choice": allowed(function())},
        "Tool choice 'look_up' not found in 'tools' parameter.",
    ),
    (
        [added(function()), USER],
        {"tool_choice": allowed(function("other"))},
        "Tool choice 'other' not found in 'tools' parameter.",
    ),
    (
        [added(function()), USER],
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        "Invalid 'tool_choice.tools': empty array.",
    ),
]


@pytest.mark.parametrize(("items", "more", "message"), [*UPDATES, *TOOLS])
async def test_updates_and_tools_that_are_refused(
    client: Client, items: Any, more: Any, message: str
) -> None:
    """In the words of the reports, where there are any."""
    error = await client.refused(**{"model": SOL, "input": items, **more})

    assert error["message"].startswith(message)


@pytest.mark.parametrize("model", [SOL, LAST])
async def test_call_of_an_added_tool_goes_back_with_its_namespace(
    client: Client, model: str
) -> None:
    """It comes without one, is refused so, and nothing before is lost."""
    first = await client.ask([LONG], model=model)
    asked = {"role": "user", "content": "sim:tool"}
    items = [LONG, *bare(first.body["output"]), added(function()), asked]
    more: Any = {"model": model, "tool_choice": allowed(function())}
    reply = await client.ask(items, **more)
    *before, call = bare(reply.body["output"])
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}
    named_call = {**call, "namespace": "look_up"}
    named = await client.ask([*items, *before, named_call, output], **more)
    error = await client.refused(input=[*items, *before, call, output], **more)

    assert "namespace" not in call
    assert "I called `look_up`" in named.text
    assert not named.body.get("input_transformations")
    assert error["message"].startswith("Missing namespace for function_call 'look_up'.")
    assert error["param"] == f"input[{len(items) + len(before)}].namespace"
    known = reply.body["usage"]["input_tokens_details"]["cached_tokens"]
    assert known > 0.9 * first.body["usage"]["input_tokens"]


async def test_an_older_model_names_the_namespace_of_an_added_tool(
    client: Client,
) -> None:
    """The call is refused without it."""
    items = [added(function()), {"role": "user", "content": "sim:tool"}]
    reply = await client.ask(items, model="gpt-5.4")
    *before, call = bare(reply.body["output"])
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}
    await client.ask([*items, *before, call, output], model="gpt-5.4")
    without = {key: value for key, value in call.items() if key != "namespace"}
    error = await client.refused(
        input=[*items, *before, without, output], model="gpt-5.4"
    )

    assert call["namespace"] == "look_up"
    assert error["message"].startswith("Missing namespace for function_call 'look_up'.")
    assert error["param"] == f"input[{len(items) + len(before)}].namespace"


@pytest.mark.parametrize("scenario", ["tool", "code", "hidden-tool"])
async def test_the_model_calls_only_what_is_allowed(
    client: Client, scenario: str
) -> None:
    """A tool that stays declared is not called."""
    tools = [
        function(),
        function("get_weather"),
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "web_search"},
    ]
    reply = await client.ask(
        f"sim:{scenario}",
        model=SOL,
        tools=tools,
        tool_choice=allowed({"type": "web_search"}),
    )

    kinds = [item["type"] for item in reply.body["output"]]
    assert kinds == ["reasoning", "message"]


async def test_pro_mode_thinks_twice_as_long(client: Client) -> None:
    """It is echoed and thinks twice as long; 6.2 and older models have it not."""
    plain = await client.ask(model=SOL)
    pro = await client.ask(model=SOL, reasoning={"mode": "pro"})
    newest = await client.refused(model=LAST, reasoning={"mode": "pro"})
    older = await client.refused(model="gpt-5.5", reasoning={"mode": "pro"})

    def thoughts(reply: Any) -> int:
        details = reply.body["usage"]["output_tokens_details"]
        return int(details["reasoning_tokens"])

    assert pro.body["reasoning"]["mode"] == "pro"
    assert thoughts(pro) == 2 * thoughts(plain)
    assert newest["code"] == "unsupported_value"
    assert older["code"] == "unsupported_parameter"


async def test_the_newest_models_take_the_default_of_sampling(client: Client) -> None:
    """1 passes, anything else does not."""
    await client.ask(model=LAST, temperature=1, top_p=1.0)
    error = await client.refused(model=LAST, top_p=0.9)

    assert error["param"] == "top_p"


@pytest.mark.parametrize("keeps_all", [True, False])
async def test_compaction_keeps_what_was_appended(
    client: Client, keeps_all: bool
) -> None:
    """A fresh update comes right after it; the tool needs not be declared again."""
    managed = {
        "context_management": [{"type": "compaction", "compact_threshold": 1000}]
    }
    items = [LONG, update("high"), added(function()), MORE]
    first = await client.ask(items, model=LAST, **managed)
    output = bare(first.body["output"])
    kinds = [item["type"] for item in output]
    before = [*items, *output[:2]] if keeps_all else []
    kept = output[2:]
    asked = {"role": "user", "content": "sim:tool"}
    choice = {"tool_choice": allowed(function())}
    reply = await client.ask([*before, *kept, asked], model=LAST, **managed, **choice)
    again = client.body(
        [*before, *kept, added(function()), asked], model=LAST, **managed
    )

    assert kinds == ["reasoning", "message", "compaction", "configuration_update"]
    text = {"format": {"type": "text"}}
    assert output[3] == update("high") | {"text": text}
    assert reply.body["reasoning"]["effort"] == "high"
    assert reply.body["output"][-1]["name"] == "look_up"
    assert reply.body["input_transformations"] == []
    assert (await client.post(again)).status == 400


async def compared(client: Client, earlier: str, items: Any, **more: Any) -> Any:
    """Return the diagnosis of a request next to an earlier one."""
    options = {"comparison_response_id": earlier}
    body: Any = {"model": LAST, **more, "prompt_cache_options": options}
    events = await client.stream(items, **body)
    opened, closed = (events.events[n]["response"] for n in (0, -1))
    assert opened["prompt_cache_diagnostics"] == {"type": "unavailable"}
    assert closed["prompt_cache_options"]["comparison_response_id"] == earlier
    return closed["prompt_cache_diagnostics"]


REASONS = [
    ({"model": "gpt-6.2-astra"}, "model_changed"),
    ({"prompt_cache_key": "b"}, "prompt_cache_key_changed"),
    ({"tools": [function()]}, "tools_changed"),
    ({"text": {"format": JSON}}, "text_format_changed"),
    ({"reasoning": {"effort": "high"}}, "reasoning_effort_changed"),
    ({"text": {"verbosity": "low"}}, "verbosity_changed"),
    ({"service_tier": "flex"}, "service_tier_changed"),
]


@pytest.mark.parametrize(("change", "reason"), REASONS)
async def test_the_reason_of_a_miss(client: Client, change: Any, reason: str) -> None:
    """Each setting has its own."""
    first = await client.ask([LONG], model=LAST)
    items = [LONG, *bare(first.body["output"]), MORE]
    diagnosis = await compared(client, first.body["id"], items, **change)

    assert (diagnosis["type"], diagnosis["reason"]) == ("cache_miss", reason)
    assert diagnosis["cache_missed_tokens"] > 1000
    assert diagnosis["comparison_reusable_tokens"] == 0


async def test_part_in_front_of_a_change_can_be_used_again(client: Client) -> None:
    """The part in front of the change can be used again."""
    first = await client.ask([LONG, USER], model=LAST)
    diagnosis = await compared(client, first.body["id"], [LONG, MORE])

    assert diagnosis["reason"] == "input_changed"
    assert diagnosis["comparison_reusable_tokens"] > 1000
    assert diagnosis["cache_missed_tokens"] < 100


async def test_compaction_is_a_reason_of_its_own(client: Client) -> None:
    """That the context was compacted in between is a reason of its own."""
    managed = {
        "context_management": [{"type": "compaction", "compact_threshold": 1000}]
    }
    first = await client.ask([LONG], model=LAST, **managed)
    items = [*bare(first.body["output"]), LONG]
    diagnosis = await compared(client, first.body["id"], items, **managed)

    assert diagnosis["reason"] == "context_compacted"


async def test_where_there_is_no_diagnosis(client: Client, sim: Simulator) -> None:
    """A hit, an unknown id, another organization, an older model, a wrong id."""
    first = (await client.ask([LONG], model=LAST)).body
    items = [LONG, *bare(first["output"]), MORE]
    hit = await compared(client, first["id"], items, instructions="Be brief.")
    unknown = await compared(client, "resp_unknown", items)
    older = await compared(client, first["id"], [LONG], model="gpt-5.5")
    options = {"prompt_cache_options": {"comparison_response_id": "msg_1"}}
    error = await client.refused(model=SOL, **options)
    options["prompt_cache_options"]["comparison_response_id"] = first["id"]
    stranger = client.body([LONG], model=LAST, **options)
    foreign = await client.post(stranger, key="sk-simulator-2")

    assert hit == {"type": "cache_hit"}
    assert unknown == {"type": "comparison_response_not_found"}
    assert older == {"type": "unavailable"}
    assert error["param"] == "prompt_cache_options.comparison_response_id"
    assert foreign.body["prompt_cache_diagnostics"] == unknown
