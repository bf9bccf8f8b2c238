"""Make and empty the folders of a task inside a session, whoever its programs run as.

An image may have a user of its own, who may make nothing at the root and remove nothing from it:
then the provider makes what is missing, and a folder that cannot go is emptied instead.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode

_LIMIT_S: Final = 120.0
"""On a busy machine."""
_INSIDE: Final = 'mkdir -p -- "$1" && cd -- "$1" || exit 1; shift\n'
"""The working folder anew, where an agent has removed it."""
_MAKE: Final = f"""{_INSIDE}for path in "$@"; do
    if [ -L "$path" ] || {{ [ -e "$path" ] && [ ! -d "$path" ]; }}; then rm -f -- "$path"; fi
    mkdir -p -- "$path" && chmod 777 -- "$path" || exit 1
done
"""
_EMPTY: Final = f"""{_INSIDE}for path in "$@"; do
    rm -rf -- "$path" 2>/dev/null
    [ -e "$path" ] || [ -L "$path" ] || continue
    if [ -L "$path" ] || [ ! -d "$path" ] || [ "$(ls -A -- "$path")" ]; then
        echo "$path cannot be removed" >&2
        exit 1
    fi
done
"""


async def make_folders(session: Session, folders: Sequence[str], *, fault: IssueCode) -> None:
    """Make folders that everybody may write to, where they are missing.

    What an agent may have put there in a folder's place, a file or a link, is removed.

    Args:
        session: where.
        folders: absolute, or relative to the working folder.
        fault: what it is where they cannot be made.

    Raises:
        AttemptFault: with that code.
    """
    if await _run(session, _MAKE, folders) is None:
        return
    with tempfile.TemporaryDirectory(prefix="steelyard-") as nothing:
        for folder in folders:
            try:
                await session.upload(Path(nothing), folder)
            except ValueError as error:
                raise AttemptFault(fault, f"{folder} cannot be made: {error}") from error
    if (said := await _run(session, _MAKE, folders)) is not None:
        raise AttemptFault(fault, f"the folders {', '.join(folders)} cannot be made: {said}")


async def take_away(session: Session, paths: Sequence[str], *, fault: IssueCode) -> None:
    """Remove folders with all that is in them, whatever an agent may have put there.

    Raises:
        AttemptFault: with the code `fault`; something of it stays.
    """
    if (said := await _run(session, _EMPTY, paths)) is not None:
        raise AttemptFault(fault, f"{', '.join(paths)} cannot be taken away: {said}")


async def _run(session: Session, script: str, words: Sequence[str]) -> str | None:
    """Run a script; say what went wrong, None where nothing."""
    argv = ["/bin/sh", "-c", script, "sh", session.workdir, *words]
    done = await session.exec(argv, cwd="/", timeout_s=_LIMIT_S)
    if done.exit_code == 0:
        return None
    return done.stderr_text.strip()[-300:] or f"exit code {done.exit_code}"
