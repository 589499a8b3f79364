"""A sandbox is offered only where one was tried and found without a hole."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from marking import require_mark
from sandbox import tools as sandbox_tools
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandboxes import without_namespaces
from sandboxes.owned import OwnedTools
from sandboxes.pretended import CONFINED, Pretended, answering, execute

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def offered(backends: Sequence[Pretended]) -> tuple[int, list[str]]:
    log: list[str] = []
    tools = OwnedTools(log=log.append, make_backends=lambda _: backends)
    for _ in range(3):
        specs = await tools.specs()
    await tools.close()
    return len(specs), log


HOLES: dict[str, Any] = {
    "capabilities": 1 << 21,
    "no_new_privileges": "0",
    "filtered": "0",
    "user": 0,
    "networks": ["lo", "eth0"],
    "namespaces": True,
}


@pytest.mark.parametrize("hole", HOLES)
async def test_hole_speaks_against_a_backend(hole: str) -> None:
    """Each by itself; not to tell is as bad."""
    told = {**CONFINED, hole: HOLES[hole]}
    silent = {name: value for name, value in CONFINED.items() if name != hole}

    number, [line] = await offered([Pretended(answering(r)) for r in (told, silent)])

    assert number == 0
    reason = f"pretended: it does not confine {hole}"
    assert line == (f"The tools of the sandbox are not offered: {reason}; {reason}.")


async def test_private_path_that_is_seen_speaks_against_a_backend() -> None:
    """The administrator learns which; an answer of another form is as bad."""
    told = [{**CONFINED, "seen": seen} for seen in (["DATA_DIR", ".env"], "DATA_DIR")]

    number, [line] = await offered([Pretended(answering(each)) for each in told])

    assert number == 0
    assert line == (
        "The tools of the sandbox are not offered: pretended: code in it could read "
        "DATA_DIR, .env of the server, which must not lie among programs or libraries; "
        "pretended: it does not confine seen."
    )


async def test_first_working_backend_is_used() -> None:
    bad = Pretended("", missing="it is not installed")
    good = Pretended(answering(CONFINED))
    other = Pretended(answering(CONFINED))

    assert await offered([bad, good, other]) == (6, [])
    assert (len(good.cells), len(other.cells)) == (1, 0)


async def test_reasons_of_all_backends_are_logged_once() -> None:
    backends = [
        Pretended("", name="a", missing="it is not installed"),
        Pretended("raise SystemExit('no permission')", name="b"),
        Pretended("", name="c"),
    ]

    number, log = await offered(backends)

    assert number == 0
    assert log == [
        "The tools of the sandbox are not offered: a: it is not installed; "
        "b: no permission; c: a first run gave no answer."
    ]
    assert [len(backend.cells) for backend in backends] == [0, 1, 1]


async def test_sandbox_that_was_not_there_for_a_moment_is_found_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says each reason once; administrators read of it as long as it holds.

    Packages are installed once.
    """
    log: list[str] = []
    packages = set[str]()
    backend = Pretended(answering(CONFINED), missing="no process is left")

    def make_backends(folder: str) -> list[Pretended]:
        packages.add(folder)
        return [backend]

    wheels = tmp_path / "wheels"
    tools = OwnedTools(wheels=str(wheels), log=log.append, make_backends=make_backends)
    monkeypatch.setattr(sandbox_tools, "_PROBE_PAUSE_SECONDS", 0.0)

    missing = [await tools.specs()]
    problems = [tools.problems]
    wheels.mkdir()
    missing.append(await tools.specs())
    problems.append(tools.problems)
    backend.missing = ""

    assert await tools.specs()
    assert missing == [[], []]
    assert [*problems, tools.problems] == [log, log[1:], []]
    assert tools.missing == ""
    assert len(log) == len(packages) == 2
    assert (await execute(tools)).text != "Error: There is no sandbox on this server."
    await tools.close()


async def test_without_a_sandbox_nothing_runs() -> None:
    backend = Pretended("", missing="none")
    tools = OwnedTools(make_backends=lambda _: [backend])

    answer = await execute(tools)

    assert answer.text == "Error: There is no sandbox on this server."
    assert backend.cells == []
    await tools.close()
    assert await tools.specs() == []


async def test_bubblewrap_is_tried_before_containers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    log: list[str] = []
    tools = OwnedTools(log=log.append)

    assert await tools.specs() == []

    await tools.close()
    missing = [
        *(
            f"bubblewrap with {python}: bwrap is not installed"
            for python in find_interpreters()
        ),
        "docker: docker is not installed",
        "podman: podman is not installed",
    ]
    assert log == [f"The tools of the sandbox are not offered: {'; '.join(missing)}."]


@pytest.fixture
def bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program in the place of bubblewrap that knows none of its options."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own ones are private
        program = Path(folder, "bwrap")
        program.write_text('#!/bin/sh\necho "Unknown option $1" >&2\nexit 1\n')
        program.chmod(0o755)
        program.parent.chmod(0o755)
        monkeypatch.setenv("PATH", folder)
        yield program


async def wrapped() -> list[str]:
    log: list[str] = []
    backend = BubblewrapBackend(find_interpreters()[-1])
    tools = OwnedTools(log=log.append, make_backends=lambda _: [backend])
    assert await tools.specs() == []
    await tools.close()
    return [line.partition(": ")[2].partition(": ")[2] for line in log]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(Path.exists, "Unknown option --unshare-user.", id="older"),
        pytest.param(
            lambda bwrap: bwrap.chmod(0o4755),
            "bwrap is setuid root, which gives it more privileges than it needs.",
            id="setuid",
        ),
        pytest.param(Path.unlink, "bwrap is not installed.", id="missing"),
    ],
)
async def test_bubblewrap_that_does_not_confine_is_not_used(
    change: Callable[[Path], object], reason: str, bwrap: Path
) -> None:
    """One that forbids no namespaces says so; a setuid one could not even be ended."""
    change(bwrap)

    assert await wrapped() == [reason]


async def test_machine_without_a_syscall_filter_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    assert await wrapped() == ["there is no system call filter for riscv64."]


LOG_OF_TOOLS = """
import asyncio
from sandbox.bubblewrap import BubblewrapBackend, find_interpreters
from sandbox.tools import SandboxTools
from sandbox.workspaces import WorkspacePool

async def offered():
    backend = BubblewrapBackend(find_interpreters()[-1])
    pool = WorkspacePool()
    tools = SandboxTools(pool, log=print, make_backends=lambda _: [backend])
    print(await tools.specs())
    await tools.close()
    await pool.close()

asyncio.run(offered())
"""


async def test_server_that_may_create_no_namespace_offers_nothing() -> None:
    """As in most containers; an administrator reads bubblewrap's own reason."""
    require_mark("sandbox")
    command = [sys.executable, without_namespaces.__file__, sys.executable]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}

    said = await asyncio.to_thread(
        subprocess.check_output,
        [*command, "-c", LOG_OF_TOOLS],
        text=True,
        env=os.environ | path,
    )

    assert "bwrap: Creating new namespace failed" in said
    assert said.splitlines()[-1] == "[]"
