"""One shell over many programs: folder and exported variables go from command to command.

A session runs programs to their end, so no shell can wait between two commands. What of a shell
lasts is carried instead: each command starts where the last one ended and tells, on a stream of
its own, where that is. It lies nowhere in the environment, and needs nothing there but `sh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steelyard.components.environment import Session

MAX_STATE_BYTES: Final = 100_000
"""Of exported variables; more than an argument may hold is not carried."""
_MARK: Final = "steelyard-shell-state"

# $1: folder, $2: exported variables as `export -p` wrote them; the command comes by stdin, which
# has no bound. Descriptor 3 is stderr, where nothing but the state is written.
_SCRIPT: Final = f"""
exec 3>&2 2>&1
[ -z "$2" ] || eval "$2" 2>/dev/null
cd -- "$1" 2>/dev/null || {{ cd / && echo "(the folder $1 is gone; this is /)"; }}
__steelyard_end() {{
  set +x +v
  {{ printf '%s\\n' {_MARK}; pwd; export -p; }} >&3 2>/dev/null
}}
trap __steelyard_end EXIT
__steelyard_command=$(cat)
exec </dev/null
eval "$__steelyard_command"
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one command."""

    output: str
    """Both streams as they came, with U+FFFD for what is not UTF-8; its middle may be left out."""
    exit_code: int
    timed_out: bool
    duration_s: float
    stopped_by: str | None = None


class Shell:
    """A shell of one session. Not for two commands at once."""

    def __init__(self, session: Session, *, program: str, shown_chars: int) -> None:
        self._session = session
        self._program = program
        self._shown_chars = shown_chars
        self._exported = ""
        self.folder = session.workdir

    async def run(self, command: str, *, timeout_s: float | None) -> Ran:
        """Run a command to its end, with all that it started.

        Raises:
            EnvironmentFault: the session is gone.
        """
        ended = await self._session.exec(
            [self._program, "-c", _SCRIPT, self._program, self.folder, self._exported],
            stdin=command.encode("utf-8", "replace"),
            timeout_s=timeout_s,
        )
        self._take(ended.stderr)
        return Ran(
            shown(ended.stdout_text, self._shown_chars, was_cut=ended.truncated),
            ended.exit_code,
            ended.timed_out,
            ended.duration_s,
            ended.stopped_by,
        )

    def _take(self, told: bytes) -> None:
        """Take what the command told of itself; where it told nothing, the shell is as before."""
        _, mark, state = told.decode("utf-8", "replace").rpartition(f"{_MARK}\n")
        folder, _, exported = state.partition("\n")
        if not mark or not folder.startswith("/"):
            return
        self.folder = folder
        if len(exported.encode()) <= MAX_STATE_BYTES:
            self._exported = exported


async def find_shell(session: Session, wanted: str) -> str | None:
    """Give the shell's name; None where the environment has none."""
    for program in ("bash", "sh") if wanted == "auto" else (wanted,):
        if (await session.exec([program, "-c", ":"], timeout_s=30)).exit_code == 0:
            return program
    return None


def shown(text: str, most_chars: int, *, was_cut: bool = False) -> str:
    """Shorten an output to its beginning and its end."""
    if len(text) <= most_chars and not was_cut:
        return text
    half = most_chars // 2
    left_out = max(0, len(text) - 2 * half)
    more = " and more" if was_cut else ""
    if not left_out:
        return f"{text}\n[… the rest is left out …]"
    return f"{text[:half]}\n[… {left_out} characters{more} left out …]\n{text[-half:]}"


def as_observation(command: str, ran: Ran, timeout_s: float | None) -> str:
    """Say to the model what came of its command."""
    if ran.timed_out:
        fate = f"[ended: it took longer than {timeout_s:g} s]"
    elif ran.stopped_by is not None:
        fate = f"[ended: it passed the environment's {ran.stopped_by} limit]"
    elif ran.exit_code < 0:
        fate = f"[ended by signal {-ran.exit_code}]"
    else:
        fate = f"[exit code {ran.exit_code}]"
    output = ran.output if ran.output.strip() else "(no output)"
    return f"{output.rstrip()}\n{fate}" if command.strip() else "[no command was given]"
