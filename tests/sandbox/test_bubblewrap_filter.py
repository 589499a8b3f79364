"""The filter of system calls, run as the kernel runs it."""

import struct
from collections.abc import Sequence

import pytest

from sandbox.backend import SandboxUnavailable
from sandbox.bubblewrap import (
    _ARCHITECTURES,
    _REFUSED_ARGUMENTS,
    _REFUSED_CALLS,
    _SOCKETPAIR,
    _build_seccomp_filter,
)

ALLOW = 0x7FFF0000
REFUSE = 0x00050001
UNKNOWN = 0x00050026
KILL = 0x80000000
WORD = 0xFFFFFFFF
MACHINES = ["x86_64", "aarch64"]
LOAD = 0x20
AND = 0x54
IF_EQUAL = 0x15
IF_AT_LEAST = 0x35
RETURN = 0x06


def verdict(
    machine: str, number: int, arguments: Sequence[int] = (), architecture: int = 0
) -> int:
    """Interpret the filter on one call, by the rules of bpf(4)."""
    steps = list(struct.iter_unpack("=HBBI", _build_seccomp_filter(machine)))
    architecture = architecture or _ARCHITECTURES[machine]
    values = [*arguments, *[0] * 6][:6]
    call = struct.pack("=IIQ6Q", number, architecture, 0, *values)
    value = index = 0
    while True:
        code, skip_if, skip_unless, operand = steps[index]
        index += 1
        if code == RETURN:
            return int(operand)
        if code == LOAD:
            [value] = struct.unpack_from("=I", call, operand)
        elif code == AND:
            value &= operand
        elif code == IF_EQUAL:
            index += skip_if if value == operand else skip_unless
        else:
            assert code == IF_AT_LEAST
            index += skip_if if value >= operand else skip_unless


# Numbers of Linux 6.13 (unistd_64.h, asm-generic/unistd.h). socketpair is among them:
# it is called with 0 as its family.
REFUSED = {
    "x86_64": {
        *(
            29,
            41,
            46,
            49,
            53,
            54,
            64,
            68,
            101,
            103,
            112,
            162,
            188,
            189,
            190,
            206,
            248,
            249,
        ),
        *(250, 253, 278, 294, 298, 300, 306, 307, 310, 311, 317, 319, 321, 323, 425),
        *(438, 440, 444, 447),
    },
    "aarch64": {
        *(
            0,
            5,
            6,
            7,
            26,
            75,
            81,
            116,
            117,
            157,
            186,
            190,
            194,
            198,
            199,
            200,
            208,
            211,
        ),
        *(217, 218, 219, 241, 262, 267, 269, 270, 271, 277, 279, 280, 282, 425, 438),
        *(440, 444, 447),
    },
}


@pytest.mark.parametrize("machine", MACHINES)
def test_listed_calls_are_refused(machine: str) -> None:
    """And the ones next to them are not; what is newer than the list is unknown."""
    for number in range(600):
        expected = ALLOW if number < 463 and number != 437 else UNKNOWN
        if number in REFUSED[machine]:
            expected = REFUSE
        assert verdict(machine, number) == expected, number


