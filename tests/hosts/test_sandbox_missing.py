"""The sandbox's tool on servers that cannot run one: it says what is missing."""

# ruff: noqa: F401 - pytest uses the fixtures that are imported

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.servers.offline import host_python
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.own_server import admin, member, pipe
from hosts.setup.sandbox_tool import output_of, sandbox_installed, use
from sandboxes import without_namespaces
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio, pytest.mark.usefixtures("pipe")]

# What is missing, by what the answer says of it.
MISSING = {
    "bubblewrap": "bwrap is not installed",
    "namespaces": "bwrap: Creating new namespace failed",
}


@pytest.fixture(scope="module", params=MISSING)
def missing(request: pytest.FixtureRequest) -> str:
    """What a server lacks."""
    return str(request.param)


@pytest_asyncio.fixture(scope="module")
async def server(
    missing: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI without it."""
    python = host_python()
    env: dict[str, str] = {}
    if missing == "bubblewrap":
        env["PATH"] = str(python.parent)
    else:
        python = write_wrapper(tmp_path_factory.mktemp("bin"), python)
    async with OpenWebUI(python=python, env=env) as running:
        yield running


def write_wrapper(folder: Path, python: Path) -> Path:
    """Return an interpreter whose processes may create no namespace."""
    wrapper = folder / "python"
    command = f"{sys.executable} {without_namespaces.__file__} {python}"
    wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


async def test_each_tool_says_what_is_missing(
    tab: Tab, server: OpenWebUI, missing: str, simulator: Simulator
) -> None:
    """In one message, each time; nothing runs on the server instead."""
    trace = server.home / "trace"
    answers = []
    async with sandbox_installed(server.admin):
        for command in (f"touch {trace}", "true"):
            await use(tab, "shell_execute", {"command": command})
            answers.append(output_of(simulator))

    for answer in answers:
        assert answer.startswith("Error: The sandbox does not run on this server: ")
        assert MISSING[missing] in answer
        assert answer.endswith(
            ". An administrator can change that, then restart the server."
        )
        assert "\n" not in answer
    assert not trace.exists()
