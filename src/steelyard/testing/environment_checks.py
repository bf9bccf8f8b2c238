"""Checks of the environment contract: programs, their streams, their ends, their limits."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress

from steelyard.components.environment import (
    TOKEN_VARIABLE,
    EnvironmentFault,
    OpenRequest,
    Resources,
    Session,
)
from steelyard.testing.environment_suite import Trial, needs

_MIB = 1024 * 1024


async def _sh(session: Session, script: str, *, timeout_s: float | None = 60) -> str:
    """Run a shell script that must succeed; its output."""
    result = await session.exec(["sh", "-c", script], timeout_s=timeout_s)
    assert result.exit_code == 0, f"{script!r}: {result}"
    return result.stdout_text


async def streams_are_read_apart(trial: Trial) -> None:
    """Standard output and error do not mix."""
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n"), result
    assert not result.timed_out, result
    assert not result.truncated, result


async def bytes_pass_unchanged(trial: Trial) -> None:
    """All 256 byte values go in and come out, text that is not UTF-8 among them."""
    data = bytes(range(256)) * 300
    async with trial.session() as session:
        result = await session.exec(["cat"], stdin=data)
    assert result.stdout == data, len(result.stdout)
    assert "�" in result.stdout_text


async def large_input_comes_back(trial: Trial) -> None:
    """4 MiB through standard input and output at once: no deadlock."""
    data = bytes(4 * _MIB)
    async with trial.session() as session:
        result = await session.exec(["cat"], stdin=data, timeout_s=60)
    assert hashlib.sha256(result.stdout).digest() == hashlib.sha256(data).digest()


async def input_that_nobody_reads_is_no_fault(trial: Trial) -> None:
    """A program may end without reading what it was sent."""
    async with trial.session() as session:
        result = await session.exec(["true"], stdin=bytes(_MIB), timeout_s=60)
    assert result.exit_code == 0, result


async def no_input_is_an_end_of_file(trial: Trial) -> None:
    """A program that reads does not wait for a person."""
    async with trial.session() as session:
        result = await session.exec(["cat"], timeout_s=20)
    assert (result.exit_code, result.stdout) == (0, b""), result


async def output_beyond_the_cap_is_dropped(trial: Trial) -> None:
    """The first bytes are kept, the program runs to its end, `truncated` says so."""
    script = "head -c 5000000 /dev/zero; echo done >&2"
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", script], max_output_bytes=1000, timeout_s=60)
    assert (result.exit_code, len(result.stdout), result.stderr) == (0, 1000, b"done\n"), result
    assert result.truncated


async def endless_output_meets_the_deadline(trial: Trial) -> None:
    """A program that never stops writing is stopped, and costs no more than its cap."""
    async with trial.session() as session:
        result = await session.exec(["yes"], timeout_s=0.5, max_output_bytes=10_000)
    assert result.timed_out
    assert result.truncated
    assert len(result.stdout) == 10_000


async def variables_reach_the_program(trial: Trial) -> None:
    """The session's and the exec's variables are there, the exec's win, the token can't go."""
    async with trial.session(env={"A": "session", "B": "session"}) as session:
        result = await session.exec(["env"], env={"B": "exec", "C": "é\n", TOKEN_VARIABLE: "x"})
    lines = result.stdout_text.splitlines()
    assert {"A=session", "B=exec", "C=é", f"{TOKEN_VARIABLE}={trial.token}"} <= set(lines), lines


async def secrets_of_ours_stay_outside(trial: Trial) -> None:
    """What only our own environment holds is not inherited."""
    import os

    os.environ["STEELYARD_SUITE_API_KEY"] = "canary-5f1c"
    try:
        async with trial.session() as session:
            result = await session.exec(["env"])
    finally:
        del os.environ["STEELYARD_SUITE_API_KEY"]
    assert b"canary-5f1c" not in result.stdout


async def programs_start_in_the_working_folder(trial: Trial) -> None:
    """By default, and in `cwd`, relative or absolute."""
    async with trial.session() as session:
        await session.write_file("deep/er/file", b"")
        there = f"{session.workdir}/deep"
        assert (await session.exec(["pwd"])).stdout_text.strip() == session.workdir
        assert (await session.exec(["pwd"], cwd="deep/er")).stdout_text.strip() == f"{there}/er"
        assert (await session.exec(["pwd"], cwd=there)).stdout_text.strip() == there
        missing = await session.exec(["pwd"], cwd="nowhere")
        assert missing.exit_code == 127, missing


async def a_missing_program_is_exit_code_127(trial: Trial) -> None:
    """Not an error of ours; one that cannot be run is 126."""
    async with trial.session() as session:
        missing = await session.exec(["no-such-program"])
        absent = await session.exec(["/no/such/program"])
        await session.write_file("data", b"not a program")
        unfit = await session.exec(["./data"])
    assert (missing.exit_code, absent.exit_code, unfit.exit_code) == (127, 127, 126), unfit
    assert missing.stderr


async def arguments_pass_unchanged(trial: Trial) -> None:
    """No shell looks at them."""
    words = ["", "a b", "$HOME", "`id`", "--", "-x", "'\"", "é", "*", "x" * 50_000]
    program = "import sys, json; print(json.dumps(sys.argv[1:]))"
    async with trial.session() as session:
        result = await session.exec([trial.traits.python, "-c", program, *words])
    import json

    assert json.loads(result.stdout) == words, result


async def arguments_that_cannot_be_passed_are_the_programs_fault(trial: Trial) -> None:
    """A NUL byte or 3 MB in one argument: an exit code, no crash of ours."""
    async with trial.session() as session:
        for word in ("a\0b", "x" * 3_000_000, "\ud800"):
            result = await session.exec(["echo", word])
            assert result.exit_code in (126, 127), (word[:3], result)


async def a_hostile_variable_is_only_a_variable(trial: Trial) -> None:
    """A NUL byte or a strange name in a variable is refused, never read as an option."""
    hostile = {"A": "x\0--bind\0/\0/workspace"}, {"B\0--bind\0/": "/"}, {"": "x"}, {"C=D": "x"}
    async with trial.session() as session:
        for env in hostile:
            result = await session.exec(["ls", "-A"], env=env)
            assert result.exit_code == 126, result
            assert result.stdout == b"", result


async def a_signal_is_a_negative_exit_code(trial: Trial) -> None:
    """The signal that ended the program, negated."""
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", "kill -9 $$"])
    assert result.exit_code == -9, result


async def the_deadline_ends_a_program(trial: Trial) -> None:
    """What it wrote before is kept."""
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", "echo before; sleep 600"], timeout_s=0.5)
    assert result.timed_out
    assert result.stdout == b"before\n"
    assert result.exit_code < 0, result
    assert result.duration_s < 30, result


async def grandchildren_end_with_the_program(trial: Trial) -> None:
    """A background process ends with its parent, and its open pipe does not delay the result."""
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", "sleep 600 & echo started"], timeout_s=30)
        assert (result.exit_code, result.stdout, result.timed_out) == (0, b"started\n", False)
        if trial.traits.keeps_services:
            return
        await _nothing_ticks(session, "(while :; do date +%N > tick; sleep 0.02; done) & sleep 0.2")


@needs(unless="keeps_services")
async def daemons_end_with_the_program(trial: Trial) -> None:
    """A process that forked twice into a session of its own ends, too."""
    async with trial.session() as session:
        await _nothing_ticks(
            session, "(setsid sh -c 'while :; do date +%N > tick; sleep 0.02; done' &) & sleep 0.2"
        )


@needs("ends_every_process", unless="keeps_services")
async def daemons_without_variables_end_with_the_program(trial: Trial) -> None:
    """The same, with its environment cleared so that no token can be found."""
    loop = "while :; do date +%N > tick; sleep 0.02; done"
    async with trial.session() as session:
        await _nothing_ticks(
            session, f"(env -i PATH=$PATH setsid sh -c '{loop}' >/dev/null 2>&1 &) & sleep 0.2"
        )


async def daemons_end_at_the_deadline(trial: Trial) -> None:
    """The whole tree of a program that is stopped."""
    loop = "while :; do date +%N > tick; sleep 0.02; done"
    async with trial.session() as session:
        result = await session.exec(["sh", "-c", f"setsid sh -c '{loop}'"], timeout_s=0.5)
        assert result.timed_out, result
        await _nothing_ticks(session, "true")


async def _nothing_ticks(session: Session, script: str) -> None:
    """Run a script; afterwards nobody writes the file `tick` any more."""
    result = await session.exec(["sh", "-c", script], timeout_s=30)
    assert result.exit_code == 0, result
    before = await session.read_file("tick")
    await asyncio.sleep(0.2)
    assert await session.read_file("tick") == before, "a process still runs"


async def a_cancelled_exec_ends_its_tree(trial: Trial) -> None:
    """Cancellation comes through, with every process gone."""
    loop = "while :; do date +%N > tick; sleep 0.02; done"
    async with trial.session() as session:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await session.exec(["sh", "-c", f"sh -c '{loop}'"])
        await _nothing_ticks(session, "true")


async def programs_run_side_by_side(trial: Trial) -> None:
    """Sixteen at once in one session, each with its own streams."""
    async with trial.session() as session:
        results = await asyncio.gather(
            *(session.exec(["sh", "-c", f"sleep 0.1; echo {i}"]) for i in range(16))
        )
    assert [result.stdout_text.strip() for result in results] == [str(i) for i in range(16)]


async def sessions_do_not_see_each_other(trial: Trial) -> None:
    """Each has a working folder of its own."""
    async with trial.session() as first, trial.session() as second:
        await first.write_file("mine", b"1")
        result = await second.exec(["ls", "-A"])
    assert result.stdout == b"", result


async def closing_twice_is_safe(trial: Trial) -> None:
    """And a closed session says so."""
    async with trial.session() as session:
        await session.exec(["true"])
        await session.close()
        await session.close()
        try:
            await session.exec(["true"])
        except EnvironmentFault:
            return
    raise AssertionError("a closed session still runs programs")


async def an_unused_session_closes(trial: Trial) -> None:
    """Nothing was started in it."""
    async with trial.session():
        pass


async def closing_ends_a_running_program(trial: Trial) -> None:
    """The exec under way ends with a fault, soon."""
    async with trial.session() as session:
        running = asyncio.ensure_future(session.exec(["sleep", "600"]))
        await asyncio.sleep(0.3)
        await session.close()
        async with asyncio.timeout(20):
            result = (await asyncio.gather(running, return_exceptions=True))[0]
    assert isinstance(result, EnvironmentFault), result


async def a_cancelled_open_leaves_nothing(trial: Trial) -> None:
    """At whatever point it is cancelled."""
    for delay_s in (0.0, 0.001, 0.01, 0.05, 0.2, 0.4):
        opening = asyncio.ensure_future(trial.environment.open(OpenRequest(trial.token)))
        await asyncio.sleep(delay_s)
        opening.cancel()
        (opened,) = await asyncio.gather(opening, return_exceptions=True)
        if isinstance(opened, Session):
            await opened.close()
        left = await trial.environment.find_leftovers([trial.token])
        assert not left, left


async def leftovers_are_found_while_it_runs(trial: Trial) -> None:
    """By its token, and by no other."""
    async with trial.session() as session:
        running = asyncio.ensure_future(session.exec(["sleep", "600"]))
        await asyncio.sleep(0.5)
        found = await trial.environment.find_leftovers([trial.token])
        others = await trial.environment.find_leftovers([f"{trial.token}x"])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert any("process" in item.description for item in found), found
    assert not others, others


@needs("holds_memory")
async def a_memory_bomb_is_stopped(trial: Trial) -> None:
    """It dies or is refused; the session lives on."""
    bomb = "x = []\nwhile True: x.append(bytearray(b'x') * (8 << 20))"
    async with trial.session(resources=Resources(memory_mb=128)) as session:
        result = await session.exec([trial.traits.python, "-c", bomb], timeout_s=60)
        assert result.exit_code != 0, result
        assert not result.timed_out, result
        assert (await session.exec(["echo", "alive"])).stdout == b"alive\n"


@needs("holds_processes")
async def a_fork_bomb_is_stopped(trial: Trial) -> None:
    """It reaches its bound and no further; the session lives on."""
    bomb = (
        "import os, time\nn = 0\ntry:\n    while n < 400:\n        n += 1\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "except OSError: print('refused after', n, flush=True)"
    )
    async with trial.session(resources=Resources(processes=40)) as session:
        result = await session.exec([trial.traits.python, "-c", bomb], timeout_s=30)
        assert b"refused after" in result.stdout, result
        assert int(result.stdout.split()[2]) <= 41, result
        assert (await session.exec(["echo", "alive"])).stdout == b"alive\n"


@needs("holds_disk")
async def one_huge_file_is_refused(trial: Trial) -> None:
    """A single file cannot pass the bound, not even with a hole."""
    async with trial.session(resources=Resources(disk_mb=16)) as session:
        result = await session.exec(["sh", "-c", "head -c 40000000 /dev/zero > big"], timeout_s=60)
        assert result.exit_code != 0, result
        hole = await session.exec(["truncate", "-s", "1T", "hole"], timeout_s=60)
        assert hole.exit_code != 0, hole
        assert int(await _sh(session, "stat -c %s big")) <= 16 * _MIB


@needs("holds_disk")
async def many_files_are_stopped(trial: Trial) -> None:
    """A program that fills the folder file by file is ended, and the result says why."""
    script = "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; sleep 0.02; done"
    async with trial.session(resources=Resources(disk_mb=16)) as session:
        result = await session.exec(["sh", "-c", script], timeout_s=60)
    assert result.stopped_by == "disk", result
    assert not result.timed_out


@needs("holds_disk")
async def many_short_programs_cannot_fill_the_disk(trial: Trial) -> None:
    """Each too short to be watched, together too much: the result says so."""
    async with trial.session(resources=Resources(disk_mb=16)) as session:
        for index in range(12):
            script = f"head -c 4000000 /dev/zero > f{index}; sync f{index}"
            result = await session.exec(["sh", "-c", script], timeout_s=60)
            if result.stopped_by == "disk":
                return
    raise AssertionError(f"48 MB in a session of 16: {result}")


@needs("closes_network")
async def no_network_is_no_network(trial: Trial) -> None:
    """Only loopback is there, and loopback is the session's own."""
    program = (
        "import socket\nprint(*sorted(n for _, n in socket.if_nameindex()))\n"
        "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n"
        "c = socket.create_connection(s.getsockname(), 5)\nprint('loopback')\n"
        "try: socket.create_connection(('192.0.2.1', 80), 5)\n"
        "except OSError as e: print(type(e).__name__, e.errno)"
    )
    async with trial.session(network="none") as session:
        result = await session.exec([trial.traits.python, "-c", program], timeout_s=30)
    assert result.stdout == b"lo\nloopback\nOSError 101\n", result


