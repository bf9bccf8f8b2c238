"""Scanners that end a scan, or give what cannot be kept: named, and never taken for a clean set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from steelyard.components.scanner import Finding, FindingSeverity, ScannedAttempt, Scanner
from steelyard.evalset.chosen_scanners import JudgeModel
from steelyard.evalset.scanning import scan_set
from steelyard.testing.fake_model import ScriptedEndpoint, response
from tests.evalset.living_sets import LivingSet, living_set
from tests.evalset.scanner_of_tests import Words
from tests.evalset.scanning_sets import made, scanned, views

STEPS = {"harness": {"steps": True}}


@pytest.fixture
def thinking(tmp_path: Path) -> LivingSet:
    """Four cells of two cases; in each the agent says `thinking`."""
    living = living_set(tmp_path)
    living.run_all(**STEPS)
    living.end()
    return living


class Ends(Scanner):
    """Raises what is mostly no fault of a scanner's."""

    api = 1
    id = "ends"
    version: ClassVar[str] = "1"
    raises: ClassVar[type[BaseException]] = asyncio.CancelledError

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        if attempt.record.task_id == "t1":
            raise self.raises
        return []


class Interrupts(Ends):
    """Raises what Ctrl-C does."""

    raises: ClassVar[type[BaseException]] = KeyboardInterrupt


class EndsAsking(Ends):
    """The same in the path of judges."""

    needs_model = True


class FarAway(Scanner):
    """Names a step that no file of ours can hold."""

    api = 1
    id = "far-away"
    version: ClassVar[str] = "1"

    async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
        return [Finding("far", FindingSeverity.LOW, "m", "e", 10**30)]


@pytest.mark.parametrize("ends", [Ends, Interrupts])
def test_a_scanner_that_ends_its_task_is_named_and_the_rest_goes_on(
    ends: type[Scanner], thinking: LivingSet
) -> None:
    result = scanned(thinking, made(ends, Words))
    assert {(fault.scanner, fault.case) for fault in result.faults} == {("ends", "t1")}
    assert (result.attempts, result.fault_count, len(result.new)) == (8, 4, 8)
    assert result.exit_status == 1
    assert scanned(thinking, made(ends)).fault_count == 4  # what failed is read again


def test_a_scanner_that_ends_its_task_beside_a_judge_is_named(thinking: LivingSet) -> None:
    judge = JudgeModel(ScriptedEndpoint(lambda _request: response("yes")))
    result = scanned(thinking, made(EndsAsking), judge=judge)
    assert (result.read, result.fault_count, result.exit_status) == (4, 4, 1)


def test_a_scan_that_is_cancelled_ends(thinking: LivingSet) -> None:
    asked = asyncio.Event()

    class Waits(Ends):
        needs_model = True

        async def scan(self, attempt: ScannedAttempt) -> Sequence[Finding]:
            asked.set()
            await asyncio.Event().wait()
            return []

    async def cancelled() -> None:
        judge = JudgeModel(ScriptedEndpoint(lambda _request: response("yes")))
        scanning = asyncio.ensure_future(scan_set(thinking.opened, made(Waits), judge=judge))
        await asked.wait()
        scanning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(scanning, 10)

    asyncio.run(cancelled())


def test_a_step_that_cannot_be_kept_is_a_fault_not_a_lost_finding(thinking: LivingSet) -> None:
    result = scanned(thinking, made(FarAway))
    assert (len(result.new), result.fault_count) == (0, 8)
    assert "step" in result.faults[0].message
    assert views(thinking) == []
