"""Run a task's tests in a session and read their verdict.

The tests come in only now, after the agent has ended; what it may have put in their place, or in
that of the verdict, goes first. How the script ends says nothing: the reward file says it all.
"""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steelyard.benchmarks.harbor.folder import TEST_SCRIPT, Part, TaskFolder
from steelyard.benchmarks.harbor.folders import make_folders, take_away
from steelyard.benchmarks.harbor.layout import Layout
from steelyard.benchmarks.harbor.needs import is_separate
from steelyard.benchmarks.harbor.reward import MAX_BYTES, NoReward, read_json, read_text
from steelyard.components.environment import ExecResult, NothingStarts, Session
from steelyard.components.issues import AttemptFault, IssueCode

_SHOWN_CHARS: Final = 1500
_OUTPUT_BYTES: Final = 1024 * 1024
_REMOVE_S: Final = 120.0
_RUN: Final = 'chmod +x "$1" 2>/dev/null; exec "$1"'


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the tests said."""

    rewards: dict[str, float]
    file: str
    """The reward file, as programs inside see it."""
    exit_code: int
    output: str
    """The end of what the tests printed; a hostile program's words as much as ours."""


async def verdict(
    session: Session,
    layout: Layout,
    tests: Sequence[Path],
    *,
    env: Mapping[str, str],
    excluded: Sequence[tuple[str, str]] = (),
) -> Verdict:
    """Run the tests and read what they left.

    Args:
        session: the agent's, once it has ended, or the verifier's own.
        layout: where things lie inside.
        tests: folders laid over one another; none where the session's image brings them.
        env: variables of the tests.
        excluded: folders, each with a pattern of what the tests are not to see in it.

    Raises:
        AttemptFault: SCORER_CRASHED where there is no verdict, naming the file.
        EnvironmentFault: the session is gone.
    """
    planted = (layout.tests, layout.verifier) if tests else (layout.verifier,)
    await take_away(session, planted, fault=IssueCode.SCORER_CRASHED)
    wanted = [layout.logs, layout.verifier, layout.artifacts]
    if above := posixpath.dirname(layout.logs).strip("/"):
        wanted.insert(0, above)
    await make_folders(session, wanted, fault=IssueCode.SCORER_CRASHED)
    for folder in tests:
        await session.upload(folder, layout.tests)
    if excluded:
        await _remove(session, excluded)
    script = posixpath.join(session.workdir, layout.tests, TEST_SCRIPT)
    done = await session.exec(
        ["/bin/sh", "-c", _RUN, "sh", script],
        env={**env, **layout.variables(session)},
        cwd=session.workdir,
        max_output_bytes=_OUTPUT_BYTES,
    )
    rewards, file = await _rewards(session, layout, done)
    return Verdict(rewards, file, done.exit_code, _shown(done))


@asynccontextmanager
async def left_usable(task: TaskFolder, part: Part) -> AsyncIterator[None]:
    """Tell an agent that has made its environment unusable from a provider that failed.

    Raises:
        AttemptFault: AGENT_FAILED: the tests share the agent's environment, and nothing can be
            started in it any more.
    """
    try:
        yield
    except NothingStarts as fault:
        if is_separate(task, part):
            raise
        raise AttemptFault(
            IssueCode.AGENT_FAILED,
            f"the agent left an environment in which no program starts: {fault}",
        ) from fault


async def _remove(session: Session, excluded: Sequence[tuple[str, str]]) -> None:
    for source, pattern in excluded:
        folder = source if source.startswith("/") else f"./{source}"  # never an option
        words = ["find", folder, "(", "-name", pattern, "-o", "-path", f"{folder}/{pattern}", ")"]
        await session.exec(
            [*words, "-prune", "-exec", "rm", "-rf", "--", "{}", "+"], timeout_s=_REMOVE_S
        )


async def _rewards(
    session: Session, layout: Layout, done: ExecResult
) -> tuple[dict[str, float], str]:
    for name, read in (("reward.json", read_json), ("reward.txt", read_text)):
        file = f"{layout.verifier}/{name}"
        try:
            data = await session.read_file(file, max_bytes=MAX_BYTES)
        except FileNotFoundError:
            continue
        except ValueError as error:
            raise _no_verdict(f"{file} cannot be read: {error}", done) from error
        try:
            return read(data), file
        except NoReward as error:
            raise _no_verdict(f"{file} {error}", done) from error
    raise _no_verdict(f"{layout.verifier}/reward.txt is missing (and no reward.json)", done)


def _no_verdict(what: str, done: ExecResult) -> AttemptFault:
    said = _shown(done)[-400:]
    how = f"; the tests ended with exit code {done.exit_code}"
    return AttemptFault(
        IssueCode.SCORER_CRASHED,
        f"the tests left no verdict: {what}{how}{f', saying: {said}' if said else ''}",
    )


def _shown(done: ExecResult) -> str:
    both = f"{done.stdout_text.strip()}\n{done.stderr_text.strip()}".strip()
    return both[-_SHOWN_CHARS:]
