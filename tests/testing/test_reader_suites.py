"""Each clause of the analyzers' and scanners' suites finds what breaks it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.testing import analyzer_suite as analyzers
from steelyard.testing import scanner_suite as scanners
from steelyard.testing.checks import Check, run_suite
from steelyard.testing.fake_run import finished_run
from tests.results.workload import a_record
from tests.results.written import write_run
from tests.testing.broken_readers import (
    BROKEN_ANALYZERS,
    BROKEN_SCANNERS,
    FINDS,
    PASSES,
    SoundAnalyzer,
    SoundScanner,
)


def _scanner_checks(component: type[SoundScanner] = SoundScanner) -> tuple[Check, ...]:
    return scanners.scanner_suite(component, finds=[FINDS], passes=[PASSES], judge=["yes"])


def test_every_clause_has_something_that_breaks_it() -> None:
    assert set(BROKEN_ANALYZERS) == set(analyzers.CLAUSES.names())
    assert set(BROKEN_SCANNERS) == set(scanners.CLAUSES.names())


@pytest.mark.parametrize("check", analyzers.analyzer_suite(SoundAnalyzer), ids=str)
def test_a_sound_analyzer_keeps_every_clause(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", _scanner_checks(), ids=str)
def test_a_sound_scanner_keeps_every_clause(check: Check) -> None:
    check()


@pytest.mark.parametrize("clause", BROKEN_ANALYZERS)
def test_a_broken_analyzer_breaks_its_clause_and_no_other(clause: str) -> None:
    broken = BROKEN_ANALYZERS[clause]
    failed = run_suite(analyzers.analyzer_suite(broken.component)).failed
    assert clause in failed
    assert set(failed) <= {clause, *broken.also}


@pytest.mark.parametrize("clause", BROKEN_SCANNERS)
def test_a_broken_scanner_breaks_its_clause_and_no_other(clause: str) -> None:
    broken = BROKEN_SCANNERS[clause]
    failed = run_suite(_scanner_checks(broken.component)).failed  # type: ignore[arg-type]
    assert clause in failed
    assert set(failed) <= {clause, *broken.also}


def test_an_analyzer_reads_a_run_from_disk(tmp_path: Path) -> None:
    failed = a_record("t2", metrics={}, outcome=Outcome.FAILED_ERROR)
    run = write_run(tmp_path, [a_record("t1"), failed])
    found = SoundAnalyzer(SoundAnalyzer.Params()).analyze(finished_run(run.files.root))
    assert found.data == {"attempts": 2, "share": 0.5}