@needs("closes_network")
async def a_server_of_the_host_is_out_of_reach(trial: Trial) -> None:
    """Neither by TCP nor by an abstract Unix socket."""
    program = (
        "import socket, sys\nfor family, address in ((socket.AF_INET, ('127.0.0.1', "
        "int(sys.argv[1]))), (socket.AF_UNIX, '\\0' + sys.argv[2])):\n"
        "    s = socket.socket(family)\n    try: s.connect(address); print('REACHED')\n"
        "    except OSError as e: print('refused')"
    )
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    abstract = await asyncio.start_unix_server(lambda _r, w: w.close(), f"\0{trial.token}")
    async with server, abstract, trial.session(network="none") as session:
        port = server.sockets[0].getsockname()[1]
        result = await session.exec([trial.traits.python, "-c", program, str(port), trial.token])
    assert result.stdout == b"refused\nrefused\n", result


@needs("hides_host")
async def files_of_the_host_are_out_of_sight(trial: Trial) -> None:
    """A file beside the session cannot be read, nor the host's processes seen."""
    canary = trial.scratch / "canary"
    canary.write_text("secret-of-the-host")
    canary.chmod(0o644)
    async with trial.session() as session:
        result = await session.exec(["cat", str(canary)])
        assert result.exit_code != 0, result
        assert b"secret" not in result.stdout
        assert int(await _sh(session, "ls -d /proc/[0-9]* | wc -l")) < 10
