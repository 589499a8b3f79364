"""The command line for containers, and how they are ended.

No daemon runs here: a program of ours stands in for the client. It notes what it is
told, and answers in the place of the program that it should start in a container.
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.backend import SandboxLimits
from sandbox.containers import ContainerBackend
from sandbox.program import SANDBOX_PROGRAM
from sandbox.tools import SandboxTools
from sandboxes.owned import OwnedTools
from sandboxes.pretended import CONFINED, execute
from upstream.server import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = SandboxLimits(memory=1000, disk=100, processes=7)
CLIENT = """#!{python}
import json, os, signal, sys
folder = os.path.dirname(sys.argv[0])
with open(folder + "/told", "a") as told:
    told.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\\n")
if sys.argv[1] == "rm":
    os.kill(int(open(folder + "/pid").read()), signal.SIGKILL)
    sys.exit()
request = json.loads(sys.stdin.readline())
if request["operation"] == "describe":
    print({confined!r})
elif request["code"] == "endless":
    with open(folder + "/new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(folder + "/new", folder + "/pid")
    signal.pause()
else:
    print(json.dumps({{"stdout": request["code"], "stderr": "", "result": "", "status": 0}}))
    print("[]")
"""


@dataclass(frozen=True)
class Client:
    """The stand-in: where it is, and what it was told."""

    folder: Path
    name: str

    def told(self) -> list[tuple[list[str], dict[str, str]]]:
        lines = (self.folder / "told").read_text().splitlines()
        return [tuple(json.loads(line)) for line in lines]

    def tools(self, wheels: str = "") -> SandboxTools:
        return OwnedTools(
            LIMITS,
            wheels,
            print,
            lambda packages: [ContainerBackend(self.name, "an/image:1", packages)],
        )


@pytest.fixture(params=["docker", "podman"])
def client(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Client:
    path = tmp_path / request.param
    path.write_text(CLIENT.format(python=sys.executable, confined=json.dumps(CONFINED)))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-CANARY123")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/docker.sock")
    return Client(tmp_path, request.param)


def options(arguments: list[str]) -> dict[str, Any]:
    """Return the options of a command with their values, lists where they repeat."""
    image = arguments.index("an/image:1")
    values: dict[str, Any] = {}
    words = iter(arguments[1:image])
    for word in words:
        flag = word in {"--rm", "--interactive", "--read-only"} or "=" in word
        values.setdefault(word, []).append(True if flag else next(words))
    return {
        key: value[0] if len(value) == 1 else value for key, value in values.items()
    }


async def test_container_is_closed(client: Client) -> None:
    """No network, nothing to write, no rights, limits; not a word of the server's."""
    tools = client.tools()
    answer = await execute(tools, "hello")
    await tools.close()

    assert json.loads(answer.text)["stdout"] == "hello"
    for arguments, environment in client.told():
        given = options(arguments)
        assert given.pop("--name").startswith("sandbox-")
        assert given.pop("--http-proxy=false", None) is (
            True if client.name == "podman" else None
        )
        room = "rw,exec,nosuid,nodev,size=100,mode=700,uid=65534,gid=65534"
        assert given == {
            "--rm": True,
            "--interactive": True,
            "--pull": "never",
            "--network": "none",
            "--read-only": True,
            "--cap-drop": "ALL",
            "--security-opt": "no-new-privileges",
            "--ipc": "none",
            "--log-driver": "none",
            "--hostname": "sandbox",
            "--workdir": "/work",
            "--user": "65534:65534",
            "--pids-limit": "8",
            "--memory": "1200",
            "--memory-swap": "1200",
            "--tmpfs": [f"/work:{room}", f"/tmp:{room}"],
            "--env": ["HOME=/tmp", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"],
        }
        assert arguments[-4:] == ["python3", "-I", "-c", SANDBOX_PROGRAM]
        assert "CANARY" not in json.dumps([arguments, environment])
        assert environment["DOCKER_HOST"] == "unix:///run/docker.sock"


only_docker = pytest.mark.parametrize("client", ["docker"], indirect=True)


@only_docker
async def test_packages_can_only_be_read(client: Client) -> None:
    wheels = client.folder / "wheels"
    wheels.mkdir()
    tools = client.tools(str(wheels))
    await tools.specs()
    await tools.close()

    [(arguments, _)] = client.told()
    assert options(arguments)["--volume"].endswith(":/packages:ro")


@only_docker
async def test_cancelled_call_removes_the_container(client: Client) -> None:
    """To end the client alone would leave it running."""
    tools = client.tools()
    task = asyncio.create_task(execute(tools, "endless"))
    await until((client.folder / "pid").exists)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await tools.close()

    _, (started, _), (removed, environment) = client.told()
    assert "CANARY" not in str(environment)
    assert removed == ["rm", "--force", options(started)["--name"]]


@only_docker
@pytest.mark.parametrize(
    ("is_there", "reason"),
    [
        (True, "docker: it does not start: Exec format error."),
        (False, "docker: docker is not installed."),
    ],
)
async def test_client_that_does_not_start_is_logged(
    client: Client, is_there: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (client.folder / client.name).write_bytes(b"\x7fELF")
    monkeypatch.setenv("PATH", str(client.folder) if is_there else "/nowhere")
    log: list[str] = []
    backend = ContainerBackend(client.name, "an/image:1")
    tools = OwnedTools(log=log.append, make_backends=lambda _: [backend])

    assert await tools.specs() == []

    await tools.close()
    assert log == [f"The tools of the sandbox are not offered: {reason}"]
