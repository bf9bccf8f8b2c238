"""An analyzer: how long right and wrong answers are."""

from __future__ import annotations

from typing import ClassVar

from steelyard.components.analyzer import Analysis, Analyzer, FinishedRun
from steelyard.components.issues import Outcome


class AnswerLengths(Analyzer):
    """Keeps two numbers a group, not the records: a run may have a million."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "answer-lengths"
    version: ClassVar[str] = "1"

    def analyze(self, run: FinishedRun) -> Analysis:
        """Average the lengths of what was answered, by the primary metric."""
        info = run.document.get("benchmark_info", {})
        primary = info.get("primary")
        totals = {"right": [0, 0], "wrong": [0, 0]}
        for record in run.records():
            if record.outcome is not Outcome.SCORED or record.answer is None:
                continue
            group = totals["right" if record.metrics.get(primary) else "wrong"]
            group[0] += 1
            group[1] += len(record.answer)
        data = {
            name: {"answers": count, "mean_chars": length / count if count else None}
            for name, (count, length) in totals.items()
        }
        rows = "".join(
            f"| {name} | {group['answers']} | {_shown(group['mean_chars'])} |\n"
            for name, group in data.items()
        )
        table = f"| answers that were | how many | characters |\n| --- | --: | --: |\n{rows}"
        return Analysis(self.id, self.version, data, table)


def _shown(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.1f}"
