"""The first backend that keeps what it promises, found by trying each.

A sandbox with a hole is worse than none: one run looks around inside, and whatever is
not as it must be speaks against the backend. There is no fallback.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from toolbox.cells import SandboxBackend, SandboxMissing
from toolbox.conversations import RunStopped, Sandbox
from toolbox.replies import SandboxSilent
from toolbox.sandbox_limits import SandboxLimits

_CONFINED = {
    "capabilities": 0,
    "no_new_privileges": "1",
    "filtered": "2",  # by a program: prctl(2), PR_GET_SECCOMP
    "networks": ["lo"],
    "namespaces": False,
}


async def find_sandbox(
    backends: Iterable[SandboxBackend], limits: SandboxLimits, spool: Path
) -> Sandbox:
    """Return a sandbox that was tried; raises SandboxMissing with all reasons."""
    reasons = []
    for backend in backends:
        sandbox = Sandbox(backend, limits)
        try:
            await _try(sandbox, spool)
            return sandbox
        except SandboxMissing as missing:
            reasons.append(f"{backend.name}: {missing}")
    raise SandboxMissing("; ".join(reasons))


async def _try(sandbox: Sandbox, spool: Path) -> None:
    """Raise SandboxMissing unless a run is confined as it must be."""
    try:
        reply = await sandbox.ask({"operation": "describe"}, None, spool)
    except OSError as error:
        raise SandboxMissing(f"it does not start: {error.strerror}") from None
    except RunStopped as stopped:
        raise SandboxMissing(f"a first run was stopped, because {stopped}") from None
    except SandboxSilent as silent:
        raise SandboxMissing(str(silent) or "a first run gave no answer") from None
    if holes := list(_holes(reply.answer)):
        raise SandboxMissing(f"it does not confine {', '.join(holes)}")


def _holes(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not as it must be."""
    yield from (name for name, value in _CONFINED.items() if found.get(name) != value)
    if not found.get("user"):
        yield "user"
