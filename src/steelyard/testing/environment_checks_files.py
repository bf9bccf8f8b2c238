"""Checks of the environment contract: files and folders, in and out, hostile ones among them."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path

from steelyard.components.artifacts import ArtifactSpec
from steelyard.components.environment import EnvironmentFault, Resources, Session
from steelyard.testing.environment_suite import Trial, needs

_MIB = 1024 * 1024


async def _refused(call: Awaitable[object], *kinds: type[Exception]) -> None:
    """The call must raise one of `kinds`."""
    try:
        result = await call
    except kinds:
        return
    raise AssertionError(f"not refused: {str(result)[:100]}")


async def _sh(session: Session, script: str) -> str:
    result = await session.exec(["sh", "-c", script], timeout_s=60)
    assert result.exit_code == 0, f"{script!r}: {result}"
    return result.stdout_text


async def _is_cut_off(session: Session, script: str) -> bool:
    """True where a program does not come to its own end."""
    try:
        return (await session.exec(["sh", "-c", script], timeout_s=60)).exit_code != 0
    except EnvironmentFault:
        return True


async def files_go_in_and_out(trial: Trial) -> None:
    """Bytes, modes, folders made on the way; a program sees them and may change them."""
    data = bytes(range(256))
    async with trial.session() as session:
        await session.write_file("a/b/c.bin", data, mode=0o755)
        await session.write_file(f"{session.workdir}/x", b"old and longer")
        await session.write_file("x", b"new")
        assert await session.read_file("a/b/c.bin") == data
        assert await session.read_file(f"{session.workdir}/x") == b"new"
        assert (await _sh(session, "stat -c %a a/b/c.bin")).strip() == "755"
        await _sh(session, "echo changed > x; rm -r a; mkdir a; echo made > a/new")
        assert await session.read_file("x") == b"changed\n"
        assert await session.read_file("a/new") == b"made\n"


async def what_cannot_be_read_is_refused(trial: Trial) -> None:
    """Absent, too large, a folder, a FIFO: none of them blocks."""
    async with trial.session() as session:
        await _sh(session, "head -c 1000 /dev/zero > big; mkdir dir; mkfifo fifo")
        await _refused(session.read_file("absent"), FileNotFoundError)
        await _refused(session.read_file("dir/absent"), FileNotFoundError)
        await _refused(session.read_file("big", max_bytes=999), ValueError)
        assert len(await session.read_file("big", max_bytes=1000)) == 1000
        await _refused(session.read_file("dir"), ValueError)
        await _refused(session.read_file("fifo"), ValueError)
        await _refused(session.write_file("fifo", b"x"), ValueError)
        await _refused(session.write_file("dir", b"x"), ValueError)


async def links_inside_are_followed(trial: Trial) -> None:
    """Relative ones and absolute ones, as programs inside see them."""
    async with trial.session() as session:
        await _sh(session, 'mkdir d; echo v > d/f; ln -s d/f l; ln -s "$PWD/d" m; ln -s ../l d/up')
        assert await session.read_file("l") == b"v\n"
        assert await session.read_file("m/f") == b"v\n"
        assert await session.read_file("d/up") == b"v\n"
        await session.write_file("m/g", b"w")
        assert (await _sh(session, "cat d/g")) == "w"


async def links_that_lead_out_are_refused(trial: Trial) -> None:
    """Reading, writing and copying, by link or by dots, never touch the host."""
    secret = trial.scratch / "secret"
    secret.write_text("secret-of-the-host")
    async with trial.session() as session:
        await _sh(
            session,
            f"ln -s {secret} file; ln -s {trial.scratch} dir; ln -s loop loop; ln -s / root; "
            f"ln -s ../../../../../..{secret} dots",
        )
        dots = "../" * 9 + "etc/passwd"
        paths = ["file", "dir/secret", "loop", f"root{secret}", "dots"]
        if not trial.traits.owns_root:
            paths.append(dots)
        for path in paths:
            await _refused(session.read_file(path), ValueError, FileNotFoundError)
        for path in paths:
            # A session's own /tmp may lie where the host has another: then it goes there.
            with suppress(ValueError, FileNotFoundError):
                await session.write_file(path, b"x")
        await _refused(session.read_file("/proc/self/environ"), ValueError, FileNotFoundError)
        await _refused(session.download("root", trial.scratch / "out"), ValueError)
    assert secret.read_text() == "secret-of-the-host"
    assert sorted(os.listdir(trial.scratch)) == ["secret"]  # noqa: PTH208


async def folders_go_in(trial: Trial) -> None:
    """Modes and links inside are kept; what is there already is laid over."""
    source = trial.scratch / "source"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run.sh").chmod(0o755)
    (source / "sub" / "data").write_bytes(b"data")
    (source / "sub" / "data").chmod(0o640)
    (source / "link").symlink_to("sub/data")
    async with trial.session() as session:
        await session.write_file("sub/kept", b"kept")
        await session.write_file("sub/data", b"to be replaced")
        await session.upload(source, ".")
        assert await _sh(session, "./run.sh; cat link; cat sub/kept") == "ran\ndatakept"
        modes = await _sh(session, "stat -c %a run.sh sub/data; test -d sub/empty; readlink link")
        assert modes.split() == ["755", "640", "sub/data"], modes
        await session.upload(source / "run.sh", "other/name.sh")
        assert await _sh(session, "other/name.sh") == "ran\n"
        await _sh(session, "rm -rf sub link run.sh other")  # they belong to the programs inside


async def folders_come_out(trial: Trial) -> None:
    """Modes and links inside are kept; links that lead out, FIFOs and sockets are left out."""
    target = trial.scratch / "out"
    async with trial.session() as session:
        await _sh(
            session,
            "mkdir -p d/e/f; echo v > d/e/v; chmod 750 d/e/v; ln -s e/v d/in; ln -s ../v d/e/f/up; "
            "ln -s /etc/passwd d/out; ln -s ../../x d/e/out; mkfifo d/fifo; ln -s e d/dirlink; "
            f"{trial.traits.python} -c 'import socket as s; s.socket(s.AF_UNIX).bind(\"d/s\")'",
        )
        await session.download("d", target)
        await session.download("d/e/v", trial.scratch / "single")
        await _refused(session.download("absent", trial.scratch / "no"), FileNotFoundError)
        await _refused(session.download("d", target), FileExistsError)
        await _refused(session.download("d/fifo", trial.scratch / "no"), ValueError)
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*"))
    assert found == ["dirlink", "e", "e/f", "e/f/up", "e/v", "in"], found
    assert stat.S_IMODE((target / "e" / "v").stat().st_mode) == 0o750
    assert (target / "in").readlink() == Path("e/v")
    assert (trial.scratch / "single").read_text() == "v\n"


async def wanted_files_come_out(trial: Trial) -> None:
    """Paths and patterns, bounded; links, FIFOs and what lies outside never."""
    outside = () if trial.traits.owns_root else ("/etc/passwd",)
    wanted = ArtifactSpec(("tree", "absent", *outside), ("*.log",), ("left",), max_files=3)
    async with trial.session() as session:
        await _sh(
            session,
            "mkdir -p tree/sub left; echo 1 > tree/a; echo 2 > tree/sub/b; echo no > tree/left;"
            "echo no > left/c; echo 3 > d.log; ln -s a tree/link; ln -s / tree/out;"
            "mkfifo tree/fifo; echo 4 > e.log",
        )
        target = trial.scratch / "wanted"
        target.mkdir()
        if type(session).collect is Session.collect:
            await _refused(session.collect(wanted, target), EnvironmentFault)
            return  # a provider that cannot look for files says so
        found = await session.collect(wanted, target)
    names = sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file())
    assert names == ["d.log", "tree/a", "tree/sub/b"], names
    assert found.files == 3
    assert found.bytes == 6
    assert found.left_out.get("link") == 2, found.left_out
    assert "more than 3 files" in found.left_out


async def programs_end_and_files_stay(trial: Trial) -> None:
    """What still runs is ended on request; the session and its files can be used further."""
    async with trial.session() as session:
        await session.write_file("kept", b"kept")
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            running = group.create_task(_is_cut_off(session, "touch begun; sleep 5"))
            await _sh(session, "while ! test -e begun; do sleep 0.05; done")
            await session.end_programs()
        does_end = type(session).end_programs is not Session.end_programs
        assert running.result() or not does_end, "it ran on"
        assert (await _sh(session, "cat kept")) == "kept"


async def a_large_folder_needs_no_memory_here(trial: Trial) -> None:
    """1 GiB both ways, a few MiB at a time; most of it a hole, which costs no disk of ours."""
    source = trial.scratch / "source"
    source.mkdir()
    block = os.urandom(_MIB)
    with (source / "big").open("wb") as file:
        for place in range(0, 1024, 64):
            file.seek(place * _MIB)
            file.write(block)
        file.truncate(1024 * _MIB)
    before = _peak_bytes()
    async with trial.session(resources=Resources(disk_mb=4096)) as session:
        await session.upload(source, "in")
        await session.download("in", trial.scratch / "back")
    grown = _peak_bytes() - before
    assert grown < 64 * _MIB, f"{grown / _MIB:.0f} MiB more"
    assert _digest(trial.scratch / "back" / "big") == _digest(source / "big")


def _peak_bytes() -> int:
    """The most memory this process ever had, kernel's figure."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


