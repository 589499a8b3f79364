"""What a server says of its models, as both shells use it."""

import json
from typing import Any

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import resolve_model
from openai_responses.transport.connections import Connections
from shells import model_list
from shells.model_list import ModelList, fetch_models
from upstream.odd_streams import listed_by_llama_cpp
from upstream.server import Answerer, Upstream, in_turn, replying

pytestmark = pytest.mark.asyncio


@pytest.fixture
def known() -> ModelList:
    return ModelList()


async def list_of(answer: Any) -> tuple[ModelList, Endpoint]:
    """Return what is known of a server that lists this, and the server."""
    known = ModelList()
    connections = Connections()
    async with Upstream(replying(json.dumps(answer))) as server:
        known.refresh(server.endpoint, connections)
        await connections.close()
        return known, server.endpoint


async def windows_of(answer: Any, *names: str) -> list[int | None]:
    """Return the context windows of models at a server that lists this."""
    known, endpoint = await list_of(answer)
    models = [known.as_listed(resolve_model(name), endpoint) for name in names]
    return [model.facts.context_window for model in models]


async def test_each_model_has_the_size_that_its_server_says() -> None:
    """llama.cpp's only one has any name; then not the size of OpenAI's model counts."""
    only = listed_by_llama_cpp(2048)
    rows = [{"id": name, "meta": {"n_ctx": n}} for name, n in [("a", 512), ("b", 99)]]

    assert await windows_of(only, "smollm2", "mine", "gpt-5.2") == [2048, 2048, 2048]
    several = {"data": [*rows, {"id": "c", "meta": {}}]}
    assert await windows_of(several, "a", "b", "c", "d") == [512, 99, None, None]
    assert await windows_of({"data": None}, "x", "gpt-5.2") == [None, 400_000]


async def test_other_servers_have_other_contexts() -> None:
    """Of `ENDPOINTS_JSON` only the server of the valves was asked; nor does it count
    for a server that is OpenAI's."""
    known, here = await list_of(listed_by_llama_cpp(2048))
    model = resolve_model("mine")

    own_key = Endpoint(here.base_url, "sk-other")
    like_openai = Endpoint(here.base_url, here.api_key, compatibility="openai")
    assert known.as_listed(model, own_key).facts.context_window == 2048
    for other in (Endpoint("http://127.0.0.1:1/v1", here.api_key), like_openai):
        assert known.as_listed(model, other) == model


async def test_last_days_end_with_the_account_that_listed_them(
    connections: Connections,
) -> None:
    """The valves name another server, which lists nothing and may have it longer."""
    rows = [{"id": "mine", "shutdown_date": "2026-12-11"}]
    known, here = await list_of({"data": rows})
    model = resolve_model("mine")
    assert known.as_listed(model, here).facts.shutdown == "2026-12-11"

    async with Upstream(replying("No.", 404)) as server:
        other = server.endpoint
        known.refresh(other, connections)
        await connections.close()

    assert known.as_listed(model, other) == model


