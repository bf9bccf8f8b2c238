"""Append to a set's findings: several processes may, one after the other, and nothing twice."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from steelyard.components.clock import Clock, utc_text
from steelyard.components.scanner import Finding
from steelyard.config.errors import BadInput, Fault
from steelyard.evalset.finding_values import (
    ID_DIGITS,
    KeptFinding,
    Scan,
    TriageEvent,
    TriageState,
)
from steelyard.evalset.findings import FindingLog
from steelyard.evalset.layout import SetFiles
from steelyard.results.files import (
    NO_FAULTS,
    AppendFile,
    Faults,
    StorageFailed,
    WritePoint,
    replace_atomically,
    sync_folder,
)
from steelyard.results.lines import Damage, DamageKind, encode
from steelyard.results.lock import RunLock
from steelyard.results.plain_files import MAX_KEPT_FILE_BYTES, open_plain

LOCK_WAIT_S: Final = 30.0
MAX_EVIDENCE_CHARS: Final = 4_000
MAX_MESSAGE_CHARS: Final = 1_000
_PAUSE_S: Final = 0.05


class FindingsBusy(Fault):
    """Another process holds the findings for longer than an append takes."""


class NewerFindings(BadInput):
    """A newer version has written to the files: this one must not go on with them."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What scanners gave for an attempt, before it is kept."""

    scan: Scan
    matrix_key: str
    run: str
    findings: tuple[tuple[str, Finding], ...] = ()
    """With the scanner of each."""


class FindingStore:
    """The findings of a set, for those who add to them."""

    def __init__(
        self,
        files: SetFiles,
        *,
        clock: Clock,
        redact: Callable[[str], str] = str,
        faults: Faults = NO_FAULTS,
    ) -> None:
        """Read what there is.

        Args:
            files: of the set.
            clock: for the moments that are written.
            redact: hides secrets by value, in all that is written.
            faults: what a test does to the writes.
        """
        self.log = FindingLog(files)
        self._files = files
        self._clock = clock
        self._redact = redact
        self._faults = faults

    def add(self, scanned: Sequence[Scanned]) -> list[KeptFinding]:
        """Keep what scanners gave; what is known already is not written again.

        Findings are on the disk before it is written that the attempt was read: after a crash in
        between, it is read again and finds the same.

        Returns:
            The findings that are new.

        Raises:
            StorageFailed: a file could not be written; what was written before is kept.
            FindingsBusy: another process does not let go of them.
        """
        if not scanned:
            return []
        at = utc_text(self._clock.now())
        kept = [[self._kept(one, *found, at) for found in one.findings] for one in scanned]
        with self._held():
            new: dict[str, KeptFinding] = {}
            for finding in (finding for found in kept for finding in found):
                if finding.id not in self.log.findings:
                    new.setdefault(finding.id, finding)
            self._append(False, [self._line(finding.as_json()) for finding in new.values()])
            scans = [
                replace(
                    one.scan,
                    found=tuple(dict.fromkeys(finding.id for finding in found)),
                    at=at,
                )
                for one, found in zip(scanned, kept, strict=True)
            ]
            self._append(True, [self._line(scan.as_json()) for scan in scans])
            self.log.read_on()
        return list(new.values())

    def judge(self, prefix: str, state: TriageState, *, by: str, why: str) -> KeptFinding:
        """Write what a person makes of a finding.

        Args:
            prefix: of the finding's id.
            state: what it becomes.
            by: who says so.
            why: in their words.

        Raises:
            NoSuchFinding: no finding, or several, have such an id.
            StorageFailed: it could not be written.
            FindingsBusy: another process does not let go of them.
        """
        with self._held():
            finding = self.log.find(prefix)
            said = TriageEvent(finding.id, state, by, why, utc_text(self._clock.now()))
            self._append(False, [self._line(said.as_json())])
            self.log.read_on()
        return finding

    def _line(self, data: dict[str, object]) -> bytes:
        def redact(body: bytes) -> bytes:
            return self._redact(body.decode("utf-8", "replace")).encode()

        return encode(data, redact)

    def _kept(self, one: Scanned, scanner: str, finding: Finding, at: str) -> KeptFinding:
        """Make the form that is kept; secrets go before anything is cut or digested."""
        scan = one.scan
        evidence = _cut(self._redact(finding.evidence), MAX_EVIDENCE_CHARS)
        message = _cut(self._redact(finding.message), MAX_MESSAGE_CHARS)
        category = _cut(self._redact(finding.category), MAX_MESSAGE_CHARS)
        version = scan.read.get(scanner, "")
        parts = (
            scanner, version, one.matrix_key, scan.case, scan.attempt, scan.digest,
            category, finding.step, evidence,
        )  # fmt: skip
        digest = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass"))
        return KeptFinding(
            id=digest.hexdigest()[:ID_DIGITS],
            scanner=scanner,
            version=version,
            severity=finding.severity,
            category=category,
            message=message,
            evidence=evidence,
            step=finding.step,
            confidence=float(finding.confidence),
            cell=scan.cell,
            matrix_key=one.matrix_key,
            case=scan.case,
            attempt=scan.attempt,
            run=one.run,
            digest=scan.digest,
            at=at,
        )

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the files' lock, with what others have added read."""
        deadline_s = self._clock.monotonic() + LOCK_WAIT_S
        try:
            while (lock := RunLock.try_acquire(self._files.findings_lock)) is None:
                if self._clock.monotonic() > deadline_s:
                    raise FindingsBusy(
                        f"another process holds the findings of {self._files.root}",
                        remedy="wait until it has ended, or end it",
                    )
                time.sleep(_PAUSE_S)
        except OSError as error:
            raise StorageFailed(self._files.findings_lock, error) from error
        try:
            self.log.read_on()
            yield
        finally:
            lock.release()

    def _append(self, is_scan: bool, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        if is_scan:
            path, end, damage = self._files.scans, self.log.scan_end, self.log.scan_damage
            points = (
                WritePoint.FINDINGS_SCANS_CREATED,
                WritePoint.FINDINGS_SCANS_APPENDED,
                WritePoint.FINDINGS_SCANS_SYNCED,
            )
        else:
            path, end, damage = self._files.findings, self.log.finding_end, self.log.finding_damage
            points = (
                WritePoint.FINDINGS_CREATED,
                WritePoint.FINDINGS_APPENDED,
                WritePoint.FINDINGS_SYNCED,
            )
        if damage is not None:
            self._keep_aside(path, damage)
        created, appended, synced = points
        is_new = not path.exists()
        file = AppendFile(path, appended, synced, self._faults, created=created, goes_on_at=end)
        try:
            file.append(b"".join(lines))
            file.sync()
        finally:
            file.close()
        if is_new:
            sync_folder(path.parent, self._faults)

    def _keep_aside(self, path: Path, damage: Damage) -> None:
        """Copy what cannot be read before it is cut off: nothing appended behind it would be read.

        Raises:
            NewerFindings: a newer version wrote it, and can read it.
            StorageFailed: it could not be copied; the file stands as it was.
        """
        if damage.kind is DamageKind.FUTURE:
            raise NewerFindings(f"{path}: {damage.detail}", remedy="use the version that wrote it")
        try:
            with open_plain(path, follow=False) as file:
                file.seek(damage.offset)
                data = file.read(MAX_KEPT_FILE_BYTES)
        except OSError as error:
            raise StorageFailed(path, error) from error
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        replace_atomically(
            aside,
            data,
            WritePoint.FINDINGS_DAMAGE_WRITTEN,
            WritePoint.FINDINGS_DAMAGE_RENAMED,
            self._faults,
        )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
