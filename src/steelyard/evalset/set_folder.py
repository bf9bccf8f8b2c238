"""Make a set's folder and own it: folder, lock, `evalset.json`, in that order.

Each submission is a file of its own, written when it begins and once more when it ends: a process
that dies in between leaves one without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from steelyard.components.clock import Clock, utc_text
from steelyard.config.errors import BadInput
from steelyard.engine.events import RunOutcome
from steelyard.evalset.layout import SetFiles
from steelyard.evalset.set_document import SetDocument
from steelyard.evalset.set_reader import OpenedSet
from steelyard.evalset.submissions import Submission
from steelyard.results.files import (
    NO_FAULTS,
    Faults,
    WritePoint,
    make_new_folder,
    replace_atomically,
    sync_folder,
)
from steelyard.results.layout import ResultsNotWritable, RunIdInUse, default_run_ids
from steelyard.results.lines import redacted_json
from steelyard.results.lock import RunLock


class SetIsRunning(BadInput):
    """Another process runs the set."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            f"the set {root.name} is running now",
            remedy=f"`steelyard evalset watch {root.name}` follows it, "
            f"`steelyard evalset cancel {root.name}` ends it",
        )


Redact = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class OwnedSet:
    """A set that this process may run; let go of by `release`."""

    opened: OpenedSet
    lock: RunLock
    faults: Faults = NO_FAULTS
    redact: Redact | None = None

    def begin(
        self, kind: str, cells: Sequence[int], budget_usd: float | None, *, clock: Clock
    ) -> Submission:
        """Write that a submission begins, before anything of it does.

        Raises:
            StorageFailed: it could not be written; nothing must start.
        """
        number = len(self.opened.submissions()) + 1
        began = utc_text(clock.now())
        submission = Submission(number, kind, began, budget_usd, tuple(cells))
        self._write(submission)
        return submission

    def end(
        self,
        submission: Submission,
        outcome: RunOutcome,
        exit_status: int,
        reason: str | None,
        *,
        clock: Clock,
    ) -> Submission:
        """Write how a submission ended.

        Raises:
            StorageFailed: it could not be written: it will be taken for interrupted.
        """
        ended = replace(
            submission,
            outcome=outcome,
            exit_status=exit_status,
            ended_at=utc_text(clock.now()),
            reason=reason,
        )
        self._write(ended)
        return ended

    def replace_document(self, document: SetDocument) -> OwnedSet:
        """Write another `evalset.json`: the old one with cells added.

        Raises:
            StorageFailed: it could not be written; the old one stands.
        """
        _write_document(self.opened.files, document, self.faults, self.redact)
        return replace(self, opened=OpenedSet(self.opened.root))

    def release(self) -> None:
        """Let others run it."""
        self.lock.release()

    def _write(self, submission: Submission) -> None:
        folder = self.opened.files.submissions
        replace_atomically(
            folder / f"{submission.number:04d}.json",
            redacted_json(submission.as_json(), self.redact, orjson.OPT_INDENT_2) + b"\n",
            WritePoint.SUBMISSION_WRITTEN,
            WritePoint.SUBMISSION_RENAMED,
            self.faults,
            synced=WritePoint.SUBMISSION_SYNCED,
        )
        sync_folder(folder, self.faults)


def create_set(
    namespace: Path,
    document: SetDocument,
    *,
    set_id: str | None,
    clock: Clock,
    faults: Faults = NO_FAULTS,
    redact: Redact | None = None,
) -> OwnedSet:
    """Make the folder of a new set and own it.

    Args:
        namespace: the folder of all sets of the name.
        document: what the set is; `set_id` and `created_at` are put in here.
        set_id: the folder's name; from the time by default.
        clock: for the id and `created_at`.
        faults: what a test does to the writes.
        redact: applied to what is written.

    Raises:
        RunIdInUse: the explicit id is taken.
        ResultsNotWritable: the folder cannot be made.
        StorageFailed: `evalset.json` could not be written.
    """
    now = clock.now()
    root = _make_folder(namespace, set_id, clock, faults)
    files = SetFiles(root)
    try:
        lock = RunLock.acquire(files.lock, faults=faults)
    except OSError as error:
        raise ResultsNotWritable(root, str(error.strerror or error)) from error
    try:
        make_new_folder(files.submissions, faults)
        made = replace(document, set_id=root.name, created_at=utc_text(now))
        _write_document(files, made, faults, redact)
        return OwnedSet(OpenedSet(root), lock, faults, redact)
    except BaseException:
        lock.release()
        raise


def own_set(
    opened: OpenedSet, *, faults: Faults = NO_FAULTS, redact: Redact | None = None
) -> OwnedSet:
    """Take hold of a set that is there.

    Raises:
        SetIsRunning: another process has it.
        ResultsNotWritable: its lock cannot be taken.
    """
    try:
        lock = RunLock.try_acquire(opened.files.lock, faults=faults)
    except OSError as error:
        raise ResultsNotWritable(opened.root, str(error.strerror or error)) from error
    if lock is None:
        raise SetIsRunning(opened.root)
    try:
        return OwnedSet(OpenedSet(opened.root), lock, faults, redact)  # it may have changed
    except BaseException:
        lock.release()
        raise


def _make_folder(namespace: Path, set_id: str | None, clock: Clock, faults: Faults) -> Path:
    for name in default_run_ids(clock.now()) if set_id is None else (set_id,):
        root = namespace / name
        try:
            make_new_folder(root, faults)
        except FileExistsError as error:
            if not root.exists():
                raise ResultsNotWritable(Path(error.filename), "it is not a folder") from error
            if set_id is not None:
                raise RunIdInUse(root) from error
        except OSError as error:
            where = Path(error.filename or root)
            raise ResultsNotWritable(where, str(error.strerror or error)) from error
        else:
            return root
    raise AssertionError("ids never end")


def _write_document(
    files: SetFiles, document: SetDocument, faults: Faults, redact: Redact | None
) -> None:
    replace_atomically(
        files.document,
        redacted_json(document.as_json(), redact, orjson.OPT_INDENT_2) + b"\n",
        WritePoint.SET_DOCUMENT_WRITTEN,
        WritePoint.SET_DOCUMENT_RENAMED,
        faults,
        synced=WritePoint.SET_DOCUMENT_SYNCED,
    )
    sync_folder(files.root, faults)