async def a_hole_stays_a_hole(trial: Trial) -> None:
    """A sparse file does not fill the host's disk when it is taken out."""
    async with trial.session() as session:
        await _sh(session, "truncate -s 512M hole; printf end >> hole; mkdir d; mv hole d")
        await session.download("d", trial.scratch / "out")
    status = (trial.scratch / "out" / "hole").stat()
    assert status.st_size == 512 * _MIB + 3
    assert status.st_blocks * 512 < _MIB


async def hostile_trees_are_bounded_and_removed(trial: Trial) -> None:
    """Very deep, very wide, without permissions: refused where too much, and always cleaned up."""
    program = (
        "import os\nfor i in range(1200):\n    os.mkdir('d' * 20); os.chdir('d' * 20)\n"
        "open('bottom', 'w')\n"
    )
    async with trial.session() as session:
        made = await session.exec([trial.traits.python, "-c", program], timeout_s=60)
        assert made.exit_code == 0, made
        await _sh(
            session, "mkdir wide shut; touch shut/f; chmod 0 shut; cd wide; seq 3000 | xargs touch"
        )
        await _refused(session.download(".", trial.scratch / "out"), ValueError, OSError)
        await session.download("wide", trial.scratch / "wide")
    assert len(os.listdir(trial.scratch / "wide")) == 3000  # noqa: PTH208


@needs("hides_host")
async def temporary_files_stay_for_the_session(trial: Trial) -> None:
    """What one program leaves in /tmp the next one finds, and nobody else."""
    async with trial.session() as first, trial.session() as second:
        await _sh(first, "echo kept > /tmp/file")
        assert await _sh(first, "cat /tmp/file") == "kept\n"
        assert await first.read_file("/tmp/file") == b"kept\n"  # noqa: S108 — inside
        assert await _sh(second, "ls -A /tmp") == ""
