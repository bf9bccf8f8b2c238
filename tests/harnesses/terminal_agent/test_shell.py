"""One shell over many programs: what lasts, what does not, and what the model is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from steelyard.components.environment import Environment, NoParams, OpenRequest
from steelyard.environments.host_process import HostProcess
from steelyard.environments.sandbox import Sandbox
from steelyard.environments.sandbox_params import SandboxParams
from steelyard.harnesses.terminal_agent.shell import Ran, Shell, as_observation, find_shell, shown

ENVIRONMENTS: list[Callable[[], Environment]] = [
    lambda: HostProcess(NoParams()),
    lambda: Sandbox(SandboxParams()),
]
pytestmark = pytest.mark.integration


def in_shell(
    make: Callable[[], Environment], work: Callable[[Shell], Awaitable[None]], program: str = "bash"
) -> None:
    async def run() -> None:
        environment = make()
        session = await environment.open(OpenRequest(f"shell-{id(work):x}-a"))
        try:
            await work(Shell(session, program=program, shown_chars=10_000))
        finally:
            await session.close()
            await environment.close()

    asyncio.run(run())


@pytest.mark.parametrize("program", ["bash", "sh"])
@pytest.mark.parametrize("make", ENVIRONMENTS, ids=["host_process", "sandbox"])
def test_folder_and_exported_variables_last(make: Callable[[], Environment], program: str) -> None:
    async def work(shell: Shell) -> None:
        text = "two\nlines, 'quotes' and \"more\" $HOME `x`"
        await shell.run("mkdir -p a/b && cd a/b && export KEPT='é' && plain=1", timeout_s=30)
        await shell.run(f"export ODD={quoted(text)}", timeout_s=30)
        ran = await shell.run(
            'echo "$KEPT|$plain|$(basename "$PWD")"; printf %s "$ODD"', timeout_s=30
        )
        assert ran.output == f"é||b\n{text}"
        assert ran.exit_code == 0

    in_shell(make, work, program)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_both_streams_come_as_one_and_the_exit_code_is_the_commands() -> None:
    async def work(shell: Shell) -> None:
        ran = await shell.run("echo out; echo err >&2; exit 7", timeout_s=30)
        assert ran.output == "out\nerr\n"
        assert ran.exit_code == 7
        ran = await shell.run("cd /tmp; false", timeout_s=30)
        assert ran.exit_code == 1
        assert shell.folder == "/tmp"

    in_shell(ENVIRONMENTS[0], work)


def test_a_command_of_any_length_and_any_signs_is_run_as_it_is() -> None:
    async def work(shell: Shell) -> None:
        long = "# " + "x" * 300_000 + "\necho 'end of it'"
        assert (await shell.run(long, timeout_s=30)).output == "end of it\n"
        heredoc = "cat <<'END'\n$1 `a` \\ \"b\"\nEND\n"
        assert (await shell.run(heredoc, timeout_s=30)).output == '$1 `a` \\ "b"\n'

    in_shell(ENVIRONMENTS[0], work)


def test_a_command_that_never_ends_is_ended_and_the_shell_goes_on_where_it_was() -> None:
    async def work(shell: Shell) -> None:
        await shell.run("mkdir d && cd d && export V=1", timeout_s=30)
        ran = await shell.run("cd / && export V=2 && echo before && sleep 1000", timeout_s=0.5)
        assert ran.timed_out
        assert "before" in ran.output
        ran = await shell.run('echo "$V $(basename "$PWD")"', timeout_s=30)
        assert ran.output == "1 d\n"

    in_shell(ENVIRONMENTS[0], work)


def test_a_folder_that_is_gone_is_said_and_does_not_stop_the_shell() -> None:
    async def work(shell: Shell) -> None:
        await shell.run('mkdir d && cd d && rmdir "$PWD"', timeout_s=30)
        ran = await shell.run("echo here", timeout_s=30)
        assert "is gone" in ran.output
        assert ran.output.endswith("here\n")

    in_shell(ENVIRONMENTS[0], work)


def test_what_a_command_leaves_in_the_state_harms_only_its_own_shell() -> None:
    """It may write what it likes where the state is told: the next command still runs."""

    async def work(shell: Shell) -> None:
        for told in ("steelyard-shell-state", "steelyard-shell-state\n/\nexport X='", "\\377\\0"):
            await shell.run(f"printf '{told}' >&3; trap - EXIT; exit 0", timeout_s=30)
            assert (await shell.run("echo alive", timeout_s=30)).output.endswith("alive\n")

    in_shell(ENVIRONMENTS[0], work)


def test_more_variables_than_an_argument_holds_are_not_carried() -> None:
    async def work(shell: Shell) -> None:
        await shell.run("export SMALL=1", timeout_s=30)
        await shell.run("export BIG=$(head -c 150000 /dev/zero | tr '\\0' x)", timeout_s=30)
        ran = await shell.run('echo "$SMALL ${#BIG}"', timeout_s=30)
        assert ran.output == "1 0\n"

    in_shell(ENVIRONMENTS[0], work)


def test_a_shell_that_is_not_there_is_none() -> None:
    async def run() -> tuple[str | None, str | None]:
        environment = HostProcess(NoParams())
        session = await environment.open(OpenRequest("find-shell-a"))
        try:
            return await find_shell(session, "auto"), await find_shell(session, "no-such-shell")
        finally:
            await session.close()

    assert asyncio.run(run()) == ("bash", None)


def test_of_a_long_output_the_beginning_and_the_end_are_shown() -> None:
    text = "A" * 500 + "B" * 500
    short = shown(text, 100)
    assert short.startswith("A" * 50 + "\n[… 900 characters")
    assert short.endswith("B" * 50)
    assert shown("short", 100) == "short"
    assert "and more" in shown(text, 100, was_cut=True)


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (Ran("", 0, False, 0.1), "(no output)\n[exit code 0]"),
        (Ran("x\n", 3, False, 0.1), "x\n[exit code 3]"),
        (Ran("x", -9, False, 0.1), "x\n[ended by signal 9]"),
        (Ran("x", -9, True, 5.0), "x\n[ended: it took longer than 5 s]"),
        (
            Ran("x", -9, False, 5.0, "memory"),
            "x\n[ended: it passed the environment's memory limit]",
        ),
    ],
)
def test_how_a_command_ended_is_said(ran: Ran, said: str) -> None:
    assert as_observation("cmd", ran, 5.0) == said
