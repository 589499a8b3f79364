"""The models that an administrator's MODEL_ID comes to, found in the background."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from calls.valves import expert
from openai_responses.errors import ResponsesError
from openai_responses.transport.connections import Connections
from owui_manifold.call import models
from owui_manifold.call.models import Listing, list_models
from owui_manifold.call.valves import Valves
from shells import model_list
from shells.model_list import fetch_models
from simulator import Simulator
from stand_in.host import StandInHost
from upstream.server import Answerer, Upstream, in_turn, replying, until

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]


async def settled(connections: Connections) -> None:
    """Wait until no server is being asked, also by what the answers have begun."""
    while connections._pool()._tasks:
        await asyncio.gather(*connections._pool()._tasks)


LIST = replying('{"data": [{"id": "gpt-5.2"}]}')


async def test_known_models_are_kept_when_the_listing_fails(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of trouble must not empty the list."""
    async with Upstream(in_turn(LIST, replying("", 500))) as upstream:
        listing = Listing()
        for seconds in (10_000.0, 20_000.0, 20_000.0):
            monkeypatch.setattr(
                model_list, "monotonic_seconds", lambda now=seconds: now
            )
            kept = await listing.usable(upstream.endpoint, connections)
            await settled(connections)

    assert kept == {"gpt-5.2": ""}
    assert len(upstream.requests) == 2, "after a failure the server has a pause"


class Slow:
    """A server whose list comes when it is `released`; `refusals` come before it."""

    def __init__(self, refusals: int = 0) -> None:
        self.released = asyncio.Event()
        self.refusals = refusals

    async def __call__(self, _: web.Request) -> web.Response:
        if self.refusals:
            self.refusals -= 1
            return web.Response(status=500)
        await self.released.wait()
        return web.json_response({"data": [{"id": "gpt-5.2"}]})


class Redis:
    """What the host's workers share; it cannot be reached `away` times."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.deleted: list[str] = []

    async def delete(self, key: str) -> None:
        if self.away:
            self.away -= 1
            raise RuntimeError(key)
        self.deleted.append(key)


def keeping_host(host: StandInHost, redis: Redis | None = None) -> SimpleNamespace:
    """The state of a host that keeps the list of its models."""
    host.settings.values["models.base_models_cache"] = True
    state = SimpleNamespace(BASE_MODELS=["of others"], redis=redis)
    host.provide("main", app=SimpleNamespace(state=state))
    host.provide("utils.models", BASE_MODELS_CACHE_KEY="open-webui:models:base")
    return state


def valves_of(upstream: Upstream) -> Valves:
    """Two models by name, and those of the server."""
    endpoint = upstream.endpoint
    return Valves(
        BASE_URL=endpoint.base_url, API_KEY=endpoint.api_key, MODEL_ID="mine, auto"
    )


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody waits a moment instead of seconds."""
    monkeypatch.setattr(model_list, "_FIRST_LIST_SECONDS", 0.02)
    monkeypatch.setattr(models, "_HOST_SECONDS", 0.001)
    monkeypatch.setattr(model_list, "_PAUSE_SECONDS", 0.0)


async def test_pages_that_load_at_once_wait_for_one_answer(
    connections: Connections,
) -> None:
    """They show what the key can use."""
    slow = Slow()

    async with Upstream(slow) as upstream:
        listing = Listing()
        given = (valves_of(upstream), listing, connections)
        pages = [asyncio.create_task(list_models(*given)) for _ in range(3)]
        await until(lambda: bool(upstream.requests))
        assert not any(page.done() for page in pages)
        slow.released.set()
        listed = [list(await page) for page in pages]

    assert listed == [["mine", "gpt-5.2"]] * 3
    assert len(upstream.requests) == 1


