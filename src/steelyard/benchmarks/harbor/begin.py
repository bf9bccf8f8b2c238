"""What is put into the agent's environment before it starts, and before each of its steps."""

from __future__ import annotations

from typing import Final

from steelyard.benchmarks.harbor.folder import SETUP_SCRIPT, Part
from steelyard.benchmarks.harbor.folders import make_folders, take_away
from steelyard.benchmarks.harbor.layout import Layout
from steelyard.benchmarks.harbor.load import LoadedTask
from steelyard.benchmarks.harbor.ready import wait_until_healthy
from steelyard.components.environment import Session
from steelyard.components.issues import AttemptFault, IssueCode

_SETUP_S: Final = 600.0
_SHOWN_CHARS: Final = 500


async def begin_task(session: Session, layout: Layout, loaded: LoadedTask) -> None:
    """Make the folders that agents write to, bring what an image would, wait until all is ready.

    Raises:
        AttemptFault: it does not become ready.
    """
    if loaded.plain is not None:
        for copy in loaded.plain.copies:
            await session.upload(copy.source, copy.target)
    await _make_folders(session, layout)
    check = loaded.folder.table.environment.healthcheck
    if check is not None:
        await wait_until_healthy(session, check)


async def begin_step(session: Session, layout: Layout, part: Part) -> None:
    """Take away what the verification before left, bring the step's files, run its setup.

    Raises:
        AttemptFault: its setup fails, or it does not become ready.
    """
    await take_away(session, (layout.tests, layout.verifier), fault=IssueCode.TASK_INVALID)
    await _make_folders(session, layout)
    if part.files is not None:
        await session.upload(part.files, ".")
        if (part.files / SETUP_SCRIPT).is_file():
            await _set_up(session, part)
    if part.step is not None and part.step.healthcheck is not None:
        await wait_until_healthy(session, part.step.healthcheck)


async def _make_folders(session: Session, layout: Layout) -> None:
    folders = (layout.logs, f"{layout.logs}/agent", layout.verifier, layout.artifacts)
    await make_folders(session, folders, fault=IssueCode.TASK_INVALID)


async def _set_up(session: Session, part: Part) -> None:
    done = await session.exec(
        ["bash", f"./{SETUP_SCRIPT}"], cwd=session.workdir, timeout_s=_SETUP_S
    )
    if done.exit_code != 0:
        said = (done.stderr_text.strip() or done.stdout_text.strip())[-_SHOWN_CHARS:]
        ended = "took too long" if done.timed_out else f"ended with exit code {done.exit_code}"
        raise AttemptFault(
            IssueCode.TASK_INVALID,
            f"{SETUP_SCRIPT} of the step {part.name!r} {ended}{f': {said}' if said else ''}",
        )
