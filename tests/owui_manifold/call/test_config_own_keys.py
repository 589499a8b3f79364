"""A user's own key goes out without what belongs to the administrator's account."""

import json
from typing import Any

import pytest

from calls.outcomes import chunks_of, result_of
from calls.sample import IDS, USER, chat
from calls.valves import expert
from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import resolve_model
from openai_responses.transport.connections import Connections
from owui_manifold.call.config import Config, build_endpoint, read_config
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.pipe import Pipe
from owui_manifold.prepare.hosted_tools import hosted_tools
from simulator import Simulator
from simulator.accounts import CANARY_KEY
from stand_in.host import host_request

OWN = UserValves(API_KEY="sk-own")
TOKEN = "canary-of-the-clocks"
SERVER = {
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
    "authorization": TOKEN,
    "headers": {"X-Clock": "canary-of-the-header"},
}
SHARED: dict[str, Any] = {
    "API_KEY": "sk-pipe",
    "USER_API_KEYS": "allowed",
    "ORGANIZATION": "org-1",
    "PROJECT": "proj-1",
    "EXTRA_HEADERS": json.dumps(
        {"X-Gateway-Key": "canary-gateway", "Authorization": "Bearer canary-auth"}
    ),
    "REMOTE_MCP_SERVERS_JSON": json.dumps([SERVER]),
    "FILE_SEARCH_VECTOR_STORES": "vs_1",
}


def config(user: UserValves, **more: str) -> Config:
    valves = Valves.model_validate({**SHARED, **more})
    return read_config(valves, {**USER, "valves": user})


def sent(user: UserValves, **more: str) -> tuple[set[str], list[str]]:
    """The headers of a request, and OpenAI's tools in it."""
    chosen = config(user, **more)
    tools, _ = hosted_tools(chosen, resolve_model("gpt-6.1-sol"))
    endpoint = build_endpoint(chosen.valves, chosen.own_key, is_admin=False)
    return set(endpoint.headers()), [tool["type"] for tool in tools]


PLAIN = {"Authorization", "Content-Type"}
BILLED = {"OpenAI-Organization", "OpenAI-Project"}


@pytest.mark.parametrize(
    ("user", "given", "headers", "tools"),
    [
        (
            UserValves(),
            "nothing",
            PLAIN | BILLED | {"X-Gateway-Key"},
            ["file_search", "mcp"],
        ),
        (OWN, "nothing", PLAIN, []),
        (OWN, "headers", PLAIN | {"X-Gateway-Key"}, []),
        (OWN, "all", PLAIN | {"X-Gateway-Key"}, ["file_search", "mcp"]),
    ],
)
def test_valve_names_what_goes_out_with_a_users_own_key(
    user: UserValves, given: str, headers: set[str], tools: list[str]
) -> None:
    assert sent(user, EXPERT_JSON=expert(user_keys_get=given)) == (headers, tools)


@pytest.mark.parametrize(
    "name", ["Authorization", "API-Key", "openai-organization", "OpenAI-Project"]
)
def test_header_of_an_account_does_not_go_out_with_a_users_own_key(name: str) -> None:
    """However it is written, and even where other headers do."""
    given = {
        "EXTRA_HEADERS": json.dumps({name: "canary"}),
        "EXPERT_JSON": expert(user_keys_get="headers"),
    }
    shared, own = (
        build_endpoint(chosen.valves, chosen.own_key).headers()
        for chosen in (config(UserValves(), **given), config(OWN, **given))
    )

    assert shared[name] == "canary"
    assert "canary" not in own.values()


def test_headers_withheld_from_own_keys_stay_secret() -> None:
    """It is removed from the log all the same."""
    hidden = config(OWN).secrets

    assert {TOKEN, "canary-gateway", "sk-pipe", "sk-own"} <= set(hidden)


class WatchedConnections(Connections):
    """Connections that note the path and the headers of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []

    def request(self, endpoint: Endpoint, path: str, *more: Any) -> Any:
        self.seen.append((path.rpartition("/")[2], endpoint.headers()))
        return super().request(endpoint, path, *more)


@pytest.mark.asyncio
@pytest.mark.usefixtures("host")
async def test_nothing_of_the_administrators_reaches_the_server(sim: Simulator) -> None:
    """With an answer, its container's file, a title and a check of the set-up."""
    pipe = Pipe()
    watched = WatchedConnections()
    shared = {**SHARED, "API_KEY": "sk-of-nobody", "BASE_URL": sim.base_url}
    pipe.valves = Valves.model_validate({**shared, "ENABLE_CODE_INTERPRETER": True})
    pipe._connections = watched
    person = {**USER, "valves": UserValves(API_KEY=CANARY_KEY)}
    plain: dict[str, Any] = {"__user__": person, "__metadata__": {}}
    saved = {**plain, "__metadata__": IDS, "__request__": host_request()}
    admin = {**plain, "__user__": {**person, "role": "admin"}}

    await chunks_of(pipe, chat("sim:count"), **saved)
    await result_of(pipe, chat("Hi"), **plain, __task__="title_generation")
    await result_of(pipe, chat("/check"), **admin)

    await watched.close()
    assert {path for path, _ in watched.seen} == {"responses", "content", "models"}
    assert {request.status for request in sim.requests} == {200}
    received = json.dumps([watched.seen, [request.body for request in sim.requests]])
    for secret in ("canary-gateway", "canary-of-the", "sk-of-nobody", "org-1", "vs_1"):
        assert secret not in received


def test_own_key_is_read_as_it_is_copied() -> None:
    """Nothing around it is a part of the secret that logs hide."""
    read = config(UserValves(API_KEY='"Bearer sk-own"'))

    assert read.own_key == "sk-own"
    assert "sk-own" in read.secrets
