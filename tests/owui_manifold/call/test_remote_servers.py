"""What an administrator writes of remote servers."""

import json
from typing import Any

import pytest

from openai_responses.redaction import redact
from owui_manifold.call.remote_servers import RemoteServers, read_servers
from simulator.checks.mcp import check_servers

Json = dict[str, Any]
URL = "https://clocks.example/mcp"
CLOCKS: Json = {"server_label": "clocks", "server_url": URL}
DRIVE: Json = {
    "server_label": "drive",
    "connector_id": "connector_googledrive",
    "authorization": "token-of-drive",
}


def read(*rows: Any) -> RemoteServers:
    return read_servers(json.dumps(list(rows)))


TUNNEL: Json = {"server_label": "inside", "tunnel_id": "tunnel-1"}
NULLS = {"authorization": None, "connector_id": None, "headers": None}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], []),
        (CLOCKS, [CLOCKS]),
        ([DRIVE, CLOCKS], [DRIVE, CLOCKS]),
        ([TUNNEL], [TUNNEL]),  # it has no address
        # The API takes null for some fields, and for others not.
        ([{**CLOCKS, **NULLS}], [CLOCKS]),
        *(
            ([{**CLOCKS, **more}], [{**CLOCKS, **more}])
            for more in (
                {"authorization": "secret"},
                {"headers": {"X-Key": "secret"}},
                {"allowed_tools": {"read_only": True, "tool_names": ["now"]}},
                {"require_approval": "never"},
                {"require_approval": {"never": {"tool_names": ["now"]}, "always": {}}},
                {"server_description": "tells the time"},
            )
        ),
    ],
)
def test_what_the_api_takes_is_sent_as_it_is(given: Any, sent: list[Json]) -> None:
    """A list or a single object; the order is the administrator's."""
    servers = read_servers(json.dumps(given))

    tools = tuple({"type": "mcp", **row} for row in sent)
    assert (servers.tools, servers.problems, servers.notes) == (tools, (), ())
    check_servers(servers.tools)


def test_empty_text_means_no_servers() -> None:
    assert read_servers("  \n") == read_servers("[]") == RemoteServers()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("clocks", "server 1 is left out, because it is not a JSON object"),
        ({"server_url": URL}, "server 1 is left out, because it has no server_label"),
        ({"server_label": "my clocks", "server_url": URL}, "a letter followed by"),
        ({"server_label": 7, "server_url": URL}, "a letter followed by"),
        ({"server_label": "clocks"}, "clocks is left out, because it needs a server"),
        ({**CLOCKS, **DRIVE}, "a server_url, a connector_id or a tunnel_id"),
        ({**CLOCKS, **TUNNEL}, "a server_url, a connector_id or a tunnel_id"),
        ({"server_label": "d", "tunnel_id": 7}, "its tunnel_id is not a text"),
        ({**CLOCKS, "server_url": "clocks.example"}, "its server_url is not an addr"),
        ({**CLOCKS, "server_url": 7}, "its server_url is not an address"),
        ({**CLOCKS, "server_url": "https://[clocks"}, "its server_url is not an addr"),
        ({**CLOCKS, "server_url": f"{URL} ?x"}, "its server_url is not an address"),
        ({"server_label": "d", "connector_id": "connector_dropbox"}, "needs an auth"),
        ({**CLOCKS, "authorization": 7}, "its authorization is not a text"),
        ({**CLOCKS, "headers": ["X-Key"]}, "its headers is not a JSON object"),
        ({**CLOCKS, "headers": {"X-Key": 7}}, "its headers is not a JSON object"),
        ({**CLOCKS, "allowed_tools": "now"}, "its allowed_tools is not a list"),
        ({**CLOCKS, "allowed_tools": [7]}, "its allowed_tools is not a list"),
        ({**CLOCKS, "allowed_tools": {"names": []}}, "its allowed_tools is not a list"),
        ({**CLOCKS, "require_approval": "ask"}, "its require_approval is not `always`"),
        ({**CLOCKS, "require_approval": {"ask": {}}}, "its require_approval is not"),
        (
            {**CLOCKS, "require_approval": {"never": ["now"]}},
            "its require_approval is not",
        ),
        ({**CLOCKS, "server_description": []}, "its server_description is not a text"),
    ],
)
def test_a_server_that_cannot_be_used(row: Any, words: str) -> None:
    """It alone is left out, with what is wrong and where to correct it."""
    servers = read(row, {**CLOCKS, "server_label": "other"})

    assert [tool["server_label"] for tool in servers.tools] == ["other"]
    [problem] = servers.problems
    assert words in problem
    assert problem.startswith("REMOTE_MCP_SERVERS_JSON: ")
    assert "An administrator can correct it in the valves" in problem


