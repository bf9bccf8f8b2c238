"""Validators of the agent's working folder: `file_exists`, `file_content`, `file_tree`.

They read what was collected on this machine, by `collected.py`; no session is opened.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from steelyard.benchmarks.pack import paths
from steelyard.benchmarks.pack.bounded.json_checks import equals_expected
from steelyard.benchmarks.pack.collected import (
    Entry,
    NotThere,
    TreeTooLarge,
    entries_below,
    kind_of,
    matches_glob,
    opened,
    opened_file,
)
from steelyard.benchmarks.pack.matching import BadPattern, Matcher, is_found, matcher
from steelyard.benchmarks.pack.schema_validators.files import (
    FileContentSpec,
    FileExistsSpec,
    FileTreeSpec,
)
from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.timebox import HERE_CHARS, boxed
from steelyard.benchmarks.pack.validators.contract import (
    PASSED,
    Validator,
    Verdict,
    Work,
    rendered,
    value_of,
)
from steelyard.benchmarks.pack.validators.making import Making, PackPath
from steelyard.benchmarks.pack.validators.structured import JsonOfPack, json_of_pack
from steelyard.benchmarks.pack.validators.texts import normal, shown, texts_of
from steelyard.components.issues import AttemptFault, IssueCode

_CHUNK_BYTES: Final = 1024 * 1024
_SHOWN_PATHS: Final = 10
_CONTENTS: Final = ("equals", "contains", "regex", "sha256")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class FileValidator(Validator):
    """A validator of the working folder."""

    checks_cases: ClassVar[bool] = True

    def path_of(self, template: Template, fields: Mapping[str, Any]) -> str:
        """Give a path below the working folder.

        Raises:
            AttemptFault: TASK_INVALID where it leads out of it.
        """
        text = rendered(template, fields)
        if text in (".", "./"):
            return "."
        try:
            return "/".join(paths.relative_parts(text))
        except paths.PathProblem as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error


class FileExists(FileValidator):
    """A file or folder is there, or is not."""

    def __init__(
        self, name: str, spec: FileExistsSpec, path: Template | None, glob: Template | None
    ) -> None:
        super().__init__(name, spec)
        self._path, self._glob = path, glob
        self._absent, self._kind = spec.absent, spec.kind
        self._min_bytes, self._max_bytes = spec.min_bytes, spec.max_bytes
        if spec.min_bytes is not None or spec.max_bytes is not None:
            self._kind = "file"

    async def verdict(self, work: Work) -> Verdict:
        """Look for it."""
        what = self._wanted(work.fields)
        artifacts = work.context.artifacts
        if self._absent and "." not in artifacts:
            return Verdict(0.0, "the working folder could not be collected")
        try:
            said = await asyncio.to_thread(self._lacking, artifacts, what)
        except TreeTooLarge as error:
            return Verdict(0.0, str(error))
        if self._absent:
            return PASSED if said is not None else Verdict(0.0, f"{shown(what)} is there")
        return PASSED if said is None else Verdict(0.0, said)

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a path that leads out."""
        self._wanted(fields)
        return None

    def _wanted(self, fields: Mapping[str, Any]) -> str:
        template = self._path or self._glob
        if template is None:
            raise AttemptFault(IssueCode.TASK_INVALID, "the validator names no path")
        return self.path_of(template, fields)

    def _lacking(self, artifacts: Mapping[str, Path], what: str) -> str | None:
        """Say why nothing there is what is wanted; None where something is."""
        if self._path is not None:
            try:
                with opened(artifacts, what) as descriptor:
                    kind = kind_of(descriptor)
                    if kind == "other" or self._kind not in ("any", kind):
                        return f"{shown(what)} is not a {self._kind.replace('any', 'file')}"
                    return self._size_fault(what, _size(descriptor))
            except NotThere as error:
                return str(error)
        said = f"nothing matches {shown(what)}"
        try:
            for entry in entries_below(artifacts, "."):
                kind = "folder" if entry.is_folder else "other" if entry.link else "file"
                if self._kind not in ("any", kind) or not matches_glob(entry.relative, what):
                    continue
                fault = self._size_fault(entry.relative, entry.size)
                if fault is None:
                    return None
                said = fault
        except NotThere as error:
            return str(error)
        return said

    def _size_fault(self, what: str, size: int) -> str | None:
        if self._min_bytes is not None and size < self._min_bytes:
            return f"{shown(what)} has {size} bytes, fewer than {self._min_bytes}"
        if self._max_bytes is not None and size > self._max_bytes:
            return f"{shown(what)} has {size} bytes, more than {self._max_bytes}"
        return None


def _size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size


