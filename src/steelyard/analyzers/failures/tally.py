"""Counts and examples of diagnoses, in memory that does not grow with the attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from steelyard.analyzers.failures.classes import WORDS, Diagnosis, FailureClass
from steelyard.analyzers.failures.phrases import quote
from steelyard.analyzers.failures.rules import RULES_VERSION, details_of
from steelyard.components.analyzer import FinishedAttempt
from steelyard.components.issues import Outcome

MAX_CATEGORIES: Final = 200
"""Further ones are counted together."""
OTHERS: Final = "(other categories)"
NONE: Final = "(no category)"
FAILED: Final = frozenset({Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT})
_MAX_ID_CHARS: Final = 200


class PointRule:
    """Tells who got nothing, by the primary metric that `run.json` names."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        info = document.get("benchmark_info")
        info = info if isinstance(info, Mapping) else {}
        self.metric = str(info.get("primary") or "score")
        metrics = info.get("metrics")
        spec = next(
            (
                one
                for one in (metrics if isinstance(metrics, list) else ())
                if isinstance(one, Mapping) and one.get("name") == self.metric
            ),
            {},
        )
        self.higher_is_better = spec.get("higher_is_better") is not False

    def got_nothing(self, attempt: FinishedAttempt) -> bool:
        """True where it ran without a score, or was scored and got no point."""
        if attempt.outcome in FAILED:
            return True
        value = attempt.metrics.get(self.metric)
        is_scored = attempt.outcome is Outcome.SCORED and value is not None
        return is_scored and self.higher_is_better and not value


@dataclass(slots=True)
class _OfClass:
    count: int = 0
    inferred: int = 0
    categories: Counter[str] = field(default_factory=Counter)
    signs: Counter[FailureClass] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)


class Tally:
    """Counts attempts as they come."""

    def __init__(self, rule: PointRule, max_examples: int) -> None:
        self._rule = rule
        self._max_examples = max_examples
        self._outcomes: Counter[Outcome] = Counter()
        self._failed = 0
        self._by_class: dict[FailureClass, _OfClass] = {}
        self._categories: Counter[str] = Counter()
        self._category_sizes: Counter[str] = Counter()
        self._unreadable = 0
        self._unreadable_examples: list[dict[str, Any]] = []
        self._without_trajectory = 0

    def saw(self, attempt: FinishedAttempt) -> None:
        """Count an attempt, whatever became of it."""
        self._outcomes[attempt.outcome] += 1
        if attempt.outcome in FAILED or attempt.outcome is Outcome.SCORED:
            self._category_sizes[self._category(attempt)] += 1

    def diagnosed(self, attempt: FinishedAttempt, found: Diagnosis) -> None:
        """Count what one that got nothing died of."""
        self._failed += 1
        category = self._category(attempt)
        self._categories[category] += 1
        if attempt.trajectory is None:
            self._without_trajectory += 1
        of_class = self._by_class.setdefault(found.cause.failure, _OfClass())
        of_class.count += 1
        of_class.inferred += not found.is_recorded
        of_class.categories[category] += 1
        of_class.signs.update({sign.failure for sign in found.signs})
        if len(of_class.examples) < self._max_examples:
            of_class.examples.append(
                {
                    **self._name(attempt),
                    "where": found.cause.where,
                    "quote": found.cause.quote,
                    "signs": [details_of(sign) for sign in found.signs],
                }
            )

    def unreadable(self, attempt: FinishedAttempt, reason: str) -> None:
        """Note that an attempt was judged without its trajectory, which is damaged."""
        self._unreadable += 1
        if len(self._unreadable_examples) < max(self._max_examples, 1):
            self._unreadable_examples.append({**self._name(attempt), "reason": quote(reason)})

    def result(self) -> dict[str, Any]:
        """Give the figures, all but the words."""
        order = list(FailureClass)
        ranked = sorted(
            self._by_class.items(), key=lambda item: (-item[1].count, order.index(item[0]))
        )
        ran = sum(self._category_sizes.values())
        return {
            "rules": RULES_VERSION,
            "metric": self._rule.metric,
            "judges_scores": self._rule.higher_is_better,
            "attempts": {
                "recorded": sum(self._outcomes.values()),
                "ran": ran,
                "failed": self._failed,
                "outcomes": {
                    word.value: self._outcomes[word] for word in Outcome if self._outcomes[word]
                },
            },
            "classes": [
                {
                    "class": failure.value,
                    "meaning": WORDS[failure],
                    "count": one.count,
                    "share": one.count / self._failed,
                    "inferred": one.inferred,
                    "by_category": _ranked(one.categories),
                    "signs": _ranked(Counter({k.value: v for k, v in one.signs.items()})),
                    "examples": one.examples,
                }
                for failure, one in ranked
            ],
            "by_category": {
                name: {"failed": count, "ran": self._category_sizes[name]}
                for name, count in _ranked(self._categories).items()
            },
            "without_trajectory": self._without_trajectory,
            "unreadable_trajectories": {
                "count": self._unreadable,
                "examples": self._unreadable_examples,
            },
        }

    def _category(self, attempt: FinishedAttempt) -> str:
        name = NONE if attempt.category is None else quote(attempt.category, 80)
        is_known = name in self._category_sizes
        return name if is_known or len(self._category_sizes) < MAX_CATEGORIES else OTHERS

    @staticmethod
    def _name(attempt: FinishedAttempt) -> dict[str, Any]:
        return {
            "task_id": attempt.task_id[:_MAX_ID_CHARS],
            "attempt": attempt.attempt,
            "category": None if attempt.category is None else quote(attempt.category, 80),
            "outcome": attempt.outcome.value,
        }


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
