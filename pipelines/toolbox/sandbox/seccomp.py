"""A filter of system calls that sandboxed code may not use.

Namespaces leave gaps. Memory can be held where no limit counts it; sockets between a
virtual machine and its host, and keyrings, belong to no namespace; `io_uring` is not
checked by filters.
"""

import errno
import struct

_REFUSED_CALLS = {
    "x86_64": {
        "shmget": 29,
        "socket": 41,
        "semget": 64,
        "msgget": 68,
        "ptrace": 101,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "vmsplice": 278,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "memfd_create": 319,
        "bpf": 321,
        "userfaultfd": 323,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
        "memfd_secret": 447,
    },
    "aarch64": {
        "vmsplice": 75,
        "ptrace": 117,
        "msgget": 186,
        "semget": 190,
        "shmget": 194,
        "socket": 198,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "memfd_create": 279,
        "bpf": 280,
        "userfaultfd": 282,
        "io_uring_setup": 425,
        "pidfd_getfd": 438,
        "memfd_secret": 447,
    },
}
"""The numbers of the calls that are refused; `socket` only for what reaches outside."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
_X32_CALL_BIT = 0x40000000
"""x86_64 has every call a second time from here on."""
_UNIX_SOCKETS = 1

# linux/bpf_common.h: load a word; jump if equal, if at least; return. seccomp.h.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_CALL_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_ARGUMENT_OFFSET = (
    0,
    4,
    16,
)  # offsets in seccomp_data
_KILL, _REFUSE, _PASS = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000


def build_seccomp_filter(machine: str) -> bytes | None:
    """Return the filter for a machine as `uname` names it, or None."""
    calls = _REFUSED_CALLS.get(machine)
    if calls is None:
        return None
    refuse = _encode_instruction(_RETURN, _REFUSE)
    steps = [
        _encode_instruction(_LOAD, _ARCHITECTURE_OFFSET),
        _encode_instruction(_IF_EQUAL, _ARCHITECTURES[machine], skip_if=1),
        _encode_instruction(
            _RETURN, _KILL
        ),  # another machine's calls have other numbers
        _encode_instruction(_LOAD, _CALL_NUMBER_OFFSET),
        _encode_instruction(_IF_AT_LEAST, _X32_CALL_BIT, skip_unless=1),
        refuse,
    ]
    for name, number in calls.items():
        if name != "socket":
            steps += [_encode_instruction(_IF_EQUAL, number, skip_unless=1), refuse]
    steps += [
        _encode_instruction(_IF_EQUAL, calls["socket"], skip_unless=3),
        _encode_instruction(_LOAD, _FIRST_ARGUMENT_OFFSET),
        _encode_instruction(_IF_EQUAL, _UNIX_SOCKETS, skip_if=1),
        refuse,
        _encode_instruction(_RETURN, _PASS),
    ]
    return b"".join(steps)


def _encode_instruction(
    code: int, operand: int, skip_if: int = 0, skip_unless: int = 0
) -> bytes:
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, skip_if, skip_unless, operand)