class FileContent(FileValidator):
    """The content of a file is as expected."""

    def __init__(
        self,
        name: str,
        spec: FileContentSpec,
        path: Template,
        expected: Sequence[Template],
        json: JsonOfPack | None,
        same_as: PackPath | None,
    ) -> None:
        super().__init__(name, spec)
        self._spec, self._path = spec, path
        self._expected, self._json, self._same_as = expected, json, same_as

    async def verdict(self, work: Work) -> Verdict:
        """Read the file, compare it."""
        path = self.path_of(self._path, work.fields)
        try:
            data = await asyncio.to_thread(self._read, work.context.artifacts, path)
        except NotThere as error:
            return Verdict(0.0, str(error))
        if data is None:
            return Verdict(0.0, f"{shown(path)} is larger than {self._spec.max_bytes} bytes")
        if self._spec.sha256 is not None:
            found, wanted = hashlib.sha256(data).hexdigest(), self._digest(work.fields)
            return PASSED if found == wanted else Verdict(0.0, f"its SHA-256 is {found}")
        if self._same_as is not None:
            same = data == self._same_as.file(work.fields).read_bytes()
            return PASSED if same else Verdict(0.0, f"{shown(path)} differs from the expected file")
        try:
            text = data.decode(self._spec.encoding)
        except UnicodeError:
            return Verdict(0.0, f"{shown(path)} is not {self._spec.encoding}")
        return await self._judge(text, work.fields)

    async def _judge(self, text: str, fields: Mapping[str, Any]) -> Verdict:
        spec = self._spec
        if self._json is not None:
            job = {"text": text, "find": "whole", "rules": {}, "partial": False}
            value, reason = await boxed(
                equals_expected,
                {**job, "expected": self._json.value(fields)},
                here=len(text) <= HERE_CHARS,
                what=f"the validator {self.name}",
            )
            return Verdict(value, reason)
        if spec.regex is not None:
            found = self._matcher(fields)
            if await is_found(found, text, full=False):
                return PASSED
            return Verdict(0.0, f"does not match {shown(found.compiled.pattern)}")
        if spec.equals is not None:
            wanted = rendered(self._expected[0], fields)
            own, other = (
                normal(one, trim=spec.trim, ignore_case=spec.ignore_case) for one in (text, wanted)
            )
            return PASSED if own == other else Verdict(0.0, f"expected {shown(wanted)}")
        own = text.casefold() if spec.ignore_case else text
        for one in texts_of(self._expected, fields):
            if (one.casefold() if spec.ignore_case else one) not in own:
                return Verdict(0.0, f"does not contain {shown(one)}")
        return PASSED

    def _read(self, artifacts: Mapping[str, Path], path: str) -> bytes | None:
        with opened_file(artifacts, path) as file:
            data = file.read(self._spec.max_bytes + 1)
        return data if len(data) <= self._spec.max_bytes else None

    def _digest(self, fields: Mapping[str, Any]) -> str:
        digest = rendered(self._expected[0], fields).strip().lower()
        if not _SHA256.fullmatch(digest):
            raise AttemptFault(
                IssueCode.TASK_INVALID, f"{shown(digest)} is no SHA-256: 64 hexadecimal digits"
            )
        return digest

    def _matcher(self, fields: Mapping[str, Any]) -> Matcher:
        flags = re.IGNORECASE if self._spec.ignore_case else 0
        try:
            return matcher(rendered(self._expected[0], fields), flags)
        except BadPattern as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a path that leads out, or an expected content that cannot be compared with."""
        if not self._path.is_constant:
            self.path_of(self._path, fields)
        return None if self._is_constant else self.content_fault_in(fields)

    @property
    def _is_constant(self) -> bool:
        templates = all(template.is_constant for template in self._expected)
        return templates and (self._json is None or self._json.is_constant)

    def content_fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find an expected content that cannot be compared with; may raise `AttemptFault`."""
        if self._json is not None:
            self._json.value(fields)
        if self._spec.sha256 is not None:
            self._digest(fields)
        if self._spec.regex is not None:
            self._matcher(fields)
        if self._spec.contains is not None and "" in texts_of(self._expected, fields):
            return "every file contains the empty text"
        return None


