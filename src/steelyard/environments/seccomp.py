"""The system-call filter of the sandbox, as a classic BPF program for bubblewrap's `--seccomp`.

Namespaces leave some doors open: AF_VSOCK sockets reach the hypervisor whatever the network
namespace, io_uring opens sockets that no filter sees, keyrings have no namespace. The filter
allows all but those; another architecture's calls (32-bit on a 64-bit kernel, x32) would carry
other numbers, so they end the process.

Numbers: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `asm-generic/unistd.h`.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16
ALLOWED_FAMILIES: Final = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
"""What programs need; each other family (vsock, Bluetooth, packet, ALG, …) is a door."""

EPERM: Final = 1
ENOSYS: Final = 38
EAFNOSUPPORT: Final = 97

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_OR_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _ARGUMENT_0 = 0, 4, 16  # offsets in `struct seccomp_data`, little-endian


@dataclass(frozen=True, slots=True)
class Calls:
    """The numbers of one architecture."""

    audit_arch: int
    families: tuple[int, ...]
    """`socket`, `socketpair`: judged by their first argument."""
    absent: tuple[int, ...]
    """`io_uring_*`: answered as a kernel without them would, so that programs fall back."""
    refused: tuple[int, ...]
    """`add_key`, `request_key`, `keyctl`, `bpf`, `userfaultfd`, `perf_event_open`."""
    x32_bit: int | None = None
    """Numbers from here on belong to the x32 interface."""


ARCHITECTURES: Final[Mapping[str, Calls]] = MappingProxyType(
    {
        "x86_64": Calls(
            0xC000003E, (41, 53), (425, 426, 427), (248, 249, 250, 321, 323, 298), 0x40000000
        ),
        "aarch64": Calls(0xC00000B7, (198, 199), (425, 426, 427), (217, 218, 219, 280, 282, 241)),
    }
)


def supports(machine: str | None = None) -> bool:
    """True where there is a filter for this machine's architecture."""
    return (machine or platform.machine()) in ARCHITECTURES


def program(machine: str | None = None) -> bytes:
    """Assemble the filter for an architecture, this machine's by default.

    Raises:
        KeyError: there is none for it.
    """
    calls = ARCHITECTURES[machine or platform.machine()]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, calls.audit_arch),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if calls.x32_bit is not None:
        code += [
            (_JUMP_GREATER_OR_EQUAL, 0, 1, calls.x32_bit),
            (_RETURN, 0, 0, _KILL_PROCESS),
        ]
    for numbers, errno in ((calls.absent, ENOSYS), (calls.refused, EPERM)):
        for number in numbers:
            code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno)]
    # Neither `socket` nor `socketpair`: allowed. The jumps skip the two lines that follow.
    first, second = calls.families
    code += [
        (_JUMP_EQUAL, 2, 0, first),
        (_JUMP_EQUAL, 1, 0, second),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _ARGUMENT_0),
    ]
    for family in ALLOWED_FAMILIES:
        code += [(_JUMP_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    code.append((_RETURN, 0, 0, _ERRNO | EAFNOSUPPORT))
    return b"".join(struct.pack("<HBBI", *line) for line in code)
