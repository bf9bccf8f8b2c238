"""Ask a running launch something: finds it from a run directory, blocking, never for long."""

from __future__ import annotations

import getpass
import os
import socket
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.config.errors import BadInput, Fault, Problem
from steelyard.engine import control_protocol as protocol
from steelyard.engine.control_server import peer_uid
from steelyard.results.documents import read_run_document
from steelyard.results.layout import RunFiles
from steelyard.results.lock import OwnerIdentity, is_alive, read_owner
from steelyard.results.plain_files import MAX_DOCUMENT_BYTES, read_plain
from steelyard.results.reader import RunReader, RunState

WAIT_S: Final = 10.0
"""For an answer. The launch's event loop may be busy, never for so long."""
_BEGINS_WITHIN_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.05


class RunNotGoingOn(BadInput):
    """The run has ended, or its process died: nobody is there to be asked."""


class OwnerUnreachable(Fault):
    """The run goes on, but its process cannot be reached, or answers nothing of sense."""

    def __init__(self, root: Path, reason: str, remedy: str | None = None) -> None:
        super().__init__(f"{root}: {reason}", remedy=remedy)


class Refused(Fault):
    """The launch understood, and said no."""


def ask(
    root: Path,
    action: str,
    *,
    value: int | None = None,
    provider: str | None = None,
    wait_s: float = WAIT_S,
) -> dict[str, Any]:
    """Have the launch that owns a run do something; give its answer.

    Args:
        root: the run directory.
        action: one of `control_protocol.ACTIONS`.
        value: of `concurrency` and `provider`.
        provider: of `provider`.
        wait_s: how long an answer may take, in seconds.

    Returns:
        `changed` (None for `status`) and `status`, the form of `LaunchStatus.as_json`.

    Raises:
        RunUnreadable: there is no run.
        RunNotGoingOn: nobody runs it.
        OwnerUnreachable: it cannot be asked.
        BadInput: the launch found the request senseless.
        Refused: it could not do it.
    """
    read_run_document(root)
    _check_is_alive(root)
    address = _address(root)
    request: dict[str, Any] = {
        "token": _token(root, address.parent),
        "root": str(root.resolve()),
        "action": action,
        "by": _who(),
    }
    if value is not None:
        request["value"] = value
    if provider is not None:
        request["provider"] = provider
    reply = _reply(root, _exchange(root, address, protocol.as_line(request), wait_s))
    if reply.get("ok") is True and isinstance(reply.get("status"), dict):
        return {"changed": reply.get("changed"), "status": reply["status"]}
    error = reply.get("error")
    if not isinstance(error, dict):
        raise OwnerUnreachable(root, "the answer of its process makes no sense")
    message, remedy = str(error.get("message")), error.get("remedy")
    remedy = remedy if isinstance(remedy, str) else None
    if error.get("exit_status") == BadInput.exit_status:
        raise BadInput.of((Problem(message, remedy=remedy),))
    raise Refused(message, remedy=remedy)


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # an id without a name
        user = str(os.getuid())
    return f"ctl of {user}, process {os.getpid()}"


def _check_is_alive(root: Path) -> None:
    if is_alive(RunFiles(root).lock):
        return
    reader = RunReader(root)
    if reader.state is RunState.FINISHED and reader.finished is not None:
        how = f"has ended: {reader.finished.get('outcome')}"
        remedy = f"`steelyard summary {root}` shows what came of it"
    else:
        owner = read_owner(RunFiles(root).lock)
        here = OwnerIdentity.of_this_process()
        if owner is not None and owner.hostname != here.hostname:
            how = f"does not go on here; it was started on {owner.hostname}"
            remedy = f"run ctl there; if it died, launch it again with `--reuse {root.name}`"
        else:
            how = "has died: nobody runs it any more"
            remedy = f"launch it again with `--reuse {root.name}`: what is recorded is kept"
    raise RunNotGoingOn(f"{root}: the run {how}", remedy=remedy)


def _address(root: Path) -> Path:
    """Read where the owner listens; a run that has just begun may not have written it yet."""
    deadline_s = time.monotonic() + _BEGINS_WITHIN_S
    while True:
        found = _written_address(RunFiles(root).progress)
        if found is not None:
            return _trusted(root, found)
        if time.monotonic() >= deadline_s:
            raise OwnerUnreachable(
                root,
                "the run goes on, but does not say where it can be reached",
                "its log says why; signals still reach its process",
            )
        time.sleep(_LOOK_AGAIN_S)


def _written_address(progress: Path) -> Path | None:
    try:
        document = orjson.loads(read_plain(progress, MAX_DOCUMENT_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return None
    control = document.get("control") if isinstance(document, Mapping) else None
    return Path(control) if isinstance(control, str) and "\0" not in control else None


def _trusted(root: Path, address: Path) -> Path:
    """Make sure that the path leads to a socket of ours: a run directory may come from anybody."""
    folder = address.parent
    try:
        info = folder.lstat()
    except OSError as error:
        remedy = "it may have ended a moment ago; or it runs in another container or machine"
        reason = f"its process cannot be reached at {folder}: {error.strerror}"
        raise OwnerUnreachable(root, reason, remedy) from error
    is_ours = (
        address.is_absolute()
        and address.name == protocol.SOCKET_NAME
        and folder.name.startswith(protocol.FOLDER_PREFIX)
        and stat.S_ISDIR(info.st_mode)
        and stat.S_IMODE(info.st_mode) & 0o077 == 0
    )
    if not is_ours:
        raise OwnerUnreachable(root, f"{address} is no place where a launch listens")
    if os.geteuid() not in (info.st_uid, 0):
        raise OwnerUnreachable(
            root, "another user runs it", "only the user who runs it, and root, may steer it"
        )
    return address


def _token(root: Path, folder: Path) -> str:
    try:
        # Root asks for runs of others, whose folder may hold anything: a pipe would never end.
        how = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(folder / protocol.TOKEN_NAME, how)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{protocol.TOKEN_NAME} is no file")
            return file.read(1024).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise OwnerUnreachable(root, f"the token of its process cannot be read: {error}") from error


def _exchange(root: Path, address: Path, line: bytes, wait_s: float) -> bytes:
    deadline_s = time.monotonic() + wait_s
    found = bytearray()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(wait_s)
            connection.connect(str(address))
            owner = peer_uid(connection)
            if owner is not None and owner != address.parent.stat().st_uid:
                raise OwnerUnreachable(root, "somebody else listens where its process should")
            connection.sendall(line)
            while not found.endswith(b"\n"):
                connection.settimeout(max(0.001, deadline_s - time.monotonic()))
                piece = connection.recv(64 * 1024)
                found += piece
                if not piece or len(found) > protocol.MAX_ANSWER_BYTES:
                    break
    except TimeoutError as error:
        raise OwnerUnreachable(
            root,
            f"its process did not answer within {wait_s:g} s",
            "it may be stopped or very busy; try again",
        ) from error
    except ConnectionError as error:
        raise OwnerUnreachable(
            root, f"nobody listens at {address}: {error.strerror}", "it may have ended a moment ago"
        ) from error
    except OSError as error:
        raise OwnerUnreachable(
            root, f"its process cannot be reached: {error.strerror or error}"
        ) from error
    return bytes(found)


def _reply(root: Path, line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise OwnerUnreachable(
            root, "its process broke off", "it may be ending, or have too many callers; try again"
        )
    try:
        return protocol.from_line(line)
    except protocol.BadRequest as error:
        reason = f"the answer of its process makes no sense: {error.problems[0].message}"
        raise OwnerUnreachable(root, reason, "use the steelyard that runs the launch") from error
