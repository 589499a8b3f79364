"""Encrypted reasoning is read, refused, or dropped, as its seal says."""

from typing import Any

import pytest

from upstream.simulated import Client

USER = {"role": "user", "content": "Hello"}
MORE = {"role": "user", "content": "Go on, in JSON"}
OLD = "gpt-5.6-sol"
NEW = "gpt-6.2-sol"
KEEP = (
    "type",
    "summary",
    "encrypted_content",
    "role",
    "content",
    "phase",
    "name",
    "arguments",
    "call_id",
)


def bare(items: list[Any]) -> list[Any]:
    """Return output items as a careful client sends them back."""
    return [{name: item[name] for name in KEEP if name in item} for item in items]


async def first_turn(client: Client, model: str, **more: Any) -> list[Any]:
    """Return the output of a first turn, ready to be sent back."""
    reply = await client.ask([USER], **{"model": model, **more})
    return bare(reply.body["output"])


async def second_turn(client: Client, items: list[Any], model: str, **more: Any) -> Any:
    """Send the first turn back with one more question."""
    body = client.body([*items, MORE], **{"model": model, **more})
    return await client.post(body)


@pytest.mark.asyncio
@pytest.mark.parametrize("model", [OLD, NEW])
async def test_reasoning_is_read_back(client: Client, model: str) -> None:
    """Untouched reasoning counts, byte for byte and without ids."""
    output = await first_turn(client, model)
    reply = await second_turn(client, [USER, *output], model)

    assert reply.status == 200
    assert reply.text.startswith("This is turn 2. I was given 1 reasoning item back.")


@pytest.mark.asyncio
async def test_reasoning_that_brings_its_own_text(client: Client) -> None:
    """It is refused, also next to encrypted content; an empty list is none."""
    output = await first_turn(client, OLD)
    text = {"type": "reasoning_text", "text": "So."}
    plain = {"type": "reasoning", "summary": [], "content": [text]}

    for item in (plain, {**output[0], "content": [text]}):
        reply = await second_turn(client, [USER, item, output[1]], OLD)
        assert reply.status == 400
        assert reply.error["code"] == "array_above_max_length"
        assert reply.error["param"] == "input[1].content"
    emptied = [USER, {**output[0], "content": []}, output[1]]
    assert (await second_turn(client, emptied, OLD)).status == 200


@pytest.mark.asyncio
async def test_content_that_was_not_sealed_here(client: Client) -> None:
    """Truncated, altered and invented content is refused."""
    output = await first_turn(client, OLD)
    sealed = output[0]["encrypted_content"]
    swapped = "B" if sealed[200] == "A" else "A"

    for content in (sealed[:-8], sealed[:200] + swapped + sealed[201:], "gAAAAx", "é"):
        items = [USER, {**output[0], "encrypted_content": content}, output[1]]
        reply = await second_turn(client, items, OLD)
        assert reply.status == 400
        assert reply.error["code"] == "invalid_encrypted_content"
        assert reply.error["message"].startswith("The encrypted content ")
        assert reply.error["message"].endswith(
            "could not be verified. Reason: Encrypted content could not be decrypted "
            "or parsed."
        )


@pytest.mark.asyncio
@pytest.mark.parametrize("model", [OLD, NEW])
async def test_reasoning_of_another_organization(client: Client, model: str) -> None:
    """A key of another organization cannot read what this one got."""
    output = await first_turn(client, model)
    body = client.body([USER, *output, MORE], model=model)
    reply = await client.post(body, key="sk-simulator-2")

    assert reply.status == 400
    assert reply.error["code"] == "invalid_encrypted_content"
    assert reply.error["message"].endswith(
        "Reason: Encrypted content organization_id did not match the target "
        "organization."
    )


@pytest.mark.asyncio
async def test_reasoning_of_another_family(client: Client) -> None:
    """The strictest profile refuses another series; openai reads past it."""
    output = await first_turn(client, "gpt-5.2", reasoning={"effort": "low"})
    reply = await second_turn(client, [USER, *output], OLD)
    client.headers = {"X-Simulator-Profile": "openai"}
    tolerant = await second_turn(client, [USER, *output], OLD)

    assert reply.error["code"] == "invalid_encrypted_content"
    assert tolerant.status == 200


@pytest.mark.asyncio
async def test_variants_of_one_series_read_each_other(client: Client) -> None:
    """gpt-5.6-luna reads what gpt-5.6-sol thought."""
    output = await first_turn(client, OLD)
    reply = await second_turn(client, [USER, *output], "gpt-5.6-luna")

    assert reply.status == 200