@pytest.mark.usefixtures("hurried")
async def test_slow_server_gets_a_guess_that_the_next_page_corrects(
    connections: Connections,
) -> None:
    """A host that keeps nothing asks again."""
    slow = Slow()

    async with Upstream(slow) as upstream:
        given = (valves_of(upstream), Listing(), connections)
        first = list(await list_models(*given))
        slow.released.set()
        await settled(connections)
        second = list(await list_models(*given))

    assert "gpt-6.2-sol" in first
    assert second == ["mine", "gpt-5.2"]


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("refusals", "make_redis", "deleted"),
    [
        (0, lambda: None, None),
        (3, Redis, ["open-webui:models:base"]),
        (0, lambda: Redis(away=1), ["open-webui:models:base"]),
    ],
    ids=["one worker", "refused at first", "Redis was away"],
)
async def test_host_that_keeps_its_list_gets_no_guess(
    refusals: int,
    make_redis: Callable[[], Redis | None],
    deleted: list[str] | None,
    connections: Connections,
    host: StandInHost,
) -> None:
    """Once the server has named its models, the host is made to ask again."""
    redis = make_redis()
    state = keeping_host(host, redis)
    slow = Slow(refusals)

    async with Upstream(slow) as upstream:
        given = (valves_of(upstream), Listing(), connections)
        for _ in range(2):  # others may make it ask again
            assert list(await list_models(*given)) == ["mine"]
        assert state.BASE_MODELS == ["of others"]
        slow.released.set()
        await settled(connections)

        assert state.BASE_MODELS == []
        assert list(await list_models(*given)) == ["mine", "gpt-5.2"]

    assert (redis and redis.deleted) == deleted


async def test_host_is_made_to_ask_again_once_it_has_stored_its_list(
    connections: Connections, host: StandInHost
) -> None:
    """It waits for its other servers first; what was forgotten before would return."""
    state = keeping_host(host)
    slow = Slow()

    async def store() -> None:
        await asyncio.sleep(10)
        state.BASE_MODELS = ["of others", "mine"]

    async with Upstream(slow) as upstream:
        await list_models(valves_of(upstream), Listing(), connections)
        slow.released.set()
        storing = asyncio.create_task(store())
        await settled(connections)
        await storing

    assert state.BASE_MODELS == []


