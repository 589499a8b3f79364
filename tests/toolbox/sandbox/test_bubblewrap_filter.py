"""The filter of system calls, run as the kernel runs it."""

import struct

import pytest

from toolbox.sandbox.backend import SandboxUnavailable
from toolbox.sandbox.bubblewrap import (
    _ARCHITECTURES,
    _REFUSED_CALLS,
    _build_seccomp_filter,
)

ALLOW = 0x7FFF0000
REFUSE = 0x00050001
KILL = 0x80000000
MACHINES = ["x86_64", "aarch64"]
LOAD = 0x20
IF_EQUAL = 0x15
IF_AT_LEAST = 0x35
RETURN = 0x06


def verdict(machine: str, number: int, first: int = 0, architecture: int = 0) -> int:
    """Interpret the filter on one call, by the rules of bpf(4)."""
    steps = list(struct.iter_unpack("=HBBI", _build_seccomp_filter(machine)))
    architecture = architecture or _ARCHITECTURES[machine]
    call = struct.pack("=IIQ6Q", number, architecture, 0, first, 0, 0, 0, 0, 0)
    value = index = 0
    while True:
        code, skip_if, skip_unless, operand = steps[index]
        index += 1
        if code == RETURN:
            return int(operand)
        if code == LOAD:
            [value] = struct.unpack_from("=I", call, operand)
        elif code == IF_EQUAL:
            index += skip_if if value == operand else skip_unless
        else:
            assert code == IF_AT_LEAST
            index += skip_if if value >= operand else skip_unless


@pytest.mark.parametrize("machine", MACHINES)
def test_listed_calls_are_refused(machine: str) -> None:
    """And the ones beside them are not."""
    column = list(_ARCHITECTURES).index(machine)
    numbers = {row[column] for row in _REFUSED_CALLS.values()}
    socket = _REFUSED_CALLS["socket"][column]

    for number in range(600):
        refused = verdict(machine, number) == REFUSE
        assert refused == (number in numbers), number
    assert verdict(machine, socket, first=1) == ALLOW
    for family in (0, 2, 10, 16, 40):
        assert verdict(machine, socket, first=family) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_and_second_numbers(machine: str) -> None:
    """i386 on x86_64, 32-bit ARM on aarch64: deadly; x32: refused."""
    assert verdict(machine, 20, architecture=0x40000003) == KILL
    assert verdict(machine, 20, architecture=0x40000028) == KILL
    assert verdict(machine, 0x40000000 + 41, first=1) == REFUSE


def test_both_machines_refuse_the_same() -> None:
    """One table, two columns of numbers, which are never the same twice."""
    for column in zip(*_REFUSED_CALLS.values(), strict=True):
        assert len(set(column)) == len(_REFUSED_CALLS)


def test_unknown_machine_has_no_filter() -> None:
    """Its numbers are not known, so it gets no sandbox either."""
    with pytest.raises(SandboxUnavailable):
        _build_seccomp_filter("riscv64")
