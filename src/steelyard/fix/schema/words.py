"""Kinds of text in the files of a fix run: names, paths, commands.

What is our own is refused here: a check, metric or variable of the user's that shadows it.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from steelyard.config.names import clash_key
from steelyard.config.validation import FieldFault

MAX_TEXT: Final = 4096
"""Characters of a text that is passed on: a directive, a reason, a hypothesis."""
MAX_INTEGER: Final = 2**63 - 1
"""What the ledger keeps as a whole number."""
OUR_FOLDERS: Final = (".git", ".steelyard", ".agentagon")

_METRIC: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@^/+-]{0,119}")
_CHECK: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,79}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_OUR_CHECKS: Final = re.compile(r"(benchmark|setup|subject|review|seal|result)([-_.].*)?")
_OUR_PREFIXES: Final = ("steelyard", "agentagon")
_OUR_VARIABLES: Final = frozenset({"HOME", "TMPDIR", "TMP", "TEMP", "PWD"})


def is_ours(name: str) -> bool:
    """True for a name that belongs to us or to the tool whose files we read, in any case."""
    return name.casefold().startswith(_OUR_PREFIXES)


def shadows_check(name: str) -> bool:
    """True for a check's id that one of the steps of a trial has already."""
    return is_ours(name) or _OUR_CHECKS.fullmatch(name.casefold()) is not None


def _not_blank(value: str) -> str:
    if not value.strip():
        raise FieldFault("blank text", remedy="write what it is")
    if "\x00" in value:
        raise FieldFault("the text holds a NUL character", remedy="take it out")
    return value


def _metric(value: str) -> str:
    if _METRIC.fullmatch(value) is None:
        raise FieldFault(
            f"{value!r} is no name of a metric or task",
            remedy="write letters, digits, `_ . @ ^ / + -`, starting with a letter, a digit "
            "or `_`, at most 120",
        )
    if is_ours(value):
        raise FieldFault(f"{value!r} shadows a name of ours", remedy="choose another")
    return value


def _check(value: str) -> str:
    if _CHECK.fullmatch(value) is None:
        raise FieldFault(
            f"{value!r} is no id of a check",
            remedy="write letters, digits, `_ . -`, starting with a letter, at most 80",
        )
    if shadows_check(value):
        raise FieldFault(f"the id {value!r} shadows a step of ours", remedy="choose another")
    return value


def _variable(value: str) -> str:
    # The value is not shown: who puts a secret where its name belongs should not see it printed.
    if _VARIABLE.fullmatch(value) is None:
        raise FieldFault(
            "not the name of a variable (letters, digits, `_`)",
            remedy="write the name of the variable that holds the value, never the value",
        )
    return value


def _target_variable(value: str) -> str:
    _variable(value)
    if is_ours(value) or value.upper() in _OUR_VARIABLES:
        raise FieldFault(
            f"the variable {value} is set by us in every trial", remedy="choose another name"
        )
    return value


def path_parts(path: str) -> tuple[str, ...]:
    """Give the components of a relative path, `.` left out; the whole tree has none."""
    return PurePosixPath(path).parts


def path_keys(path: str) -> tuple[str, ...]:
    """Give what two paths share where some file system takes them for one."""
    return tuple(clash_key(part) for part in path_parts(path))


def paths_meet(one: str, other: str) -> bool:
    """True where two paths are one, or one lies inside the other, case and Unicode form aside."""
    pairs = zip(path_keys(one), path_keys(other), strict=False)
    return all(a == b for a, b in pairs)


def _relative(value: str) -> str:
    _not_blank(value)
    if "\\" in value:
        raise FieldFault(f"{value!r} holds a backslash", remedy="separate folders by `/`")
    if value.startswith("/") or re.match(r"[A-Za-z]:", value):
        raise FieldFault(f"{value!r} is absolute", remedy="write it relative to the checkout")
    if ".." in value.split("/"):
        raise FieldFault(
            f"{value!r} holds `..`", remedy="write the path without leaving the checkout"
        )
    if ".git" in path_keys(value):
        raise FieldFault(
            f"{value!r} lies in Git's own folder", remedy="name files of the work tree"
        )
    return value


def _in_tree(value: str) -> str:
    _relative(value)
    if ours := next((part for part in OUR_FOLDERS if part in path_keys(value)), None):
        raise FieldFault(
            f"{value!r} lies in {ours}, which no trial has", remedy="choose another place"
        )
    return value


def _destination(value: str) -> str:
    _in_tree(value)
    if not path_parts(value) or value.endswith("/"):
        raise FieldFault(f"{value!r} is a folder", remedy="name the file")
    return value


Words = Annotated[str, AfterValidator(_not_blank)]
"""Text that is not blank."""
Said = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_not_blank)]
"""Text that is passed on to somebody; not blank."""
MetricName = Annotated[str, AfterValidator(_metric)]
CheckId = Annotated[str, AfterValidator(_check)]
VariableName = Annotated[str, AfterValidator(_variable)]
TargetVariable = Annotated[str, AfterValidator(_target_variable)]
RelativePath = Annotated[str, AfterValidator(_relative)]
"""Of the checkout; may lie in our own folders, as private inputs do."""
TreePath = Annotated[str, AfterValidator(_in_tree)]
"""Of a trial's tree; a file or folder."""
DestinationPath = Annotated[str, AfterValidator(_destination)]
"""Of a trial's tree; a file."""
Argv = Annotated[list[Words], Field(min_length=1)]
"""A command and its arguments; no shell."""
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Count = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86400)]
