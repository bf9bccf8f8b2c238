"""What the schemas of all validators share: kinds of values, names, weights, what is looked at."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$", max_length=80)]
ValidatorName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Scalar = bool | int | float | str
"""Compared as its text; may be a template."""
Argv = Annotated[list[Text | int | float], Field(min_length=1)]
"""A program and its arguments; no shell."""
Weight = Annotated[float, Field(ge=0, le=1e6)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Strict(BaseModel):
    """Refuses unknown fields; never changes after it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OnFile(Strict):
    """A file of the working folder, as the agent left it."""

    file: Text


class ValidatorSpec(Strict):
    """What every validator has."""

    PACK_FOLDERS: ClassVar[tuple[str, ...]] = ()
    """Its fields that are templates of a folder of the pack, hidden from the agent."""
    PACK_FILES: ClassVar[tuple[str, ...]] = ()
    """Its fields that are templates of a file of the pack, hidden from the agent."""
    looks_at_work: ClassVar[bool] = False
    """True where it runs programs that may look at all of the working folder."""
    waits_for_others: ClassVar[bool] = False
    """True where it waits for what this machine does not hold, such as a model: no limit on the
    time for scoring can be told beforehand."""

    name: ValidatorName | None = None
    """Its metric is `validator.<name>`; the type by default, numbered where repeated."""
    weight: Weight = 1.0
    gate: bool = False
    """A failed gate makes the score 0."""

    def pack_path(self, field: str) -> str | None:
        """Give the path in one of the fields of `PACK_FOLDERS` and `PACK_FILES`."""
        path: str | None = getattr(self, field)
        return path

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the paths of the working folder that it reads, each with the field that says so.

        `.` is all of it.
        """
        return ()

    def reads_steps(self) -> bool:
        """Say whether it looks at what the agent did, beside what it answered and left."""
        return False

    def longest_s(self) -> float:
        """Give how long its programs may take, in seconds; 0 where it runs none."""
        return 0.0


class TextValidatorSpec(ValidatorSpec):
    """A validator that reads a text."""

    on: Literal["answer", "stdout", "trajectory"] | OnFile = "answer"
    """`stdout` is what the nearest `command` validator above it printed; `trajectory` is what the
    agent said, called and was given, as text."""

    def reads_steps(self) -> bool:
        """Say whether the text is the trajectory."""
        return self.on == "trajectory"

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the file that is read instead of the answer."""
        return ((self.on.file, ("on", "file")),) if isinstance(self.on, OnFile) else ()
