"""Validators that run programs in the scorer's environment: `command` and `code`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from steelyard.benchmarks.answers import python_code
from steelyard.benchmarks.code_runner import run_tests
from steelyard.benchmarks.pack.schema_validators.programs import CodeSpec, CommandSpec
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import (
    PASSED,
    Validator,
    Verdict,
    Work,
    rendered,
)
from steelyard.benchmarks.pack.validators.making import Making, PackPath
from steelyard.benchmarks.pack.validators.texts import shown
from steelyard.components.environment import ExecResult, Session
from steelyard.components.issues import AttemptFault, IssueCode

_MAX_OUTPUT_BYTES: Final = 1024 * 1024
_SHOWN_CHARS: Final = 1000
_NOT_FOUND: Final = 127


class Command(Validator):
    """A program's exit code, and perhaps its output, are the expected ones."""

    uses_session: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        spec: CommandSpec,
        run: Sequence[Template],
        files: PackPath | None,
        stdout: Template | None,
        stdout_contains: Template | None,
    ) -> None:
        super().__init__(name, spec)
        self._run, self._files = run, files
        self._stdout, self._stdout_contains = stdout, stdout_contains
        self._exit_code, self._timeout_s = spec.exit_code, spec.timeout_seconds

    async def verdict(self, work: Work) -> Verdict:
        """Lay the hidden files over the working folder, run the program, look at how it ended.

        Raises:
            AttemptFault: SCORER_CRASHED where the program is not in the environment.
        """
        session = await work.context.session()
        if self._files is not None:
            await session.upload(self._files.folder(work.fields), ".")
        argv = [rendered(part, work.fields) for part in self._run]
        result = await session.exec(
            argv,
            stdin=(work.answer or "").encode("utf-8", "replace"),
            timeout_s=self._timeout_s,
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )
        work.printed[self.name] = result.stdout_text
        if result.timed_out:
            return Verdict(0.0, f"did not end within {self._timeout_s:g} s")
        if result.exit_code == _NOT_FOUND:
            await _require_program(session, argv[0])
        if result.exit_code != self._exit_code:
            return Verdict(0.0, _ending(result))
        return self._judge_output(result.stdout_text, work.fields)

    def _judge_output(self, printed: str, fields: Mapping[str, Any]) -> Verdict:
        if self._stdout is not None:
            expected = rendered(self._stdout, fields)
            if printed.strip() != expected.strip():
                return Verdict(0.0, f"printed {shown(printed.strip())}, not {shown(expected)}")
        if self._stdout_contains is not None:
            expected = rendered(self._stdout_contains, fields)
            if expected not in printed:
                return Verdict(0.0, f"its output does not contain {shown(expected)}")
        return PASSED


async def _require_program(session: Session, name: str) -> None:
    """Tell a missing program from one that itself ended with 127: only the former is our fault.

    A program with a slash in its name is part of the work, so its absence is the agent's.
    """
    if "/" in name and not name.startswith("/"):
        return
    probe = await session.exec(["sh", "-c", 'command -v -- "$1"', "sh", name], timeout_s=30)
    if probe.exit_code != 0:
        raise AttemptFault(
            IssueCode.SCORER_CRASHED,
            f"there is no program {name!r} in the scorer's environment; use an environment or "
            "image that has it",
        )


def _ending(result: ExecResult) -> str:
    said = (result.stderr_text.strip() or result.stdout_text.strip())[-_SHOWN_CHARS:]
    return f"ended with exit code {result.exit_code}{': ' + said if said else ''}"


class Code(Validator):
    """The Python code in the answer passes given tests, as in HumanEval."""

    uses_session: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        spec: CodeSpec,
        tests: Template | None,
        tests_file: PackPath | None,
        entry_point: Template | None,
        before: Template,
    ) -> None:
        super().__init__(name, spec)
        self._tests, self._tests_file = tests, tests_file
        self._entry_point, self._before = entry_point, before
        self._timeout_s = spec.timeout_seconds

    async def verdict(self, work: Work) -> Verdict:
        """Run the code under the tests; no answer fails without running anything."""
        answer = work.answer
        if answer is None or not answer.strip():
            return Verdict(0.0, "no answer")
        entry_point = rendered(self._entry_point, work.fields) if self._entry_point else None
        code = python_code(answer, entry_point)
        before = rendered(self._before, work.fields)
        result = await run_tests(
            await work.context.session(),
            program=f"{before}\n{answer if code is None else code}\n" if before else code or answer,
            tests=self._tests_of(work.fields),
            entry_point=entry_point,
            timeout_s=self._timeout_s,
            calls_check=entry_point is not None,
        )
        return PASSED if result.passed else Verdict(0.0, result.detail)

    def _tests_of(self, fields: Mapping[str, Any]) -> str:
        if self._tests is not None:
            return rendered(self._tests, fields)
        if self._tests_file is None:
            raise AttemptFault(IssueCode.TASK_INVALID, "the validator has no tests")
        return self._tests_file.file(fields).read_text("utf-8")


def make_command(making: Making, spec: CommandSpec) -> Command:
    """Make one."""
    return Command(
        making.name,
        spec,
        making.each(spec.run, "run"),
        making.path(spec.files, "files"),
        making.maybe(spec.stdout, "stdout"),
        making.maybe(spec.stdout_contains, "stdout_contains"),
    )


def make_code(making: Making, spec: CodeSpec) -> Code:
    """Make one."""
    return Code(
        making.name,
        spec,
        making.maybe(spec.tests, "tests"),
        making.path(spec.tests_file, "tests_file"),
        making.maybe(spec.entry_point, "entry_point"),
        making.compiled(spec.before, "before"),
    )
