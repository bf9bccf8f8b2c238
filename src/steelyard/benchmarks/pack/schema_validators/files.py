"""The schemas of validators that look at the agent's working folder."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, StringConstraints, model_validator

from steelyard.benchmarks.pack.schema_validators.base import (
    Pattern,
    Scalar,
    Text,
    ValidatorSpec,
)

_MAX_BYTES = 10 * 1024 * 1024
Sha256 = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


def _collected(path: str, field: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """Name what is read: all of the working folder where the path differs from case to case."""
    is_template = "{{" in path or "{%" in path
    return (("." if is_template else str(PurePosixPath(path)), (field,)),)


class FileExistsSpec(ValidatorSpec):
    """A file or folder is there, or is not."""

    type: Literal["file_exists"]
    path: Text | None = None
    """Below the working folder; a template."""
    glob: Text | None = None
    """A pattern that one path at least must match, as `out/**/*.csv`; a template."""
    absent: bool = False
    """It must not be there."""
    kind: Literal["any", "file", "folder"] = "any"
    min_bytes: NonNegativeInt | None = None
    max_bytes: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _names_something(self) -> FileExistsSpec:
        if (self.path is None) == (self.glob is None):
            raise ValueError("give one of path and glob")
        if self.kind == "folder" and (self.min_bytes is not None or self.max_bytes is not None):
            raise ValueError("a folder has no size: leave out min_bytes and max_bytes")
        return self

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the path; all of the working folder for a pattern."""
        if self.path is None:
            return ((".", ("glob",)),)
        # What could not be collected must not pass as absent, and `.` is always there.
        return ((".", ("path",)),) if self.absent else _collected(self.path, "path")


class FileContentSpec(ValidatorSpec):
    """The content of a file is as expected."""

    PACK_FILES: ClassVar[tuple[str, ...]] = ("same_as",)

    type: Literal["file_content"]
    path: Text
    """Below the working folder; a template."""
    equals: Scalar | None = None
    """A template."""
    contains: Annotated[list[Scalar], Field(min_length=1)] | Scalar | None = None
    """A text, or a list of which all must stand in it; templates."""
    regex: Pattern | None = None
    """Found in it; Python's syntax; a template."""
    json_: Annotated[Any, Field(alias="json")] = None
    """It is this JSON value, as `json_equals` compares."""
    sha256: Sha256 | None = None
    """Of its bytes, 64 hexadecimal digits; a template."""
    same_as: Text | None = None
    """A file of the pack with the same bytes; a template of a path."""
    encoding: Literal["utf-8", "utf-16", "latin-1", "ascii"] = "utf-8"
    trim: bool = True
    """Outer white space does not count for `equals`."""
    ignore_case: bool = False
    max_bytes: Annotated[PositiveInt, Field(le=_MAX_BYTES)] = _MAX_BYTES

    @model_validator(mode="after")
    def _compares_once(self) -> FileContentSpec:
        names = {"equals", "contains", "regex", "json_", "sha256", "same_as"}
        if len(names & self.model_fields_set) != 1:
            raise ValueError("give one of equals, contains, regex, json, sha256 and same_as")
        return self

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the file."""
        return _collected(self.path, "path")


class FileTreeSpec(ValidatorSpec):
    """A folder holds the expected files, and no others."""

    PACK_FOLDERS: ClassVar[tuple[str, ...]] = ("expected",)

    type: Literal["file_tree"]
    path: Text = "."
    """Below the working folder; a template."""
    expected: Text | None = None
    """A folder of the pack that it is compared with; a template of a path."""
    listing: list[Text] | Text | None = None
    """The paths of its files, whatever they hold; templates, or `{{ field }}` for a list."""
    ignore: list[Text] | None = None
    """Patterns of paths that do not count, as `**/*.log`."""
    extra: Literal["refuse", "allow"] = "refuse"
    """Whether there may be files that are not expected."""
    modes: bool = False
    """Whether a file is executable counts, too."""
    partial: bool = False
    """The value is the share of files that are as expected."""

    @model_validator(mode="after")
    def _has_one_expected(self) -> FileTreeSpec:
        if (self.expected is None) == (self.listing is None):
            raise ValueError("give one of expected and listing")
        if self.modes and self.expected is None:
            raise ValueError("a listing has no modes: compare with a folder")
        return self

    def collected(self) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
        """Give the folder."""
        return _collected(self.path, "path")
