"""Scan living sets in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from steelyard.components.clock import SystemClock
from steelyard.components.scanner import Scanner
from steelyard.evalset.findings import FindingLog, FindingView, finding_views
from steelyard.evalset.scan_values import ScanResult
from steelyard.evalset.scanning import scan_set
from steelyard.evalset.set_reader import OpenedSet
from tests.evalset.living_sets import LivingSet

CLOCK = SystemClock()


def made(*classes: type[Scanner], **params: Any) -> list[Scanner]:
    return [one(one.Params.model_validate(params)) for one in classes]


def scanned(living: LivingSet, scanners: Sequence[Scanner], **options: Any) -> ScanResult:
    return asyncio.run(scan_set(living.opened, scanners, **options))


def log_of(living: LivingSet) -> FindingLog:
    return FindingLog(living.opened.files)


def views(living: LivingSet) -> list[FindingView]:
    return list(finding_views(OpenedSet(living.root)))
