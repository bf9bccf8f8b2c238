"""The system-call filter, run here as the kernel would run it."""

from __future__ import annotations

import struct

import pytest

from steelyard.environments import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000


def answer(program: bytes, *, arch: int, number: int, argument: int = 0) -> int:
    """Interpret a classic BPF program over one `struct seccomp_data`."""
    lines = list(struct.iter_unpack("<HBBI", program))
    data = struct.pack("<IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    accumulator = at = 0
    while True:
        code, if_true, if_false, value = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x15:
            at += if_true if accumulator == value else if_false
        elif code == 0x35:
            at += if_true if accumulator >= value else if_false
        elif code == 0x06:
            return int(value)
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", list(seccomp.ARCHITECTURES))
def test_each_number_gets_its_answer(machine: str) -> None:
    calls = seccomp.ARCHITECTURES[machine]
    program = seccomp.program(machine)
    special = {*calls.families, *calls.absent, *calls.refused}
    for number in range(600):
        got = answer(program, arch=calls.audit_arch, number=number, argument=40)
        if number in calls.families:
            assert got == 0x50000 | seccomp.EAFNOSUPPORT
        elif number in calls.absent:
            assert got == 0x50000 | seccomp.ENOSYS
        elif number in calls.refused:
            assert got == 0x50000 | seccomp.EPERM
        else:
            assert number not in special
            assert got == ALLOW


@pytest.mark.parametrize("machine", list(seccomp.ARCHITECTURES))
def test_only_named_families_make_sockets(machine: str) -> None:
    calls = seccomp.ARCHITECTURES[machine]
    for number in calls.families:
        allowed = {
            family
            for family in range(64)
            if answer(
                seccomp.program(machine), arch=calls.audit_arch, number=number, argument=family
            )
            == ALLOW
        }
        assert allowed == {1, 2, 10, 16}


@pytest.mark.parametrize("machine", list(seccomp.ARCHITECTURES))
def test_another_architecture_ends_the_program(machine: str) -> None:
    program = seccomp.program(machine)
    for arch in (0x40000003, 0x40000028, 0):  # i386, 32-bit ARM, nonsense
        assert answer(program, arch=arch, number=0) == KILL


def test_the_x32_interface_ends_the_program() -> None:
    arch = seccomp.ARCHITECTURES["x86_64"].audit_arch
    assert answer(seccomp.program("x86_64"), arch=arch, number=0x40000000 + 41) == KILL


def test_a_machine_without_a_filter_is_named_as_such() -> None:
    assert not seccomp.supports("riscv64")
    with pytest.raises(KeyError):
        seccomp.program("riscv64")
