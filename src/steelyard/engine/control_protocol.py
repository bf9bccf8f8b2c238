"""What `steelyard ctl` and a running launch say to each other. Pure: texts in, texts out.

JSON lines. A request: `{"ctl": 1, "token": …, "root": RUN_DIRECTORY, "action": …, "by": …}`, with
`value` and `provider` where the action takes them. An answer: `{"ctl": 1, "ok": true, "changed":
…, "status": {…}}`, or `{"ctl": 1, "ok": false, "error": {"exit_status", "message", "remedy"}}`.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from steelyard.components.private_folders import SOCKET_NAME as SOCKET_NAME
from steelyard.config.errors import BadInput, SteelyardError
from steelyard.engine.control import Controls

VERSION: Final = 1
MAX_REQUEST_BYTES: Final = 8 * 1024
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
MAX_BY_CHARS: Final = 120

FOLDER_PREFIX: Final = "steelyard-ctl-"
TOKEN_NAME: Final = "token"  # noqa: S105 — the name of a file


class BadRequest(BadInput):
    """What came over the socket is no request of ours."""


def as_line(message: Mapping[str, Any]) -> bytes:
    """Write a message as one line."""
    return json.dumps({"ctl": VERSION, **message}, ensure_ascii=True).encode() + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """Read a message.

    Raises:
        BadRequest: it is no JSON object, or of another version.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest("this is not JSON") from error
    if not isinstance(message, dict):
        raise BadRequest("this is not a JSON object")
    version = message.get("ctl")
    if version != VERSION or isinstance(version, bool):
        raise BadRequest(
            f"version {VERSION} is spoken here, not {str(version)[:20]}",
            remedy="use the steelyard that runs the launch",
        )
    return message


def answer(controls: Controls, line: bytes, *, token: str, roots: Sequence[Path]) -> bytes:
    """Do what a request asks and say what came of it; never raises. `act`, then `reply`."""
    return reply(controls, act(controls, line, token=token, roots=roots))


def act(
    controls: Controls, line: bytes, *, token: str, roots: Sequence[Path]
) -> bool | SteelyardError | None:
    """Do what a request asks; give whether it changed anything, or why it was refused.

    Args:
        controls: of the launch.
        line: the request.
        token: what it must show.
        roots: the run directories of the launch.
    """
    try:
        message = from_line(line)
        shown = message.get("token")
        if not isinstance(shown, str) or not hmac.compare_digest(shown.encode(), token.encode()):
            raise BadRequest("the token is not this launch's")
        if not any(message.get("root") == str(root) for root in roots):
            raise BadRequest("this process does not own that run")
        action = ACTIONS.get(str(message.get("action")))
        if action is None:
            raise BadRequest("no such action", remedy=f"actions: {', '.join(ACTIONS)}")
        return action(controls, message)
    except SteelyardError as error:
        return error


def reply(controls: Controls, changed: bool | SteelyardError | None) -> bytes:
    """Say what came of a request, and where the launch stands now; never raises."""
    try:
        if isinstance(changed, SteelyardError):
            raise changed
        return as_line({"ok": True, "changed": changed, "status": controls.status().as_json()})
    except SteelyardError as error:
        problem = error.problems[0]
        said = {"message": problem.message, "remedy": problem.remedy}
        return as_line({"ok": False, "error": {"exit_status": error.exit_status, **said}})


def _by(message: Mapping[str, Any]) -> str:
    by = message.get("by")
    return " ".join(by.split())[:MAX_BY_CHARS] if isinstance(by, str) and by.strip() else "ctl"


def _number(message: Mapping[str, Any]) -> int:
    value = message.get("value")
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest("`value` must be a whole number")
    return value


def _status(controls: Controls, message: Mapping[str, Any]) -> None:
    controls.status()


def _pause(controls: Controls, message: Mapping[str, Any]) -> bool:
    return controls.pause(by=_by(message))


def _resume(controls: Controls, message: Mapping[str, Any]) -> bool:
    return controls.resume(by=_by(message))


def _drain(controls: Controls, message: Mapping[str, Any]) -> bool:
    return controls.drain(by=_by(message))


def _cancel(controls: Controls, message: Mapping[str, Any]) -> bool:
    controls.cancel(by=_by(message))
    return True


def _concurrency(controls: Controls, message: Mapping[str, Any]) -> bool:
    return controls.set_concurrency(_number(message), by=_by(message))


def _provider(controls: Controls, message: Mapping[str, Any]) -> bool:
    return controls.set_provider_limit(
        str(message.get("provider")), _number(message), by=_by(message)
    )


ACTIONS: Final[Mapping[str, Callable[[Controls, Mapping[str, Any]], bool | None]]] = (
    MappingProxyType(
        {
            "status": _status,
            "pause": _pause,
            "resume": _resume,
            "drain": _drain,
            "cancel": _cancel,
            "concurrency": _concurrency,
            "provider": _provider,
        }
    )
)
"""What may be asked; each says whether it changed anything."""
