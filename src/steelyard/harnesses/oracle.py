"""The ceiling: plays each task's reference. A task that it fails cannot be passed by anyone."""

from __future__ import annotations

from typing import ClassVar

from steelyard.components.benchmark import Reference
from steelyard.components.harness import (
    Harness,
    HarnessContext,
    HarnessResult,
    HarnessTraits,
    Step,
)
from steelyard.components.issues import AttemptFault, IssueCode

_SHOWN_BYTES = 2000


class Oracle(Harness):
    """Gives the reference's answer, lays its files over the working folder, runs its command.

    Tool calls of a reference are noted in the trajectory as if they had been made.

    The reference comes from the benchmark, so its command is as trusted as the benchmark: it
    runs in the agent's environment like anything else there.
    """

    id: ClassVar[str] = "oracle"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=False, needs_reference=True)

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Play the reference; a task without one, or whose command fails, is invalid."""
        reference = context.reference
        if reference is None:
            raise AttemptFault(
                IssueCode.TASK_INVALID,
                f"the task {context.task_id!r} has no reference to play",
            )
        if reference.files is not None:
            session = await context.session()
            await session.upload(reference.files, reference.files_into)
        if reference.command is not None:
            await self._run_command(context, reference)
        if reference.tool_calls:
            context.step(Step("agent", "", tool_calls=reference.tool_calls))
        if reference.answer is not None:
            context.step(Step("agent", reference.answer))
        return HarnessResult(reference.answer)

    async def _run_command(self, context: HarnessContext, reference: Reference) -> None:
        session = await context.session()
        command = reference.command or ()
        result = await session.exec(command, env=reference.env, cwd=session.workdir)
        output = result.stdout_text[-_SHOWN_BYTES:] + result.stderr_text[-_SHOWN_BYTES:]
        context.step(Step("agent", f"$ {' '.join(command)}\n{output}"))
        if result.exit_code != 0:
            raise AttemptFault(
                IssueCode.TASK_INVALID,
                f"the reference's command of the task {context.task_id!r} ended with exit code "
                f"{result.exit_code}: {output.strip()}",
            )