@pytest.mark.usefixtures("hurried")
async def test_list_of_a_corrected_address_is_completed(
    connections: Connections, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host asked for it while the list of the wrong one was still waited for."""
    monkeypatch.setattr(models, "_HOST_SECONDS", 0.2)
    state = keeping_host(host)
    slow = Slow()

    async with Upstream(Slow(100)) as wrong, Upstream(slow) as upstream:
        listing = Listing()
        for server in (wrong, upstream):
            await list_models(valves_of(server), listing, connections)
        slow.released.set()
        await settled(connections)

    assert state.BASE_MODELS == []


@pytest.mark.usefixtures("hurried")
async def test_nobody_completes_the_list_of_an_earlier_address(
    connections: Connections, host: StandInHost
) -> None:
    """The valves were changed meanwhile, and the host has asked again."""
    state = keeping_host(host)
    slow = Slow(refusals=100)

    async with Upstream(slow) as upstream, Upstream(Slow(100)) as other:
        listing = Listing()
        await list_models(valves_of(upstream), listing, connections)
        await listing.usable(other.endpoint, connections)
        await settled(connections)

    assert len(upstream.requests) == 1
    assert state.BASE_MODELS == ["of others"]


async def test_catalog_is_no_guess_where_no_server_is_asked(
    connections: Connections, host: StandInHost
) -> None:
    """Without a key, as where each user has one, and where it is not wanted."""
    keeping_host(host)
    no_key = Valves(MODEL_ID="auto")
    unwanted = Valves(
        API_KEY="sk-1", MODEL_ID="auto", EXPERT_JSON=expert(fetch_models=False)
    )

    for given in (no_key, unwanted):
        assert "gpt-6.2-sol" in await list_models(given, Listing(), connections)


@pytest.mark.parametrize(
    "answer",
    [
        replying("sk-upstream-1 is wrong", 401, "text/plain"),
        replying("<html>", content_type="text/plain"),
        replying("x" * 5_100_000, content_type="text/plain"),
    ],
    ids=["refused", "page", "too long"],
)
async def test_answer_that_is_not_a_list_is_an_error(
    answer: Answerer, connections: Connections
) -> None:
    """It is an error of ours, without a word of the server."""
    async with Upstream(answer) as upstream:
        with pytest.raises(ResponsesError) as failed:
            await fetch_models(upstream.endpoint, connections)

    assert "sk-upstream" not in str(failed.value)


@pytest.mark.parametrize("auth", ["session", "system_oauth", "entra_id"])
async def test_nobody_in_particular_asks_for_the_list(
    auth: str, connections: Connections, host: StandInHost
) -> None:
    """Only a chat has a token to send; a host that keeps its list gets the catalog's."""
    keeping_host(host)
    async with Upstream(LIST) as upstream:
        given = {"BASE_URL": upstream.base_url, "AUTH": auth, "MODEL_ID": "auto"}
        valves = Valves.model_validate(given)
        listed = await list_models(valves, Listing(), connections)
        await settled(connections)

    assert listed
    assert upstream.requests == []


@pytest.mark.parametrize("is_openai", [True, False])
async def test_list_by_hand_waits_for_openai_alone(
    is_openai: bool, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server is asked afterward, for what its models can read."""
    slow = Slow()
    slow.released.set()

    async with Upstream(slow) as upstream:
        if is_openai:
            monkeypatch.setattr(models, "OPENAI_HOST", upstream.endpoint.host)
        valves = valves_of(upstream).model_copy(update={"MODEL_ID": "mine"})
        listed = await list_models(valves, Listing(), connections)
        assert len(upstream.requests) == is_openai
        await settled(connections)

    assert list(listed) == ["mine"]
    assert len(upstream.requests) == 1


NOWHERE = {"BASE_URL": "http://127.0.0.1:1/v1"}


async def names(**valves: Any) -> dict[str, str]:
    """Return what the page lists, without asking anybody."""
    given = Valves.model_validate(
        {**NOWHERE, "EXPERT_JSON": expert(fetch_models=False), **valves}
    )
    models = await list_models(given, Listing(), Connections())
    return {name: model.name for name, model in models.items()}


async def test_auto_is_the_newest_of_each_family() -> None:
    listed = list(await names(MODEL_ID="gpt-4o, auto"))
    assert listed[0] == "gpt-4o"
    assert {"gpt-6.2-sol", "gpt-6.1-terra", "gpt-6-luna"} < set(listed)


async def test_auto_hides_what_the_key_cannot_use(
    sim: Simulator, connections: Connections
) -> None:
    """From the first listing on; what is listed by hand stays."""
    listing = Listing()
    given = {
        "BASE_URL": sim.base_url,
        "API_KEY": "sk-simulator-limited",
        "MODEL_ID": "auto, gpt-6.1-sol",
    }
    valves = Valves.model_validate(given)
    listed = await list_models(valves, listing, connections)

    assert "gpt-6.2-sol" not in listed
    assert "gpt-5.4-mini" in listed
    assert "gpt-6.1-sol" in listed


async def test_auto_is_the_catalog_where_a_server_names_no_chat_model(
    connections: Connections,
) -> None:
    """A gateway may list what it embeds texts with, and serve the others as well."""
    told = json.dumps({"data": [{"id": "text-embedding-3-large"}]})
    async with Upstream(replying(told)) as upstream:
        given = {"BASE_URL": upstream.base_url, "API_KEY": "sk-1", "MODEL_ID": "auto"}
        valves = Valves.model_validate(given)
        assert "gpt-6.2-sol" in await list_models(valves, Listing(), connections)


async def test_names_of_the_administrators_own() -> None:
    """A mistake in them hides no model."""
    overrides = '{"mine": {"like": "gpt-5.2", "name": "Ours"}}'
    assert await names(MODEL_ID="mine", MODEL_OVERRIDES_JSON=overrides) == {
        "mine": "Ours"
    }
    assert await names(MODEL_ID="mine", MODEL_OVERRIDES_JSON="{") == {"mine": "mine"}


async def test_models_are_separated_by_whatever_separates_lists() -> None:
    """A blank does not: names at gateways have some."""
    listed = await names(MODEL_ID="gpt-4o; o3;\nmy model,gpt-4o")
    assert list(listed) == ["gpt-4o", "o3", "my model"]


async def test_key_in_the_place_of_a_model_is_not_listed() -> None:
    """Everybody sees the list."""
    assert list(await names(MODEL_ID=f"gpt-4o, sk-proj-{'a1' * 12}")) == [
        "gpt-4o",
        "[redacted]",
    ]
