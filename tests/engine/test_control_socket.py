"""The socket of a running launch: who may call, what is said, and what is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.components import private_folders
from steelyard.config.errors import BadInput
from steelyard.engine import control_client, control_protocol, control_server
from steelyard.engine.control import Controls, LaunchState
from steelyard.engine.control_client import OwnerUnreachable, RunNotGoingOn, ask
from steelyard.engine.control_protocol import FOLDER_PREFIX, MAX_REQUEST_BYTES, answer, as_line
from steelyard.engine.control_server import MAX_CALLERS
from steelyard.engine.events import LaunchResult
from steelyard.engine.launch import launch, prepare
from steelyard.results.documents import RunUnreadable
from steelyard.results.lock import RunLock
from steelyard.results.reader import RunReader
from tests.engine.launching import request, resolved, run_all

SLOW = request(benchmark={"tasks": 6}, harness={"sleep_s": 60})


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of its own, with a path that is short enough."""
    folder = Path(tempfile.mkdtemp(prefix="rt-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def talking(tmp_path: Path, talk: Callable[[Path], Any], **top: Any) -> Any:
    """Launch something long; meanwhile, in a thread, talk to it by its run directory."""
    prepared = prepare(resolved(tmp_path, SLOW, **{"task_concurrency": 2, **top}))

    async def go() -> Any:
        controls = Controls()
        async with asyncio.TaskGroup() as group:
            launched = group.create_task(launch(prepared, controls=controls))
            while controls.state is LaunchState.STARTING:
                await asyncio.sleep(0.005)
            try:
                return await asyncio.to_thread(talk, controls.roots[0])
            finally:
                if not launched.done():
                    controls.cancel()

    return asyncio.run(go())


def said(root: Path, line: bytes) -> bytes:
    """Send bytes to the launch and read until it closes or a line is whole."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(address(root)))
        try:
            connection.sendall(line)
        except BrokenPipeError:
            return b""
        found = b""
        while not found.endswith(b"\n"):
            try:
                piece = connection.recv(65536)
            except ConnectionResetError:
                return found
            if not piece:
                return found
            found += piece
        return found


def address(root: Path) -> Path:
    ask(root, "status")  # it is written by then
    return Path(json.loads((root / "progress.json").read_bytes())["control"])


def a_request(run_dir: Path, **changes: Any) -> bytes:
    token = (address(run_dir).parent / "token").read_text()
    return as_line({"token": token, "root": str(run_dir), "action": "pause", **changes})


def test_a_launch_is_asked_and_steered_from_its_run_directory(
    tmp_path: Path, sockets: Path
) -> None:
    def talk(root: Path) -> list[Any]:
        states = [ask(root, "status")["status"]["state"]]
        found = ask(root, "pause")
        states.append(found["status"]["state"])
        assert found["changed"] is True
        assert ask(root, "pause")["changed"] is False
        states.append(ask(root, "resume")["status"]["state"])
        assert ask(root, "concurrency", value=4)["status"]["task_concurrency"] == 4
        found = ask(root, "provider", provider="host_process", value=3)
        assert found["status"]["providers"]["host_process"]["limit"] == 3
        states.append(ask(root, "drain")["status"]["state"])
        return states

    assert talking(tmp_path, talk) == ["running", "paused", "running", "draining"]
    (root,) = (tmp_path / "results" / "r").iterdir()
    events = [event for event in RunReader(root).events() if event["kind"] == "control"]
    assert [event["action"] for event in events] == [
        "pause", "resume", "concurrency", "provider", "drain",
    ]  # fmt: skip
    assert all(event["by"].startswith("ctl of ") for event in events)
    assert events[3]["provider"] == "host_process"


def test_nothing_is_left_of_the_socket_when_the_launch_has_ended(
    tmp_path: Path, sockets: Path
) -> None:
    def talk(root: Path) -> None:
        (folder,) = sockets.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "token").stat().st_mode & 0o777 == 0o600
        assert len(os.fsencode(address(root))) <= 103

    talking(tmp_path, talk)
    assert list(sockets.iterdir()) == []
    progress = json.loads(next((tmp_path / "results" / "r").iterdir()).joinpath(
        "progress.json").read_bytes())  # fmt: skip
    assert "control" not in progress


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"token": "0" * 64}, "token"),
        ({"token": None}, "token"),
        ({"token": "ä"}, "token"),
        ({"root": "/elsewhere"}, "does not own"),
        ({"action": "explode"}, "no such action"),
        ({"action": "concurrency"}, "whole number"),
        ({"action": "concurrency", "value": True}, "whole number"),
        ({"action": "concurrency", "value": 0}, "cannot be 0"),
        ({"action": "provider", "provider": "docker", "value": 1}, "docker"),
        ({"ctl": 2}, "version 1"),
    ],
)
def test_a_request_that_is_not_right_changes_nothing(
    tmp_path: Path, sockets: Path, changes: dict[str, Any], why: str
) -> None:
    def talk(root: Path) -> tuple[bytes, str]:
        reply = said(root, a_request(root, **changes))
        return reply, ask(root, "status")["status"]["state"]

    reply, state = talking(tmp_path, talk)
    message = json.loads(reply)
    assert message["ok"] is False
    assert why in message["error"]["message"]
    assert state == "running"


@pytest.mark.parametrize(
    "garbage",
    [b"\n", b"{}\n", b"[1]\n", b"\xff\xfe\x00\n", b"GET / HTTP/1.1\r\n\r\n", b"[" * 4000 + b"\n"],
    ids=["empty", "object", "list", "bytes", "http", "deep"],
)
def test_garbage_on_the_socket_is_refused_and_the_launch_goes_on(
    tmp_path: Path, sockets: Path, garbage: bytes
) -> None:
    def talk(root: Path) -> tuple[bytes, str]:
        return said(root, garbage), ask(root, "status")["status"]["state"]

    reply, state = talking(tmp_path, talk)
    assert json.loads(reply.split(b"\n")[0])["ok"] is False
    assert state == "running"


def test_a_line_that_never_ends_is_cut_off(tmp_path: Path, sockets: Path) -> None:
    def talk(root: Path) -> tuple[bytes, str]:
        return said(root, b"x" * (64 * MAX_REQUEST_BYTES)), ask(root, "status")["status"]["state"]

    reply, state = talking(tmp_path, talk)
    assert reply == b""
    assert state == "running"


def test_silent_callers_are_let_go_and_too_many_turned_away(
    tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_server, "CALL_LIMIT_S", 1.0)

    def talk(root: Path) -> str:
        path = str(address(root))
        silent = [socket.socket(socket.AF_UNIX) for _ in range(MAX_CALLERS)]
        for one in silent:
            one.settimeout(10)
            one.connect(path)
        with pytest.raises(OwnerUnreachable, match=r"broke off|nobody listens|reached"):
            ask(root, "status")
        assert [one.recv(1) for one in silent] == [b""] * MAX_CALLERS
        for one in silent:
            one.close()
        return str(ask(root, "status")["status"]["state"])

    assert talking(tmp_path, talk) == "running"


def test_another_user_is_turned_away(
    tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(root: Path) -> None:
        line = a_request(root)
        monkeypatch.setattr(control_server, "peer_uid", lambda _: os.geteuid() + 1)
        assert said_raw(root, line) == b""
        monkeypatch.undo()

    def said_raw(root: Path, line: bytes) -> bytes:
        path = Path(json.loads((root / "progress.json").read_bytes())["control"])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            connection.connect(str(path))
            try:
                connection.sendall(line)
                return connection.recv(100)
            except (BrokenPipeError, ConnectionResetError):
                return b""

    talking(tmp_path, talk)


def test_the_system_says_who_calls() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert control_server.peer_uid(ours) == os.geteuid()


def test_what_a_caller_is_told_is_redacted(tmp_path: Path, sockets: Path) -> None:
    async def go() -> bytes:
        folder = our_folder(sockets)
        server = control_server.ControlServer(
            Controls(), folder, "t", lambda data: data.replace(b"own that run", b"[...]")
        )
        await server.start()
        reader, writer = await asyncio.open_unix_connection(str(server.socket_path))
        writer.write(as_line({"token": "t", "root": "/r"}))
        first = await reader.readline()
        writer.close()
        await server.close()
        return first

    assert b"does not [...]" in asyncio.run(go())


# -- runs that nobody can be asked about ---------------------------------------------------------


def test_a_run_that_has_ended_says_so(tmp_path: Path, sockets: Path) -> None:
    result = run_all(tmp_path, request())
    with pytest.raises(RunNotGoingOn, match="has ended: completed"):
        ask(result.requests[0].run_dir, "pause")


def a_killed_run(tmp_path: Path) -> Path:
    result: LaunchResult = run_all(tmp_path, request())
    root = result.requests[0].run_dir
    events = (root / "events.jsonl").read_bytes().split(b"\n")
    (root / "events.jsonl").write_bytes(b"\n".join(events[:-2]) + b"\n")
    return root


def test_a_run_that_died_says_how_to_go_on(tmp_path: Path, sockets: Path) -> None:
    root = a_killed_run(tmp_path)
    with pytest.raises(RunNotGoingOn, match="has died") as caught:
        ask(root, "status")
    assert f"--reuse {root.name}" in str(caught.value)


def test_a_run_that_was_copied_from_elsewhere_says_from_where(
    tmp_path: Path, sockets: Path
) -> None:
    root = a_killed_run(tmp_path)
    lock = json.loads((root / "lock").read_bytes())
    (root / "lock").write_text(json.dumps(lock | {"hostname": "another-host"}))
    with pytest.raises(RunNotGoingOn, match="started on another-host"):
        ask(root, "status")


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunUnreadable):
        ask(tmp_path, "status")


def a_held_run(tmp_path: Path, control: object) -> tuple[Path, RunLock]:
    """A run that looks alive, and says this of where its owner listens."""
    root = a_killed_run(tmp_path)
    (root / "progress.json").write_text(json.dumps({"control": control}))
    return root, RunLock.acquire(root / "lock")


def our_folder(sockets: Path) -> Path:
    folder = sockets / f"{FOLDER_PREFIX}test"
    folder.mkdir(mode=0o700)
    (folder / "token").write_text("t")
    return folder


@pytest.mark.parametrize("control", [None, 7, "nul\0byte"])
def test_a_run_that_does_not_say_where_it_listens(
    tmp_path: Path, sockets: Path, control: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_client, "_BEGINS_WITHIN_S", 0.1)
    root, lock = a_held_run(tmp_path, control)
    with pytest.raises(OwnerUnreachable, match="does not say where"):
        ask(root, "status")
    lock.release()


def test_a_path_that_is_not_ours_is_never_connected_to(tmp_path: Path, sockets: Path) -> None:
    elsewhere = sockets / "docker"
    elsewhere.mkdir()
    root, lock = a_held_run(tmp_path, str(elsewhere / "s"))
    with pytest.raises(OwnerUnreachable, match="no place where a launch listens"):
        ask(root, "status")
    folder = our_folder(sockets)
    folder.chmod(0o755)
    (root / "progress.json").write_text(json.dumps({"control": str(folder / "s")}))
    with pytest.raises(OwnerUnreachable, match="no place where a launch listens"):
        ask(root, "status")
    lock.release()


def test_a_socket_of_a_dead_process_is_named(tmp_path: Path, sockets: Path) -> None:
    folder = our_folder(sockets)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "s"))
    root, lock = a_held_run(tmp_path, str(folder / "s"))
    with pytest.raises(OwnerUnreachable, match="nobody listens"):
        ask(root, "status")
    lock.release()


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (b"hello\n", "makes no sense"),
        (b'{"ctl": 1, "ok": false}\n', "makes no sense"),
        (b'{"ctl": 9}\n', "version 1"),
        (b"half", "broke off"),
        (None, "did not answer within 0.3 s"),
    ],
    ids=["text", "no-error", "version", "half", "silence"],
)
def test_an_answer_that_is_none_is_an_error_and_no_traceback(
    tmp_path: Path, sockets: Path, reply: bytes | None, why: str
) -> None:
    folder = our_folder(sockets)
    root, lock = a_held_run(tmp_path, str(folder / "s"))

    async def go() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            if reply is None:
                await asyncio.sleep(1)
            else:
                writer.write(reply)
            writer.close()

        server = await asyncio.start_unix_server(serve, str(folder / "s"))
        with pytest.raises(OwnerUnreachable, match=why):
            await asyncio.to_thread(ask, root, "status", wait_s=0.3 if reply is None else 10)
        await asyncio.sleep(1 if reply is None else 0)
        server.close()

    asyncio.run(go())
    lock.release()


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_token_that_is_no_file_is_not_waited_for(
    tmp_path: Path, sockets: Path, kind: str
) -> None:
    folder = our_folder(sockets)
    root, lock = a_held_run(tmp_path, str(folder / "s"))
    token = folder / "token"
    token.unlink()
    if kind == "pipe":
        os.mkfifo(token)
    elif kind == "folder":
        token.mkdir()
    else:
        token.symlink_to(tmp_path / "orchestration.json")
    with pytest.raises(OwnerUnreachable, match="cannot be read"):
        ask(root, "status")
    lock.release()


# -- what dead processes leave behind -----------------------------------------------------------


def test_a_runtime_folder_with_a_long_path_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert talking(tmp_path, lambda root: len(str(address(root)))) <= 103
    assert list(long.iterdir()) == []


def test_a_launch_without_a_socket_runs_all_the_same(
    tmp_path: Path, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(prefix: str) -> Path:
        raise OSError("no room")

    monkeypatch.setattr(private_folders, "_base", none)
    assert run_all(tmp_path, request()).outcome == "completed"


def test_an_answer_to_a_launch_that_has_not_begun_is_an_error() -> None:
    reply = json.loads(answer(Controls(), b"{}\n", token="t", roots=()))
    assert reply["error"]["exit_status"] == BadInput.exit_status
    line = as_line({"token": "t", "root": "/r", "action": "status"})
    reply = json.loads(answer(Controls(), line, token="t", roots=(Path("/r"),)))
    assert "has not begun" in reply["error"]["message"]
    assert set(control_protocol.ACTIONS) == {
        "status", "pause", "resume", "drain", "cancel", "concurrency", "provider",
    }  # fmt: skip