@pytest.mark.asyncio
async def test_reasoning_for_a_model_that_does_not_reason(client: Client) -> None:
    """A non-reasoning model refuses reasoning items."""
    output = await first_turn(client, OLD)
    reply = await second_turn(client, [USER, *output], "gpt-4.1")

    assert reply.status == 400
    assert reply.error["message"] == (
        "Reasoning input items can only be provided to a reasoning or computer use "
        "model. Remove reasoning items from your input and try again."
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("profile", ["strictest", "azure"])
async def test_a_status_on_reasoning(client: Client, profile: str) -> None:
    """A status on reasoning is an unknown parameter there, not at OpenAI."""
    output = await first_turn(client, OLD)
    items = [USER, {**output[0], "status": "completed"}, output[1]]
    client.headers = {"X-Simulator-Profile": profile}
    reply = await second_turn(client, items, OLD)
    client.headers = {"X-Simulator-Profile": "openai"}
    tolerant = await second_turn(client, items, OLD)

    assert reply.error["message"] == "Unknown parameter: 'input[1].status'."
    assert tolerant.status == 200


CHANGES = [
    ({"tools": [{"type": "web_search"}]}, "prefix_mismatch"),
    ({"reasoning": {"effort": "high"}}, "prefix_mismatch"),
    ({"text": {"format": {"type": "json_object"}}}, "prefix_mismatch"),
    ({"safety_identifier": "someone-else"}, "end_user_mismatch"),
    ({"model": "gpt-6.2-astra", "input": "edited"}, "prefix_mismatch"),
    ({"reasoning": {"context": "current_turn"}}, "turn_boundary"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("change", "reason"), CHANGES)
async def test_newer_models_drop_reasoning_with_a_changed_prefix(
    client: Client, change: dict[str, Any], reason: str
) -> None:
    """The answer is still 200; the drop is reported, and older models do not drop."""
    change = dict(change)
    question = {**USER, "content": change.pop("input", "Hello")}
    model = change.pop("model", NEW)
    output = await first_turn(client, NEW)
    reply = await second_turn(client, [question, *output], model, **change)
    older = await first_turn(client, OLD)
    read = await second_turn(client, [question, *older], OLD, **change)

    (removed,) = reply.body["input_transformations"]
    assert removed.pop("id").startswith("rs_")
    assert removed == {"type": "reasoning", "action": "removed", "reason": reason}
    assert "I was given 0 reasoning items back" in reply.text
    count = 0 if reason == "turn_boundary" else 1
    assert f"I was given {count} reasoning item" in read.text
    assert "input_transformations" not in read.body


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "change",
    [
        {"instructions": "Be brief."},
        {"text": {"verbosity": "low"}},
        {"parallel_tool_calls": False},
        {"service_tier": "flex"},
        {"tool_choice": "none"},
        {"context_management": [{"type": "compaction"}]},
        {"prompt_cache_key": "other"},
    ],
)
async def test_harmless_changes_keep_the_reasoning(
    client: Client, change: dict[str, Any]
) -> None:
    """It costs cache at most."""
    output = await first_turn(client, NEW)
    reply = await second_turn(client, [USER, *output], NEW, **change)

    assert reply.body["input_transformations"] == []
    assert "I was given 1 reasoning item back" in reply.text


@pytest.mark.asyncio
async def test_only_reasoning_behind_an_edit_goes(client: Client) -> None:
    """What is in front of the edited item is read."""
    first = await first_turn(client, NEW)
    second = bare((await second_turn(client, [USER, *first], NEW)).body["output"])
    items = [USER, *first, {**MORE, "content": "Something else"}, *second]
    reply = await second_turn(client, items, NEW)

    (removed,) = reply.body["input_transformations"]
    assert removed["reason"] == "prefix_mismatch"
    assert "I was given 1 reasoning item back" in reply.text


@pytest.mark.asyncio
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
    more = {"reasoning": {"context": context}} if context else {}
    reply = await second_turn(client, [USER, *output], model, **more)

    assert f"I was given {count} reasoning item" in reply.text


@pytest.mark.asyncio
async def test_newer_models_drop_reasoning_of_an_older_one(client: Client) -> None:
    """Another family is a model_mismatch there."""
    output = await first_turn(client, OLD)
    reply = await second_turn(client, [USER, *output], NEW)

    (removed,) = reply.body["input_transformations"]
    assert removed["reason"] == "model_mismatch"


@pytest.mark.asyncio
async def test_spelling_is_no_change_of_prefix(client: Client) -> None:
    """Ids, status, a string for its list, and nulls are not read by the model."""
    output = await first_turn(client, NEW)
    question = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hello"}],
    }
    message = output[1]
    plain = {
        "role": "assistant",
        "content": message["content"][0]["text"],
        "phase": message["phase"],
    }
    reply = await second_turn(client, [question, output[0], plain], NEW)

    assert reply.body["input_transformations"] == []
    assert "I was given 1 reasoning item back" in reply.text


@pytest.mark.asyncio
async def test_a_lost_phase_changes_the_prefix_of_later_reasoning(
    client: Client,
) -> None:
    """Reasoning after a message whose phase was dropped does not fit any more."""
    output = await first_turn(client, NEW)
    reply = await client.ask([USER, *output, MORE], model=NEW)
    later = bare(reply.body["output"])
    unphased = {name: value for name, value in output[1].items() if name != "phase"}
    items = [USER, output[0], unphased, MORE, *later]
    again = await second_turn(client, items, NEW)

    (removed,) = again.body["input_transformations"]
    assert removed["reason"] == "prefix_mismatch"


@pytest.mark.asyncio
async def test_reasoning_between_tool_rounds_fits(client: Client) -> None:
    """Two rounds of calls and a second turn lose no reasoning."""
    tool = {
        "type": "function",
        "name": "f",
        "parameters": {"type": "object", "properties": {}},
        "strict": False,
    }
    items: list[Any] = [{"role": "user", "content": "sim:tool-twice"}]
    for _ in range(3):
        reply = await client.ask(items, model=NEW, tools=[tool])
        items += bare(reply.body["output"])
        items += [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "x"}
            for item in reply.body["output"]
            if item["type"] == "function_call"
        ]
        assert reply.body["input_transformations"] == []
    reply = await second_turn(client, items, NEW, tools=[tool])

    assert "I was given 3 reasoning items back" in reply.text
