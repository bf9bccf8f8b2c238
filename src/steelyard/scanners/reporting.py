"""Findings of one attempt: each with evidence that stands in its step, no more than a few alike."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from steelyard.components.scanner import Finding, FindingSeverity
from steelyard.components.steps import Step

MAX_PER_CATEGORY: Final = 10
"""Findings of one category in one attempt; the last says that there are more."""
MAX_EVIDENCE_CHARS: Final = 400
_SPECIAL: Final = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]+')


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found, before its evidence is looked for in the step."""

    category: str
    severity: FindingSeverity
    message: str
    text: str
    """As the command was written, or what comes nearest."""
    confidence: float = 0.9


class Report:
    """Collects the findings of one attempt."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._seen: set[tuple[str, int | None, str]] = set()

    def add(self, hit: Hit, step: Step | None, number: int | None) -> None:
        """Keep a hit, unless the same evidence of that step is there already."""
        if self._counts[hit.category] >= MAX_PER_CATEGORY + 1:
            return
        evidence = located(step, hit.text) if step is not None else hit.text[:MAX_EVIDENCE_CHARS]
        key = (hit.category, number, evidence)
        if key in self._seen:
            return
        self._seen.add(key)
        self._counts[hit.category] += 1
        if self._counts[hit.category] > MAX_PER_CATEGORY:
            return
        self._findings.append(
            Finding(hit.category, hit.severity, hit.message, evidence, number, hit.confidence)
        )

    def findings(self) -> list[Finding]:
        """Give them in the order of the steps; the last of a full category says so."""
        full = {name for name, count in self._counts.items() if count > MAX_PER_CATEGORY}
        last = {one.category: place for place, one in enumerate(self._findings)}
        return [
            replace(one, message=f"{one.message} More of this category were left out.")
            if one.category in full and last[one.category] == place
            else one
            for place, one in enumerate(self._findings)
        ]


def located(step: Step, text: str) -> str:
    """Give the part of a step that shows a text: itself, as JSON has it, or a piece of it."""
    wanted = text.strip()[:MAX_EVIDENCE_CHARS]
    texts = list(_texts(step))
    for form in _forms(wanted):
        if form and any(form in one for one in texts):
            return form
    pieces = sorted(_SPECIAL.split(wanted), key=len, reverse=True)
    for piece in pieces[:5]:
        if len(piece) > 2 and any(piece in one for one in texts):
            return piece
    return next((one[:MAX_EVIDENCE_CHARS] for one in texts if one), "")


def _forms(text: str) -> Iterator[str]:
    yield text
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1]


def _texts(step: Step) -> Iterator[str]:
    for call in step.tool_calls:
        yield call.arguments
        yield call.name
    yield step.message
    yield step.reasoning or ""
    for result in step.results:
        yield result.content