@pytest.mark.parametrize(
    ("status", "requests"), [(404, 1), (405, 1), (501, 1), (406, 3), (500, 3)]
)
async def test_server_without_a_list_is_left_alone(
    status: int,
    requests: int,
    known: ModelList,
    connections: Connections,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For an hour; trouble may pass sooner."""
    monkeypatch.setattr(model_list, "_PAUSE_SECONDS", 0.0)
    async with Upstream(replying("No.", status)) as server:
        for _ in range(3):
            known.refresh(server.endpoint, connections)
            await connections.close()

    assert len(server.requests) == requests


async def test_page_waits_for_the_first_list_and_no_longer(
    known: ModelList, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known stays while it is fetched again, and if the server is gone."""
    monkeypatch.setattr(model_list, "_FIRST_LIST_SECONDS", 3600.0)
    monkeypatch.setattr(model_list, "_FRESH_SECONDS", 0.0)
    mine = {"mine": "2027-01-31"}
    listed = {"data": [{"id": "mine", "shutdown_date": "2027-01-31"}]}
    async with Upstream(replying(json.dumps(listed))) as server:
        endpoint = server.endpoint
        assert await known.usable(endpoint, connections) == mine
        assert await fetch_models(endpoint, connections) == mine
    assert await known.usable(endpoint, connections) == mine

    listed_model = known.as_listed(resolve_model("mine"), endpoint)
    assert listed_model.facts.shutdown == "2027-01-31"


@pytest.mark.parametrize(("answer", "models"), [("{}", {}), ("[]", {}), ("No.", None)])
async def test_first_answer_without_a_model_is_one(
    answer: str, models: object, connections: Connections
) -> None:
    """Else each page would wait for the next one."""
    async with Upstream(replying(answer)) as server:
        assert await ModelList().usable(server.endpoint, connections) == models


LISTED = [
    replying(f'{{"data": [{{"id": "{name}", "shutdown_date": "2027-01-31"}}]}}')
    for name in ("first", "second")
]


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(replying('{"object": "list", "data": []}'), id="lists nothing"),
        pytest.param(replying('{"error": {"message": "busy"}}'), id="says an error"),
        pytest.param(replying("404 page not found", 404), id="is not there"),
    ],
)
async def test_server_that_starts_again_keeps_its_list(
    moment: Answerer,
    known: ModelList,
    connections: Connections,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it said before stays, and it is asked again soon instead of in an hour."""
    monkeypatch.setattr(model_list, "_PAUSE_SECONDS", 0.0)
    names: list[str] = []
    async with Upstream(in_turn(LISTED[0], moment, LISTED[1])) as server:
        for fresh_seconds in (0.0, 3600.0, 3600.0):  # the first list is old at once
            monkeypatch.setattr(model_list, "_FRESH_SECONDS", fresh_seconds)
            known.refresh(server.endpoint, connections)
            await connections.close()
            for name in ("first", "second"):
                model = known.as_listed(resolve_model(name), server.endpoint)
                names += [name] if model.facts.shutdown else []

    assert names == ["first", "first", "second"]


async def test_server_that_is_gone_is_waited_for_once(
    known: ModelList, connections: Connections
) -> None:
    """Each page would wait; the next request comes a minute later."""
    gone = Endpoint("http://127.0.0.1:9/v1", "sk-1")

    assert await known.usable(gone, connections) is None
    assert await known.usable(gone, connections) is None


async def test_another_account_is_another_list(
    known: ModelList, connections: Connections
) -> None:
    """What its models take, and which there are, is not known before it answers."""
    async with Upstream(replying(json.dumps(listed_by_llama_cpp(2048)))) as server:
        first = server.endpoint
        other = Endpoint(first.base_url, "sk-other")
        assert await known.usable(first, connections)
        known.refresh(other, connections)
        model = resolve_model("mine")
        assert known.as_listed(model, first) == model
        known.refresh(first, connections)  # the answer of the other one comes too late
        await connections.close()

    assert [request.path for request in server.requests] == ["/v1/models"] * 3


async def test_list_in_the_background_is_dropped_for_another_account(
    known: ModelList, connections: Connections
) -> None:
    """The valves were changed meanwhile."""
    listed = {"data": [{"id": "theirs"}]}
    async with Upstream(replying(json.dumps(listed))) as server:
        known.refresh(server.endpoint, connections)
        gone = Endpoint("http://127.0.0.1:9/v1", "sk-1")
        known.refresh(gone, connections)
        await connections.close()

        assert await known.usable(gone, connections) is None


async def test_list_that_is_on_its_way_is_not_asked_for_again(
    known: ModelList, connections: Connections
) -> None:
    """Each page that is opened wants it."""
    async with Upstream(replying('{"data": []}')) as server:
        for _ in range(3):
            known.refresh(server.endpoint, connections)
        await connections.close()
        assert len(server.requests) == 1