def test_second_server_of_a_label_is_refused() -> None:
    """The API would refuse the request; capitals make no difference to it."""
    capital = {**CLOCKS, "server_label": CLOCKS["server_label"].title()}
    for entries in ((capital, CLOCKS), (CLOCKS, capital)):
        servers = read(*entries)

        assert len(servers.tools) == 1
        assert "another entry has the same server_label" in servers.problems[0]


@pytest.mark.parametrize(
    "text",
    [
        "[{",
        '{"server_label": "clocks",}',
        '{"server_label": "clocks", "deep": ' + "[" * 500 + "]" * 500 + "}",
        "[" * 100_000,
        "1" * 10_000,
    ],
)
def test_text_that_is_no_json_offers_nothing_and_is_not_quoted(text: str) -> None:
    """Nothing is offered; the message says where it is wrong and quotes nothing."""
    servers = read_servers(text)

    assert servers.tools == ()
    [problem] = servers.problems
    assert problem.startswith("REMOTE_MCP_SERVERS_JSON: it is not JSON")
    assert "clocks" not in problem


def test_unknown_keys_are_named_and_not_sent() -> None:
    """They are named, not sent; a `type` that says what it is anyway is let be."""
    servers = read({"type": "mcp", **CLOCKS, "token": "hush", "url": "x"})

    assert servers.tools == ({"type": "mcp", **CLOCKS},)
    [note] = servers.notes
    assert "keys of clocks are not sent: token, url." in note
    assert not servers.problems


@pytest.mark.parametrize(
    "row",
    [
        {**CLOCKS, "authorization": "canary-1234"},
        {**CLOCKS, "headers": {"Authorization": "Bearer canary-1234"}},
        {**CLOCKS, "headers": {"X-Key": "canary-1234"}},
        {**TUNNEL, "tunnel_id": "canary-1234"},
        {**CLOCKS, "token": "canary-1234"},
        {**CLOCKS, "token": [{"deep": "canary-1234"}]},
        {**CLOCKS, "server_url": "https://u:canary-1234@clocks.example/mcp"},
        {**CLOCKS, "server_url": f"{URL}?apiKey=canary-1234"},
        {"server_label": ["no", "label"], "authorization": "canary-1234"},
    ],
    ids=[
        "authorization",
        "header Authorization",
        "other header",
        "tunnel",
        "unknown key",
        "inside an unknown key",
        "address",
        "query of the address",
        "row that is left out",
    ],
)
def test_secrets_are_found_wherever_they_stand(row: Json) -> None:
    """Also under unknown keys, and in rows that cannot be used."""
    secrets = read(row).secrets

    for line in ("the server said canary-1234", "sent: Bearer canary-1234"):
        assert "canary-1234" not in redact(line, secrets)


def test_no_sentence_holds_a_secret() -> None:
    canary = "canary-1234"
    rows = [{**CLOCKS, key: [canary]} for key in ("authorization", "headers", "x")]
    servers = read(*rows, {canary: 1}, canary)

    text = "".join([*servers.problems, *servers.notes])
    assert canary not in text


def test_a_text_that_is_no_json_is_a_secret_as_a_whole() -> None:
    """It is unknown what is in it."""
    assert read_servers("Bearer hush").secrets == ("Bearer hush",)
    assert read_servers("[" * 100_000).secrets == ("[" * 100_000,)
    assert read_servers(" ").secrets == ()


def test_labels_are_no_secrets() -> None:
    """Else the log could name neither a server nor a tool, nor what they are."""
    named = {"type": "mcp", **CLOCKS, "allowed_tools": ["timezones"]}
    named |= {"require_approval": "never", "server_description": "tells the time"}
    assert read(named).secrets == (URL, "")
    assert read(TUNNEL).secrets == ("tunnel-1",)
    assert read(DRIVE).secrets == ("token-of-drive",)
