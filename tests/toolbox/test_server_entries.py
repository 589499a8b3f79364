"""Servers as an administrator types them."""

import json
from typing import Any

import pytest

from toolbox.server_entries import ServerEntries, ServerEntry, ToolServerSettings

CANARY = "tok-canary-123456"
URL = "https://mcp.example.com/mcp"
SECRETS = {
    "env:TOKEN": CANARY,
    "env:GATE": f"Token {CANARY}",
    "env:BROKEN": "a\nb",
    "env:GONE": None,
}


def read(given: object, *, programs: bool = False) -> ServerEntries:
    """What a valve with MCP servers comes to."""
    text = given if isinstance(given, str) else json.dumps(given)
    settings = ToolServerSettings(text, "", programs, revealed_secret)
    return settings.read_entries()[0]


def read_openapi(given: object) -> ServerEntries:
    """What a valve with servers of OpenAPI documents comes to."""
    settings = ToolServerSettings(openapi=json.dumps(given), reveal=revealed_secret)
    return settings.read_entries()[1]


def revealed_secret(text: str) -> str | None:
    """What a text refers to."""
    return SECRETS.get(text, text)


def row(**more: Any) -> dict[str, Any]:
    """A server that can be used."""
    return {"server_label": "web", "server_url": URL, **more}


def test_everything_that_can_be_said_is_read() -> None:
    """The secrets are what a reference stood for, and the authorization."""
    typed = row(
        authorization="env:TOKEN",
        headers={"X-Team": "blue"},
        allowed_tools=["read_*"],
        timeout=5,
    )

    assert read([typed]) == ServerEntries(
        (
            ServerEntry(
                "web",
                URL,
                headers=(("Authorization", f"Bearer {CANARY}"), ("X-Team", "blue")),
                allowed=("read_*",),
                seconds=5.0,
                secrets=(f"Bearer {CANARY}", CANARY),
            ),
        )
    )


def test_token_behind_its_scheme_is_secret_too() -> None:
    """A server may repeat it alone."""
    [entry] = read(row(headers={"Authorization": "env:GATE"})).entries

    assert entry.secrets == (f"Token {CANARY}", CANARY)


def test_program_is_read_where_programs_are_allowed() -> None:
    """With its environment."""
    typed = {"server_label": "local", "command": ["a", "b"], "env": {"K": "env:TOKEN"}}

    assert read(typed, programs=True).entries == (
        ServerEntry(
            "local",
            command=("a", "b"),
            environment=(("K", CANARY),),
            secrets=(CANARY,),
        ),
    )


@pytest.mark.parametrize("text", ["", "  ", "[]"])
def test_nothing_is_no_server(text: str) -> None:
    """And nothing to complain of."""
    assert read(text) == ServerEntries()


@pytest.mark.parametrize("text", ["{", "[" * 100_000, CANARY])
def test_no_json_is_one_complaint(text: str) -> None:
    """It does not quote what was typed."""
    assert read(text) == ServerEntries(
        problems=(
            "MCP_SERVERS_JSON: it is no JSON. An administrator can correct it in the valves "
            "of this pipeline; until then, chats go on without.",
        )
    )


WRONG: dict[str, tuple[object, str]] = {
    "a text": (CANARY, "server 2 is left out, because it is no JSON object"),
    "no label": (
        {"server_url": URL},
        "server 2 is left out, because it has no server_label",
    ),
    "a bad label": (
        row(server_label="a b"),
        "server 2 is left out, because its server_label is not a letter followed by",
    ),
    "a label twice": (
        row(server_label="WEB"),
        "WEB is left out, because its server_label is not its own",
    ),
    "no target": (
        {"server_label": "b"},
        "b is left out, because it needs a server_url or a command, one of them",
    ),
    "two targets": (
        row(server_label="b", command=["x"]),
        "b is left out, because it needs a server_url or a command, one of them",
    ),
    "a program": (
        {"server_label": "b", "command": ["x"]},
        "b is left out, because it starts a program, which the valves do not allow",
    ),
    "an unknown key": (
        row(server_label="b", require_approval="always"),
        "b is left out, because it has a key that is not known here (require_approval)",
    ),
    "a secret as a key": (
        row(server_label="b", **{CANARY: ""}),
        "b is left out, because it has a key that is not known here.",
    ),
    "a file": (
        row(server_label="b", server_url="file:///etc/passwd"),
        "b is left out, because its server_url is not an address that begins with",
    ),
    "a password": (
        row(server_label="b", server_url=f"https://u:{CANARY}@example.com/"),
        "b is left out, because its server_url is not an address that begins with",
    ),
    "a broken address": (
        row(server_label="b", server_url="https://[x/"),
        "b is left out, because its server_url is not an address that begins with",
    ),
    "no time": (
        row(server_label="b", timeout=0),
        "b is left out, because its timeout is not a number of seconds from 1 to 600",
    ),
    "a number as a header": (
        row(server_label="b", headers={"X": 1}),
        "b is left out, because its headers is not a JSON object of texts",
    ),
    "a bad header": (
        row(server_label="b", headers={"X Y": "1"}),
        "b is left out, because a name among its headers is no header's name",
    ),
    "a missing secret": (
        row(server_label="b", authorization="env:GONE"),
        "b is left out, because a secret that its authorization refers to cannot be",
    ),
    "a broken secret": (
        row(server_label="b", headers={"X": "env:BROKEN"}),
        "b is left out, because its headers hold what cannot be sent",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_entry_is_left_out_alone(case: str) -> None:
    """One clear sentence, without a value; the others go on."""
    wrong, why = WRONG[case]

    found = read([row(), wrong, row(server_label="last")])

    assert [entry.label for entry in found.entries] == ["web", "last"]
    [sentence] = found.problems
    assert sentence.startswith(f"MCP_SERVERS_JSON: {why}")
    assert CANARY not in sentence


def test_null_is_not_given() -> None:
    """As in the API's own tool."""
    assert read(row(headers=None, timeout=None)).entries == (ServerEntry("web", URL),)


def test_openapi_server_has_a_base_address_but_no_program() -> None:
    """It needs the address of a document."""
    fine = row(base_url="https://api.example.com/v2")
    program = {"server_label": "b", "command": ["x"]}

    found = read_openapi([fine, program])

    assert found.entries == (
        ServerEntry("web", URL, base_url="https://api.example.com/v2"),
    )
    assert len(found.problems) == 1


def test_repr_of_a_server_tells_no_secret() -> None:
    """Not even its address, which may hold one."""
    entry = read(row(authorization="env:TOKEN", headers={"X": CANARY})).entries[0]

    assert CANARY not in repr(entry)
    assert URL not in repr(entry)