class FileTree(FileValidator):
    """A folder holds the expected files, and no others."""

    def __init__(
        self,
        name: str,
        spec: FileTreeSpec,
        path: Template,
        expected: PackPath | None,
        listing: Sequence[Template],
    ) -> None:
        super().__init__(name, spec)
        self.is_scalar = spec.partial
        self._spec, self._path = spec, path
        self._expected, self._listing = expected, listing

    async def verdict(self, work: Work) -> Verdict:
        """List both sides, compare what has the same path."""
        path = self.path_of(self._path, work.fields)
        listing = None if self._expected is not None else self._listed(work.fields)
        folder = self._expected.folder(work.fields) if self._expected is not None else None
        try:
            return await asyncio.to_thread(
                self._compare, work.context.artifacts, path, folder, listing
            )
        except (NotThere, TreeTooLarge) as error:
            return Verdict(0.0, str(error))

    def fault_in(self, fields: Mapping[str, Any]) -> str | None:
        """Find a path that leads out, an empty listing, a folder with nothing that counts."""
        self.path_of(self._path, fields)
        if self._expected is None:
            self._listed(fields)
            return None
        folder = self._expected.folder(fields)
        if not any(not self._is_ignored(one.relative) for one in paths.entries(folder)):
            return f"the folder {folder.name} holds nothing to compare with"
        return None

    def _listed(self, fields: Mapping[str, Any]) -> list[str]:
        """Give the paths of a listing; an empty one is of an empty folder."""
        names: list[Any] = [value_of(template, fields) for template in self._listing]
        if len(names) == 1 and isinstance(names[0], list | tuple):
            names = list(names[0])
        try:
            return ["/".join(paths.relative_parts(str(name))) for name in names]
        except paths.PathProblem as error:
            raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error

    def _is_ignored(self, relative: str) -> bool:
        return any(matches_glob(relative, pattern) for pattern in self._spec.ignore or ())

    def _compare(
        self,
        artifacts: Mapping[str, Path],
        path: str,
        folder: Path | None,
        listing: Sequence[str] | None,
    ) -> Verdict:
        found = {
            entry.relative: entry
            for entry in entries_below(artifacts, path)
            if not entry.is_folder and not self._is_ignored(entry.relative)
        }
        expected: dict[str, paths.Entry | None] = dict.fromkeys(listing or ())
        if folder is not None:
            expected = {
                entry.relative: entry
                for entry in paths.entries(folder)
                if not self._is_ignored(entry.relative)
            }
        missing = [name for name in expected if name not in found]
        extra = [name for name in found if name not in expected]
        different = [
            name
            for name, entry in expected.items()
            if entry is not None
            and name in found
            and not self._is_same(entry, found[name], artifacts, f"{path}/{name}")
        ]
        if self._spec.extra == "allow":
            extra = []
        if not (missing or extra or different):
            return PASSED
        reason = "; ".join(
            f"{word}: {_listed(names)}"
            for word, names in (("missing", missing), ("extra", extra), ("different", different))
            if names
        )
        if not self._spec.partial:
            return Verdict(0.0, reason)
        same = len(expected) - len(missing) - len(different)
        return Verdict(same / (len(expected) + len(extra)), reason)

    def _is_same(
        self, expected: paths.Entry, found: Entry, artifacts: Mapping[str, Path], path: str
    ) -> bool:
        if expected.link is not None or found.link is not None:
            return expected.link == found.link
        if self._spec.modes and expected.is_executable != found.is_executable:
            return False
        if expected.path.stat().st_size != found.size:
            return False
        try:
            with expected.path.open("rb") as one, opened_file(artifacts, path) as other:
                while True:
                    chunk = one.read(_CHUNK_BYTES)
                    if chunk != other.read(_CHUNK_BYTES):
                        return False
                    if not chunk:
                        return True
        except NotThere:
            return False


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_PATHS} more" if len(names) > _SHOWN_PATHS else ""
    return ", ".join(map(shown, sorted(names)[:_SHOWN_PATHS])) + more


def _checked_path(making: Making, template: Template | None, *field: str | int) -> None:
    """Keep the problem of a path that is the same in every case and leads out."""
    if template is None or not template.is_constant or template.source in (".", "./", ""):
        return
    try:
        paths.relative_parts(template.source)
    except paths.PathProblem as error:
        making.problem(str(error), *field)


def make_file_exists(making: Making, spec: FileExistsSpec) -> FileExists:
    """Make one."""
    path, glob = making.maybe(spec.path, "path"), making.maybe(spec.glob, "glob")
    _checked_path(making, path, "path")
    _checked_path(making, glob, "glob")
    return FileExists(making.name, spec, path, glob)


def make_file_content(making: Making, spec: FileContentSpec) -> FileContent:
    """Make one; what is the same in every case is looked at at once."""
    path = making.compiled(spec.path, "path")
    _checked_path(making, path, "path")
    expected: list[Template] = []
    for field in _CONTENTS:
        source = getattr(spec, field)
        if source is not None:
            expected = making.each(source, field)
    json = json_of_pack(making, spec.json_, "json") if "json_" in spec.model_fields_set else None
    same_as = making.path(spec.same_as, "same_as")
    made = FileContent(making.name, spec, path, expected, json, same_as)
    if expected and all(template.is_constant for template in expected):
        try:
            fault = made.content_fault_in({})
        except AttemptFault as error:
            fault = error.message
        if fault is not None:
            making.problem(fault, next(n for n in _CONTENTS if getattr(spec, n) is not None))
    return made


def make_file_tree(making: Making, spec: FileTreeSpec) -> FileTree:
    """Make one."""
    path = making.compiled(spec.path, "path")
    _checked_path(making, path, "path")
    expected = making.path(spec.expected, "expected")
    listing = [] if spec.listing is None else making.each(spec.listing, "listing")
    return FileTree(making.name, spec, path, expected, listing)
