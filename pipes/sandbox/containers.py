"""Sandboxes made by Docker or Podman."""

import asyncio
import os
from contextlib import suppress
from secrets import token_hex
from subprocess import DEVNULL, PIPE

from sandbox.backend import (
    NOBODY_UID,
    RUN_ENVIRONMENT,
    WRITABLE_FOLDERS,
    SandboxLimits,
    find_program,
)
from sandbox.processes import ChildProcess, start_process

_CLIENT_VARIABLES = ("PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR")
"""What the client needs to find its daemon; none of it goes into the container."""
_CLIENT_EXIT_SECONDS = 1.0
_ISOLATED_RUN = (
    "run --rm --interactive --pull never --network none --read-only --cap-drop ALL "
    "--security-opt no-new-privileges --ipc none --log-driver none --hostname sandbox "
    "--workdir /work"
)


class _ContainerProcess:
    """One container; the daemon limits its memory."""

    def __init__(self, process: ChildProcess, remove: tuple[str, ...]) -> None:
        """`process` is the client; `remove` is the command that ends the container."""
        self.process = process
        self._remove_command = remove

    def measure_memory(self) -> int:
        return 0

    async def kill(self) -> None:
        """End the container, which would outlive its client."""
        with suppress(TimeoutError):  # the client of one that has answered ends soon
            async with asyncio.timeout(_CLIENT_EXIT_SECONDS):
                await self.process.wait()
        if self.process.returncode is None:
            removing = await start_process(
                *self._remove_command,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=_client_environment(),
            )
            await removing.wait()
        self.process.kill_group()

    def close(self) -> None:
        """Do nothing: it has no descriptors of its own."""


class ContainerBackend:
    """Makes sandboxes with `docker` or `podman`."""

    def __init__(self, client: str, image: str, packages: str = "") -> None:
        """Use a local image with a `python3` in it; nothing is pulled."""
        self.name = client
        self._image = image
        self._packages = packages

    async def start(self, program: str, limits: SandboxLimits) -> _ContainerProcess:
        """Start a container; raises SandboxUnavailable."""
        path = find_program(self.name)
        name = f"sandbox-{token_hex(8)}"
        command = [path, *_ISOLATED_RUN.split(), "--name", name]
        if self._packages:
            command += ["--volume", f"{self._packages}:/packages:ro"]
        # Files in a tmpfs count as memory here.
        memory = str(limits.memory + len(WRITABLE_FOLDERS) * limits.disk)
        command += ["--user", f"{NOBODY_UID}:{NOBODY_UID}"]
        command += ["--pids-limit", str(limits.processes + 1)]
        command += ["--memory", memory, "--memory-swap", memory]
        options = f"rw,exec,nosuid,nodev,size={limits.disk},mode=700"
        owner = f"uid={NOBODY_UID},gid={NOBODY_UID}"
        for folder in WRITABLE_FOLDERS:
            command += ["--tmpfs", f"{folder}:{options},{owner}"]
        for variable, value in RUN_ENVIRONMENT.items():
            command += ["--env", f"{variable}={value}"]
        if self.name == "podman":  # it would hand the server's proxies on
            command.append("--http-proxy=false")
        command += [self._image, "python3", "-I", "-c", program]
        process = await start_process(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=_client_environment(),
        )
        return _ContainerProcess(process, (path, "rm", "--force", name))


def _client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}
