"""What goes wrong with what people hand us, said so that they can mend it.

    SteelyardError            carries an exit status
    ├── BadInput              one or many problems, each with a place and a remedy (exit 2)
    └── Fault                 the machine or the product failed (exit 1)

Modules raise subclasses that name their own kind of fault; the command line prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, an option, or a field path."""

    file: str | None = None
    line: int | None = None
    """Counted from 1."""
    column: int | None = None
    """Counted from 1."""
    field: str | None = None
    """The path of the field, as in `requests[0].model.id`."""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return " ".join(part for part in (place, self.field) if part)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where, and what would be right."""

    message: str
    where: Where = Where()
    remedy: str | None = None
    extra: str | None = None
    """The optional dependency of our own package whose absence is the cause."""
    program: str | None = None
    """The harness whose program can be installed and is not, where that is the cause."""

    def __str__(self) -> str:
        place = str(self.where)
        head = f"{place}: {self.message}" if place else self.message
        return f"{head}\n  {self.remedy}" if self.remedy else head


class SteelyardError(Exception):
    """Any failure that a person should see as a short block, without a traceback."""

    exit_status: ClassVar[int] = 1

    def __init__(
        self, message: str, *, where: Where | None = None, remedy: str | None = None
    ) -> None:
        self.problems: tuple[Problem, ...] = (Problem(message, where or Where(), remedy),)
        super().__init__(str(self.problems[0]))


class BadInput(SteelyardError):
    """What a dry run could have seen: nothing was created, nothing was spent."""

    exit_status = 2

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> BadInput:
        """Make one error of many problems, in the order of their places."""
        error = cls.__new__(cls)
        error.problems = tuple(problems)
        Exception.__init__(error, "\n".join(str(problem) for problem in problems))
        return error


class Fault(SteelyardError):
    """The machine, or the product, could not do what was asked."""
