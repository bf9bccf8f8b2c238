"""What scanners found in a set, and what people said of it: read from two files, states derived.

`findings.jsonl` holds findings and what people said of them; `scans.jsonl` which scanner, of which
version, has read which attempt. Nothing in them is ever changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.config.errors import BadInput
from steelyard.evalset.finding_values import (
    KeptFinding,
    Scan,
    TriageEvent,
    TriageState,
    work_digest,
)
from steelyard.evalset.layout import SetFiles
from steelyard.evalset.set_reader import OpenedSet
from steelyard.results.consumption import NO_SPENDING, Spending
from steelyard.results.documents import RunUnreadable
from steelyard.results.lines import Damage, LineFile
from steelyard.results.records_io import MalformedRecord

KNOWN_FINDINGS: Final = {"finding": 1, "triage": 1}
KNOWN_SCANS: Final = {"scan": 1}
MIN_PREFIX: Final = 4
SUPERSEDED: Final = "superseded"
"""Shown in place of a state where a finding is no longer of what counts."""


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with what follows from everything else."""

    finding: KeptFinding
    state: TriageState
    triage: tuple[TriageEvent, ...]
    """What people said, the latest last."""
    is_superseded: bool
    """A newer version of the scanner has read the attempt, or the attempt was executed again."""

    @property
    def shown_state(self) -> str:
        """The state, or `superseded`."""
        return SUPERSEDED if self.is_superseded else self.state.value

    def as_json(self) -> dict[str, Any]:
        """Give the form that `findings --json` prints."""
        data = self.finding.as_json()
        del data["schema"]
        return {
            **data,
            "state": self.state.value,
            "is_superseded": self.is_superseded,
            "triage": [
                {"state": one.state.value, "by": one.by, "why": one.why, "at": one.at}
                for one in self.triage
            ],
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """How much scanners had to read."""

    attempts: int
    """That any scanner has read to its end."""
    silent: int
    """Of these, without a call or text of the agent that can be read: there, finding nothing says
    nothing."""

    def as_json(self) -> dict[str, int]:
        """Give the form of documents."""
        return {"attempts": self.attempts, "silent": self.silent}

    @property
    def warning(self) -> str | None:
        """What is to be said beside the findings; None where every attempt could be read."""
        if not self.silent:
            return None
        return (
            f"{self.silent} of {self.attempts} attempts without a call or text that can be read: "
            "nothing could be found there"
        )


class NoSuchFinding(BadInput):
    """No finding, or several, have an id that begins so."""


_Place = tuple[int, str, int]
"""Cell, case, attempt."""


class FindingLog:
    """Both files of a set, read as far as they are valid; `read_on` takes in what was added."""

    def __init__(self, files: SetFiles) -> None:
        """Read them; files that are not there are empty."""
        self.files = files
        self.findings: dict[str, KeptFinding] = {}
        self.triage: dict[str, list[TriageEvent]] = {}
        self.spent = NO_SPENDING
        """By judge models, over all scans."""
        self.finding_damage: Damage | None = None
        self.scan_damage: Damage | None = None
        self.finding_end = self.scan_end = 0
        self._read: dict[tuple[str, _Place], bytes] = {}
        """What each scanner has read last of each attempt: version and work, digested."""
        self._silent: dict[_Place, str] = {}
        """Attempts in which there was nothing to read, with the digest of that work."""
        self._left_out = 0
        self._unreadable: dict[str, None] = {}
        self.read_on()

    def read_on(self) -> None:
        """Take in what was appended since."""
        for data in self._lines(is_scan=False):
            if str(data.get("schema")).startswith("triage/"):
                said = TriageEvent.from_json(data)
                self.triage.setdefault(said.finding, []).append(said)
            else:
                finding = KeptFinding.from_json(data)
                self.findings.setdefault(finding.id, finding)
        for data in self._lines(is_scan=True):
            scan = Scan.from_json(data)
            self.spent += scan.spent
            if any(one not in self.findings for one in scan.found):
                continue  # what it found was lost: it is to be read again
            place = scan.cell, scan.case, scan.attempt
            if scan.is_silent:
                self._silent[place] = scan.digest
            elif self._silent.get(place) != scan.digest:
                self._silent.pop(place, None)
            for scanner, version in scan.read.items():
                self._read[scanner, place] = _mark(version, scan.digest)

    def _lines(self, *, is_scan: bool) -> Iterator[dict[str, Any]]:
        """Iterate over whole lines; one that is not what it must be is left out by the caller."""
        path = self.files.scans if is_scan else self.files.findings
        known = KNOWN_SCANS if is_scan else KNOWN_FINDINGS
        start = self.scan_end if is_scan else self.finding_end
        scan = LineFile(path, known=known, start=start)
        try:
            for _, data in scan:
                try:
                    _check(data, is_scan=is_scan)
                except (KeyError, TypeError, ValueError, AttributeError):
                    self._left_out += 1
                    continue
                yield data
        except OSError as error:
            self._unreadable[f"{path.name}: {error.strerror or error}"] = None
        if is_scan:
            self.scan_end, self.scan_damage = scan.end, scan.damage
        else:
            self.finding_end, self.finding_damage = scan.end, scan.damage

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the files."""
        found = list(self._unreadable)
        for name, damage in (("findings", self.finding_damage), ("scans", self.scan_damage)):
            if damage is not None:
                found.append(f"{name}.jsonl: {damage}; what follows is not used")
        if self._left_out:
            found.append(f"{self._left_out} lines are none of this product's, and left out")
        return tuple(found)

    def has_read(self, scanner: str, version: str, place: _Place, digest: str) -> bool:
        """True where this version has read this very work to its end."""
        return self._read.get((scanner, place)) == _mark(version, digest)

    def has_been_scanned(self) -> bool:
        """True where anything was ever read."""
        return bool(self._read)

    def reading(self, cells: Collection[int] | None = None) -> Reading:
        """Count what was read of some cells, by their numbers; of all by default."""
        read = {place for _, place in self._read}
        return Reading(
            *(
                sum(cells is None or place[0] in cells for place in places)
                for places in (read, self._silent.keys() & read)
            )
        )

    def view(self, finding: KeptFinding) -> FindingView:
        """Say what follows for a finding from everything else."""
        said = tuple(self.triage.get(finding.id, ()))
        place = finding.cell, finding.case, finding.attempt
        latest = self._read.get((finding.scanner, place))
        is_old = latest is not None and latest != _mark(finding.version, finding.digest)
        return FindingView(finding, said[-1].state if said else TriageState.OPEN, said, is_old)

    def views(self) -> Iterator[FindingView]:
        """Iterate over all findings, in the order in which they were found."""
        for finding in self.findings.values():
            yield self.view(finding)

    def find(self, prefix: str) -> KeptFinding:
        """Give the finding whose id begins so.

        Raises:
            NoSuchFinding: there is none, there are several, or the prefix is too short.
        """
        if prefix in self.findings:
            return self.findings[prefix]
        if len(prefix) < MIN_PREFIX:
            raise NoSuchFinding(
                f"{prefix!r} is too short for a finding's id",
                remedy=f"write at least its first {MIN_PREFIX} digits",
            )
        found = [finding for name, finding in self.findings.items() if name.startswith(prefix)]
        if len(found) > 1:
            names = ", ".join(sorted(finding.id for finding in found)[:5])
            raise NoSuchFinding(
                f"{len(found)} findings have an id that begins with {prefix!r}",
                remedy=f"write more of it: {names}",
            )
        if not found:
            raise NoSuchFinding(
                f"no finding has an id that begins with {prefix!r}",
                remedy="`steelyard evalset findings SET` lists them",
            )
        return found[0]


def _check(data: Mapping[str, Any], *, is_scan: bool) -> None:
    if is_scan:
        Scan.from_json(data)
    elif str(data.get("schema")).startswith("triage/"):
        TriageEvent.from_json(data)
    else:
        KeptFinding.from_json(data)


def _mark(version: str, digest: str) -> bytes:
    """Give 16 bytes for a version and a work: of 200,000 attempts all are remembered."""
    return hashlib.blake2b(f"{version}\0{digest}".encode(), digest_size=16).digest()


class ScanSpending:
    """What the judges of a set's scanners have cost; reads on from where it stopped."""

    def __init__(self, files: SetFiles) -> None:
        self._path = files.scans
        self._position = 0
        self.total = NO_SPENDING

    def read_on(self) -> Spending:
        """Take in what was added since, and give all of it."""
        scan = LineFile(self._path, known=KNOWN_SCANS, start=self._position)
        with suppress(OSError):
            for _, data in scan:
                with suppress(KeyError, TypeError, ValueError):
                    if data["spent"] is not None:
                        self.total += Spending.from_json(data["spent"])
        self._position = scan.end
        return self.total


def finding_views(opened: OpenedSet, log: FindingLog | None = None) -> Iterator[FindingView]:
    """Iterate over a set's findings, in the order in which they were found.

    Those of attempts that were executed again since are superseded, whether or not a scanner has
    read the new execution.

    Args:
        opened: the set.
        log: what was read of its findings already.
    """
    log = log or FindingLog(opened.files)
    again = _executed_again(opened, log)
    for view in log.views():
        is_old = view.is_superseded or view.finding.id in again
        yield replace(view, is_superseded=is_old) if is_old else view


def _executed_again(opened: OpenedSet, log: FindingLog) -> set[str]:
    """Give the ids of findings whose attempt's record is of other work now."""
    by_cell: dict[int, list[KeptFinding]] = {}
    for finding in log.findings.values():
        by_cell.setdefault(finding.cell, []).append(finding)
    found = set()
    for cell in opened.cells:
        findings = by_cell.get(cell.index)
        if not findings:
            continue
        root = opened.run_dir(cell)
        if root is None or all(one.run == root.name for one in findings):
            continue
        try:
            reader = opened.reader(cell)
            for one in findings:
                record = None if reader is None else reader.record(one.case, one.attempt)
                if record is not None and work_digest(record) != one.digest:
                    found.add(one.id)
        except (RunUnreadable, MalformedRecord):
            continue
    return found


def finding_counts(opened: OpenedSet, log: FindingLog | None = None) -> list[dict[str, Any]]:
    """Count findings by scanner, severity, state, agent and model, for reports.

    Each row is `{scanner, severity, state, agent, model, count}`; `state` may be `superseded`,
    `model` is None where the set has no axis of models.

    Args:
        opened: the set.
        log: what was read of its findings already.
    """
    cells = {cell.index: cell for cell in opened.cells}
    found: Counter[tuple[str, str, str, str, str]] = Counter()
    for view in finding_views(opened, log):
        one = view.finding
        cell = cells.get(one.cell)
        agent = "unknown" if cell is None else cell.agent.shown
        model = "" if cell is None else cell.cell.model_ref or ""
        found[one.scanner, one.severity.value, view.shown_state, agent, model] += 1
    return [
        {
            "scanner": scanner,
            "severity": severity,
            "state": state,
            "agent": agent,
            "model": model or None,
            "count": n,
        }
        for (scanner, severity, state, agent, model), n in sorted(found.items())
    ]


def findings_by_attempt(opened: OpenedSet) -> dict[tuple[int, str, int], list[FindingView]]:
    """Give the findings of each attempt by (cell, case, attempt); superseded ones left out."""
    found: dict[tuple[int, str, int], list[FindingView]] = {}
    for view in finding_views(opened):
        one = view.finding
        if not view.is_superseded:
            found.setdefault((one.cell, one.case, one.attempt), []).append(view)
    return found
