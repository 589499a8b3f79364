"""What the money bought, added up another way from what the API reported."""

import pytest

from calls.desk import Desk
from calls.outcomes import NATIVE
from calls.sample import IDS, chat
from openai_responses.clock import utc_today
from owui_administration.filter import Filter
from owui_administration.usage_table import UsageRow
from shells.administration import Purchases
from stand_in.host import host_request
from stand_in.usage_database import UsageDatabase
from upstream import wire
from upstream.server import Upstream, streaming

pytestmark = pytest.mark.asyncio

ID = "openai_responses_administration"
DAY = utc_today().isoformat()
LONG = "A long beginning, that the server keeps. " * 400
PRICES = {"input": 4.0, "cached": 0.4, "cache_write": 5.0, "output": 20.0}
"""OpenAI's for the model, in US dollars for a million tokens."""
SEARCH = 0.01
IN_FILES = 0.0025
CONTAINER = 0.03


@pytest.fixture
def administration(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Filter:
    """The filter, active; it only counts."""
    UsageDatabase(monkeypatch, desk.host)
    desk.usual = {**NATIVE, "__request__": host_request()}
    made = Filter()
    desk.host.filters.active = {ID: made}
    desk.host.filters.valves = {ID: {"USER_LIMITS_JSON": "[]"}}
    return made


async def counted(made: Filter) -> tuple[UsageRow, Purchases]:
    """What both tables have of the user's day, and of all models."""
    rows = await made._usage.user_rows("user-1", "2026")
    bought, saved = await made._usage.purchases("2026", "user-1")
    [row] = rows
    assert saved == {DAY: bought.saved}
    return row, bought


async def test_parts_are_those_of_the_price_list(
    desk: Desk, administration: Filter
) -> None:
    """Of three turns: the second reads from the cache what the first wrote to it."""
    ids = {**IDS, "chat_id": "local:1"}
    for body in (
        chat(f"{LONG} sim:chat"),
        chat(f"{LONG} sim:chat", "Yes.", "sim:chat more"),
    ):
        await desk.chunks(body, __metadata__=ids)
    await desk.result(chat("Hi"), __task__="title_generation")

    row, bought = await counted(administration)

    usages = [
        request.response["usage"] for request in desk.sim.requests if request.response
    ]
    inputs = [usage["input_tokens"] for usage in usages]
    reads = [usage["input_tokens_details"]["cached_tokens"] for usage in usages]
    writes = [usage["input_tokens_details"]["cache_write_tokens"] for usage in usages]
    outputs = [usage["output_tokens"] for usage in usages]
    thought = [usage["output_tokens_details"]["reasoning_tokens"] for usage in usages]
    assert sum(reads) > 1000
    assert sum(writes) > 1000
    assert sum(thought) > 0
    assert (bought.itemized, bought.tasks) == (3, 1)
    assert bought.itemized_money == row.money
    tokens = (bought.input, bought.cache_writes, bought.reasoning, bought.answers)
    answers = sum(outputs) - sum(thought)
    assert tokens == (sum(inputs), sum(writes), sum(thought), answers)
    parts = {
        "reasoning_money": sum(thought) * PRICES["output"],
        "answer_money": answers * PRICES["output"],
        "saved": sum(reads) * (PRICES["input"] - PRICES["cached"])
        - sum(writes) * (PRICES["cache_write"] - PRICES["input"]),
    }
    for name, millionths in parts.items():
        assert getattr(bought, name) == pytest.approx(millionths, abs=3), name
    read = row.money - bought.reasoning_money - bought.answer_money
    plain = sum(inputs) - sum(reads) - sum(writes)
    by_price_list = plain * 4 + sum(reads) * 0.4 + sum(writes) * 5
    assert read == pytest.approx(by_price_list, abs=6)


async def test_fees_of_tools_are_told_apart(desk: Desk, administration: Filter) -> None:
    """Searches, and a container for Python, which is paid for once."""
    desk.set_valves(ENABLE_CODE_INTERPRETER=True, ENABLE_WEB_SEARCH=True)
    await desk.ask("sim:count how many?")
    other = {**IDS, "message_id": "m-2"}
    await desk.ask("sim:web-search what?", __metadata__=other)
    desk.set_valves(FILE_SEARCH_VECTOR_STORES="vs_1")
    other = {**IDS, "message_id": "m-3"}
    await desk.ask("sim:file-search where?", __metadata__=other)

    row, bought = await counted(administration)

    searches = sum(
        item["type"] == "web_search_call"
        for request in desk.sim.requests
        for item in (request.response or {}).get("output", ())
    )
    assert searches > 0
    assert (bought.searches, bought.containers) == (searches + 1, 1)
    assert bought.search_money == round((searches * SEARCH + IN_FILES) * 1e6)
    assert bought.container_money == round(CONTAINER * 1e6)
    assert bought.itemized_money == row.money


async def test_images_are_a_part_of_their_own(
    desk: Desk, administration: Filter
) -> None:
    """The stand-in tells no tokens for them, which are low ones of 1024 x 1024."""
    desk.set_valves(ENABLE_IMAGE_GENERATION=True)
    await desk.ask("sim:draw")
    row, bought = await counted(administration)

    assert bought.images >= 1
    assert bought.image_money == bought.images * 272 * 30
    assert bought.itemized_money == row.money


@pytest.mark.parametrize("task", [None, "title_generation"])
async def test_nothing_is_itemized_without_a_price(
    task: str | None, desk: Desk, administration: Filter
) -> None:
    desk.set_valves(CUSTOM_MODEL_PRICING_JSON="{")
    await desk.ask("sim:short", __task__=task)

    row, bought = await counted(administration)

    assert (row.money, bought.itemized, bought.itemized_money) == (0, 0, 0)
    assert (bought.tasks, bought.task_money) == (row.requests * bool(task), 0)
    assert (bought.input, bought.answers + bought.reasoning) == (row.input, row.output)


async def test_agents_are_a_view_of_their_own(
    desk: Desk, administration: Filter
) -> None:
    desk.set_valves(AGENT_JSON='{"model": "gpt-5.6-sol"}')
    body = {**chat("sim:short"), "model": "my_pipe.gpt5_function_calling"}
    await desk.chunks(body)

    row, bought = await counted(administration)

    assert bought.agents == row.requests > 0
    assert bought.agent_money == row.money > 0
    assert bought.tasks == 0
    desk.set_valves(TASK_MODEL="")
    await desk.ask("sim:short", __task__="title_generation")
    row, bought = await counted(administration)
    assert (bought.tasks, bought.agents) == (1, row.requests - 1)
    assert bought.task_money == row.money - bought.agent_money > 0


async def test_parts_do_not_rest_on_what_a_server_says_of_its_cost(
    desk: Desk, administration: Filter
) -> None:
    """That cannot be taken apart; reasoning beyond the output is no answer either.

    What it says of the images that it drew has a price. Two responses of one stream
    count together.
    """
    text = {"type": "output_text", "text": "Yes.", "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    usage = {
        "input_tokens": 1000,
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 90},
        "cost": 7.0,
    }
    short = {"input_tokens": 1000, "output_tokens": 60, "cost": 1.0}
    drawn = {"image_gen": {"output_tokens": 100}}
    empty = wire.ended("completed", usage=short)
    whole = wire.ended("completed", message, usage=usage, tool_usage=drawn)
    stream = wire.on_the_wire(wire.created(), empty, wire.created(), whole)
    async with Upstream(streaming(stream)) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url)
        desk.set_valves(AGENT_JSON='{"model": "gpt-5.6-sol"}')
        await desk.chunks(chat("Hi", model="my_pipe.gpt5_function_calling"))

    row, bought = await counted(administration)
    assert row.requests == bought.agents == bought.itemized == 2
    assert row.money == bought.agent_money == 8_000_000
    assert (bought.reasoning, bought.answers) == (50, 60)
    tokens = 2000 * PRICES["input"] + 110 * PRICES["output"]
    assert bought.image_money == 100 * 30
    assert bought.itemized_money == tokens + bought.image_money
