"""For each clause of the environment contract a provider that breaks it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.components.artifacts import ArtifactSpec, Collected
from steelyard.components.environment import (
    Environment,
    EnvironmentFault,
    ExecResult,
    Kept,
    OpenRequest,
    Session,
)
from steelyard.components.values import Trust
from tests.testing.twisted import Twist, Twisted, TwistedSession

NOWHERE = "http://127.0.0.1:9"
"""Where nobody listens."""


class OfAnotherApi(Twisted):
    api = 2


class Wordless(Twisted):
    @classmethod
    def unavailable(cls) -> Any:
        return True


# -- programs -------------------------------------------------------------------------------------


def _changed(**changes: Any) -> Any:
    return lambda result: replace(result, **changes)


def _mixed(result: ExecResult) -> ExecResult:
    return replace(result, stdout=result.stdout + result.stderr)


def _decoded(result: ExecResult) -> ExecResult:
    return replace(result, stdout=result.stdout.decode("utf-8", "replace").encode())


def _one_is_missing(result: ExecResult) -> ExecResult:
    return replace(result, exit_code=1) if result.exit_code == 127 else result


def _as_the_shell_says(result: ExecResult) -> ExecResult:
    return replace(result, exit_code=128 - result.exit_code) if result.exit_code < 0 else result


def _emptied(result: ExecResult) -> ExecResult:
    return replace(result, stdout=b"")


def _cut_input(argv: list[str], options: dict[str, Any]) -> list[str]:
    options["stdin"] = options.get("stdin", b"")[: 1 << 20]
    return argv


def _typed_newline(argv: list[str], options: dict[str, Any]) -> list[str]:
    options["stdin"] = options.get("stdin") or b"\n"
    return argv


def _uncapped(argv: list[str], options: dict[str, Any]) -> list[str]:
    options.pop("max_output_bytes", None)
    return argv


def _without_variables(argv: list[str], options: dict[str, Any]) -> list[str]:
    options.pop("env", None)
    return argv


def _with_our_variables(argv: list[str], options: dict[str, Any]) -> list[str]:
    options["env"] = {**os.environ, **(options.get("env") or {})}
    return argv


def _nowhere_else(argv: list[str], options: dict[str, Any]) -> list[str]:
    options.pop("cwd", None)
    return argv


def _through_a_shell(argv: list[str], options: dict[str, Any]) -> list[str]:
    return ["sh", "-c", " ".join(argv)]


async def _broken_pipe(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    if options.get("stdin") and argv[0] != "cat":
        raise EnvironmentFault("broken pipe")
    return await session.plain_exec(argv, **options)


async def _no_nul(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    if any("\0" in word for word in argv):
        raise ValueError("embedded null byte")
    return await session.plain_exec(argv, **options)


async def _haunted(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    try:
        return await session.plain_exec(argv, **options)
    finally:
        session.haunt()


async def _one_stream_for_all(
    session: TwistedSession, argv: list[str], **options: Any
) -> ExecResult:
    result = await session.plain_exec(argv, **options)
    session.kept.append(result.stdout)
    await asyncio.sleep(0.2)
    return replace(result, stdout=session.kept[-1])


async def _silent_when_closed(
    session: TwistedSession, argv: list[str], **options: Any
) -> ExecResult:
    try:
        return await session.plain_exec(argv, **options)
    except EnvironmentFault:
        return ExecResult(-9, b"", b"")


async def _fails_unused(session: TwistedSession) -> None:
    await session.inner.close()
    raise EnvironmentFault("nothing to close")


async def _reads_the_host(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    if argv[0] == "cat":
        return ExecResult(0, Path(argv[1]).read_bytes(), b"")
    return await session.plain_exec(argv, **options)


async def _sweeps(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    result = await session.plain_exec(argv, **options)
    await session.inner.exec(["rm", "-f", "/tmp/file"])
    return result


async def _opened_and_forgotten(environment: Environment, request: OpenRequest) -> Session:
    session = await environment.open(request)
    FORGOTTEN.append(session)
    await session.exec(["true"])
    await asyncio.sleep(0.2)
    return session


FORGOTTEN: list[Session] = []
"""To be closed by the test."""


async def _with_network(environment: Environment, request: OpenRequest) -> Session:
    return await environment.open(replace(request, network="open"))


async def _with_a_way_left_open(environment: Environment, request: OpenRequest) -> Session:
    if request.gate is not None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        await request.gate.serve(listener)
    return await environment.open(request)


async def _without_gate(environment: Environment, request: OpenRequest) -> Session:
    return await environment.open(replace(request, gate=None))


# -- files ----------------------------------------------------------------------------------------


async def _modeless(session: TwistedSession, path: str, data: bytes, *, mode: int) -> None:
    await session.inner.write_file(path, data)


async def _unbounded(session: TwistedSession, path: str, *, max_bytes: int) -> bytes:
    return await session.inner.read_file(path, max_bytes=1 << 30)


async def _no_links(session: TwistedSession, path: str, *, max_bytes: int) -> bytes:
    looked = await session.inner.exec(["test", "-L", path.split("/", 1)[0]])
    if looked.exit_code == 0:
        raise ValueError("a link")
    return await session.inner.read_file(path, max_bytes=max_bytes)


async def _never_refuses(session: TwistedSession, path: str, *, max_bytes: int) -> bytes:
    try:
        return await session.inner.read_file(path, max_bytes=max_bytes)
    except ValueError:
        return b""


async def _plain_upload(session: TwistedSession, source: Path, path: str) -> None:
    await session.inner.upload(source, path)
    await session.inner.exec(["sh", "-c", "chmod 644 run.sh"])


async def _greedy_upload(session: TwistedSession, source: Path, path: str) -> None:
    held = b"x" * (400 << 20)
    await session.inner.upload(source, path)
    del held


async def _generous_download(session: TwistedSession, path: str, target: Path) -> None:
    await session.inner.download(path, target)
    if target.is_dir():
        (target / "extra").touch()


async def _dense_download(session: TwistedSession, path: str, target: Path) -> None:
    await session.inner.download(path, target)
    with (target / "hole").open("r+b") as file:
        file.write(b"\0" * (2 << 20))


async def _boundless_download(session: TwistedSession, path: str, target: Path) -> None:
    try:
        await session.inner.download(path, target)
    except (ValueError, OSError):
        return


async def _boundless_collect(
    session: TwistedSession, wanted: ArtifactSpec, target: Path
) -> Collected:
    return await session.inner.collect(replace(wanted, max_files=1000), target)


async def _lets_run(session: TwistedSession) -> None:
    return


async def _keeps_working(session: TwistedSession) -> Kept | None:
    """Keep the files, and start the next program all the same."""
    kept = await session.inner.keep()
    session.kept.append(kept)
    return kept


async def _works_when_kept(session: TwistedSession, argv: list[str], **options: Any) -> ExecResult:
    if session.kept:
        return ExecResult(0, b"", b"")
    return await session.plain_exec(argv, **options)


async def _forgets_what_it_kept(session: TwistedSession) -> Kept | None:
    kept = await session.inner.keep()
    return None if session.kept else session.kept.append(kept) or kept


async def _enters_elsewhere(
    environment: Environment, token: str, state: Mapping[str, Any], argv: Sequence[str]
) -> int:
    return 3


async def _enters_anything(
    environment: Environment, token: str, state: Mapping[str, Any], argv: Sequence[str]
) -> int:
    return 0


async def _enters_with_network(
    environment: Environment, token: str, state: Mapping[str, Any], argv: Sequence[str]
) -> int:
    limits = {**state["limits"], "network_open": True}
    return await environment.enter(token, {**state, "limits": limits}, argv)


async def _sweeps_up(session: TwistedSession) -> None:
    script = (
        "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = 1 ] || [ $p = $$ ] || kill -9 $p; done"
    )
    await session.inner.exec(["sh", "-c", script])


async def _with_mounts_copied(environment: Environment, request: OpenRequest) -> Session:
    session = await environment.open(replace(request, mounts=()))
    for mount in request.mounts:
        await session.upload(mount.source, mount.target)
    return session


async def _with_more_hosts(environment: Environment, request: OpenRequest) -> Session:
    allowed = (*request.allowed_hosts, "127.0.0.1")
    return await environment.open(replace(request, allowed_hosts=allowed))


async def _where_it_likes(environment: Environment, request: OpenRequest) -> Session:
    return await environment.open(replace(request, workdir=None))


HAUNTED = Twist(methods={"exec": _haunted})

BROKEN: Mapping[str, Twist] = {
    "streams_are_read_apart": Twist(after=_mixed),
    "bytes_pass_unchanged": Twist(after=_decoded),
    "large_input_comes_back": Twist(before=_cut_input),
    "input_that_nobody_reads_is_no_fault": Twist(methods={"exec": _broken_pipe}),
    "no_input_is_an_end_of_file": Twist(before=_typed_newline),
    "output_beyond_the_cap_is_dropped": Twist(before=_uncapped),
    "endless_output_meets_the_deadline": Twist(after=_changed(timed_out=False)),
    "variables_reach_the_program": Twist(before=_without_variables),
    "secrets_of_ours_stay_outside": Twist(before=_with_our_variables),
    "programs_start_in_the_working_folder": Twist(before=_nowhere_else),
    "a_missing_program_is_exit_code_127": Twist(after=_one_is_missing),
    "arguments_pass_unchanged": Twist(before=_through_a_shell),
    "arguments_that_cannot_be_passed_are_the_programs_fault": Twist(methods={"exec": _no_nul}),
    "a_hostile_variable_is_only_a_variable": Twist(before=_without_variables),
    "a_signal_is_a_negative_exit_code": Twist(after=_as_the_shell_says),
    "the_deadline_ends_a_program": Twist(after=_emptied),
    "grandchildren_end_with_the_program": HAUNTED,
    "daemons_end_with_the_program": HAUNTED,
    "daemons_without_variables_end_with_the_program": replace(HAUNTED, provider="sandbox"),
    "daemons_end_at_the_deadline": HAUNTED,
    "a_cancelled_exec_ends_its_tree": HAUNTED,
    "programs_run_side_by_side": Twist(methods={"exec": _one_stream_for_all}),
    "sessions_do_not_see_each_other": Twist(shares_sessions=True),
    "closing_twice_is_safe": Twist(methods={"exec": _silent_when_closed}),
    "an_unused_session_closes": Twist(methods={"close": _fails_unused}),
    "closing_ends_a_running_program": Twist(methods={"exec": _silent_when_closed}),
    "a_cancelled_open_leaves_nothing": Twist(open=_opened_and_forgotten),
    "leftovers_are_found_while_it_runs": Twist(find=lambda _tokens: ()),
    "a_memory_bomb_is_stopped": Twist("sandbox", after=_changed(exit_code=0)),
    "a_fork_bomb_is_stopped": Twist("sandbox", after=_emptied),
    "one_huge_file_is_refused": Twist("sandbox", after=_changed(exit_code=0)),
    "many_files_are_stopped": Twist("sandbox", after=_changed(stopped_by=None)),
    "many_short_programs_cannot_fill_the_disk": Twist("sandbox", after=_changed(stopped_by=None)),
    "no_network_is_no_network": Twist("sandbox", open=_with_network),
    "a_server_of_the_host_is_out_of_reach": Twist("sandbox", open=_with_network),
    "files_of_the_host_are_out_of_sight": Twist("sandbox", methods={"exec": _reads_the_host}),
    "files_go_in_and_out": Twist(methods={"write_file": _modeless}),
    "what_cannot_be_read_is_refused": Twist(methods={"read_file": _unbounded}),
    "links_inside_are_followed": Twist(methods={"read_file": _no_links}),
    "links_that_lead_out_are_refused": Twist(methods={"read_file": _never_refuses}),
    "folders_go_in": Twist(methods={"upload": _plain_upload}),
    "folders_come_out": Twist(methods={"download": _generous_download}),
    "wanted_files_come_out": Twist(methods={"collect": _boundless_collect}),
    "programs_end_and_files_stay": Twist(methods={"end_programs": _lets_run}),
    "a_large_folder_needs_no_memory_here": Twist(methods={"upload": _greedy_upload}),
    "a_hole_stays_a_hole": Twist(methods={"download": _dense_download}),
    "hostile_trees_are_bounded_and_removed": Twist(methods={"download": _boundless_download}),
    "temporary_files_stay_for_the_session": Twist("sandbox", methods={"exec": _sweeps}),
    "a_kept_session_stands_without_its_programs": Twist(
        methods={"keep": _keeps_working, "exec": _works_when_kept}
    ),
    "a_kept_session_is_ended_by_its_token": Twist(end="as twisted"),
    "keeping_twice_is_safe": Twist(methods={"keep": _forgets_what_it_kept}),
    "a_kept_session_can_be_entered": Twist(enter=_enters_elsewhere),
    "what_is_gone_cannot_be_entered": Twist(enter=_enters_anything),
    "a_kept_session_has_no_more_network_than_before": Twist("sandbox", enter=_enters_with_network),
    "services_outlive_the_program_that_started_them": Twist(
        "docker", methods={"end_programs": _sweeps_up}
    ),
    "mounted_folders_are_seen_and_not_changed": Twist("docker", open=_with_mounts_copied),
    "named_hosts_alone_are_reached": Twist("docker", open=_with_more_hosts),
    "the_working_folder_can_be_named": Twist("docker", open=_where_it_likes),
    "memory_that_ran_out_is_told_apart": Twist("docker", after=_changed(stopped_by=None)),
    "it_declares_what_it_is": Twist(environment=OfAnotherApi),
    "it_says_what_a_machine_lacks": Twist(environment=Wordless),
    "a_session_says_what_it_is": Twist(trust=Trust.ISOLATED),
    "without_a_gateway_there_is_no_way_to_a_model": Twist(model_url=lambda _request: NOWHERE),
    "programs_reach_the_gateway": Twist(model_url=lambda _request: NOWHERE),
    "programs_without_network_reach_the_gateway": Twist(
        "sandbox", model_url=lambda _request: NOWHERE
    ),
    "the_way_to_the_gateway_ends_with_the_session": Twist(open=_with_a_way_left_open),
    "a_closed_gateway_is_the_providers_fault": Twist(
        open=_without_gate, model_url=lambda _request: NOWHERE
    ),
}
