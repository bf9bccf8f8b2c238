"""Checks of the environment contract: what a provider offers beyond a folder and its programs."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio

from steelyard.components.environment import Mount
from steelyard.testing.environment_suite import Trial, needs

_TICKING = "(setsid sh -c 'while :; do date +%N > tick; sleep 0.02; done' >/dev/null 2>&1 &)"
_THROUGH_THE_PROXY = """
import os, socket, sys
host, port = os.environ["HTTP_PROXY"].rpartition("/")[2].split(":")
for target in sys.argv[1:]:
    with socket.create_connection((host, int(port)), 20) as s:
        name = target.split("/")[2]
        s.sendall(f"GET {target} HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
        said = b""
        while piece := s.recv(4096):
            said += piece
    print(said.split(b" ", 2)[1].decode(), said.rpartition(b"\\n")[2].decode())
"""
_STRAIGHT = """
import socket, sys
try:
    socket.create_connection(("192.0.2.1", int(sys.argv[1])), 5)
except OSError as error:
    print("refused", error.errno)
print(*sorted(name for _, name in socket.if_nameindex()))
"""


@needs("keeps_services")
async def services_outlive_the_program_that_started_them(trial: Trial) -> None:
    """A daemon runs on after its `exec`, and ends with the session."""
    async with trial.session() as session:
        await session.exec(["sh", "-c", f"{_TICKING}; sleep 0.2"], timeout_s=60)
        before = await session.read_file("tick")
        await asyncio.sleep(0.3)
        assert await session.read_file("tick") != before, "the daemon has ended with its program"
        await session.end_programs()
        before = await session.read_file("tick")
        await asyncio.sleep(0.3)
        assert await session.read_file("tick") != before, "end_programs ended a service"


@needs("offers_mounts")
async def mounted_folders_are_seen_and_not_changed(trial: Trial) -> None:
    """Programs of the host's folder run inside; nobody inside writes there."""
    source = trial.scratch / "tools"
    (source / "bin").mkdir(parents=True)
    (source / "bin" / "hello").write_text("#!/bin/sh\necho mounted\n")
    (source / "bin" / "hello").chmod(0o755)
    for folder in (trial.scratch, source, source / "bin"):
        folder.chmod(0o755)
    mount = Mount(source, "/opt/steelyard-suite")
    async with trial.session(mounts=(mount,)) as session:
        ran = await session.exec([f"{mount.target}/bin/hello"], timeout_s=60)
        assert ran.stdout == b"mounted\n", ran
        for script in ("echo x > new", "echo x > bin/hello", "rm bin/hello", "chmod 777 bin"):
            tried = await session.exec(["sh", "-c", f"cd {mount.target} && {script}"], timeout_s=60)
            assert tried.exit_code != 0, f"{script}: {tried}"
    assert (source / "bin" / "hello").read_text() == "#!/bin/sh\necho mounted\n"
    assert sorted(path.name for path in source.iterdir()) == ["bin"]


@needs("offers_allowlist")
async def named_hosts_alone_are_reached(trial: Trial) -> None:
    """Through the proxy that HTTP_PROXY names: not another name, no address, nothing past it."""
    async with (
        await asyncio.start_server(_answer, "127.0.0.1", 0) as server,
        trial.session(network="allowlist", allowed_hosts=("localhost",)) as session,
    ):
        port = server.sockets[0].getsockname()[1]
        hosts = (f"localhost:{port}", f"127.0.0.1:{port}", "elsewhere.test", f"LOCALHOST.:{port}")
        urls = [f"http://{host}/" for host in hosts]
        argv = [trial.traits.python, "-c", _THROUGH_THE_PROXY, *urls]
        said = await session.exec(argv, timeout_s=60)
        statuses = [line.split()[0] for line in said.stdout_text.splitlines() if line[:3].isdigit()]
        assert statuses == ["200", "403", "403", "200"], said
        assert said.stdout_text.count("reached") == 2, said
        straight = await session.exec([trial.traits.python, "-c", _STRAIGHT, str(port)])
        assert straight.stdout == b"refused 101\nlo\n", straight


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\nreached")
    await writer.drain()
    writer.close()


@needs("owns_root")
async def the_working_folder_can_be_named(trial: Trial) -> None:
    """An absolute path is made where it is not there, and belongs to the programs."""
    async with trial.session(workdir="/srv/some/where") as session:
        assert session.workdir == "/srv/some/where"
        made = await session.exec(["sh", "-c", "pwd; touch made"], timeout_s=60)
        assert (made.exit_code, made.stdout) == (0, b"/srv/some/where\n"), made
        assert await session.read_file("made") == b""


@needs("holds_memory", "owns_root")
async def memory_that_ran_out_is_told_apart(trial: Trial) -> None:
    """A program that was killed for want of memory says so; one that kills itself does not."""
    from steelyard.components.environment import Resources

    bomb = "x = []\nwhile True: x.append(bytearray(b'x') * (8 << 20))"
    async with trial.session(resources=Resources(memory_mb=64)) as session:
        killed = await session.exec([trial.traits.python, "-c", bomb], timeout_s=60)
        assert (killed.exit_code, killed.stopped_by) == (-9, "memory"), killed
        other = await session.exec(["sh", "-c", "kill -9 $$"], timeout_s=60)
        assert (other.exit_code, other.stopped_by) == (-9, None), other