OTHER_WORD = 1 << 32
"""The kernel reads 32 bits of these arguments."""
VALUES: dict[str, tuple[tuple[int, int], int, Sequence[int], Sequence[int]]] = {
    "mmap, flags": (  # MAP_SHARED, _PRIVATE, _ANONYMOUS, _STACK, _HUGETLB
        (9, 222),
        3,
        (0x21, 0x20021, OTHER_WORD | 0x21, 0x40000, 0x40022, 0x40001, WORD),
        (0, 0x01, 0x02, 0x20, 0x22, 0x20022, OTHER_WORD * 0x21),
    ),
    "fcntl, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ": (
        (72, 25),
        1,
        (1024, 1026, 1031, OTHER_WORD | 1031),
        (0, 6, 1023, 1025, 1027, 1030, 1032),  # F_SETLK, F_DUPFD_CLOEXEC, F_GETPIPE_SZ
    ),
    "prctl, PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH": (
        (157, 167),
        0,
        (22, 62, 78, OTHER_WORD | 22),
        (21, 23, 61, 63, 77, 79, 0x53564D41),  # PR_GET_SECCOMP, PR_SET_VMA
    ),
    "setrlimit, RLIMIT_CORE": ((160, 164), 0, (4, OTHER_WORD | 4), (0, 3, 5)),
    "prlimit64, RLIMIT_CORE": ((302, 261), 1, (4, OTHER_WORD | 4), (0, 3, 5)),
    "fadvise64, POSIX_FADV_DONTNEED": (
        *((221, 223), 3),
        *((4, OTHER_WORD | 4), (0, 1, 2, 3, 5)),
    ),
    "madvise, MADV_PAGEOUT": ((28, 233), 2, (21, OTHER_WORD | 21), (4, 8, 20, 22)),
    "preadv2, RWF_DONTCACHE": ((327, 286), 5, (0x80, 0x81), (0, 1, 0x40)),
    "socketpair, AF_UNIX": (
        *((53, 199), 0),
        *((0, 2, 10, 16, 30, 40), (1, OTHER_WORD | 1)),
    ),
}
"""The numbers of a call, one of each machine; which argument; values refused, allowed."""


@pytest.mark.parametrize("column", [0, 1], ids=MACHINES)
@pytest.mark.parametrize("name", VALUES)
def test_some_calls_are_refused_by_a_value(name: str, column: int) -> None:
    """In the argument that counts, whatever the others are."""
    numbers, place, refused, allowed = VALUES[name]
    for more in (0, WORD):
        for values, expected in ((refused, REFUSE), (allowed, ALLOW)):
            for value in values:
                arguments = [*[more] * place, value, more]
                told = verdict(MACHINES[column], numbers[column], arguments)
                assert told == expected, hex(value)


@pytest.mark.parametrize(
    ("machine", "calls", "direct"),
    [
        ("x86_64", {"open": 2, "openat": 257, "fcntl": 72}, 0x4000),
        ("aarch64", {"openat": 56, "fcntl": 25}, 0x10000),
    ],
)
def test_no_file_is_read_past_the_cache(
    machine: str, calls: dict[str, int], direct: int
) -> None:
    """O_DIRECT when a file is opened, or set later (F_SETFL)."""
    places = {"open": 1, "openat": 2, "fcntl": 2}
    for name, number in calls.items():
        before = [4] * places[name]
        for flags, expected in (
            (direct, REFUSE),
            (WORD, REFUSE),
            (WORD - direct, ALLOW),
        ):
            assert verdict(machine, number, [*before, flags]) == expected, name
    assert verdict(machine, calls["fcntl"], [0, 6, direct]) == ALLOW  # F_SETLK
    assert verdict(machine, calls["fcntl"], [0, 1024, direct]) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_and_second_numbers(machine: str) -> None:
    """i386 on x86_64, 32-bit ARM on aarch64: deadly; x32: refused."""
    assert verdict(machine, 20, architecture=0x40000003) == KILL
    assert verdict(machine, 20, architecture=0x40000028) == KILL
    assert verdict(machine, 0x40000000 + 53, [1]) == REFUSE
    assert verdict(machine, 0x40000000) == REFUSE
    assert verdict(machine, 0x3FFFFFFF) == UNKNOWN


def test_both_machines_refuse_the_same() -> None:
    """One table, two columns of numbers, which are never the same twice."""
    rows = [*_REFUSED_CALLS.values(), _SOCKETPAIR]
    rows += [numbers for numbers, _, _ in _REFUSED_ARGUMENTS.values()]
    for column in zip(*rows, strict=True):
        numbers = [number for number in column if number is not None]
        assert len(set(numbers)) == len(numbers)
        assert len(numbers) >= len(rows) - 1  # aarch64 has no inotify_init


def test_unknown_machine_has_no_filter() -> None:
    """Its numbers are not known, so it gets no sandbox either."""
    with pytest.raises(SandboxUnavailable):
        _build_seccomp_filter("riscv64")
