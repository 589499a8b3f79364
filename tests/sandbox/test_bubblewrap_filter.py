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
        *(29, 41, 46, 49, 53, 54, 64, 68, 101, 103, 162, 188, 189, 190, 206, 248, 249),
        *(250, 253, 278, 294, 298, 300, 306, 307, 310, 311, 317, 319, 321, 323, 425),
        *(438, 444, 447),
    },
    "aarch64": {
        *(0, 5, 6, 7, 26, 75, 81, 116, 117, 186, 190, 194, 198, 199, 200, 208, 211),
        *(217, 218, 219, 241, 262, 267, 269, 270, 271, 277, 279, 280, 282, 425, 438),
        *(444, 447),
    },
}


@pytest.mark.parametrize("machine", MACHINES)
def test_listed_calls_are_refused(machine: str) -> None:
    """And the ones next to them are not; what is newer than the list is unknown."""
    for number in range(600):
        expected = ALLOW if number < 463 else UNKNOWN
        if number in REFUSED[machine]:
            expected = REFUSE
        assert verdict(machine, number) == expected, number


ALLOWED_VALUES = (
    ("mmap", 0x01),  # MAP_SHARED, of a file
    ("mmap", 0x22),  # MAP_PRIVATE, MAP_ANONYMOUS
    ("mmap", 0x20022),  # with MAP_STACK
    ("fcntl", 6),  # F_SETLK
    ("fcntl", 1030),  # F_DUPFD_CLOEXEC
    ("fcntl", 1032),  # F_GETPIPE_SZ
    ("prctl", 21),  # PR_GET_SECCOMP
    ("prctl", 23),
    ("prctl", 0x53564D41),  # PR_SET_VMA
)


@pytest.mark.parametrize("machine", MACHINES)
def test_some_calls_are_refused_by_a_value(machine: str) -> None:
    """In the argument that counts; the kernel reads 32 of its 64 bits."""
    column = list(_ARCHITECTURES).index(machine)
    for numbers, place, values in _REFUSED_ARGUMENTS.values():
        before = [WORD] * place
        for bits, value in values:
            for more in (0, WORD & ~bits, 1 << 32):
                given = [*before, value | more]
                assert verdict(machine, numbers[column], given) == REFUSE
        assert verdict(machine, numbers[column], [*before, 0, WORD]) == ALLOW
    for name, allowed in ALLOWED_VALUES:
        numbers, place, _ = _REFUSED_ARGUMENTS[name]
        assert verdict(machine, numbers[column], [*[WORD] * place, allowed]) == ALLOW

    pair = _SOCKETPAIR[column]
    assert verdict(machine, pair, [1]) == ALLOW
    for family in (0, 2, 10, 16, 30, 40):
        assert verdict(machine, pair, [family, 1]) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_and_second_numbers(machine: str) -> None:
    """i386 on x86_64, 32-bit ARM on aarch64: deadly; x32: refused."""
    assert verdict(machine, 20, architecture=0x40000003) == KILL
    assert verdict(machine, 20, architecture=0x40000028) == KILL
    assert verdict(machine, 0x40000000 + 53, [1]) == REFUSE


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
