"""The schemas of validators that run programs in the scorer's environment."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from steelyard.benchmarks.pack.schema_validators.base import (
    Argv,
    Scalar,
    Seconds,
    Text,
    ValidatorSpec,
)

FunctionName = Annotated[
    str, StringConstraints(pattern=r"^[^:{}]+\.py:[A-Za-z_][A-Za-z0-9_]*$", max_length=500)
]
"""`file.py:function`."""


class CommandSpec(ValidatorSpec):
    """A program's exit code, and perhaps its output, in the scorer's own environment."""

    PACK_FOLDERS: ClassVar[tuple[str, ...]] = ("files",)
    looks_at_work: ClassVar[bool] = True

    type: Literal["command"]
    run: Argv
    """Templates. The answer is the program's standard input."""
    files: Text | None = None
    """A folder laid over the working folder for scoring alone; a template of a path."""
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0
    stdout: Scalar | None = None
    """What it must print, outer white space aside; a template."""
    stdout_contains: Scalar | None = None
    """What must stand in its output; a template."""
    timeout_seconds: Seconds = 120.0

    def longest_s(self) -> float:
        """Give its timeout."""
        return self.timeout_seconds


class PythonSpec(ValidatorSpec):
    """A function of the pack, run in the scorer's own environment."""

    PACK_FILES: ClassVar[tuple[str, ...]] = ("run",)
    looks_at_work: ClassVar[bool] = True

    type: Literal["python"]
    run: FunctionName
    """`file.py:function`, the file one of the pack."""
    files: list[Text] | None = None
    """Paths of the working folder that the function is told of, where they are there."""
    timeout_seconds: Seconds = 60.0

    def pack_path(self, field: str) -> str | None:
        """Give the file without the function."""
        return self.run.rpartition(":")[0] if field == "run" else super().pack_path(field)

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the files that it is told of."""
        return tuple((text, ("files", n)) for n, text in enumerate(self.files or ()))

    def longest_s(self) -> float:
        """Give its timeout."""
        return self.timeout_seconds


class CodeSpec(ValidatorSpec):
    """The Python code in the answer passes given tests, as in HumanEval."""

    PACK_FILES: ClassVar[tuple[str, ...]] = ("tests_file",)

    type: Literal["code"]
    tests: Text | None = None
    """Python that defines `check(candidate)`, or statements that raise; a template."""
    tests_file: Text | None = None
    """The same in a file of the pack; a template of a path."""
    entry_point: Text | None = None
    """The function handed to `check`; a template. Without it the tests are statements."""
    before: str = ""
    """Code put before the answer's own; a template."""
    timeout_seconds: Seconds = 10.0

    @model_validator(mode="after")
    def _has_tests(self) -> CodeSpec:
        if (self.tests is None) == (self.tests_file is None):
            raise ValueError("give one of tests and tests_file")
        return self

    def longest_s(self) -> float:
        """Give its timeout."""
        return self.timeout_seconds
