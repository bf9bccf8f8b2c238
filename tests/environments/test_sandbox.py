"""The sandbox's walls, tried one by one from inside, and its parameters."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from steelyard.components.environment import (
    EnvironmentFault,
    ExecResult,
    OpenRequest,
    Resources,
)
from steelyard.components.values import Trust
from steelyard.environments import bubblewrap, sandbox_opening, sandbox_probe
from steelyard.environments.auto import resolve_auto
from steelyard.environments.sandbox import Sandbox, SandboxParams
from steelyard.environments.sandbox_limits import SandboxLimits, limits_of

TIGHT: dict[str, object] = {
    **dict.fromkeys(("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"), 0),
    **dict.fromkeys(("remount", "mount", "unshare"), "EPERM"),
    **dict.fromkeys(("write_usr", "write_root", "write_dev", "write_sysctl"), "EROFS"),
    **dict.fromkeys(("read_canary", "read_shadow"), "ENOENT"),
    "NoNewPrivs": "1",
    "Seccomp": "2",
    "uid": 65534,
    "vsock": "EAFNOSUPPORT",
    "interfaces": ["lo"],
    "first_process": "bwrap",
    "descriptors": [],
    "root": ["bin", "dev", "etc", "lib", "proc", "tmp", "usr", "workspace", "opt"],
}
LOOSE: dict[str, object] = {
    **dict.fromkeys(("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"), 1 << 21),
    **dict.fromkeys(("remount", "mount", "unshare", "write_usr", "write_root"), "done"),
    **dict.fromkeys(("write_dev", "write_sysctl", "read_canary", "read_shadow"), "done"),
    "NoNewPrivs": "0",
    "Seccomp": "0",
    "uid": 0,
    "vsock": "done",
    "interfaces": ["eth0", "lo"],
    "first_process": "systemd",
    "descriptors": ["/"],
    "root": ["bin", "home"],
}


def _judge(found: object) -> list[str]:
    output = json.dumps(found).encode()
    return sandbox_probe.weaknesses(output, network_open=False, python=Path("/opt/python"))


def run_inside(
    argv: list[str], *, params: SandboxParams | None = None, network: str | None = None
) -> ExecResult:
    async def go() -> ExecResult:
        environment = Sandbox(params or SandboxParams())
        session = await environment.open(OpenRequest("walls"))
        try:
            return await session.exec(argv, timeout_s=60)
        finally:
            await session.close()
            await environment.close()

    return asyncio.run(go())


def python_inside(program: str) -> str:
    result = run_inside(["python3", "-c", program])
    assert result.exit_code == 0, result
    return result.stdout_text


def test_a_tight_probe_has_no_weakness() -> None:
    assert _judge(TIGHT) == []


def test_every_finding_of_the_probe_is_judged() -> None:
    assert set(TIGHT) == set(LOOSE)
    for name, value in LOOSE.items():
        assert len(_judge({**TIGHT, name: value})) == 1, name


def test_a_probe_that_says_nothing_is_a_weakness() -> None:
    for output in (b"", b"[]", b"{}", b"\xff", b"null"):
        assert sandbox_probe.weaknesses(output, network_open=False, python=Path("/opt/p"))


@pytest.mark.integration
def test_a_sandbox_that_is_not_tight_is_a_fault_and_never_a_weaker_trust(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = bubblewrap._walls

    def without_own_network(*, network_open: bool) -> list[str]:
        return [*real(network_open=network_open), "--share-net"]

    monkeypatch.setattr(bubblewrap, "_walls", without_own_network)
    monkeypatch.setattr(sandbox_opening, "_found_tight", {})
    # A machine whose own network is only loopback has nothing to show: a probe needs some fault.
    if [path.name for path in Path("/sys/class/net").iterdir()] == ["lo"]:
        monkeypatch.setattr(sandbox_probe, "_ROOT", frozenset())
    with pytest.raises(EnvironmentFault, match="not tight on this machine"):
        run_inside(["true"])
    assert sandbox_opening._found_tight == {}


@pytest.mark.integration
def test_the_sandbox_says_isolated_and_which_python_scores() -> None:
    async def go() -> None:
        environment = Sandbox(SandboxParams())
        session = await environment.open(OpenRequest("described"))
        assert session.trust is Trust.ISOLATED
        details = session.description.details
        inside = await session.exec(["python3", "-c", "import sys; print(sys.version.split()[0])"])
        assert details["python"] == inside.stdout_text.strip()
        assert details["network"] == "none"
        assert {"memory", "processes", "cpu", "disk", "outside"} <= set(details)
        await session.close()
        await environment.close()

    asyncio.run(go())


@pytest.mark.integration
def test_an_open_network_is_never_called_isolated() -> None:
    async def go() -> None:
        environment = Sandbox(SandboxParams(network="open"))
        session = await environment.open(OpenRequest("open"))
        assert session.trust is Trust.CONTAINED
        assert session.description.details["network"] == "open"
        listed = await session.exec(["ls", "/sys/class/net", "/etc"])
        assert b"resolv.conf" in listed.stdout or not Path("/etc/resolv.conf").exists()
        await session.close()
        await environment.close()

    asyncio.run(go())


@pytest.mark.integration
def test_sockets_of_other_families_cannot_be_made() -> None:
    program = (
        "import socket, errno\n"
        "for family in range(1, 46):\n"
        "    for make in (socket.socket, socket.socketpair):\n"
        "        try: make(family, socket.SOCK_STREAM); print(family)\n"
        "        except OSError as e:\n"
        "            if e.errno != errno.EAFNOSUPPORT: print(family)\n"
    )
    assert set(python_inside(program).split()) == {"1", "2", "10", "16"}


@pytest.mark.integration
def test_calls_without_a_namespace_are_refused() -> None:
    program = (
        "import ctypes, errno, platform\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "arm = platform.machine() == 'aarch64'\n"
        "for name, x86, other in (('io_uring_setup', 425, 425), ('keyctl', 250, 219), "
        "('add_key', 248, 217), ('bpf', 321, 280), ('userfaultfd', 323, 282)):\n"
        "    result = libc.syscall(other if arm else x86, 0, 0, 0, 0, 0)\n"
        "    print(name, result, errno.errorcode[ctypes.get_errno()])\n"
    )
    lines = python_inside(program).splitlines()
    assert lines[0] == "io_uring_setup -1 ENOSYS"
    assert [line.split()[1:] for line in lines[1:]] == [["-1", "EPERM"]] * 4


@pytest.mark.integration
def test_calls_of_a_32_bit_interface_end_the_program() -> None:
    program = (
        "import ctypes, mmap, platform\n"
        "code = b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3'  # getpid by int 0x80\n"
        "memory = mmap.mmap(-1, 4096, prot=7)\nmemory.write(code)\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(memory))\n"
        "if platform.machine() == 'x86_64': ctypes.CFUNCTYPE(ctypes.c_int)(at)()\n"
        "else: import os; os.kill(os.getpid(), 31)\n"
    )
    assert run_inside(["python3", "-c", program]).exit_code == -31


@pytest.mark.integration
def test_only_its_own_folders_can_be_written() -> None:
    program = (
        "import os\n"
        "for top, folders, files in os.walk('/'):\n"
        "    if top.startswith(('/proc', '/workspace', '/tmp', '/dev/shm', '/dev/pts')):\n"
        "        folders.clear(); continue\n"
        "    if os.access(top, os.W_OK): print(top)\n"
    )
    assert python_inside(program) == ""


@pytest.mark.integration
def test_the_first_process_shows_no_variables_but_the_token() -> None:
    shown = python_inside("print(open('/proc/1/environ', 'rb').read())")
    assert shown.strip() == "b'STEELYARD_TOKEN=walls\\x00'"


@pytest.mark.integration
def test_the_sandbox_names_its_user_and_host() -> None:
    program = (
        "import os, pwd, socket; print(pwd.getpwuid(os.getuid()).pw_name, socket.gethostname())"
    )
    assert python_inside(program).split() == ["sandbox", "sandbox"]


@pytest.mark.integration
def test_the_tighter_of_two_limits_holds() -> None:
    asked = OpenRequest("t", Resources(cpu=4, memory_mb=100), network="open")
    assert limits_of(SandboxParams(cpu=2, memory_mb=200), asked) == SandboxLimits(
        2, 100, 256, 1024, True
    )
    assert not limits_of(SandboxParams(network="none"), asked).network_open
    assert not limits_of(
        SandboxParams(network="open"), OpenRequest("t", network="none")
    ).network_open
    assert not limits_of(SandboxParams(), OpenRequest("t")).network_open


@pytest.mark.parametrize(
    "wrong", [{"memory": 5}, {"cpu": 0}, {"network": "bridge"}, {"processes": -1}, {"memory_mb": 1}]
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SandboxParams.model_validate(wrong)


@pytest.mark.integration
def test_auto_is_the_host_only_where_nothing_model_written_runs() -> None:
    assert resolve_auto(runs_model_code=False) == "host_process"
    assert resolve_auto(runs_model_code=True) == "sandbox"
